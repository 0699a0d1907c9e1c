"""The same bytes wherever Spark runs: in a JVM of our own, on a standalone cluster, by spark-submit."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.bad_servers import refusing_port
from tests.support.command import COMMAND, Done, environment, invoke, run
from tests.support.manifests import quotas
from tests.support.spark_servers import SPARK_BIN, spark_environment, standalone_cluster
from tests.support.wheels import build_wheel
from tests.traffic.conftest import RECORDINGS

pytestmark = pytest.mark.spark
SERVERS = pytest.mark.xdist_group("spark-servers")
"""On servers of their own, for minutes: not after the tests that share a session, but beside them."""

ROOT = Path(__file__).parents[2]
LOG = str(RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz")
MANIFEST = quotas(
    ({"user": "alice"}, {"producer_byte_rate": "100KiB", "consumer_byte_rate": "200KiB", "request_percentage": 1}),
    ({"user": "bob"}, {"producer_byte_rate": "300KiB"}),
)
PATIENCE_S = 400
BACKTEST = ("backtest", "quotas", "--traffic", "broker-0", "--format", "json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("anywhere")
    (root / "quotas").mkdir()
    (root / "quotas" / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def cluster_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("standalone")


@pytest.fixture(scope="module")
def standalone(cluster_folder: Path) -> Iterator[tuple[str, ...]]:
    with standalone_cluster(cluster_folder) as master:
        yield ("--master", master, "--conf", "spark.driver.memory=1g")


POISON = """import os, sys
with open({marker!r}, "a") as marker:
    marker.write(f"{name}: {{sys.argv}}\\n")
raise SystemExit(1)
"""
POISONED = ("socket", "numpy", "sitecustomize", "usercustomize", "pandas", "pyarrow", "tempfile", "struct", "_strptime")
CONSOLE_SCRIPT = (sys.executable, str(Path(sys.executable).with_name("kafka-quotas")))


@pytest.fixture(scope="module")
def hostile(folder: Path) -> tuple[Path, Path]:
    """A work tree with modules and a Spark that a stranger wrote, and the file where each of them would leave its name."""
    above = folder / "hostile"
    tree, marker = above / "tree", folder / "executed"
    shutil.copytree(folder / "quotas", tree / "quotas")
    (tree / "broker-0").mkdir()
    shutil.copy(LOG, tree / "broker-0")
    for name in POISONED:
        (tree / f"{name}.py").write_text(POISON.format(marker=str(marker), name=name), encoding="utf-8")
    for spark in (above, tree):
        (spark / "jars").mkdir()
        (spark / "bin").mkdir()
        (spark / "bin" / "spark-submit").write_text(f"#!/bin/sh\necho spark-submit >> {marker}\nexit 1\n", encoding="utf-8")
        (spark / "bin" / "spark-submit").chmod(0o755)
    return tree, marker


FORMS = {"seconds": (), "exact": ("--requests", "requests.jsonl")}


def report(command: Sequence[str], hostile: tuple[Path, Path], *where: str, form: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The report on the traffic below the hostile directory, and the requests when they are asked for."""
    done = run_in(hostile, command, *where, form=form, env=env)
    return without_place(done.stdout), requests_in(hostile[0])


