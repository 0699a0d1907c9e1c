"""Pages of gauges as Parquet in the canonical schema: what a metrics server showed in one stretch of time."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.sources.metric_answers import AnsweredSeries, AnswerReader, Samples, samples_of
from reconciler.traffic.sources.metric_duplicates import drop_replicas
from reconciler.traffic.sources.metric_layouts import Measure, MetricSeries, Unattributed
from reconciler.traffic.sources.normal_form import GAUGE, MOST_AMOUNT

_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
_SCHEMA: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", _NAMES),
        ("client_id", _NAMES), ("kind", _NAMES), ("amount", pa.int64()), ("semantics", _NAMES), ("throttled", pa.bool_()),
        ("ip", _NAMES),
    ]
)  # fmt: skip
_FACTS: Final = b"kafka-quotas.page"
_MOST_INTERVAL_MS: Final = 2**31 - 1
_ROWS_AT_ONCE: Final = 1 << 20
_UNKNOWN: Final = -1
"""Of ``throttled``, beside 0 and 1."""


class PageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says of itself.

    ``until_s``: it has the samples up to here. ``complete``: nothing can be added to it. ``clients``: series of clients' rates.
    ``unattributed``: series whose client is not known, by reason. ``replicas``: series that show what another one shows, by
    broker. ``warnings``: of the server, which then has left something out.
    """

    until_s: float
    complete: bool
    rows: int
    clients: int
    brokers: tuple[int, ...]
    unattributed: Mapping[Unattributed, int]
    replicas: Mapping[int, int]
    warnings: tuple[str, ...]
    names: str = ""
    """Of a page with clients in metric names: a digest of the names that were known."""
    examples: Mapping[Unattributed, str] = {}
    """By reason one series whose client is not known, as JSON."""


