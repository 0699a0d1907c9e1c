"""A small history in the normal form with everything that a quota limits, as Parquet."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
START_MS = int(START.timestamp() * 1000)
_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
        ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
        ("tie", pa.int64()), ("ip", pa.string()), ("strict", pa.bool_()), ("part", pa.int32()),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row; ``who``: a user with its client id, or an address."""

    at_ms: int
    kind: str
    amount: int
    who: tuple[str, str] | str
    broker: int = 1
    tie: int | None = None
    strict: bool | None = None
    part: int | None = None


ALICE, OPS, OLD = ("alice", "app"), ("ops", "admin"), ("old", "admin")


def rows() -> tuple[Row, ...]:
    """Two minutes: alice's requests, partitions made by a new and an old client, and connections from three addresses."""
    return tuple(sorted(_rows(random.Random(7)), key=lambda row: row.at_ms))


def _rows(random_: random.Random) -> Iterator[Row]:
    at = 0
    while at < 120_000:
        at += random_.randint(1, 300)
        yield Row(at, "produce", random_.randint(100, 5000), ALICE)
        yield Row(at, "request", random_.randint(1_000_000, 90_000_000), ALICE)
    for number in range(24):
        at = 3000 * number + random_.randint(0, 1500)
        partitions = [random_.randint(1, 40) for _ in range(random_.randint(1, 5))]
        for part, amount in enumerate(partitions):
            yield Row(at, "mutation", amount, OPS, broker=2, tie=number, strict=number % 7 != 3, part=part)
        yield Row(at + 700, "mutation", random_.randint(1, 60), OLD, broker=2, tie=100 + number, strict=False, part=0)
    for number in range(200):
        yield Row(random_.randint(0, 60_000), "connection", 1, "10.0.0.7", tie=number)
        yield Row(300 * number, "connection", 1, "10.0.0.8", tie=number)
    yield Row(5, "connection", 1, "0:0:0:0:0:0:0:1", tie=1)


def write(path: Path, chosen: tuple[Row, ...]) -> None:
    """In an order that is not that of time."""
    table = [_written(row) for row in random.Random(3).sample(chosen, len(chosen))]
    pq.write_table(pa.Table.from_pylist(table, schema=_SCHEMA), path)


def _written(row: Row) -> dict[str, object]:
    ip, user, client_id = (row.who, None, None) if isinstance(row.who, str) else (None, *row.who)
    return {
        "ts": START + datetime.timedelta(milliseconds=row.at_ms), "interval_ms": 0, "broker": row.broker, "user": user,
        "client_id": client_id, "kind": row.kind, "amount": row.amount, "semantics": "event", "tie": row.tie, "ip": ip,
        "strict": row.strict, "part": row.part,
    }  # fmt: skip
