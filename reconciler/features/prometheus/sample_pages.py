"""Pages of gauges as Parquet in the canonical schema: what a metrics server showed in one stretch of time."""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.features.prometheus.metric_answers import AnsweredSeries, AnswerReader, Samples, drop_replicas, samples_of
from reconciler.features.prometheus.metric_layouts import MetricSeries, Unattributed
from reconciler.model import GAUGE
from reconciler.traffic import (
    CLIENT_TOTALS,
    GAUGE_TOTALS,
    MINUTE_TOTALS,
    MOST_AMOUNT,
    NAME_CODES,
    TOTALS_KEY,
    ChargedRows,
    Integers,
    Kind,
    Measure,
    PartialSums,
    gauges_of_rows,
    is_in_time,
    minutes_of_rows,
    pack_rows,
    run_begins,
)

_FACTS: Final = b"kafka-quotas.page"
_ROWS_AT_ONCE: Final = 1 << 20
_NEVER_MS: Final = np.iinfo(np.int64).min


class PageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a page states of itself.

    ``complete``: nothing can be added to it. ``unattributed``: series whose client is not known, by reason.
    ``replicas``: series that show what another one shows, by broker. ``warnings``: of the server, which then has left something
    out.
    """

    complete: bool
    rows: int
    unattributed: Mapping[Unattributed, int]
    replicas: Mapping[int, int]
    warnings: tuple[str, ...]
    examples: Mapping[Unattributed, str] = {}
    """By reason one series whose client is not known, as JSON."""


def page_facts(path: Path) -> PageFacts | None:
    """Return the facts of a page; ``None`` when there is no whole one, or it is of an older release."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        return msgspec.json.decode(metadata[_FACTS], type=PageFacts)
    except (OSError, pa.ArrowInvalid, KeyError, msgspec.MsgspecError):
        return None