def page_facts(path: Path) -> PageFacts | None:
    """Of a page that is whole; ``None`` when there is none, or it is of an older release."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        return msgspec.json.decode(metadata[_FACTS], type=PageFacts)
    except (OSError, pa.ArrowInvalid, KeyError, msgspec.MsgspecError):
        return None


@dataclass(slots=True)
class _PageRows:
    """Columns of rows that are not written yet."""

    columns: list[list[Integers]] = field(default_factory=lambda: [[] for _ in range(9)])
    count: int = 0

    def add(self, *columns: Integers) -> None:
        for held, column in zip(self.columns, columns, strict=True):
            held.append(column)
        self.count += len(columns[0])

    def take(self) -> list[Integers]:
        taken = [np.concatenate(column) for column in self.columns]
        self.columns, self.count = [[] for _ in range(9)], 0
        return taken


class PageWriter:
    """Writes a page: a reader sees the whole file or none. To be used in a ``with`` block."""

    def __init__(self, path: Path, answers: AnswerReader) -> None:
        """``answers`` is shared by all pages of a server."""
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._answers = answers
        self._names: dict[str | None, int] = {None: _UNKNOWN}
        self._last_ms: dict[MetricSeries, int] = {}
        self._clients: set[MetricSeries] = set()
        self._unattributed: dict[Unattributed, set[bytes]] = {}
        self._replicas: Counter[int] = Counter()
        self._has_names = False
        self._warnings: dict[str, None] = {}
        self._rows = _PageRows()
        self._written = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        # Compression at the first level: the digits of rates are noise.
        self._file = pq.ParquetWriter(
            self._partial,
            _SCHEMA,
            compression="zstd",
            compression_level=1,
            write_statistics=["ts", "broker", "kind", "semantics"],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Drop what was not finished."""
        with contextlib.suppress(OSError, pa.ArrowInvalid):
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def add(self, body: bytes, *, after_s: float) -> int:
        """Add the samples of an answer that are later than ``after_s``, and give their number.

        Answers of one page come in the order of time. NaN, infinite and negative values are no samples. An amount is rounded
        down, so that it proves no more than the sample. A sample is ``throttled`` when the client's throttle time of the same
        scrape is above 0, and null when there is no such series.

        Raises ``ForeignAnswerError`` and ``SeveralClustersError``.
        """
        answer = self._answers.read(body)
        self._warnings |= dict.fromkeys(answer.warnings)
        for one in answer.series:
            self._has_names |= one.is_named_only
            if isinstance(one.read, Unattributed):
                self._unattributed.setdefault(one.read, set()).add(one.labels)
        used = (Measure.RATE, Measure.THROTTLE_TIME)
        distinct = drop_replicas(
            [one for one in answer.series if isinstance(one.read, MetricSeries) and one.read.measure in used]
        )
        for broker, count in distinct.replicas.items():
            self._replicas[broker] = max(self._replicas[broker], count)
        throttles = _throttles([one for one in distinct.series if _measure(one) is Measure.THROTTLE_TIME])
        rates = [one for one in distinct.series if _measure(one) is Measure.RATE]
        count = 0
        for series, samples in samples_of(rates):
            self._add(
                [one.read for one in series if isinstance(one.read, MetricSeries)], samples, throttles, round(after_s * 1000)
            )
            count += len(samples.ts_ms)
        return count

    def finish(self, *, until_s: float, complete: bool, names: str = "") -> PageFacts:
        """Write it. ``names``: a digest of the names of clients that were known.

        An empty page is not complete: the server may have been without its history just now.
        """
        self._write()
        facts = PageFacts(
            until_s=until_s,
            complete=complete and self._written > 0 and not self._warnings,
            rows=self._written,
            clients=len(self._clients),
            brokers=tuple(sorted({one.broker for one in self._clients})),
            unattributed={reason: len(labels) for reason, labels in self._unattributed.items()},
            replicas=self._replicas,
            warnings=tuple(self._warnings),
            names=names if self._has_names else "",
            examples={reason: min(labels).decode("utf-8", "replace") for reason, labels in self._unattributed.items()},
        )
        self._file.add_key_value_metadata({_FACTS: msgspec.json.encode(facts)})
        self._file.close()
        self._partial.replace(self._path)
        return facts

    def _add(
        self, series: Sequence[MetricSeries], samples: Samples, throttles: Mapping[MetricSeries, Integers], after_ms: int
    ) -> None:
        counts, ts_ms = samples.counts, samples.ts_ms
        ends = np.cumsum(counts)
        begins = ends - counts
        interval = np.diff(ts_ms, prepend=0)
        interval[begins] = [at - self._last_ms.get(one, at) for one, at in zip(series, ts_ms[begins].tolist(), strict=True)]
        self._last_ms.update(zip(series, ts_ms[ends - 1].tolist(), strict=True))
        units = np.asarray([one.amounts_a_unit for one in series])
        amount = samples.values * np.repeat(units, counts)
        with np.errstate(invalid="ignore"):
            kept = (amount >= 0) & (amount <= MOST_AMOUNT) & (ts_ms > after_ms)
        has_rows = np.add.reduceat(kept.astype(np.int64), begins).tolist()
        self._clients.update(one for one, rows in zip(series, has_rows, strict=True) if rows)
        throttled = np.repeat(np.asarray([_state(throttles.get(_throttle_time_of(one))) for one in series]), counts)
        for number, one in enumerate(series):
            if len(at := throttles.get(_throttle_time_of(one), ())):
                throttled[begins[number] : ends[number]] = np.isin(ts_ms[begins[number] : ends[number]], at)
        codes = [
            np.asarray(values, dtype=np.int64)
            for values in (
                [one.broker for one in series],
                [self._code(one.user) for one in series],
                [self._code(one.client_id) for one in series],
                [self._code(one.kind.value) for one in series],
                [self._code(one.ip) for one in series],
            )
        ]
        whole = np.where(kept, amount, 0).astype(np.int64)
        columns = [ts_ms, interval, *(np.repeat(column, counts) for column in codes), whole, throttled]
        self._rows.add(*(column if kept.all() else column[kept] for column in columns))
        if self._rows.count >= _ROWS_AT_ONCE:
            self._write()

    def _code(self, name: str | None) -> int:
        return self._names.setdefault(name, len(self._names) - 1)

    def _write(self) -> None:
        if not self._rows.count:
            return
        ts_ms, interval, broker, user, client, kind, ip, amount, throttled = self._rows.take()
        names = pa.array([name for name in self._names if name is not None], pa.string())
        there = (interval > 0) & (interval <= _MOST_INTERVAL_MS)
        columns = [
            pa.array(ts_ms * 1000).view(_SCHEMA.field("ts").type),
            pa.array(np.where(there, interval, 0).astype(np.int32), mask=~there),
            pa.array(broker.astype(np.int32)),
            *(_named(codes, names) for codes in (user, client, kind)),
            pa.array(amount),
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(amount), dtype=np.int32)), pa.array([GAUGE])),
            pa.array(throttled == 1, mask=throttled == _UNKNOWN),
            _named(ip, names),
        ]
        self._file.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA), row_group_size=len(amount))
        self._written += len(amount)


def _measure(series: AnsweredSeries) -> Measure | None:
    return series.read.measure if isinstance(series.read, MetricSeries) else None


def _throttle_time_of(rate: MetricSeries) -> MetricSeries:
    return MetricSeries(
        broker=rate.broker, kind=rate.kind, user=rate.user, client_id=rate.client_id, measure=Measure.THROTTLE_TIME
    )


def _throttles(series: Sequence[AnsweredSeries]) -> dict[MetricSeries, Integers]:
    """When each client's throttle time was above 0."""
    found: dict[MetricSeries, Integers] = {}
    for some, samples in samples_of(series):
        ends = np.cumsum(samples.counts).tolist()
        with np.errstate(invalid="ignore"):
            above = samples.values > 0
        for one, begin, end in zip(some, [0, *ends[:-1]], ends, strict=True):
            if isinstance(one.read, MetricSeries):
                at = samples.ts_ms[begin:end][above[begin:end]]
                found[one.read] = np.concatenate([found[one.read], at]) if one.read in found else at
    return found


def _state(throttles: Integers | None) -> int:
    return _UNKNOWN if throttles is None else 0


def _named(codes: Integers, names: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes == _UNKNOWN), names)