def run_in(
    hostile: tuple[Path, Path], command: Sequence[str], *where: str, form: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The command in the hostile directory, of which nothing runs."""
    tree, marker = hostile
    for file in (marker, tree / "requests.jsonl"):
        file.unlink(missing_ok=True)
    done = subprocess.run(
        [*command, *BACKTEST, *FORMS[form], *where],
        cwd=tree,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert not marker.exists(), marker.read_text()
    assert done.returncode == 0, done.stderr
    return done


def without_place(report: str) -> str:
    """A report without where Spark ran: all else must be the same everywhere."""
    document = json.loads(report)
    document["provenance"].pop("spark", None)
    return json.dumps(document)


def requests_in(tree: Path) -> str:
    written = tree / "requests.jsonl"
    return written.read_text(encoding="utf-8") if written.exists() else ""


@pytest.fixture(scope="module")
def expected(hostile: tuple[Path, Path]) -> Callable[[str], tuple[str, str]]:
    """What is reported in a form of ``FORMS`` without any Spark."""

    @functools.cache
    def report_of(form: str) -> tuple[str, str]:
        done = invoke(*BACKTEST, *FORMS[form], cwd=hostile[0])
        assert done.code == 0, done.err
        assert done.json()["verdicts"]
        return without_place(done.out), requests_in(hostile[0])

    return report_of


@SERVERS
@pytest.mark.large
@pytest.mark.parametrize("form", FORMS)
def test_a_standalone_cluster_says_the_same_and_runs_no_module_of_the_working_directory(
    form: str, folder: Path, hostile: tuple[Path, Path], standalone: tuple[str, ...], expected
) -> None:
    assert report(CONSOLE_SCRIPT, hostile, *standalone, form=form, env=spark_environment(folder)) == expected(form)


def test_no_module_of_the_working_directory_runs_on_this_machine(hostile: tuple[Path, Path], expected) -> None:
    logged = ("-v", "--log-format", "json")
    done = run_in(hostile, CONSOLE_SCRIPT, "--master", "local[2]", *logged, form="seconds", env={})

    assert (without_place(done.stdout), requests_in(hostile[0])) == expected("seconds")
    events = [json.loads(line)["event"] for line in done.stderr.splitlines() if line.startswith("{")]
    assert [event for event in events if event.startswith("Spark st")] == ["Spark started", "Spark stopped"]


@pytest.mark.parametrize("where", [(), pytest.param(("--master", "local[2]"), marks=pytest.mark.large)], ids=["here", "Spark"])
def test_no_module_of_the_working_directory_runs_when_python_is_given_ours(
    where: tuple[str, ...], hostile: tuple[Path, Path], expected
) -> None:
    assert report(COMMAND, hostile, *where, form="seconds", env={}) == expected("seconds")


@SERVERS
@pytest.mark.large
@pytest.mark.parametrize("where", ["local", "standalone"])
def test_spark_submit_runs_it_from_one_wheel_and_no_module_of_the_working_directory(
    where: str, hostile: tuple[Path, Path], expected, request: pytest.FixtureRequest, folder: Path, wheel: Path
) -> None:
    master = "local[2]" if where == "local" else request.getfixturevalue(where)[1]
    launcher = shutil.copy(ROOT / "deploy" / "spark_submit.py", hostile[0])
    command = [str(SPARK_BIN / "spark-submit"), "--master", master, "--py-files", str(wheel), str(launcher)]

    found = report(command, hostile, form="seconds", env={**spark_environment(folder), "SPARK_HOME": str(SPARK_BIN.parent)})

    assert found == expected("seconds")


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    return build_wheel(folder)


def test_an_address_of_the_wrong_kind_is_wrong_usage(folder: Path) -> None:
    done: Done = invoke("backtest", "quotas", "--traffic", LOG, "--master", "locl", cwd=folder)

    assert done.code == 64
    assert "write local[*]" in done.err


@pytest.mark.parametrize("master", ["spark://127.0.0.1:{0},localhost:{0}", "k8s://https://127.0.0.1:{0}"])
def test_a_master_that_is_not_there_is_a_sentence(folder: Path, master: str) -> None:
    where = master.format(refusing_port())
    done = run("backtest", "quotas", "--traffic", LOG, "--master", where, cwd=folder)

    assert done.code == 1
    assert (
        done.err == f"kafka-quotas: Spark does not start on {where}: no master answers there ([Errno 111] Connection refused)\n"
    )


def test_yarn_without_the_settings_of_hadoop_is_a_sentence_that_names_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    done = run("backtest", "quotas", "--traffic", LOG, "--master", "yarn", cwd=folder)

    assert done.code == 1
    assert "Spark does not start on yarn: When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR" in done.err
