"""A folder of recorded gauges: whole Parquet files in the canonical schema, named by their first moment, and none too old."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import FileAccessError, LockedError
from reconciler.traffic.recording_gaps import GAP_FILES
from reconciler.traffic.sample_parquet import SampleRows, join_rows, open_samples, sample_table
from reconciler.traffic.scraped_rows import ScrapedRows
from reconciler.traffic.sources.metric_layouts import MetricSeries

_FILE: Final = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{6}Z)(?:-\d+)?\.parquet")
_FORM: Final = "%Y-%m-%dT%H%M%SZ"
_LOCK: Final = ".record.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """``keep_s``: how old a file may become. ``most_bytes``: of all files; the oldest go first."""

    keep_s: float
    most_bytes: int


class RecordedFolder:
    """The files of one recorder. Every method raises ``FileAccessError`` where the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def gaps_file(self) -> Path:
        """Where times without samples are noted, one line each."""
        return self.path / GAP_FILES[-1]

    def last_moment_s(self) -> float | None:
        """Of the last sample in the newest file, in seconds since 1970; ``None`` when there is none that can be read."""
        files = sorted(file for file in self.path.iterdir() if _FILE.fullmatch(file.name))
        try:
            return pc.max(pq.read_table(files[-1], columns=["ts"]).column("ts")).as_py().timestamp() if files else None
        except (OSError, pa.ArrowInvalid, AttributeError):
            return None

    def begin_new_gaps(self) -> None:
        """The older notes get another name, and replace those that have it."""
        with _our_errors(self.path):
            self.gaps_file.replace(self.path / GAP_FILES[0])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other recorders out of it inside. Raises ``LockedError``."""
        with _our_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                msg = f"Another recorder writes to {self.path}. Stop it, or give another --folder"
                raise LockedError(msg, holder=str(self.path)) from error
            with _our_errors(self.path):
                for left in self.path.glob(".*.parquet.partial"):
                    left.unlink()
            yield
        finally:
            os.close(handle)

    def write(self, scrapes: Sequence[ScrapedRows]) -> Path:
        """Write the rows of some scrapes as one file: a reader sees all of it or nothing, also after a crash."""
        sink = pa.BufferOutputStream()
        rows, clients = _rows_of(scrapes)
        with open_samples(sink) as file:
            file.write_table(sample_table(rows, clients))
        with _our_errors(self.path):
            path = self._free_name(min(scrape.at_us for scrape in scrapes))
            partial = self.path / f".{path.name}.partial"
            try:
                with partial.open("wb") as stream:
                    stream.write(sink.getvalue())
                    stream.flush()
                    os.fsync(stream.fileno())
                partial.replace(path)
            except OSError:
                partial.unlink(missing_ok=True)
                raise
        return path

    def remove_old(self, retention: Retention, *, now: datetime.datetime) -> tuple[Path, ...]:
        """Remove files by their names' age and all files' size, and give those that went."""
        removed: list[Path] = []
        with _our_errors(self.path):
            files = sorted(file for file in self.path.iterdir() if _FILE.fullmatch(file.name))
            sizes = {file: file.stat().st_size for file in files}
            left = sum(sizes.values())
            for file in files:
                age = (now - _time_of(file)).total_seconds()
                if age <= retention.keep_s and left <= retention.most_bytes:
                    continue
                file.unlink()
                removed.append(file)
                left -= sizes[file]
        return tuple(removed)

    def _free_name(self, first_us: int) -> Path:
        name = f"{datetime.datetime.fromtimestamp(first_us / 1e6, datetime.UTC):{_FORM}}"
        path, number = self.path / f"{name}.parquet", 1
        # A clock that was put back shows a second twice.
        while path.exists():
            number += 1
            path = self.path / f"{name}-{number}.parquet"
        return path


def _time_of(file: Path) -> datetime.datetime:
    match = _FILE.fullmatch(file.name)
    try:
        return datetime.datetime.strptime(match[1] if match else "", _FORM).replace(tzinfo=datetime.UTC)
    except ValueError:
        return datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.UTC)


def _rows_of(scrapes: Sequence[ScrapedRows]) -> tuple[SampleRows, list[MetricSeries]]:
    """The rows of all scrapes, and the clients that they refer to."""
    begins: dict[int, int] = {}
    clients: list[MetricSeries] = []
    parts = []
    for scrape in scrapes:
        if id(scrape.clients) not in begins:
            begins[id(scrape.clients)] = len(clients)
            clients += scrape.clients
        parts.append(
            SampleRows(
                ts_us=np.full(scrape.count, scrape.at_us, dtype=np.int64),
                interval_ms=scrape.interval_ms,
                clients=scrape.slots + begins[id(scrape.clients)],
                amounts=scrape.amounts,
                throttled=scrape.throttled,
            )
        )
    return join_rows(parts), clients


@contextlib.contextmanager
def _our_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileAccessError(f"{path} cannot be written: {error.strerror or error}") from error
