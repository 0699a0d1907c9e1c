"""Processes that are ended whatever happens to the one that starts them: start, recognise, end.

A process number alone does not name a process: numbers are used again. So each process is kept with a mark that only it has (its
start time within this boot), and nothing is ever sent to a process whose mark differs.

As a program, this module is the guard of a sandbox: an owner can be killed in ways it cannot clean up after (SIGKILL, a lost
terminal, out of memory). The guard lives in a session of its own and reads commands, one a line, from its standard input:
``watch PID MARK`` and ``release``. When the input ends without a ``release``, it ends the processes it watches and removes the
sandbox's folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import reconciler

_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRef:
    """One process of this machine, identified by its number and its mark."""

    pid: int
    mark: str


def spawn(command: Sequence[str], *, output: Path) -> ProcessRef:
    """Start ``command`` in a session of its own, output and errors appended to ``output``, no input.

    Its own session: Ctrl-C on the terminal then reaches only us, and we end the processes in order. Raises ``OSError``.
    """
    pid = os.posix_spawn(
        command[0],
        list(command),
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        # Not those that ``uninterrupted`` holds back here.
        setsigmask=(),
    )
    return ProcessRef(pid=pid, mark=start_mark(pid) or "ended at once")


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer interrupts of this thread until the end of the block: by then the caller knows which processes it has to end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_mark(pid: int) -> str | None:
    """Return what distinguishes this process from a later one with its number; ``None`` when it has ended (a zombie has)."""
    if not Path("/proc/self/stat").exists():
        return _mark_from_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The program's name (field 2) may hold blanks and brackets; state is field 3, the start in clock ticks field 22.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


def _mark_from_ps(pid: int) -> str | None:
    """Return the start time to the second, as ``ps`` prints it, on systems without ``/proc``."""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


def is_alive(process: ProcessRef) -> bool:
    """Whether exactly this process still runs; reaps it when it was our child and has ended."""
    mark = start_mark(process.pid)
    if mark is None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
    return mark == process.mark


def end(processes: Sequence[ProcessRef], *, grace_s: float) -> bool:
    """TERM to those that still run, ``grace_s`` seconds to end, then KILL. Returns when none is left: whether none was killed.

    Interrupted while it waits, it kills them at once.
    """
    _signal(processes, signal.SIGTERM)
    try:
        return wait_ended(processes, within_s=grace_s)
    finally:
        _signal(processes, signal.SIGKILL)
        wait_ended(processes, within_s=10.0)


def wait_ended(processes: Sequence[ProcessRef], *, within_s: float) -> bool:
    """Whether all have ended, waiting for it at most ``within_s`` seconds."""
    deadline = time.monotonic() + within_s
    while any(is_alive(process) for process in processes):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _signal(processes: Sequence[ProcessRef], number: signal.Signals) -> None:
    for process in processes:
        if is_alive(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)


class Guard:
    """The owner's side; use ``guarding``."""

    def __init__(self, commands: IO[str]) -> None:
        self._commands = commands

    def watch(self, process: ProcessRef) -> None:
        """End this one too, should the owner die."""
        self._say(f"watch {process.pid} {process.mark}")

    def release(self) -> None:
        """Let nothing happen from now on when the owner ends."""
        self._say("release")

    def _say(self, line: str) -> None:
        # A guard that died protects nothing more; the sandbox itself is as good as before.
        with contextlib.suppress(OSError):
            self._commands.write(line + "\n")
            self._commands.flush()


@contextlib.contextmanager
def guarding(folder: Path) -> Iterator[Guard]:
    """A guard for the sandbox in ``folder``, which must be one that may be removed whole. Leaving the block releases it."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "reconciler.features.sandbox.process", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=module_environment(),
        cwd="/",
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    guard = Guard(process.stdin)
    try:
        yield guard
    finally:
        guard.release()
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.wait()


def module_environment() -> dict[str, str]:
    """The environment of a ``python -P`` that finds this package, and in its place no module of the user's directory."""
    roots = [str(Path(reconciler.__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(root for root in roots if root)}


def main(folder: Path, lines: Iterable[str]) -> None:
    """The guard's side: returns when there is nothing left to guard."""
    watched: list[ProcessRef] = []
    for line in lines:
        command, *rest = line.rstrip("\n").split(" ", 2)
        if command == "release":
            return
        watched.append(ProcessRef(pid=int(rest[0]), mark=rest[1]))
    end(watched, grace_s=5.0)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # Whoever stops the owner with a signal to a whole group must not stop its guard.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    main(Path(sys.argv[1]), sys.stdin)
