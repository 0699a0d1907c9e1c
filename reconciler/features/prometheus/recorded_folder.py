"""A folder of recorded gauges: whole Parquet files in the canonical schema, named by their first moment, and none too old.

``PageColumns`` makes the columns of metrics pages, which ``record`` keeps of each scrape until it writes a file.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
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
    UNKNOWN,
    SampledClients,
    SampleRows,
    join_rows,
    open_samples,
    sample_table,
)
from reconciler.files import lock_descriptor
from reconciler.traffic import GAP_FILES, MOST_AMOUNT, Measure

_SPARE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedRows:
    """The rates of one scrape. Many scrapes share ``clients``, which may grow; ``rows.clients`` are places in it."""

    clients: Sequence[MetricSeries]
    rows: SampleRows


class PageColumns:
    """Make rows of the pages of one exporter. The labels of a series are read once, since the next page has it too."""

    def __init__(self) -> None:
        self._known: dict[PageSeries, tuple[int, bool] | None] = {}
        """The place of the client, and whether the series is its rate; ``None`` for a series that is not used."""
        self._places: dict[MetricSeries, int] = {}
        self._clients: list[MetricSeries] = []
        self._last_ms: dict[int, int] = {}
        self.unattributed: dict[Unattributed, tuple[int, Mapping[str, str]]] = {}
        """Series of the pages whose client is not known, by reason: how many, and the labels of the first one."""

    def rows(self, samples: Sequence[PageSample], *, at_s: float, monotonic_s: float) -> ScrapedRows:
        """The rows of a page. NaN, infinite and negative rates are not samples; of a client's second rate the first one counts.

        An amount is rounded down, so that it proves no more than the sample.
        """
        if len(self._known) > 2 * len(samples) + _SPARE:
            # Many series are gone. The next sample of each other one has no interval.
            self._known, self._places, self._clients, self._last_ms = {}, {}, [], {}
            self.unattributed = {}
        rates: dict[int, float] = {}
        throttled: dict[int, bool] = {}
        for series, value in samples:
            known = self._known[series] if series in self._known else self._learn(series)
            if known is not None and known[1]:
                rates.setdefault(known[0], value)
            elif known is not None:
                throttled[known[0]] = throttled.get(known[0], False) or value > 0
        now_ms = round(monotonic_s * 1000)
        rows: list[tuple[int, int, int, int]] = []
        for place, value in rates.items():
            amount = value * self._clients[place].amounts_a_unit
            if 0 <= amount <= MOST_AMOUNT:
                interval_ms = min(now_ms - self._last_ms.get(place, now_ms), MOST_INTERVAL_MS)
                rows.append((place, interval_ms, int(amount), throttled.get(place, UNKNOWN)))
                self._last_ms[place] = now_ms
        places, interval, amounts, states = np.asarray(rows, dtype=np.int64).reshape(-1, 4).T
        at_us = np.full(len(rows), round(at_s * 1_000_000), dtype=np.int64)
        sample_rows = SampleRows(ts_us=at_us, interval_ms=interval, clients=places, amounts=amounts, throttled=states)
        return ScrapedRows(clients=self._clients, rows=sample_rows)

    def _learn(self, labelled: PageSeries) -> tuple[int, bool] | None:
        series = read_series(labelled.labels)
        known = None
        if isinstance(series, Unattributed):
            count, example = self.unattributed.get(series, (0, labelled.labels))
            self.unattributed[series] = count + 1, example
        elif series is not None and series.measure in (Measure.RATE, Measure.THROTTLE_TIME):
            client = replace(series, measure=Measure.RATE)
            if client not in self._places:
                self._places[client] = len(self._clients)
                self._clients.append(client)
            known = self._places[client], series.measure is Measure.RATE
        self._known[labelled] = known
        return known


_FILE: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}Z(?:-\d+)?\.parquet")
_FORM: Final = "%Y-%m-%dT%H%M%SZ"
_LOCK: Final = ".record.lock"


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
            path = self._free_name(int(rows.ts_us.min()))
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

    def remove_old(self, *, before_s: float, most_bytes: int) -> tuple[Path, ...]:
        """Remove files of before ``before_s``, in seconds since 1970, and the oldest where all have more than ``most_bytes``."""
        removed: list[Path] = []
        with _our_errors(self.path):
            files = sorted(file for file in self.path.iterdir() if _FILE.fullmatch(file.name))
            status = {file: file.stat() for file in files}
            left = sum(each.st_size for each in status.values())
            for file in files:
                if status[file].st_mtime < before_s or left > most_bytes:
                    file.unlink()
                    removed.append(file)
                    left -= status[file].st_size
        return tuple(removed)

    def _free_name(self, first_us: int) -> Path:
        name = f"{datetime.datetime.fromtimestamp(first_us / 1e6, datetime.UTC):{_FORM}}"
        path, number = self.path / f"{name}.parquet", 1
        # A clock that was put back shows a second twice.
        while path.exists():
            number += 1
            path = self.path / f"{name}-{number}.parquet"
        return path


def _rows_of(scrapes: Sequence[ScrapedRows]) -> tuple[SampleRows, list[MetricSeries]]:
    """The rows of all scrapes, and the clients that they refer to."""
    begins: dict[int, int] = {}
    clients: list[MetricSeries] = []
    parts = []
    for scrape in scrapes:
        if id(scrape.clients) not in begins:
            begins[id(scrape.clients)] = len(clients)
            clients += scrape.clients
        parts.append(replace(scrape.rows, clients=scrape.rows.clients + begins[id(scrape.clients)]))
    return join_rows(parts), clients


@contextlib.contextmanager
def _our_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileAccessError(f"{path} cannot be written: {error.strerror or error}") from error
