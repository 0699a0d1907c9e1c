"""Ends a sandbox whose owner died: a small process that waits for the owner's end of a pipe to close.

An owner can be killed in ways it cannot clean up after (SIGKILL, a lost terminal, out of memory). The guard lives in a session
of its own and reads commands, one a line, from its standard input: ``watch PID MARK`` and ``release``. When the input ends
without a ``release``, it ends the processes it watches and removes the sandbox's folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import reconciler
from reconciler.features.sandbox.process import ProcessRef, end


class Guard:
    """The owner's side; use ``guarding``."""

    def __init__(self, commands: IO[str]) -> None:
        self._commands = commands

    def watch(self, process: ProcessRef) -> None:
        """End this one too, should the owner die."""
        self._say(f"watch {process.pid} {process.mark}")

    def release(self) -> None:
        """From now on, nothing happens when the owner ends."""
        self._say("release")

    def _say(self, line: str) -> None:
        # A guard that died protects nothing more; the sandbox itself is as good as before.
        with contextlib.suppress(OSError):
            self._commands.write(line + "\n")
            self._commands.flush()


@contextlib.contextmanager
def guarding(folder: Path) -> Iterator[Guard]:
    """A guard for the sandbox in ``folder``, which must be one that may be removed whole. Leaving the block releases it."""
    roots = [str(Path(reconciler.__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(root for root in roots if root)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "reconciler.features.sandbox.guard", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
        cwd="/",
        text=True,
        start_new_session=True,
    )
    commands = process.stdin
    assert commands is not None
    guard = Guard(commands)
    try:
        yield guard
    finally:
        guard.release()
        with contextlib.suppress(OSError):
            commands.close()
        process.wait()


def main(folder: Path, lines: Iterable[str]) -> None:
    """The guard's side: returns when there is nothing left to guard."""
    watched: list[ProcessRef] = []
    for line in lines:
        command, _, rest = line.rstrip("\n").partition(" ")
        if command == "release":
            return
        if command == "watch":
            pid, _, mark = rest.partition(" ")
            watched.append(ProcessRef(pid=int(pid), mark=mark))
    end(watched, grace_s=5.0)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # Whoever stops the owner with a signal to a whole group must not stop its guard.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    main(Path(sys.argv[1]), sys.stdin)