class PageWriter:
    """Writes a page: a reader sees the whole file or none. To be used in a ``with`` block."""

    def __init__(self, path: Path, answers: AnswerReader) -> None:
        """``answers`` is shared by all pages of a server."""
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._answers = answers
        self._numbers: dict[MetricSeries, int] = {}
        self._units = np.empty(0)
        """The factor from a value to an amount, by the number of the client."""
        self._last_ms = np.empty(0, dtype=np.int64)
        """When the last sample was, ``_NEVER_MS`` without one, by the number of the client."""
        self._clients = SampledClients([])
        self._unattributed: dict[Unattributed, set[bytes]] = {}
        self._replicas: Counter[int] = Counter()
        self._warnings: dict[str, None] = {}
        self._rows: list[SampleRows] = []
        self._totals = SampleTotals()
        self._written = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open_samples(self._partial)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="page of samples")
        self._writing: Future[None] | None = None
        """Compression takes a third of the time and no Python: it goes on while the next answer is decoded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Drop what was not finished."""
        self._thread.shutdown()
        with contextlib.suppress(OSError, pa.ArrowInvalid):
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def add(self, body: bytes, *, after_s: float) -> None:
        """Add the samples of an answer that are later than ``after_s``.

        Answers of one page come in the order of time. NaN, infinite and negative values are not samples. An amount is rounded
        down, so that it proves no more than the sample. A sample is ``throttled`` when the client's throttle time of the same
        scrape is above 0, and null when there is no such series.

        Raises ``ForeignAnswerError`` and ``SeveralClustersError``.
        """
        answer = self._answers.read(body)
        self._warnings |= dict.fromkeys(answer.warnings)
        for answered in answer.series:
            if isinstance(answered.read, Unattributed):
                self._unattributed.setdefault(answered.read, set()).add(answered.labels)
        used = (Measure.RATE, Measure.THROTTLE_TIME)
        distinct, replicas = drop_replicas([answered for answered in answer.series if _measure(answered) in used])
        self._replicas |= replicas
        throttles = _throttles([answered for answered in distinct if _measure(answered) is Measure.THROTTLE_TIME])
        rates = [answered for answered in distinct if _measure(answered) is Measure.RATE]
        for series, samples in samples_of(rates):
            clients = [answered.read for answered in series if isinstance(answered.read, MetricSeries)]
            self._add(clients, samples, throttles, round(after_s * 1000))

    def finish(self, *, complete: bool) -> PageFacts:
        """Write it. An empty page is not complete: the server may have been without its history just now."""
        self._write()
        self._finish_write()
        facts = PageFacts(
            complete=complete and self._written > 0 and not self._warnings,
            rows=self._written,
            unattributed={reason: len(labels) for reason, labels in self._unattributed.items()},
            replicas=self._replicas,
            warnings=tuple(self._warnings),
            examples={reason: min(labels).decode("utf-8", "replace") for reason, labels in self._unattributed.items()},
        )
        self._file.add_key_value_metadata(self._totals.metadata() | {_FACTS: msgspec.json.encode(facts)})
        self._file.close()
        self._partial.replace(self._path)
        return facts

    def _add(
        self, series: Sequence[MetricSeries], samples: Samples, throttles: Mapping[MetricSeries, Integers], after_ms: int
    ) -> None:
        counts, ts_ms = samples.counts, samples.ts_ms
        number = self._number(series)
        ends = np.cumsum(counts)
        begins = ends - counts
        interval = np.diff(ts_ms, prepend=0)
        first, last = ts_ms[begins], self._last_ms[number]
        interval[begins] = first - np.where(last == _NEVER_MS, first, last)
        self._last_ms[number] = ts_ms[ends - 1]
        unit = self._units[number]
        with np.errstate(invalid="ignore", over="ignore"):
            # What is not a number, or not a double any more, is not a sample.
            amount = samples.values if np.all(unit == 1) else samples.values * np.repeat(unit, counts)
            kept = (amount >= 0) & (amount <= MOST_AMOUNT) & (ts_ms > after_ms)
        chosen = slice(None) if kept.all() else kept
        self._rows.append(
            SampleRows(
                ts_us=ts_ms[chosen] * 1000,
                interval_ms=interval[chosen],
                clients=np.repeat(number, counts)[chosen],
                amounts=amount[chosen].astype(np.int64),
                throttled=_throttled(series, samples, begins, throttles)[chosen],
            )
        )
        if sum(rows.count for rows in self._rows) >= _ROWS_AT_ONCE:
            self._write()

    def _number(self, series: Sequence[MetricSeries]) -> Integers:
        """Return the number of each client."""
        known, before = self._numbers, len(self._numbers)
        numbers = np.asarray([known.setdefault(client, len(known)) for client in series], dtype=np.int64)
        if more := [client.amounts_a_unit for client in itertools.islice(known, before, None)]:
            self._units = np.append(self._units, more)
            self._last_ms = np.append(self._last_ms, np.full(len(more), _NEVER_MS))
        return numbers

    def _write(self) -> None:
        if not sum(rows.count for rows in self._rows):
            return
        if self._clients.count != len(self._numbers):
            self._clients = SampledClients(list(self._numbers))
        rows, clients = join_rows(self._rows), self._clients
        self._rows = []
        self._finish_write()
        self._writing = self._thread.submit(self._write_rows, rows, clients)
        self._totals.add(rows, clients)
        self._written += rows.count

    def _write_rows(self, rows: SampleRows, clients: SampledClients) -> None:
        self._file.write_table(sample_table(rows, clients), row_group_size=rows.count)

    def _finish_write(self) -> None:
        """Wait for the rows before, and raise what went wrong with them."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None


def _throttled(
    series: Sequence[MetricSeries], samples: Samples, begins: Integers, throttles: Mapping[MetricSeries, Integers]
) -> Integers:
    """Return for each sample 1, 0 or ``UNKNOWN``."""
    if not throttles:
        return np.full(len(samples.ts_ms), UNKNOWN)
    moments = [throttles.get(replace(rate, measure=Measure.THROTTLE_TIME)) for rate in series]
    throttled = np.repeat(np.asarray([UNKNOWN if at is None else 0 for at in moments]), samples.counts)
    for begin, count, at in zip(begins.tolist(), samples.counts.tolist(), moments, strict=True):
        if at is not None and len(at):
            throttled[begin : begin + count] = np.isin(samples.ts_ms[begin : begin + count], at)
    return throttled


def _measure(series: AnsweredSeries) -> Measure | None:
    return series.read.measure if isinstance(series.read, MetricSeries) else None


def _throttles(series: Sequence[AnsweredSeries]) -> dict[MetricSeries, Integers]:
    """Return the times, in milliseconds since 1970, at which each client's throttle time was above 0."""
    moments: dict[MetricSeries, Integers] = {}
    for some, samples in samples_of(series):
        ends = np.cumsum(samples.counts).tolist()
        with np.errstate(invalid="ignore"):
            above = samples.values > 0
        for answered, begin, end in zip(some, [0, *ends[:-1]], ends, strict=True):
            if isinstance(answered.read, MetricSeries):
                at = samples.ts_ms[begin:end][above[begin:end]]
                moments[answered.read] = np.concatenate([moments[answered.read], at]) if answered.read in moments else at
    return moments


UNKNOWN: Final = -1
"""Of ``throttled``, beside 0 and 1."""
MOST_INTERVAL_MS: Final = 2**31 - 1
_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
_SCHEMA: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", _NAMES),
        ("client_id", _NAMES), ("kind", _NAMES), ("amount", pa.int64()), ("semantics", _NAMES), ("throttled", pa.bool_()),
        ("ip", _NAMES),
    ]
)  # fmt: skip
_WITH_STATISTICS: Final = ("ts", "broker", "kind", "semantics")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRows:
    """One item a sample. ``clients``: places in a sequence of series, whose names the rows get.

    ``interval_ms``: since the sample before of the same client, 0 or less when that is not known. ``throttled``: 1 for a client
    that the broker throttled in the last minute, 0 for one that it did not, ``UNKNOWN``.
    """

    ts_us: Integers
    interval_ms: Integers
    clients: Integers
    amounts: Integers
    throttled: Integers

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.ts_us)


