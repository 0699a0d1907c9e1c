"""``kafka-quotas sandbox`` as a user runs it: real processes, real signals, a state folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.files import cache_folder
from reconciler.resolution.reserved_users import GROUP_CALLBACK
from tests.support import raw_quotas
from tests.support.command import invoke, run
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

COMMAND = [sys.executable, "-m", "reconciler", "sandbox"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A cache folder of its own, but for the jars; temporary folders go where the test can look for what is left."""
    from reconciler.features.sandbox.cluster import runtime_for

    runtime_for(DEFAULT_KAFKA_VERSION)
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    cache.mkdir()
    temporary.mkdir()
    (cache / "jars").symlink_to(cache_folder() / "jars")
    return {**os.environ, "KAFKA_QUOTAS_CACHE": str(cache), "TMPDIR": str(temporary)}


@pytest.fixture
def sandbox(environ: dict[str, str]) -> Iterator[Run]:
    """Runs ``kafka-quotas sandbox ARGUMENTS``; whatever was started is stopped at the end."""

    def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run("sandbox", *arguments, cwd=Path.cwd(), env=environ)
        return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)

    yield sandbox
    sandbox("stop")


def left_over(environ: dict[str, str]) -> list[str]:
    """Sandbox folders, and processes that mention the temporary folder in their command line."""
    temporary = environ["TMPDIR"]
    found = [str(path) for path in Path(temporary).glob("kafka-quotas-sandbox-*")]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if temporary in words:
            found.append(words)
    return found


def test_start_status_and_stop(sandbox: Run, environ: dict[str, str]) -> None:
    started = sandbox("start", "--user", "alice", "--request-log", "--format", "json")
    assert started.returncode == 0, started.stderr
    document = json.loads(started.stdout)
    valid(document, "sandbox")
    assert document["status"] == "running"
    servers = document["sandbox"]["bootstrap_servers"]
    [node] = document["sandbox"]["nodes"]
    assert "Completed request" in Path(node["request_log_file"]).read_text("utf-8")

    status = sandbox("status")
    assert (status.returncode, servers in status.stdout) == (0, True)

    again = sandbox("start", "--user", "alice", "--request-log", "--format", "json")
    assert (again.returncode, json.loads(again.stdout)) == (0, document)
    assert "running already" in again.stderr

    other = sandbox("start", "--kafka-version", "3.9.2")
    assert (other.returncode, other.stdout) == (1, "")
    assert "sandbox stop" in other.stderr

    assert sandbox("stop").returncode == 0
    assert left_over(environ) == []
    stopped = sandbox("status", "--format", "json")
    assert (stopped.returncode, json.loads(stopped.stdout)["status"]) == (1, "stopped")
    assert sandbox("stop").returncode == 0


@pytest.mark.large
@pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK compiles the plugin")
def test_with_groups_the_brokers_have_the_plugin(sandbox: Run, tmp_path: Path) -> None:
    started = sandbox("start", "--groups", "--format", "json")
    assert started.returncode == 0, started.stderr
    servers = json.loads(started.stdout)["sandbox"]["bootstrap_servers"]
    assert "running already" in sandbox("start", "--groups").stderr
    assert sandbox("start").returncode == 1

    folder = tmp_path / "quotas"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(cluster(quotaCallback={"class": GROUP_CALLBACK}))
    group = {"users": ["alice", "bob"], "quotas": {"producer_byte_rate": "1MiB"}}
    (folder / "quotas.yaml").write_text(quotas(groups={"payments": group}))
    applied = invoke("apply", ".", "--bootstrap-server", servers, "--auto-approve", cwd=folder)
    assert applied.code == 0, applied.out + applied.err
    described = " ".join(invoke("describe", "--bootstrap-server", servers, cwd=folder).err.split())
    assert "3 of these entities stand for groups" in described
    assert "The brokers have the plugin of groups." in described


