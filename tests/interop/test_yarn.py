"""The same bytes on a real YARN as on this machine: reports, requests, rows of verdicts and per-second totals."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import COMMAND, Done, environment, run
from tests.support.lake_days import days_of_parquet
from tests.support.manifests import quotas
from tests.support.polling import wait_until
from tests.support.spark_servers import SPARK_BIN, executors_below, spark_environment
from tests.support.wheels import build_wheel
from tests.support.yarn_server import YarnServer, yarn_environment, yarn_server
from tests.traffic.conftest import RECORDINGS
from tests.traffic.test_jobs_that_fail import write_traffic

pytestmark = pytest.mark.interop

LAUNCHER = Path(__file__).parents[2] / "deploy" / "spark_submit.py"
LOG = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
MANIFEST = quotas(
    ({"user": {"default": True}}, {"producer_byte_rate": "4MiB"}),
    ({"user": "alice"}, {"producer_byte_rate": "50KiB", "request_percentage": 1}),
    ({"user": "user-7"}, {"producer_byte_rate": "99GB"}),
)
PATIENCE_S = 600
HERE = ("--master", "local[2]")
THERE = ("--master", "yarn", "--conf", "spark.driver.memory=1g")
POISON = 'raise SystemExit("a module of the working directory ran")\n'


def there_as_here(report: str) -> str:
    """A report as it is of YARN, wherever Spark ran: all else is the same."""
    return re.sub('"spark": "[^"]*"', '"spark": "yarn"', report)


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnServer]:
    with yarn_server(tmp_path_factory.mktemp("yarn")) as server:
        yield server


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, yarn: YarnServer) -> Path:
    """The working directory of every command. HDFS has a copy of its traffic in ``/traffic``."""
    root = tmp_path_factory.mktemp("work")
    (root / "quotas.yaml").write_text(MANIFEST, "utf-8")
    days_of_parquet(root / "days", 2)
    write_traffic(root / "rows")
    (root / "logs").mkdir()
    shutil.copy(LOG, root / "logs" / "broker-7.log.gz")
    for name in ("days", "rows", "logs"):
        yarn.hdfs.put(root / name, "/traffic/")
    for name in ("socket", "numpy", "pyarrow", "tempfile"):
        (root / f"{name}.py").write_text(POISON, "utf-8")
    return root


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory, yarn: YarnServer) -> dict[str, str]:
    """The environment of a client of this YARN, whose containers have a Python without this project."""
    return yarn_environment(yarn, spark_environment(tmp_path_factory.mktemp("client")))


@pytest.fixture(scope="module")
def traffic(yarn: YarnServer) -> dict[str, str]:
    """Arguments of ``--traffic``. The default file system of ``HADOOP_CONF_DIR`` is HDFS, so a local path is a case, too."""
    hdfs = f"{yarn.hdfs.address}/traffic"
    return {"days": f"{hdfs}/days", "rows": f"{hdfs}/rows", "log": f"7={hdfs}/logs/broker-7.log.gz", "shared": "7=logs"}


@pytest.fixture(scope="module")
def expected(work: Path, traffic: dict[str, str]) -> Callable[..., str]:
    """The report of a Spark in the command."""

    @functools.cache
    def report_of(name: str, *options: str) -> str:
        done = run("backtest", "quotas.yaml", "--traffic", traffic[name], "--format", "json", *options, *HERE, cwd=work)
        assert done.code == 0, done.err
        assert done.json()["verdicts"]
        return there_as_here(done.out)

    return report_of


def run_there(work: Path, variables: dict[str, str], yarn: YarnServer, *arguments: str) -> Done:
    """The command on YARN, which then has one application more: it ended well, and its workers ran in containers."""
    before = yarn.applications()
    done = run(*arguments, *THERE, cwd=work, env=variables, timeout=PATIENCE_S)
    assert done.code == 0, done.err
    require_workers(yarn, before)
    return done


def require_workers(yarn: YarnServer, before: Mapping[str, dict[str, Any]]) -> None:
    (application,) = ended_since(yarn, before)
    assert application["finalStatus"] == "SUCCEEDED"
    assert len(yarn.containers_of(application["id"])) > 1  # one is the master of the application


def ended_since(yarn: YarnServer, before: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The applications that are new, once they have ended."""

    def ended() -> list[dict[str, Any]]:
        apps = [app for name, app in yarn.applications().items() if name not in before]
        return apps if all(app["state"] in {"FINISHED", "FAILED", "KILLED"} for app in apps) else []

    return wait_until(ended)


