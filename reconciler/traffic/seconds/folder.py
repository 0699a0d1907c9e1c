"""The folder that ``compact`` fills: one segment for each file of recorded traffic, whole or not there at all.

    DIR/segments/ID.json     written last, and atomically: what the segment is of, and the folder of its files
    DIR/data/ID-RUN/         its Parquet files; a folder that no document names is left over from a run that was cut short

A file is known by how it begins, not by its name: the same log under another name, or compressed, or longer than before, takes
the place of its earlier segment. So runs can be repeated, and come in any order.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import shutil
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias, cast

import msgspec
import numpy as np

from reconciler.errors import FileAccessError, TrafficError
from reconciler.files import write_whole
from reconciler.formats import document_text
from reconciler.logs import log_event
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.sources.normal_form import CHARGED

_log: Final = logging.getLogger(__name__)
MINUTE_US: Final = 60_000_000
_MINUTES_A_DAY: Final = 24 * 60
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""The first and the last minute since 1970 of each run of minutes, rising."""


def ranges_of(minutes: Collection[int]) -> Ranges:
    """The runs of minutes in any order, some of them several times."""
    rising = np.unique(np.fromiter(minutes, dtype=np.int64, count=len(minutes)))
    if not len(rising):
        return ()
    ends = np.flatnonzero(np.diff(rising) > 1)
    first, last = np.concatenate((rising[:1], rising[ends + 1])), np.concatenate((rising[ends], rising[-1:]))
    return tuple(zip(first.tolist(), last.tolist(), strict=True))


def minutes_in(ranges: Iterable[tuple[int, int]]) -> Integers:
    """Every minute of the ranges, rising, each once; they may overlap."""
    spread = [np.arange(first, last + 1, dtype=np.int64) for first, last in ranges]
    return np.unique(np.concatenate(spread)) if spread else np.empty(0, dtype=np.int64)


LONGEST_LINE: Final = 1024 * 1024
"""Of a log, what can be its first line."""
END_BYTES: Final = 64 * 1024
"""Of a file that is never added to, what distinguishes it from others of its length."""
_ID_DIGITS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to compact. ``id``: how it begins, so that a new name, compression or more lines change nothing."""

    path: Path
    id: str
    size: int

    @classmethod
    def of_log(cls, path: Path, broker: int) -> SourceFile | None:
        """Known by its broker and its first whole line; ``None`` while it has none. Raises ``TrafficError``."""
        try:
            with _open(path) as stream:
                first = stream.readline(LONGEST_LINE)
        except (OSError, EOFError, zlib.error) as error:
            raise TrafficError(f"recorded traffic {path} cannot be read: {error}") from error
        if not first.endswith(b"\n") and len(first) < LONGEST_LINE:
            return None
        return cls(path=path, id=_digest(f"log {broker}\n".encode() + first), size=path.stat().st_size)

    @classmethod
    def of_beginning(cls, path: Path, beginning: bytes) -> SourceFile:
        """Known by how it begins, which is of no other file."""
        return cls(path=path, id=_digest(beginning), size=path.stat().st_size)

    @classmethod
    def of_whole(cls, path: Path) -> SourceFile:
        """Identify a file that is never added to (Parquet, CSV) by its length and its end. Raises ``TrafficError``."""
        try:
            size = path.stat().st_size
            with path.open("rb") as stream:
                stream.seek(max(0, size - END_BYTES))
                return cls(path=path, id=_digest(f"parquet {size}\n".encode() + stream.read()), size=size)
        except OSError as error:
            raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror}") from error


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_ID_DIGITS]


FORMAT_VERSION: Final = "1.0"
"""It changes when an earlier version of this tool would read a folder wrongly."""
TOTALS: Final = "cells"
SERIES: Final = "series"
"""The parts of a segment, as its folders are called."""
_SEGMENTS: Final = "segments"
_DATA: Final = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    """What a file has. ``statuses`` counts its lines by what they are."""

    statuses: dict[str, int]
    minutes: dict[int, Ranges]
    """By broker those of every row with a time, charged or not."""
    clusters: tuple[str, ...] = ()
    """The ids of clusters that its lines name; only a few lines of logs name any."""
    copies: int = 0
    """Lines that are left out, since a line of the same run is the same request."""
    copies_of: tuple[str, ...] = ()
    """The addresses of the files in which those lines count, perhaps this one too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One file's per-second totals."""

    id: str
    source: str
    """The file's name, for people."""
    size: int
    """Its bytes when it was read: one that has grown is read again."""
    folder: str
    """Below ``data``."""
    summary: FileSummary
    copies_of: tuple[str, ...] = ()
    """The ids of the other segments in which its copied lines count."""
    of_logs: bool = True
    """Whether it was made of a request log, which lacks the time of network threads."""
    format_version: str = FORMAT_VERSION

    @property
    def requests(self) -> int:
        """Charged ones, of all brokers."""
        return self.summary.statuses.get(CHARGED, 0)

    @property
    def end(self) -> int:
        """The minute of its last row, since 1970; 0 without any."""
        return max((ranges[-1][1] for ranges in self.summary.minutes.values() if ranges), default=0)


