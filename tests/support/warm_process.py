"""A process of its own for every command, forked from one that has imported everything: a start takes no second of imports.

The server is a fresh interpreter, started when the first command runs, and ends with its owner. Each connection brings one
command: arguments, folder, environment and umask as JSON, standard output and error as open files. The server forks, the child
runs the command's entry point as ``python -m reconciler`` would, and the connection gets its process id and its exit code.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "MALLOC", "LD_")
"""Beginnings of the variables that only a new interpreter obeys."""

_LOADED: Final = (
    "kafka.admin", "kazoo.client", "msgspec", "numpy", "pandas", "pyarrow.parquet", "pyspark.sql", "jsonschema", "jsonschema_rs",
    "reconciler.cli.main", "reconciler.traffic.backtest", "reconciler.traffic.traffic_files",
)  # fmt: skip
_MOST_BYTES: Final = 1 << 20


class WarmProcess:
    """The owner's side."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="warm-")
        self._at = f"{self._folder}/server"
        self._environ = dict(os.environ)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._at)
        listener.listen(64)
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.warm_process", str(listener.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])},
        )
        listener.close()
        atexit.register(self.close)

    def can_run(self, environ: Mapping[str, str]) -> bool:
        """Whether a new interpreter would read nothing of ``environ`` that the server did not."""
        return not any(
            name.startswith(READ_AT_START) and environ.get(name) != self._environ.get(name) for name in {*environ, *self._environ}
        )

    def run(self, arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout: float) -> tuple[int, str, str]:
        """Exit code (minus the number of the signal that ended it), standard output and error. Raises ``TimeoutExpired``."""
        with Path(os.devnull).open("rb") as empty, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            files = empty.fileno(), out.fileno(), err.fileno()
            return self.run_on(files, arguments, cwd=cwd, environ=environ, timeout=timeout), _text(out), _text(err)

    def run_on(
        self, files: tuple[int, int, int], arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout: float
    ) -> int:
        """``run`` on these open files as standard input, output and error: the exit code."""
        started = self.start(files, arguments, cwd=cwd, environ=environ)
        try:
            return started.wait(timeout)
        finally:
            started.kill()
            started.wait()

    def start(self, files: tuple[int, int, int], arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> Started:
        """``run_on`` without waiting for its end."""
        status = Path("/proc/self/status").read_text("ascii", "replace")
        request = {
            "arguments": list(arguments),
            "cwd": str(cwd),
            "environ": dict(environ),
            "umask": int(status.split("Umask:", 1)[1].split(None, 1)[0], 8),
        }
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._at)
        content = json.dumps(request).encode()
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
        connection.sendmsg([len(content).to_bytes(4, "big")], [rights])
        connection.sendall(content)
        return Started(connection)

    def programs(self) -> Path:
        """A folder for the ``PATH`` of a script: its ``kafka-quotas`` has its command run here."""
        program = Path(self._folder) / "bin" / "kafka-quotas"
        if not program.exists():
            program.parent.mkdir()
            client = Path(__file__).with_name("warm_client.py")
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{client}" "{self._at}" "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        return program.parent

    def close(self) -> None:
        """End the server; commands that still run go on."""
        if os.getpid() != self._owner or self._server.poll() is not None:
            return
        self._server.kill()
        self._server.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Started:
    """A command that runs, with those methods of ``Popen`` that a test of a service needs."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb", buffering=0)
        self.pid = int(self._answers.readline())
        self._code: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            with self._connection, self._answers:
                self._code = int(self._answers.readline())
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode()
    return text


def _serve(listener: socket.socket) -> None:
    import importlib

    for name in _LOADED:
        importlib.import_module(name)
    registry = importlib.import_module("reconciler.cli.registry")
    for name, command in registry.commands().items():
        for each in (command, *registry.actions_of(name).values()):
            if each.module:
                importlib.import_module(each.module.partition(":")[0])
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the process of a connection
    owner = os.getppid()
    listener.settimeout(5)
    while os.getppid() == owner:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(connection)
            os._exit(0)
        connection.close()


def _answer(connection: socket.socket) -> None:
    connection.settimeout(None)
    size, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * array.array("i").itemsize), socket.MSG_WAITALL)
    files = array.array("i")
    for _level, _kind, data in ancillary:
        files.frombytes(data)
    content = b""
    while len(content) < int.from_bytes(size, "big"):
        content += connection.recv(_MOST_BYTES)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(json.loads(content), *files)
    connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(request: Mapping[str, Any], *files: int) -> None:
    """Run the command in this process, which ends with it."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, max(files) + 1)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        before = getattr(sys, name)  # of another file, whose kind it knows
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        stream = open(number, mode, buffering, before.encoding, before.errors, closefd=False)  # noqa: SIM115 - ends with the process
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    tempfile.tempdir = None  # as ``TMPDIR`` says now
    sys.argv = ["kafka-quotas", *request["arguments"]]
    code = 1
    try:
        from reconciler.cli.main import entry_point
        from tests.support import small_requests

        small_requests.obey(os.environ)
        entry_point()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
