"""The text of request logs, line by line: whole files and parts of them, plain or compressed, without Spark."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from reconciler.errors import TrafficError
from reconciler.traffic.sources.log_files import BrokerFiles

_SMALLEST: Final = 4_000_000
_LARGEST: Final = 64_000_000
"""Bytes of a part."""
_LONGEST_LINE: Final = 64 * 1024 * 1024
"""What is longer comes in pieces: a file without line ends must fit into memory."""
_BUFFER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogPart:
    """The lines of one file that begin at ``begin`` or later, before ``end``; a compressed file is one part."""

    path: str
    broker: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Bytes, as they are stored."""
        return self.end - self.begin

    @property
    def uri(self) -> str:
        """The file's address."""
        return Path(self.path).as_uri()

    def lines(self) -> Iterator[bytes]:
        """Each with its end. Raises ``TrafficError`` for a compressed file that is damaged."""
        if self.path.endswith(".gz"):
            return self._unzipped()
        return self._plain()

    def _plain(self) -> Iterator[bytes]:
        with Path(self.path).open("rb", buffering=_BUFFER) as stream:
            at = self.begin
            if at:
                # The line before is the other part's, also when it ends right here.
                stream.seek(at - 1)
                at += _skipped(stream) - 1
            while at < self.end and (line := stream.readline(_LONGEST_LINE)):
                at += len(line)
                yield line

    def _unzipped(self) -> Iterator[bytes]:
        try:
            with cast("IO[bytes]", gzip.open(self.path)) as stream:
                while line := stream.readline(_LONGEST_LINE):
                    yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TrafficError(
                f"recorded traffic {self.path} is damaged or cut short: take it out, or unpack what is left of it with gzip -dc"
            ) from error


def log_parts(logs: Sequence[BrokerFiles], workers: int) -> tuple[LogPart, ...]:
    """All of these files, in parts that keep so many workers busy."""
    files = [(log.broker, path, Path(path).stat().st_size) for log in logs for path in log.files]
    step = max(_SMALLEST, min(_LARGEST, sum(size for _, _, size in files) // (2 * workers)))
    return tuple(
        LogPart(path, broker, begin, min(begin + length, size))
        for broker, path, size in files
        if size
        for length in (size if path.endswith(".gz") else step,)
        for begin in range(0, size, length)
    )


def _skipped(stream: IO[bytes]) -> int:
    """How many bytes there are to the end of the line, which the stream is behind then."""
    skipped = 0
    while piece := stream.readline(_LONGEST_LINE):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
