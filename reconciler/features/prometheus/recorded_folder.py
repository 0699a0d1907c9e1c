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
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import FileAccessError, LockedError
from reconciler.features.prometheus.metric_layouts import MetricSeries, Unattributed, read_series
from reconciler.features.prometheus.sample_pages import (
    MOST_INTERVAL_MS,
    UNKNOWN,
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


class LabelledSeries(Protocol):
    """A series of a page: the same object on every page that has it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """All labels, with ``__name__``."""
        ...


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
        self._slots: dict[LabelledSeries, int] = {}
        self._clients: dict[MetricSeries, int] = {}
        self._shared: list[MetricSeries] = []
        self._units: list[float] = []
        self._last_s = np.empty(0)
        self._unknown: dict[LabelledSeries, Unattributed] = {}
        self.unattributed: Mapping[Unattributed, UnknownSeries] = {}
        """Series of the pages whose client is not known, by reason. Replaced as a whole, so any thread may read it."""

    def rows(self, samples: Sequence[tuple[LabelledSeries, float]], *, at_s: float, monotonic_s: float) -> ScrapedRows:
        """The rows of a page. NaN, infinite and negative rates are not samples; of a client's second rate the first one counts.

        An amount is rounded down, so that it proves no more than the sample.
        """
        slots = self._slots
        new = [series for series, _ in samples if series not in slots]
        if new or len(slots) > 2 * len(samples) + _SPARE:
            self._learn(new, samples)
            slots = self._slots
        places = np.fromiter((slots[series] for series, _ in samples), dtype=np.int64, count=len(samples))
        values = np.fromiter((value for _, value in samples), dtype=np.float64, count=len(samples))
        is_rate = places > _OTHER
        rates, first = np.unique(places[is_rate], return_index=True)
        with np.errstate(invalid="ignore", over="ignore"):
            amounts = values[is_rate][first] * np.asarray(self._units)[rates]
            kept = (amounts >= 0) & (amounts <= MOST_AMOUNT)
            above = values > 0
        states = np.full(len(self._shared), UNKNOWN, dtype=np.int64)
        is_throttle = places < _OTHER
        states[_OTHER - 1 - places[is_throttle]] = 0
        states[_OTHER - 1 - places[is_throttle & above]] = 1
        rates = rates[kept]
        interval_ms = np.nan_to_num(np.rint((monotonic_s - self._last_s[rates]) * 1000), nan=0.0)
        self._last_s[rates] = monotonic_s
        return ScrapedRows(
            at_us=round(at_s * 1_000_000),
            clients=self._shared,
            slots=rates,
            interval_ms=np.clip(interval_ms, 0, MOST_INTERVAL_MS).astype(np.int64),
            amounts=amounts[kept].astype(np.int64),
            throttled=states[rates],
        )

    def _learn(self, new: Sequence[LabelledSeries], samples: Sequence[tuple[LabelledSeries, float]]) -> None:
        """Give slots to new series; series that are gone leave theirs once they are many."""
        if len(self._slots) + len(new) > 2 * len(samples) + _SPARE:
            new = [series for series, _ in samples]
            last = dict(zip(self._shared, self._last_s.tolist(), strict=True))
            self._slots, self._clients, self._unknown = {}, {}, {}
            self._shared, self._units = [], []
            self._last_s = np.empty(0)
        else:
            last = {}
        for series in new:
            self._slots[series] = self._slot_of(series)
        self.unattributed = _count_unknown(self._unknown)
        more = [last.get(client, np.nan) for client in self._shared[len(self._last_s) :]]
        self._last_s = np.concatenate([self._last_s, np.asarray(more, dtype=np.float64)])

    def _slot_of(self, labelled: LabelledSeries) -> int:
        series = read_series(labelled.labels)
        if isinstance(series, Unattributed):
            self._unknown[labelled] = series
        if not isinstance(series, MetricSeries) or series.measure not in (Measure.RATE, Measure.THROTTLE_TIME):
            return _OTHER
        client = MetricSeries(broker=series.broker, kind=series.kind, user=series.user, client_id=series.client_id, ip=series.ip)
        slot = self._clients.get(client)
        if slot is None:
            slot = self._clients[client] = len(self._shared)
            self._shared.append(client)
            self._units.append(client.amounts_a_unit)
        return slot if series.measure is Measure.RATE else _OTHER - 1 - slot


def _count_unknown(unknown: Mapping[LabelledSeries, Unattributed]) -> dict[Unattributed, UnknownSeries]:
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
                    raise LockedError(msg, holder=str(self.path)) from error
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
