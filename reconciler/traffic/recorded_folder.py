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
import pyarrow.parquet as pq

from reconciler.errors import FileAccessError, LockedError
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.scraped_rows import ScrapedRows
from reconciler.traffic.sources.metric_layouts import MetricSeries
from reconciler.traffic.sources.normal_form import GAUGE

_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
_SCHEMA: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", _NAMES),
        ("client_id", _NAMES), ("kind", _NAMES), ("amount", pa.int64()), ("semantics", _NAMES), ("throttled", pa.bool_()),
        ("ip", _NAMES),
    ]
)  # fmt: skip
_FILE: Final = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{6}Z)(?:-\d+)?\.parquet")
_FORM: Final = "%Y-%m-%dT%H%M%SZ"
_LOCK: Final = ".record.lock"
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """``keep_s``: how old a file may become. ``most_bytes``: of all files; the oldest go first."""

    keep_s: float
    most_bytes: int


class RecordedFolder:
    """The files of one recorder. Every method raises ``FileAccessError`` where the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
        # Compression at the first level: the digits of rates are noise.
        pq.write_table(_table(scrapes), sink, compression="zstd", compression_level=1)
        with _our_errors(self.path):
            path = self._free_name(min(scrape.at_us for scrape in scrapes))
            partial = self.path / f".{path.name}.partial"
            try:
                with partial.open("wb") as file:
                    file.write(sink.getvalue())
                    file.flush()
                    os.fsync(file.fileno())
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


def _table(scrapes: Sequence[ScrapedRows]) -> pa.Table:
    offsets: dict[int, int] = {}
    clients: list[MetricSeries] = []
    for scrape in scrapes:
        if id(scrape.clients) not in offsets:
            offsets[id(scrape.clients)] = len(clients)
            clients += scrape.clients
    counts = [scrape.count for scrape in scrapes]
    slots = np.concatenate([scrape.slots + offsets[id(scrape.clients)] for scrape in scrapes])
    throttled = np.concatenate([scrape.throttled for scrape in scrapes])
    interval_ms = np.concatenate([scrape.interval_ms for scrape in scrapes])
    ts_us = np.repeat(np.asarray([scrape.at_us for scrape in scrapes], dtype=np.int64), counts)
    brokers = np.asarray([client.broker for client in clients], dtype=np.int32)
    return pa.Table.from_arrays(
        [
            pa.array(ts_us).view(_SCHEMA.field("ts").type),
            pa.array(interval_ms.astype(np.int32), mask=interval_ms == 0),
            pa.array(brokers[slots]),
            _named([client.user for client in clients], slots),
            _named([client.client_id for client in clients], slots),
            _named([client.kind.value for client in clients], slots),
            pa.array(np.concatenate([scrape.amounts for scrape in scrapes])),
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(slots), dtype=np.int32)), pa.array([GAUGE])),
            pa.array(throttled == 1, mask=throttled == _UNKNOWN),
            _named([client.ip for client in clients], slots),
        ],
        schema=_SCHEMA,
    )


def _named(names: Sequence[str | None], slots: Integers) -> pa.DictionaryArray:
    codes: dict[str, int] = {}
    of_client = [_UNKNOWN if name is None else codes.setdefault(name, len(codes)) for name in names]
    rows = np.asarray(of_client, dtype=np.int32)[slots]
    return pa.DictionaryArray.from_arrays(pa.array(rows, mask=rows == _UNKNOWN), pa.array(list(codes), pa.string()))


@contextlib.contextmanager
def _our_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileAccessError(f"{path} cannot be written: {error.strerror or error}") from error
