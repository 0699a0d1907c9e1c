"""Rows of metrics added up by client and length: gauges, differences of counters and means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.columns.charged import NEEDED, ChargedRows, charged_rows, number_codes
from reconciler.traffic.columns.group_index import GroupIndex
from reconciler.traffic.judging.means import CLIENT, FOLDS, SCHEMA
from reconciler.traffic.kernels.exact_totals import pack
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.shuffle.rows import Totals, add_up
from reconciler.traffic.sources.normal_form import GAUGE, MEAN, OF_METRICS

_SECOND_US: Final = 1_000_000
_LONGEST_PAUSE_US: Final = 300 * _SECOND_US
"""Prometheus looks back no further for a sample: a longer time between two is a gap, and not how often a broker is asked."""
_MOST_HELD: Final = 500_000
_COLUMNS: Final = (*NEEDED, "interval_us", "throttled")


def count_means(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``SCHEMA``, one row a client and length of a share. Rows of requests do not count, nor deltas without a length."""
    held: list[pa.Table] = [SCHEMA.empty_table()]
    for batch in batches:
        known = set(pc.unique(batch.column("status")).to_pylist())
        held += (_of_rows(charged_rows(batch, status), batch, status) for status in OF_METRICS if status in known)
        if sum(table.num_rows for table in held) > _MOST_HELD:
            held = [add_up(pa.concat_tables(held), CLIENT, FOLDS)]
    yield from add_up(pa.concat_tables(held), CLIENT, FOLDS).to_batches()


MEAN_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="means", columns=_COLUMNS, count=count_means, schema=SCHEMA, keys=CLIENT, folds=FOLDS
)


def keyed_samples(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """Keys (``exact_totals.pack``) and amounts of the gauges of groups."""
    for batch in batches:
        rows = charged_rows(batch, GAUGE)
        _, slots = groups.of_rows(rows)
        for of_client in slots:
            group = of_client[rows.of]
            chosen = group >= 0
            yield pack(group[chosen], rows.ts_us[chosen] // 1000), rows.amount[chosen]


def _of_rows(rows: ChargedRows, batch: pa.RecordBatch, status: str) -> pa.Table:
    of, amount, ts_us = rows.of, rows.amount, rows.ts_us
    interval, throttled = rows.numbers(batch, "interval_us"), rows.numbers(batch, "throttled")
    length = np.zeros(len(of), dtype=np.int64)
    if status != GAUGE:
        # Rounded up, which proves less, so that a clock's jitter does not make a length of each row.
        length = -(-interval // _SECOND_US) * _SECOND_US
        if status == MEAN:
            amount = np.floor(amount * (interval / _SECOND_US)).astype(np.int64)
        known = interval > 0
        of, amount, ts_us, throttled, length = (column[known] for column in (of, amount, ts_us, throttled, length))
        interval = np.zeros(len(of), dtype=np.int64)
    # Gauges have none, and to find that out by sorting takes as long as all the rest.
    lengths, place = np.unique(length, return_inverse=True) if length.any() else (length[:1], length)
    width = max(1, len(lengths))
    found, number = number_codes(of * width + place, rows.clients * width)
    client, size = pa.array(found // width), len(found)
    since = np.where(interval <= _LONGEST_PAUSE_US, interval, 0)
    names = {
        "broker": pa.array(rows.broker), "kind": rows.kind, "user": rows.user, "client_id": rows.client_id, "ip": rows.ip,
    }  # fmt: skip
    made: dict[str, pa.Array | Integers] = {
        **{name: column.take(client) for name, column in names.items()},
        "semantics": pa.repeat(status, size),
        "interval_us": lengths[found % width] if len(lengths) else found,
        "amount": _extreme(np.maximum, number, amount, size),
        "rows": np.bincount(number, minlength=size),
        "first_us": _extreme(np.minimum, number, ts_us, size),
        "last_us": _extreme(np.maximum, number, ts_us, size),
        "throttled": _sum(number, throttled, size),
        "since_us": _sum(number, since, size),
        "since_rows": _sum(number, (since > 0).astype(np.int64), size),
    }
    return pa.table([pa.array(made[field.name]).cast(field.type) for field in SCHEMA], schema=SCHEMA)


def _sum(number: Integers, values: Integers, size: int) -> Integers:
    if not values.any():
        return np.zeros(size, dtype=np.int64)
    return np.bincount(number, weights=values, minlength=size).astype(np.int64)


def _extreme(fold: np.ufunc, number: Integers, values: Integers, size: int) -> Integers:
    limits = np.iinfo(np.int64)
    found = np.full(size, limits.max if fold is np.minimum else limits.min, dtype=np.int64)
    fold.at(found, number, values)
    return found
