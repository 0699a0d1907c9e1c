"""Recorded traffic of our own making, as Parquet in the normal form: regular, so that who is over what can be told by hand."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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


def write_traffic(path: Path, flows: Iterable[Flow]) -> Path:
    """The file, whose rows are in no order that means anything."""
    rows = [row for flow in flows for row in _rows(flow)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    return path


def _rows(flow: Flow) -> Iterator[dict[str, object]]:
    for number in range(round((flow.end_s - flow.begin_s) / flow.every_s)):
        yield {
            "ts": START + datetime.timedelta(seconds=flow.begin_s + number * flow.every_s),
            "interval_ms": 0,
            "broker": flow.broker,
            "user": flow.user,
            "client_id": flow.client_id,
            "kind": flow.kind,
            "amount": flow.amount,
            "semantics": "event",
            "throttled": flow.throttled,
            "ip": flow.ip,
        }
