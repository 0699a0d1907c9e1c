"""The columns of per-second totals in a lake, and batches of recorded rows added up to them.

A row is one second of a client, or the lines of one second and broker that a status keeps from being charged. Those of a status
of ``UNCHARGED`` are of a client, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.client_totals import COUNTED
from reconciler.traffic.columns.charged import ChargedRows, charged_rows
from reconciler.traffic.sources.log_evidence import CLUSTER
from reconciler.traffic.sources.normal_form import CHARGED, UNCHARGED, are_known, integers

SCHEMA_VERSION: Final = "1.0"
"""Of the columns. The number before the dot changes when readers may break."""
COLUMNS: Final = (
    ("ts", "timestamp"), ("broker", "int"), ("kind", "string"), ("user", "string"), ("client_id", "string"), ("ip", "string"),
    ("status", "string"), ("requests", "bigint"), ("amount", "bigint"), ("largest", "bigint"), ("throttled", "bigint"),
    ("first_us", "int"), ("last_us", "int"),
)  # fmt: skip
"""``ts``: the begin of the second, UTC. ``first_us``, ``last_us``: of its first and last request, microseconds after ``ts``."""
FOLDS: Final = {
    "requests": "sum", "amount": "sum", "largest": "max", "throttled": "sum", "first_us": "min", "last_us": "max",
}  # fmt: skip
NAMES: Final = tuple(name for name, _ in COLUMNS)
KEYS: Final = tuple(name for name in NAMES if name not in FOLDS)
SECOND_US: Final = 1_000_000
DAY_S: Final = 86_400
FIGURES: Final = {"requests": "sum", "amount": "sum", "largest": "max", "throttled": "sum", "first": "min", "last": "max"}
SECOND_SCHEMA: Final = pa.schema(
    [
        ("file", pa.string()), ("cluster", pa.string()), ("second", pa.int64()), ("status", pa.string()), ("broker", pa.int32()),
        ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()), ("ip", pa.string()),
        *((name, pa.int64()) for name in FIGURES),
    ]
)  # fmt: skip


SECOND_COLUMNS: Final = (*COUNTED, "file")
"""What ``count_batch`` reads."""


def count_batch(batch: pa.RecordBatch) -> Iterator[pa.Table]:
    """``SECOND_SCHEMA``: partial sums by file, second and client. Rows without a time have no second."""
    for file in batch.column("file").unique().to_pylist():
        rows = batch.filter(pc.equal(batch.column("file"), file)) if len(batch) else batch
        for status in (CHARGED, *UNCHARGED):
            yield _of_clients(charged_rows(rows, status), rows, file, status)
        yield _others(rows, file)
        yield _clusters(rows, file)


def _of_clients(rows: ChargedRows, batch: pa.RecordBatch, file: str, status: str) -> pa.Table:
    if not len(rows.of):
        return SECOND_SCHEMA.empty_table()
    second = rows.ts_us // SECOND_US
    begin = int(second.min())
    span = int(second.max()) - begin + 1
    codes, place = np.unique(rows.of * span + second - begin, return_inverse=True)
    client, size = pa.array(codes // span), len(codes)
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    amount, throttled = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    largest, first, last = np.full(size, lowest), np.full(size, highest), np.full(size, lowest)
    np.add.at(amount, place, rows.amount)
    np.add.at(throttled, place, rows.numbers(batch, "throttled"))
    np.maximum.at(largest, place, rows.records)
    np.minimum.at(first, place, rows.ts_us)
    np.maximum.at(last, place, rows.ts_us)
    names = {"kind": rows.kind, "user": rows.user, "client_id": rows.client_id, "ip": rows.ip}
    return _table(
        size,
        file=pa.repeat(file, size),
        second=pa.array(codes % span + begin),
        status=pa.repeat(status, size),
        broker=pa.array(rows.broker).take(client),
        **{name: column.take(client) for name, column in names.items()},
        requests=pa.array(np.bincount(place, minlength=size)),
        amount=pa.array(amount),
        largest=pa.array(largest),
        throttled=pa.array(throttled),
        first=pa.array(first),
        last=pa.array(last),
    )


def _others(batch: pa.RecordBatch, file: str) -> pa.Table:
    """The rows of no client, counted by status, broker and second; rows without a time by status alone."""
    of_clients = pc.is_in(batch.column("status").cast(pa.string()), pa.array([CHARGED, *UNCHARGED]))
    rows = batch.filter(pc.invert(of_clients))
    if not rows.num_rows:
        return SECOND_SCHEMA.empty_table()
    located = are_known(rows.column("ts_us")) & are_known(rows.column("broker"))
    ts_us = integers(rows.column("ts_us"))
    counted = pa.table(
        {
            "status": rows.column("status").cast(pa.string()),
            "second": pa.array(ts_us // SECOND_US, mask=~located),
            "broker": pa.array(integers(rows.column("broker")), mask=~located),
            "ts_us": pa.array(ts_us, mask=~located),
        }
    )
    grouped = counted.group_by(["status", "second", "broker"], use_threads=False)
    table = grouped.aggregate([("status", "count"), ("ts_us", "min"), ("ts_us", "max")])
    nothing = pa.array(np.zeros(table.num_rows, dtype=np.int64))
    return _table(
        table.num_rows,
        file=pa.repeat(file, table.num_rows),
        **{name: table.column(name) for name in ("second", "status", "broker")},
        requests=table.column("status_count"),
        amount=nothing,
        largest=nothing,
        throttled=nothing,
        first=table.column("ts_us_min"),
        last=table.column("ts_us_max"),
    )


def _clusters(batch: pa.RecordBatch, file: str) -> pa.Table:
    """The ids of clusters that lines name, as rows without a status."""
    known = batch.column(CLUSTER).unique().drop_null().to_pylist() if CLUSTER in batch.schema.names else []
    return _table(len(known), file=pa.array([file] * len(known), pa.string()), cluster=pa.array(known, pa.string()))


def _table(rows: int, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.table(
        [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in SECOND_SCHEMA
        ],
        schema=SECOND_SCHEMA,
    )
