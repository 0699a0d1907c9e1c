"""A process of its own for every command, forked from one that has imported everything: a start takes no second of imports.

The server is a fresh interpreter, started when the first command runs. xdist's processes share one, which ends when they have;
without them it ends within a second of the tests. Each connection brings one command: arguments, folder, environment and umask
as JSON, standard output and error as open files. The server forks, the child runs the command's entry point as ``python -m
reconciler`` would, and the connection gets its process id and its exit code.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import json
import os
import secrets
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

from tests.support.polling import wait_until
from tests.support.processes import commands_with

READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "MALLOC", "LD_")
"""Beginnings of the variables that only a new interpreter obeys."""

_LOADED: Final = (
    "encodings.utf_8_sig", "jsonschema", "jsonschema_rs", "kafka.admin", "kazoo.client", "msgspec", "numpy", "pandas",
    "pyarrow.parquet", "pyspark.sql",
)  # fmt: skip
"""Beside the command's own modules, which import others inside functions."""
_MOST_BYTES: Final = 1 << 20


class WarmProcess:
    """The owner's side."""

    def __init__(self) -> None:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
        owner = os.getppid() if run else os.getpid()
        folder = Path(tempfile.gettempdir()) / f"warm-{run or secrets.token_hex(16)}"
        self._at = str(folder / "server")
        self._environ = dict(os.environ)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:  # another process of xdist makes it
            wait_until(Path(self._at).exists)
            return
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{self._at}.new")
        listener.listen(64)
        root = Path(__file__).parents[2]
        subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.warm_process", str(listener.fileno()), str(owner), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            cwd=root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])},
        ).returncode = 0  # it ends by itself
        listener.close()
        _program(folder / "bin" / "kafka-quotas", self._at)
        Path(f"{self._at}.new").rename(self._at)

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

    @staticmethod
    def end(run: str) -> None:
        """End the server that the processes of a run of xdist shared, if they had one; commands that still run go on."""
        folder = Path(tempfile.gettempdir()) / f"warm-{run}"
        if processes := commands_with(str(folder)):
            server = min(processes)
            os.kill(server, signal.SIGKILL)
            wait_until(lambda: server not in commands_with(str(folder)))
        shutil.rmtree(folder, ignore_errors=True)

    def programs(self) -> Path:
        """A folder for the ``PATH`` of a script: its ``kafka-quotas`` has its command run here."""
        return Path(self._at).parent / "bin"


def _program(path: Path, at: str) -> None:
    path.parent.mkdir()
    client = Path(__file__).with_name("warm_client.py")
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{client}" "{at}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)


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


def _serve(listener: socket.socket, owner: int, folder: str) -> None:
    import importlib
    import pkgutil

    import reconciler

    own = [module.name for module in pkgutil.walk_packages(reconciler.__path__, "reconciler.")]
    for name in (*_LOADED, *own):
        if not name.endswith("__main__"):  # it would run the command
            importlib.import_module(name)
    # Constants that are made at their first use: of commands, findings and schemas.
    importlib.import_module("reconciler.cli.registry").commands()
    importlib.import_module("reconciler.model.finding").catalogue_tables()
    importlib.import_module("reconciler.workflows").load_manifests(("examples/gitops-repository",))
    gc.collect()  # so none begins in a command
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the process of a connection
    listener.settimeout(1)
    while _is_alive(owner):
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
    shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


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
    _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[3])