@pytest.mark.large
@pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK compiles the recorder")
def test_with_record_each_node_records_what_backtest_reads(sandbox: Run, environ: dict[str, str], tmp_path: Path) -> None:
    started = sandbox("start", "--record", "--format", "json")
    assert started.returncode == 0, started.stderr
    document = json.loads(started.stdout)
    valid(document, "sandbox")
    servers, [node] = document["sandbox"]["bootstrap_servers"], document["sandbox"]["nodes"]
    assert node["recorded_folder"] in sandbox("status").stdout
    assert "running already" in sandbox("start", "--record").stderr
    assert sandbox("start").returncode == 1

    everybody = frozenset({("user", None), ("client-id", None)})
    raw_quotas.alter(servers, {everybody: {"producer_byte_rate": 1e12}})
    raw_quotas.settled(servers)
    create_topic(servers, "orders")
    produce_steadily(servers, "orders", client_id="app", bytes_per_second=100_000, seconds=3)
    manifests = tmp_path / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    (manifests / "quotas.yaml").write_text(quotas(({"client-id": "app"}, {"producer_byte_rate": "1000"})))

    def throttled() -> bool:
        done = run("backtest", str(manifests), "--traffic", node["recorded_folder"], "--format", "json", cwd=tmp_path)
        if done.code:
            return False
        return ("app", "throttled") in {(row["bucket"].get("client-id"), row["verdict"]) for row in done.json()["verdicts"]}

    wait_until(throttled, within_s=60)
    assert sandbox("stop").returncode == 0
    assert left_over(environ) == []


def test_a_cluster_with_zookeeper_is_shown_with_it_noticed_without_it_and_stopped_whole(
    sandbox: Run, environ: dict[str, str]
) -> None:
    started = sandbox("start", "--zookeeper", "--chroot", "/kafka/one", "--format", "json")
    assert started.returncode == 0, started.stderr
    document = json.loads(started.stdout)
    valid(document, "sandbox")
    server = document["sandbox"]["zookeeper"]
    assert document["sandbox"]["kafka_version"] == "3.9.2"
    assert (server["connection"].endswith("/kafka/one"), server["alive"]) == (True, True)
    assert server["connection"] in sandbox("status").stdout

    assert "running already" in sandbox("start", "--zookeeper", "--chroot", "/kafka/one").stderr
    for other in (("--kafka-version", "3.9.2"), ("--zookeeper",), ("--zookeeper", "--kafka-version", "2.8.2")):
        assert "other settings" in sandbox("start", *other).stderr

    os.kill(server["pid"], signal.SIGKILL)
    status = wait_until(lambda: done if (done := sandbox("status", "--format", "json")).returncode == 1 else None)
    assert status is not None
    broken = json.loads(status.stdout)
    valid(broken, "sandbox")
    assert (broken["status"], broken["sandbox"]["zookeeper"]["alive"]) == ("broken", False)
    assert "process of ZooKeeper has ended" in sandbox("status").stdout
    assert "zookeeper.log" in sandbox("start").stderr
    assert sandbox("stop").returncode == 0
    assert left_over(environ) == []


def test_a_user_of_the_sandbox_logs_in_with_the_file_that_start_names(sandbox: Run, environ: dict[str, str]) -> None:
    from reconciler.features.sandbox.cluster import runtime_for

    started = json.loads(sandbox("start", "--user", "al'i ce", "--format", "json").stdout)["sandbox"]
    runtime = runtime_for(DEFAULT_KAFKA_VERSION)
    tool = [str(runtime.java), "-cp", ":".join(map(str, runtime.jars)), "kafka.admin.ConfigCommand"]
    login = [
        "--bootstrap-server",
        started["sasl_bootstrap_servers"],
        "--command-config",
        started["users"][0]["client_properties"],
    ]
    alter = ["--alter", "--entity-type", "users", "--entity-name", "carol", "--add-config", "producer_byte_rate=1024"]
    subprocess.run([*tool, *login, *alter], check=True, capture_output=True, timeout=300)
    from tests.support import raw_quotas

    assert raw_quotas.describe(started["bootstrap_servers"]) == {frozenset({("user", "carol")}): {"producer_byte_rate": 1024.0}}


def test_a_folder_with_something_in_it_is_refused_and_left_as_it_is(sandbox: Run, tmp_path: Path) -> None:
    notes = tmp_path / "mine" / "notes"
    notes.parent.mkdir()
    notes.write_text("mine")
    refused = sandbox("start", "--folder", str(notes.parent))
    assert (refused.returncode, "not empty" in refused.stderr) == (1, True)
    assert list(notes.parent.iterdir()) == [notes]


def test_run_gives_the_command_a_broker_and_exits_with_its_code(sandbox: Run, environ: dict[str, str]) -> None:
    program = """
import os, sys
from reconciler.features.sandbox.clients import admin_client, brokers_up
assert os.environ["BOOTSTRAP_SERVER"] == os.environ["KAFKA_QUOTAS_BOOTSTRAP_SERVER"]
with admin_client(os.environ["BOOTSTRAP_SERVER"]) as client:
    print(sorted(brokers_up(client)), sys.argv[1:])
sys.exit(7)
"""
    done = sandbox("run", "--", sys.executable, "-W", "ignore", "-c", program, "--nodes", "a b")
    assert (done.returncode, done.stdout) == (7, "[1] ['--nodes', 'a b']\n"), done.stderr
    assert left_over(environ) == []


