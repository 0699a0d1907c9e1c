"""Pages of gauges as Parquet in the canonical schema: what a metrics server showed in one stretch of time."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.traffic.sources.metric_layouts import Measure, MetricSeries, Unattributed, read_series
from reconciler.traffic.sources.normal_form import GAUGE, MOST_AMOUNT

_SCHEMA: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
        ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCounts:
    """Of one page: rows written, series of clients, and series whose client is not known, by reason."""

    rows: int
    series: int
    unattributed: Mapping[Unattributed, int]


def write_page(path: Path, found: Iterable[tuple[Mapping[str, str], Iterable[tuple[float, float]]]]) -> PageCounts:
    """Write the samples of clients' series; a reader sees the whole file or none.

    ``found``: the labels of each series, and its samples as (seconds since 1970, value). NaN, infinite and negative values are
    no samples. An amount is rounded down, so that it proves no more than the sample.
    """
    columns: dict[str, list[object]] = {name: [] for name in _SCHEMA.names}
    unattributed: Counter[Unattributed] = Counter()
    count = 0
    for labels, samples in found:
        series = read_series(labels)
        if isinstance(series, Unattributed):
            unattributed[series] += 1
        elif series is not None and series.measure is Measure.RATE:
            count += 1
            _add(columns, series, samples)
    table = pa.table(columns, schema=_SCHEMA)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(table, partial, compression="zstd")
    partial.replace(path)
    return PageCounts(rows=table.num_rows, series=count, unattributed=dict(unattributed))


def _add(columns: dict[str, list[object]], series: MetricSeries, samples: Iterable[tuple[float, float]]) -> None:
    for at, value in samples:
        amount = value * series.amounts_a_unit if math.isfinite(value) else -1.0
        if not 0 <= amount <= MOST_AMOUNT:
            continue
        columns["ts"].append(datetime.datetime.fromtimestamp(at, datetime.UTC))
        columns["interval_ms"].append(0)
        columns["broker"].append(series.broker)
        columns["user"].append(series.user)
        columns["client_id"].append(series.client_id)
        columns["kind"].append(series.kind.value)
        columns["amount"].append(int(amount))
        columns["semantics"].append(GAUGE)
