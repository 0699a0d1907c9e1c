"""``kafka-quotas sandbox`` as a user runs it: real processes, real signals, a state folder of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.configuration import config_command_class
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.java import runtime_for
from reconciler.files import cache_folder
from tests.support import raw_quotas
from tests.support.command import run
from tests.support.polling import wait_until
from tests.support.processes import commands_with

pytestmark = pytest.mark.kafka

COMMAND = [sys.executable, "-m", "reconciler", "sandbox"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A cache folder of its own, but for the jars; temporary folders go where the test can look for what is left."""
    runtime_for(DEFAULT_KAFKA_VERSION)
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    cache.mkdir()
    temporary.mkdir()
    (cache / "jars").symlink_to(cache_folder() / "jars")
    return {**os.environ, "KAFKA_QUOTAS_CACHE": str(cache), "TMPDIR": str(temporary)}


def left_over(environ: dict[str, str]) -> list[str]:
    """Sandbox folders, and processes that mention the temporary folder in their command line."""
    folders = [str(path) for path in Path(environ["TMPDIR"]).glob("kafka-quotas-sandbox-*")]
    return [*folders, *commands_with(environ["TMPDIR"]).values()]


@contextlib.contextmanager
def served(environ: dict[str, str], *options: str) -> Iterator[dict[str, str]]:
    """What ``sandbox run`` prints, without a command; interrupted at the end of the block."""
    with begun(environ, "run", *options) as owner:
        yield rows(owner)
        owner.send_signal(signal.SIGINT)
        _, stderr = owner.communicate(timeout=300)
    assert owner.returncode == 0, stderr


def rows(owner: subprocess.Popen[str]) -> dict[str, str]:
    """The rows of addresses and files, by name."""
    assert owner.stdout is not None
    lines = list(itertools.takewhile(lambda line: not line.startswith("Stop it with"), owner.stdout))
    return {name: value.strip() for name, _, value in (line.strip().partition("  ") for line in lines)}


def test_without_a_command_it_runs_until_an_interrupt(environ: dict[str, str]) -> None:
    with served(environ, "--user", "al'i ce", "--request-log") as shown:
        (properties,) = (value for name, value in shown.items() if name.startswith("as "))
        login = ["--bootstrap-server", shown["with a login"].split()[0], *properties.split()]
        alter = ["--alter", "--entity-type", "users", "--entity-name", "carol", "--add-config", "producer_byte_rate=1024"]
        runtime = runtime_for(DEFAULT_KAFKA_VERSION)
        program = [str(runtime.java), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *runtime.class_options()]
        program += ["-cp", runtime.class_path, config_command_class(DEFAULT_KAFKA_VERSION)]
        subprocess.run([*program, *login, *alter], check=True, capture_output=True, timeout=300)
        value = {frozenset({("user", "carol")}): {"producer_byte_rate": 1024.0}}
        assert raw_quotas.describe(shown["bootstrap server"]) == value
        assert "Completed request" in Path(shown["requests to node 1"]).read_text("utf-8")
    assert left_over(environ) == []


def test_it_ends_with_the_log_of_a_server_that_ended(environ: dict[str, str]) -> None:
    with begun(environ, "run", "--zookeeper") as owner:
        shown = rows(owner)
        assert shown["ZooKeeper"].startswith("127.0.0.1:")
        (server,) = (pid for pid, words in commands_with(environ["TMPDIR"]).items() if "QuorumPeerMain" in words)
        os.kill(server, signal.SIGKILL)
        _, stderr = owner.communicate(timeout=300)
    assert owner.returncode == 1
    assert f"a process of the local Kafka ended. Its log, {shown['log of ZooKeeper']}, ends with:" in stderr
    assert left_over(environ) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--", "true"),
        ("run", "--nodes", "2"),
        ("run", "--kafka-version", "1.0"),
        ("run", "--kafka-version", "2.8.2"),
        ("run", "--kafka-version", "4.4.0", "--zookeeper"),
        (),
    ],
)
def test_a_wrong_call_is_a_usage_error_and_starts_nothing(environ: dict[str, str], arguments: tuple[str, ...]) -> None:
    done = run("sandbox", *arguments, cwd=Path.cwd(), env=environ)
    assert (done.code, done.out) == (64, "")
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
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.large), pytest.param(signal.SIGTERM, marks=pytest.mark.large)],
)
def test_an_owner_that_is_ended_leaves_no_process_and_no_folder(
    environ: dict[str, str], options: tuple[str, ...], moment: str, number: signal.Signals
) -> None:
    with begun(environ, "run", *options) as owner:
        if moment == "while it runs":
            rows(owner)
        else:
            wait_until(lambda: broker_runs(environ))
        owner.send_signal(number)
        owner.communicate(timeout=300)
    wait_until(lambda: left_over(environ) == [])


@contextlib.contextmanager
def begun(environ: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """``kafka-quotas sandbox ARGUMENTS`` in a session of its own, killed when the test is done with it."""
    command = [*COMMAND, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, start_new_session=True
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
