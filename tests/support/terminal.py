"""A program at a pseudo-terminal, as a person sees it."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.command import COMMAND, environment, warm_process


class Terminal:
    """A running ``kafka-quotas``, or ``command``, whose three streams are one terminal; ``seen`` is what it has printed."""

    def __init__(
        self, folder: Path, *arguments: str, command: Sequence[str] = (), env: Mapping[str, str] | None = None, columns: int = 80
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        variables = environment(env)
        if not command:
            command = (f"{warm_process().programs()}/kafka-quotas",) if warm_process().can_run(variables) else COMMAND
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.process = subprocess.Popen(
            [*command, *arguments], cwd=folder, env=variables, start_new_session=True, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Returns once this was printed; fails when nothing is printed for a minute."""
        while text not in self.seen:
            try:
                self._read()
            except (OSError, EOFError) as error:
                self.process.wait(300)
                raise AssertionError(f"it ended without {text!r}, after {self.seen!r}") from error

    def type(self, text: str) -> None:
        """What a person types."""
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Reads the rest and returns the exit code."""
        # Linux reports the end of a pseudo-terminal as an input/output error.
        with contextlib.suppress(OSError, EOFError):
            while True:
                self._read()
        os.close(self._master)
        return self.process.wait(300)

    def _read(self) -> None:
        ready, _, _ = select.select([self._master], [], [], 60)
        assert ready, f"nothing more was printed after {self.seen!r}"
        chunk = os.read(self._master, 4096)
        if not chunk:
            raise EOFError
        self.seen += self._decoder.decode(chunk)
