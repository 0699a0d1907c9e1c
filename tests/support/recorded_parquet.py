"""Recorded traffic of our own making, as Parquet in the normal form: regular, so that who is over what can be told by hand."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = datetime.datetime(2026, 11, 20, 8, 0, tzinfo=datetime.UTC)
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
        ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
        ("throttled", pa.bool_()), ("ip", pa.string()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One client's requests of ``amount`` bytes on a broker, every ``every_s`` from ``begin_s`` after ``START`` to ``end_s``."""

    user: str | None
    client_id: str | None = "app"
    broker: int = 1
    kind: str = "produce"
    amount: int = 100_000
    every_s: float = 1.0
    begin_s: float = 0.0
    end_s: float = 60.0
    throttled: bool = False
    ip: str | None = None


def write_traffic(path: Path, flows: Iterable[Flow], *, start: datetime.datetime = START) -> Path:
    """The file, whose rows are in no order that means anything. ``start``: in place of ``START``."""
    pq.write_table(pa.concat_tables([SCHEMA.empty_table(), *(_table(flow, start) for flow in flows)]), path)
    return path


def _table(flow: Flow, start: datetime.datetime) -> pa.Table:
    count = max(0, round((flow.end_s - flow.begin_s) / flow.every_s))
    after_us = np.rint((flow.begin_s + np.arange(count) * flow.every_s) * 1e6).astype(np.int64)
    same = {**{name: getattr(flow, name, None) for name in SCHEMA.names}, "interval_ms": 0, "semantics": "event"}
    columns = {field.name: pa.repeat(pa.scalar(same[field.name], field.type), count) for field in SCHEMA}
    columns["ts"] = pa.array(round(start.timestamp() * 1e6) + after_us).cast(SCHEMA.field("ts").type)
    return pa.table(columns, schema=SCHEMA)
