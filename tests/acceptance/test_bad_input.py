"""Bad input and bad surroundings: one clear message on stderr, the right exit code, no traceback unless asked for."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import user
from tests.support.bad_servers import hangs_up, refusing_port, serving, silent, speaks_http
from tests.support.command import COMMAND, Done, environment, invoke, run_on
from tests.support.manifests import quotas, snapshot
from tests.support.polling import wait_until

COMMANDS = [("plan",), ("apply", "--auto-approve")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "a"}, {"producer_byte_rate": "1MiB"})))
    return tmp_path


def assert_one_message(done: Done, *parts: str, code: int = 1) -> None:
    assert done.code == code, done
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert done.err.startswith("kafka-quotas: ")
    for part in parts:
        assert part in done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_port_that_nobody_listens_on(folder: Path, command: tuple[str, ...]) -> None:
    server = f"127.0.0.1:{refusing_port()}"
    assert_one_message(invoke(*command, "--bootstrap-server", server, cwd=folder), server)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("server", [hangs_up, speaks_http])
def test_a_server_that_is_not_kafka(folder: Path, command: tuple[str, ...], server: Callable[..., None]) -> None:
    with serving(server) as port:
        assert_one_message(invoke(*command, "--bootstrap-server", f"127.0.0.1:{port}", cwd=folder), f"127.0.0.1:{port}")


@pytest.mark.parametrize("content", [None, b"", b"a: [1\n", b"\xff\xfe", b"kind: Nonsense\n", b"\0"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_a_sound_manifest_never_reaches_the_cluster(
    tmp_path: Path, command: tuple[str, ...], content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "quotas.yaml").write_bytes(content)
    with serving(silent) as port:
        done = invoke(*command, "--bootstrap-server", f"127.0.0.1:{port}", cwd=tmp_path)
    assert done.code == 1
    assert "error:" in done.out


def test_a_file_that_cannot_be_written(folder: Path) -> None:
    (folder / "now.json").write_text(snapshot({}))
    done = invoke("plan", "--current", "now.json", "--out", "json=no/such/folder/plan.json", cwd=folder)
    assert_one_message(done, "no/such/folder/plan.json")


def test_a_closed_stdout_is_told_before_anything_is_done(folder: Path) -> None:
    command = ["/bin/sh", "-c", '"$@" >&-', "sh", *COMMAND, "apply", "--auto-approve", "--bootstrap-server", "127.0.0.1:9"]
    done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    assert done.returncode == 1
    assert done.stderr == "kafka-quotas: standard output is closed: there is nowhere to print a result. Nothing was done\n"


def without_reader(*arguments: str, folder: Path, both: bool = False) -> tuple[int, str]:
    """Exit code and messages with a pipe for stdout, and for stderr when ``both``, whose reader is gone before it begins."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with Path(os.devnull).open() as empty, (folder / "messages").open("w+") as messages:
            files = empty.fileno(), writing, writing if both else messages.fileno()
            code = run_on(files, *arguments, cwd=folder)
            return code, Path(messages.name).read_text()
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("validate",), 0),
        (("plan", "--current", "now.json"), 0),
        (("plan", "--current", "now.json", "--format", "json", "--detailed-exitcode"), 2),
        (("drift", "--current", "now.json", "--color", "always"), 0),
        (("describe", "--current", "now.json"), 0),
        (("describe", "--current", "now.json", "--format", "json"), 0),
        (("resolve", "--current", "now.json", "--all"), 0),
        (("resolve", "--current", "now.json", "--all", "--format", "json"), 0),
        (("tool", "clusters"), 0),
        (("report", "--current", "now.json", "--format", "html"), 0),
        (("explain",), 0),
        (("tool", "schema", "plan"), 0),
        (("tool", "completion", "bash"), 0),
        (("--help",), 0),
        (("validate", "--help"), 0),
        (("--version",), 0),
        (("validate", "no-such-folder"), 1),
        (("plan", "--out", "nonsense"), 64),
    ],
)
def test_a_reader_that_goes_away_changes_no_exit_code_and_is_no_message(
    folder: Path, arguments: tuple[str, ...], code: int
) -> None:
    (folder / "now.json").write_text(snapshot({user(f"user-{n}"): {"producer_byte_rate": 1024.0} for n in range(600)}))
    found, messages = without_reader(*arguments, folder=folder)
    assert found == code
    assert "Broken pipe" not in messages
    assert "BrokenPipe" not in messages
    assert without_reader(*arguments, folder=folder, both=True)[0] == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_connecting_is_130_without_a_traceback(folder: Path, number: signal.Signals) -> None:
    with serving(silent) as port:
        process = subprocess.Popen(
            [*COMMAND, "plan", "-vv", "--bootstrap-server", f"127.0.0.1:{port}"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )
        wait_until_connected(process.pid, port)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    last = err.splitlines()[-1].partition(" while ")[0]
    assert (process.returncode, out, last) == (130, "", "kafka-quotas: interrupted")
    assert "Traceback" not in err


def wait_until_connected(pid: int, port: int) -> None:
    def connected() -> bool:
        rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()
        return any(row.split()[2].endswith(f":{port:04X}") and row.split()[3] == "01" for row in rows[1:])

    wait_until(connected)