class SegmentFolder:
    """``root`` is ``DIR``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self) -> bool:
        """Whether this is such a folder at all."""
        return (self.root / _SEGMENTS).is_dir()

    def data(self, segment: Segment, part: str) -> Path:
        """Return the folder of a part of a segment."""
        return self.root / _DATA / segment.folder / part

    def files(self, segments: Sequence[Segment], part: str) -> list[str]:
        """The Parquet files of a part of these segments, from the root: Spark's working directory is another."""
        paths = (path for segment in segments for path in sorted(self.data(segment, part).glob("*.parquet")))
        return [str(path.absolute()) for path in paths]

    def fresh(self, run: str) -> Path:
        """An empty folder that only this run knows, on the same disk."""
        folder = self.root / _DATA / f".{run}"
        try:
            folder.mkdir(parents=True)
            (self.root / _SEGMENTS).mkdir(exist_ok=True)
        except OSError as error:
            raise FileAccessError(f"cannot write per-second totals to {self.root}: {error.strerror}") from error
        return folder

    def segments(self) -> tuple[Segment, ...]:
        """All that are whole, by id. Raises ``TrafficError`` for a document that is none."""
        return tuple(self._read(path) for path in sorted((self.root / _SEGMENTS).glob("*.json")))

    def publish(self, segment: Segment, made: Path) -> None:
        """Move what was made into its place, then name it; an earlier segment of the same file is replaced."""
        target = self.root / _DATA / segment.folder
        try:
            if target.exists():
                shutil.rmtree(target)
            made.rename(target)
        except OSError as error:
            raise FileAccessError(f"cannot write per-second totals to {target}: {error.strerror}") from error
        write_whole(self.root / _SEGMENTS / f"{segment.id}.json", [document_text(msgspec.to_builtins(segment, str_keys=True))])

    def drop_older(self, days: int) -> int:
        """Remove segments that end more than so many days before the newest, and return how many."""
        segments = self.segments()
        newest = max((segment.end for segment in segments), default=0)
        old = [segment for segment in segments if newest - segment.end > days * _MINUTES_A_DAY]
        for segment in old:
            (self.root / _SEGMENTS / f"{segment.id}.json").unlink(missing_ok=True)
        self.sweep()
        return len(old)

    def sweep(self) -> None:
        """Remove what no document names: the remains of runs that were cut short, and of segments that were replaced."""
        named = {segment.folder for segment in self.segments()}
        data = self.root / _DATA
        for folder in sorted(data.iterdir()) if data.is_dir() else ():
            if folder.name not in named:
                log_event(_log, "leftover totals removed", folder=str(folder))
                shutil.rmtree(folder, ignore_errors=True)

    def _read(self, path: Path) -> Segment:
        try:
            segment = msgspec.json.decode(path.read_bytes(), type=Segment)
        except (OSError, msgspec.MsgspecError) as error:
            raise TrafficError(f"{path} does not describe per-second totals: {error}. Remove it and run compact again") from error
        if segment.format_version != FORMAT_VERSION:
            raise TrafficError(f"{path} is of another version of this tool: run compact again, into an empty folder")
        if not self.data(segment, "").is_dir():
            raise TrafficError(f"{path} names per-second totals that are missing: remove it and run compact again")
        return segment
