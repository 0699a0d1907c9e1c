"""The end of recorded traffic as samples of rates: what brokers' gauges would have shown at its last moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.seconds.history import open_history, read_totals
from reconciler.traffic.sources.metric_layouts import MetricSeries
from reconciler.traffic.sources.normal_form import CHARGED, GAUGE, OF_METRICS

WINDOW_S: Final = 300
"""How much of the end is kept."""
_RATE_S: Final = 10
"""Kafka's own window without its running sample."""
_USED: Final = pa.array([CHARGED, *OF_METRICS])
_COLUMNS: Final = ("broker", "kind", "user", "client_id", "ip", "ts_us", "records", "overhead", "throttled", "interval_us")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRate:
    """A client's rate in the unit of its limit: (seconds since 1970, rate), oldest first.

    ``of_group``: the names are the tags of a quota group, as a broker's gauges have them; else those of a client. ``throttled``:
    the times of samples that a throttle is recorded with.
    """

    series: MetricSeries
    of_group: bool
    samples: tuple[tuple[float, float], ...]
    throttled: tuple[float, ...]


def last_rates(batches: Iterable[pa.RecordBatch]) -> list[RecordedRate]:
    """The rates of the last ``WINDOW_S`` of the traffic. ``batches`` are of ``ROWS``."""
    gauges: dict[MetricSeries, list[tuple[float, float, bool]]] = defaultdict(list)
    sums: dict[MetricSeries, list[tuple[float, float, bool]]] = defaultdict(list)
    end_s = 0.0
    for row in _last_rows(batches):
        series = _series_of(row)
        at_s, amount = row["ts_us"] / 1e6, (row["records"] or 0) + (row["overhead"] or 0)
        end_s = max(end_s, at_s)
        value = amount / series.amounts_a_unit
        if row["status"] == GAUGE:
            gauges[series].append((at_s, value, bool(row["throttled"])))
        elif row["interval_us"] is not None and row["interval_us"] > _RATE_S * 1_000_000:
            sums[series].append((at_s, value * 1e6 / row["interval_us"] * _RATE_S, bool(row["throttled"])))
        else:
            sums[series].append((at_s, value, bool(row["throttled"])))
    made = [_gauge(series, sorted(rows)) for series, rows in gauges.items()]
    return made + [_sum(series, rows, end_s) for series, rows in sums.items()]


def last_totals(folder: Path) -> list[RecordedRate]:
    """The rates at the end of per-second totals. Raises ``TrafficError`` for a folder without totals."""
    history = open_history(SegmentFolder(folder))
    ends = {
        segment.folder: max((covered.end_us for covered in segment.coverage), default=0) // 1_000_000
        for segment in history.segments
    }
    end_s = max(ends.values()) + 1
    late = tuple(segment for segment in history.segments if ends[segment.folder] >= end_s - WINDOW_S)
    kept = replace(history, segments=late, seconds=(end_s - WINDOW_S, end_s))
    by_key = {
        series.key: MetricSeries(
            broker=series.broker, kind=series.kind, user=series.user, client_id=series.client_id, ip=series.ip
        )
        for series in history.series
    }
    sums: dict[MetricSeries, list[tuple[float, float, bool]]] = defaultdict(list)
    for keys, seconds, amounts in read_totals(kept, list(by_key)):
        for key, second, amount in zip(keys.tolist(), seconds.tolist(), amounts.tolist(), strict=True):
            series = by_key[key]
            # The total of a second is complete when the next one begins.
            sums[series].append((second + 1.0, amount / series.amounts_a_unit, False))
    return [_sum(series, rows, float(end_s)) for series, rows in sums.items()]


def _last_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    kept: list[pa.Table] = []
    end_us = 0
    for batch in batches:
        table = pa.table({name: _column(batch, name) for name in ("status", *_COLUMNS)})
        table = table.filter(pc.is_in(table["status"], value_set=_USED))
        if not table.num_rows:
            continue
        last_us = pc.max(table["ts_us"]).as_py()
        end_us = max(end_us, last_us)
        if last_us > end_us - WINDOW_S * 1_000_000:
            kept.append(table.filter(pc.greater(table["ts_us"], end_us - WINDOW_S * 1_000_000)))
    for table in kept:
        for batch in table.filter(pc.greater(table["ts_us"], end_us - WINDOW_S * 1_000_000)).to_batches():
            yield from batch.to_pylist()


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Of nulls where a form of traffic does not have it: single requests have no interval."""
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)


def _series_of(row: dict[str, Any]) -> MetricSeries:
    kind, user, client_id = Kind(str(row["kind"])), row["user"], row["client_id"]
    broker = row["broker"] if isinstance(row["broker"], int) else 0
    if kind is Kind.CONNECTION:
        ip = row["ip"]
        return MetricSeries(broker=broker, kind=kind, user=None, client_id=None, ip=None if ip is None else str(ip))
    return MetricSeries(
        broker=broker,
        kind=kind,
        user=None if user is None else str(user),
        client_id=None if client_id is None else str(client_id),
    )


def _gauge(series: MetricSeries, rows: list[tuple[float, float, bool]]) -> RecordedRate:
    return RecordedRate(
        series=series,
        of_group=True,
        samples=tuple((at, value) for at, value, _ in rows),
        throttled=tuple(at for at, _, throttled in rows if throttled),
    )


def _sum(series: MetricSeries, rows: list[tuple[float, float, bool]], end_s: float) -> RecordedRate:
    """The mean of the last ten seconds, and of the ten seconds a minute before."""
    before_s = end_s - 60
    rates = {at: sum(value for moment, value, _ in rows if at - _RATE_S < moment <= at) / _RATE_S for at in (before_s, end_s)}
    return RecordedRate(
        series=series,
        of_group=False,
        samples=tuple(sorted(rates.items())),
        throttled=tuple(sorted(moment for moment, _, throttled in rows if throttled)),
    )