@pytest.mark.parametrize(
    ("name", "options"),
    [("days", ()), ("days", ("--exact",)), ("log", ("--requests",)), ("shared", ())],
    ids=["seconds", "exact", "requests", "local path"],
)
def test_a_report_of_yarn_has_the_bytes_of_one_of_this_machine(
    name: str,
    options: tuple[str, ...],
    work: Path,
    variables: dict[str, str],
    traffic: dict[str, str],
    yarn: YarnServer,
    expected,
) -> None:
    files = [(f"{place}.jsonl",) if options == ("--requests",) else () for place in ("here", "there")]
    backtest = ("backtest", "quotas.yaml", "--traffic", traffic[name], "--format", "json", *options)

    there = run_there(work, variables, yarn, *backtest, *files[1])

    assert there.out == expected(name, *options, *files[0])
    if files[0]:
        assert (work / "there.jsonl").read_bytes() == (work / "here.jsonl").read_bytes() != b""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_spark_submit_on_yarn_gives_the_bytes_of_this_machine(
    mode: str, work: Path, variables: dict[str, str], traffic: dict[str, str], yarn: YarnServer, wheel: Path, expected
) -> None:
    """In cluster mode, the driver runs in a container. Its report is in the logs of YARN, and manifests go along."""
    before = yarn.applications()

    done = submit(mode, traffic["days"], work, variables, wheel)

    assert done.returncode == 0, done.stderr
    (application,) = ended_since(yarn, before)
    assert application["finalStatus"] == "SUCCEEDED"
    assert len(yarn.containers_of(application["id"])) > 1
    reports = [done.stdout] if mode == "client" else yarn.outputs(application["id"], "stdout")
    assert [there_as_here(each) for each in reports] == [expected("days")]


def test_a_command_that_fails_in_cluster_mode_runs_once_and_fails_the_application(
    work: Path, variables: dict[str, str], yarn: YarnServer, wheel: Path
) -> None:
    before = yarn.applications()

    done = submit("cluster", "nowhere", work, variables, wheel)

    assert (done.returncode, done.stdout) == (1, "")
    (application,) = ended_since(yarn, before)
    assert application["finalStatus"] == "FAILED"
    assert len(yarn.containers_of(application["id"])) == 1
    assert yarn.outputs(application["id"], "stdout") == ["kafka-quotas: recorded traffic nowhere: no such file or folder\n"]


def submit(mode: str, traffic: str, work: Path, variables: dict[str, str], wheel: Path) -> subprocess.CompletedProcess[str]:
    once = ("--conf", "spark.yarn.maxAppAttempts=1")
    command = [str(SPARK_BIN / "spark-submit"), "--master", "yarn", "--deploy-mode", mode, *once, "--files", "quotas.yaml"]
    command += ["--py-files", str(wheel), str(LAUNCHER)]
    return subprocess.run(
        [*command, "backtest", "quotas.yaml", "--traffic", traffic, "--format", "json"],
        cwd=work,
        env=environment({**variables, "SPARK_HOME": str(SPARK_BIN.parent)}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_an_executor_that_is_killed_while_it_shuffles_does_not_change_the_report(
    work: Path, variables: dict[str, str], traffic: dict[str, str], yarn: YarnServer, expected, tmp_path: Path
) -> None:
    before = yarn.applications()
    killed: list[int] = []
    lines = []
    backtest = ("backtest", "quotas.yaml", "--traffic", traffic["rows"], "--format", "json", "--exact")
    with (
        (tmp_path / "report.json").open("w") as report_file,
        subprocess.Popen(
            [*COMMAND, *backtest, "-v", *THERE],
            cwd=work,
            env=environment(variables),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=report_file,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "shuffle planned" in line and not killed:
                killed = wait_until(lambda: executors_below(yarn.containers))[:1]
                os.kill(killed[0], signal.SIGKILL)
        process.wait(PATIENCE_S)

    assert killed
    assert process.returncode == 0, "".join(lines)
    require_workers(yarn, before)
    there = (tmp_path / "report.json").read_text("utf-8")
    assert there_as_here(there) == expected("rows", "--exact")