@pytest.mark.large
def test_run_tells_the_command_where_zookeeper_is(sandbox: Run, environ: dict[str, str]) -> None:
    done = sandbox("run", "--zookeeper", "--chroot", "/one", "--", "sh", "-c", 'echo "$ZOOKEEPER"')
    assert done.stdout.startswith("127.0.0.1:")
    assert done.stdout.endswith("/one\n"), done.stderr
    assert left_over(environ) == []


@pytest.mark.large
def test_run_reports_a_command_that_died_of_a_signal_as_a_shell_does(sandbox: Run) -> None:
    assert sandbox("run", "--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "--", "no-such-program"),
        ("start", "--nodes", "2"),
        ("start", "--kafka-version", "1.0"),
        ("start", "--kafka-version", "2.8.2"),
        ("start", "--kafka-version", "4.3.1", "--zookeeper"),
        ("start", "--chroot", "/kafka"),
        ("start", "--zookeeper", "--chroot", "kafka"),
        (),
    ],
)
def test_a_wrong_call_is_a_usage_error_and_starts_nothing(
    sandbox: Run, environ: dict[str, str], arguments: tuple[str, ...]
) -> None:
    done = sandbox(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert left_over(environ) == []


@pytest.mark.parametrize(
    ("how", "number"),
    [
        ("terminal", signal.SIGINT),
        pytest.param("process", signal.SIGINT, marks=pytest.mark.large),
        pytest.param("process", signal.SIGTERM, marks=pytest.mark.large),
    ],
)
def test_an_interrupt_during_run_leaves_no_process_and_no_folder(
    environ: dict[str, str], how: str, number: signal.Signals
) -> None:
    # The command starts a process of its own, and both have the temporary folder in their command line.
    command = f"touch {environ['TMPDIR']}/ready; sh -c 'sleep 300; : {environ['TMPDIR']}'; :"
    with begun(environ, "run", "--", "sh", "-c", command) as owner:
        wait_until((Path(environ["TMPDIR"]) / "ready").exists)
        assert len(left_over(environ)) > 3
        if how == "terminal":
            os.killpg(owner.pid, number)
        else:
            owner.send_signal(number)
        _, stderr = owner.communicate(timeout=300)
    assert (owner.returncode, stderr) == (130, "kafka-quotas: interrupted\n")
    assert left_over(environ) == []


@pytest.mark.parametrize(
    ("options", "moment"),
    [
        ((), "while it starts"),
        pytest.param((), "while it runs", marks=pytest.mark.large),
        pytest.param(("--zookeeper",), "while it starts", marks=pytest.mark.large),
        pytest.param(("--zookeeper",), "while it runs", marks=pytest.mark.large),
    ],
)
def test_even_a_killed_owner_leaves_no_broker_and_no_folder(
    environ: dict[str, str], tmp_path: Path, options: tuple[str, ...], moment: str
) -> None:
    pid_file = tmp_path / "pid"
    command = f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 300"
    with begun(environ, "run", *options, "--", "sh", "-c", command) as owner:
        wait_until(pid_file.exists if moment == "while it runs" else lambda: broker_runs(environ))
        os.kill(owner.pid, signal.SIGKILL)
        if pid_file.exists():
            kill_group(int(pid_file.read_text()))
    wait_until(lambda: left_over(environ) == [])


def test_an_interrupt_during_start_leaves_no_process_and_no_folder(environ: dict[str, str], sandbox: Run) -> None:
    with begun(environ, "start") as owner:
        wait_until(lambda: broker_runs(environ))
        owner.send_signal(signal.SIGINT)
        _, stderr = owner.communicate(timeout=300)
    assert (owner.returncode, stderr) == (130, "kafka-quotas: interrupted\n")
    assert left_over(environ) == []
    assert sandbox("status").returncode == 1


@contextlib.contextmanager
def begun(environ: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """``kafka-quotas sandbox ARGUMENTS`` in a session of its own, killed when the test is done with it."""
    command = [*COMMAND, *arguments]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as owner:
        try:
            yield owner
        finally:
            kill_group(owner.pid)


def broker_runs(environ: dict[str, str]) -> bool:
    return any("kafka.Kafka" in words for words in left_over(environ))


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
