"""A folder of recorded gauges: whole Parquet files in the canonical schema, named by their first moment, and none too old.

``PageColumns`` makes the columns of metrics pages, which ``record`` keeps of each scrape until it writes a file. A page has the
same series as the one before, so each series is looked up once, and a scrape costs a few operations on arrays.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import FileAccessError, LockedError
from reconciler.features.prometheus.exporter_page import PageSample, PageSeries
from reconciler.features.prometheus.metric_layouts import MetricSeries, Unattributed, read_series
from reconciler.features.prometheus.sample_pages import (
    MOST_INTERVAL_MS,
    NEVER_MS,
    UNKNOWN,
    PageClients,
    SampledClients,
    SampleRows,
    join_rows,
    open_samples,
    sample_table,
)
from reconciler.files import lock_descriptor
from reconciler.traffic import GAP_FILES, MOST_AMOUNT, Integers, Measure

_OTHER: Final = -1
"""The slot of a series that is not used. Above it are rates, below it throttle times."""
_SPARE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedRows:
    """The rates of one scrape. ``clients`` is shared by many scrapes, ``slots`` are places in it."""

    at_us: int
    clients: Sequence[MetricSeries]
    slots: Integers
    interval_ms: Integers
    """Since the sample before of the same client; 0 when there is none."""
    amounts: Integers
    throttled: Integers
    """1: the broker throttled the client in the last minute. 0: not. -1: the page has no throttle time of this client."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownSeries:
    """How many series, and the labels of one of them."""

    count: int
    example: Mapping[str, str]


class PageColumns:
    """Make rows of the pages of one exporter."""

    def __init__(self) -> None:
        self._slots: dict[PageSeries, int] = {}
        self._clients = PageClients()
        self._shared: list[MetricSeries] = []
        self._unknown: dict[PageSeries, Unattributed] = {}
        self.unattributed: Mapping[Unattributed, UnknownSeries] = {}
        """Series of the pages whose client is not known, by reason. Replaced as a whole, so any thread may read it."""

    def rows(self, samples: Sequence[PageSample], *, at_s: float, monotonic_s: float) -> ScrapedRows:
        """The rows of a page. NaN, infinite and negative rates are not samples; of a client's second rate the first one counts.

        An amount is rounded down, so that it proves no more than the sample.
        """
        if len(self._slots) > 2 * len(samples) + _SPARE:
            # Many series are gone. The next sample of each other one has no interval.
            self._slots, self._clients, self._unknown = {}, PageClients(), {}
        if new := [series for series, _ in samples if series not in self._slots]:
            self._learn(new)
        slots, clients = self._slots, self._clients
        places = np.fromiter((slots[series] for series, _ in samples), dtype=np.int64, count=len(samples))
        values = np.fromiter((value for _, value in samples), dtype=np.float64, count=len(samples))
        is_rate = places > _OTHER
        rates, first = np.unique(places[is_rate], return_index=True)
        with np.errstate(invalid="ignore", over="ignore"):
            amounts = values[is_rate][first] * clients.units[rates]
            kept = (amounts >= 0) & (amounts <= MOST_AMOUNT)
            above = values > 0
        states = np.full(len(self._shared), UNKNOWN, dtype=np.int64)
        is_throttle = places < _OTHER
        states[_OTHER - 1 - places[is_throttle]] = 0
        states[_OTHER - 1 - places[is_throttle & above]] = 1
        rates = rates[kept]
        now_ms, last_ms = round(monotonic_s * 1000), clients.last_ms[rates]
        interval_ms = np.where(last_ms == NEVER_MS, 0, now_ms - last_ms)
        clients.last_ms[rates] = now_ms
        return ScrapedRows(
            at_us=round(at_s * 1_000_000),
            clients=self._shared,
            slots=rates,
            interval_ms=np.clip(interval_ms, 0, MOST_INTERVAL_MS),
            amounts=amounts[kept].astype(np.int64),
            throttled=states[rates],
        )

    def _learn(self, new: Sequence[PageSeries]) -> None:
        """Give slots to new series."""
        wanted: list[tuple[PageSeries, MetricSeries]] = []
        for labelled in new:
            series = read_series(labelled.labels)
            if isinstance(series, Unattributed):
                self._unknown[labelled] = series
            self._slots[labelled] = _OTHER
            if isinstance(series, MetricSeries) and series.measure in (Measure.RATE, Measure.THROTTLE_TIME):
                wanted.append((labelled, series))
        numbers = self._clients.number([replace(series, measure=Measure.RATE) for _, series in wanted]).tolist()
        for (labelled, series), number in zip(wanted, numbers, strict=True):
            self._slots[labelled] = number if series.measure is Measure.RATE else _OTHER - 1 - number
        self._shared = list(self._clients.numbers)
        self.unattributed = _count_unknown(self._unknown)


def _count_unknown(unknown: Mapping[PageSeries, Unattributed]) -> dict[Unattributed, UnknownSeries]:
    counts = Counter(unknown.values())
    examples = {reason: series for series, reason in reversed(list(unknown.items()))}
    return {reason: UnknownSeries(count=count, example=examples[reason].labels) for reason, count in counts.items()}


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
        """The file that notes times without samples, one line each."""
        return self.path / GAP_FILES[-1]

    def last_moment_s(self) -> float | None:
        """Return the moment of the last sample in the newest file, in seconds since 1970; ``None`` when it cannot be read."""
        files = sorted(file for file in self.path.iterdir() if _FILE.fullmatch(file.name))
        try:
            return pc.max(pq.read_table(files[-1], columns=["ts"]).column("ts")).as_py().timestamp() if files else None
        except (OSError, pa.ArrowInvalid, AttributeError):
            return None

    def begin_new_gaps(self) -> None:
        """Give the older notes another name, and replace those that have it."""
        with _our_errors(self.path):
            self.gaps_file.replace(self.path / GAP_FILES[0])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other recorders out of it inside. Raises ``LockedError``."""
        with _our_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            with _our_errors(self.path):
                try:
                    lock_descriptor(handle, wait=False)
                except BlockingIOError as error:
                    msg = f"Another recorder writes to {self.path}. Stop it, or give another --folder"
                    raise LockedError(msg) from error
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
            file.write_table(sample_table(rows, SampledClients(clients)))
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
