"""The lines that a broker has logged since a moment: the log of a broker that many tests share has millions of others."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from reconciler.features.sandbox.spec import Sandbox


class RequestLogTail:
    """The request log of the first broker, from its size at the moment on when this is made."""

    def __init__(self, sandbox: Sandbox) -> None:
        log = sandbox.nodes[0].request_log_file
        assert log is not None
        self._log, self._begin = log, log.stat().st_size if log.exists() else 0

    def count(self, *words: str) -> int:
        """Count the lines that have all these words."""
        return sum(all(word in line for word in words) for line in self.content().decode(errors="replace").splitlines())

    @contextlib.contextmanager
    def copied(self) -> Iterator[Path]:
        """Give a file with these lines, which is there inside the block."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "kafka-request.log"
            copy.write_bytes(self.content())
            yield copy

    def content(self) -> bytes:
        """Read these lines."""
        with self._log.open("rb") as file:
            file.seek(self._begin)
            return file.read()