def join_rows(parts: Sequence[SampleRows]) -> SampleRows:
    """The rows one part after the other; there is one part at least."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in SampleRows.__slots__}
    return SampleRows(**columns)


def open_samples(sink: Path | pa.NativeFile) -> pq.ParquetWriter:
    """A file for ``sample_table``. The caller closes it."""
    # The digits of rates are noise: compression at the first level, and differences instead of a table of amounts.
    return pq.ParquetWriter(
        sink,
        _SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in _SCHEMA.names if name != "amount"],
        column_encoding={"amount": "DELTA_BINARY_PACKED"},
        write_statistics=list(_WITH_STATISTICS),
    )


class SampledClients:
    """The names of clients as columns, which many tables of their rows share."""

    def __init__(self, clients: Sequence[MetricSeries]) -> None:
        self.count = len(clients)
        self.brokers = np.asarray([client.broker for client in clients], dtype=np.int64)
        words = {kind: kind.value for kind in Kind}
        self._names = {
            "user": pa.array([client.user for client in clients], pa.string()).dictionary_encode(),
            "client_id": pa.array([client.client_id for client in clients], pa.string()).dictionary_encode(),
            "kind": pa.array([words[client.kind] for client in clients], pa.string()).dictionary_encode(),
            "ip": pa.array([client.ip for client in clients], pa.string()).dictionary_encode(),
        }

    def names(self, column: str, clients: Integers) -> pa.DictionaryArray:
        """Names of the canonical schema's ``column``, of these clients."""
        return self._names[column].take(pa.array(clients))


def sample_table(rows: SampleRows, clients: SampledClients) -> pa.Table:
    """The rows in the columns of the canonical schema."""
    has_interval = (rows.interval_ms > 0) & (rows.interval_ms <= MOST_INTERVAL_MS)
    semantics = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows.count, dtype=np.int32)), pa.array([GAUGE]))
    return pa.Table.from_arrays(
        [
            pa.array(rows.ts_us).view(_SCHEMA.field("ts").type),
            pa.array(np.where(has_interval, rows.interval_ms, 0).astype(np.int32), mask=~has_interval),
            pa.array(clients.brokers.astype(np.int32)[rows.clients]),
            clients.names("user", rows.clients),
            clients.names("client_id", rows.clients),
            clients.names("kind", rows.clients),
            pa.array(rows.amounts),
            semantics,
            pa.array(rows.throttled == 1, mask=rows.throttled == UNKNOWN),
            clients.names("ip", rows.clients),
        ],
        schema=_SCHEMA,
    )


class SampleTotals:
    """Adds up the gauges of one file while it is written."""

    def __init__(self) -> None:
        self._gauges = PartialSums(GAUGE_TOTALS.schema, GAUGE_TOTALS.keys, GAUGE_TOTALS.folds)
        self._minutes = PartialSums(MINUTE_TOTALS.schema, MINUTE_TOTALS.keys, MINUTE_TOTALS.folds)
        self._rows = 0
        self._is_usable = True

    def add(self, rows: SampleRows, clients: SampledClients) -> None:
        """Rows of the file; ``clients`` as ``sample_table`` takes them."""
        if not is_in_time(rows.ts_us).all():
            self._is_usable = False
        self._rows += rows.count
        if not self._is_usable:
            return
        charged = _charged(rows, clients)
        interval_us = np.maximum(rows.interval_ms, 0) * 1000
        self._gauges.add(gauges_of_rows(charged, interval_us, (rows.throttled == 1).astype(np.int64)))
        self._minutes.add(minutes_of_rows(rows.ts_us, charged.broker[rows.clients]))

    def metadata(self) -> dict[bytes, bytes]:
        """Return the totals for the file's footer; none where a time is not one of recorded traffic."""
        if not self._is_usable:
            return {}
        lines = pa.Table.from_pylist([{"status": GAUGE, "lines": self._rows}] * bool(self._rows), schema=CLIENT_TOTALS.schema)
        tables = {CLIENT_TOTALS.name: lines, GAUGE_TOTALS.name: self._gauges.table(), MINUTE_TOTALS.name: self._minutes.table()}
        return {TOTALS_KEY + name.encode(): _packed(table) for name, table in tables.items()}


def _charged(rows: SampleRows, clients: SampledClients) -> ChargedRows:
    every = np.arange(clients.count)
    return ChargedRows(
        of=rows.clients,
        ts_us=rows.ts_us,
        records=rows.amounts,
        overhead=np.zeros(rows.count, dtype=np.int64),
        broker=clients.brokers,
        **{name: clients.names(name, every).cast(NAME_CODES) for name in ("kind", "user", "client_id", "ip")},
        rows=None,
        others={},
        begins=run_begins([rows.clients]),
    )


def _packed(table: pa.Table) -> bytes:
    """Return a table as base64 text, because readers of Parquet take these values as UTF-8."""
    return base64.b64encode(pack_rows(table.combine_chunks(), "zstd"))
