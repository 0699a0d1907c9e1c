"""Who is in the traffic: one row for each client that a worker met, to be added up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.traffic.columns.chunk import NEEDED, Chunk, chunk_of, optional
from reconciler.traffic.columns.parts import Part
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.sources.row_status import CHARGED

COUNTED: Final = (*NEEDED, "overhead", "throttled")
"""The columns to read; the last two where a file has them."""
NAMES: Final = ("status", "broker", "kind", "user", "client_id")
FOLDS: Final = {
    "lines": "sum", "amount": "sum", "largest": "max", "start_us": "min", "end_us": "max", "throttled": "sum",
}  # fmt: skip
_ARROW: Final = pa.schema(
    [
        ("status", pa.string()), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        *((name, pa.int64()) for name in FOLDS),
    ]
)  # fmt: skip
SCHEMA: Final = "status string, broker int, kind string, user string, client_id string, " + ", ".join(
    f"{name} bigint" for name in FOLDS
)
_MOST_HELD: Final = 1_000_000


def counted(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``; what is not charged has no names, and is counted by its status alone."""
    counts = Counts()
    for part in parts:
        for batch in part.batches(COUNTED):
            counts.add(chunk_of(batch), batch)
    yield from counts.folded().to_batches()


class Counts:
    """Adds up batches that have the columns ``COUNTED``."""

    def __init__(self) -> None:
        self._held: list[pa.Table] = [_ARROW.empty_table()]

    def add(self, chunk: Chunk, batch: pa.RecordBatch) -> None:
        """``chunk`` is of ``batch``."""
        self.add_folded(_of_chunk(chunk, batch))

    def add_folded(self, table: pa.Table) -> None:
        """``table``: as ``folded`` returns it."""
        self._held.append(table)
        if sum(table.num_rows for table in self._held) > _MOST_HELD:
            self._held = [fold(pa.concat_tables(self._held))]

    def folded(self) -> pa.Table:
        """``SCHEMA``, with one row for each client and status."""
        return fold(pa.concat_tables(self._held))


def fold(table: pa.Table) -> pa.Table:
    """Adds up rows with the columns of ``SCHEMA``, in any order: one row for each client and status."""
    grouped = table.group_by(list(NAMES), use_threads=False).aggregate(list(FOLDS.items()))
    columns = [grouped.column(name if name in NAMES else f"{name}_{FOLDS[name]}") for name in _ARROW.names]
    return pa.table([column.cast(field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW)


def _of_chunk(chunk: Chunk, batch: pa.RecordBatch) -> pa.Table:
    overhead = np.clip(optional(batch, "overhead", chunk.rows), 0, chunk.amount)
    columns: dict[str, pa.Array | Integers] = {
        "status": pa.array([CHARGED]).take(pa.array(np.zeros(chunk.clients, dtype=np.int64))),
        "broker": chunk.broker, "kind": chunk.kind, "user": chunk.user, "client_id": chunk.client_id,
        **_figures(chunk, overhead, optional(batch, "throttled", chunk.rows)),
    }  # fmt: skip
    charged = pa.table([pa.array(columns[field.name]).cast(field.type) for field in _ARROW], schema=_ARROW)
    others = [{"status": status, "lines": lines} for status, lines in chunk.others.items()]
    return pa.concat_tables([charged, pa.Table.from_pylist(others, schema=_ARROW)]) if others else charged


def _figures(chunk: Chunk, overhead: Integers, throttled: Integers) -> dict[str, Integers]:
    count = chunk.clients
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    amount, largest = np.zeros(count, dtype=np.int64), np.full(count, lowest)
    start, end = np.full(count, highest), np.full(count, lowest)
    np.add.at(amount, chunk.of, chunk.amount)
    np.maximum.at(largest, chunk.of, chunk.amount - overhead)
    np.minimum.at(start, chunk.of, chunk.ts_us)
    np.maximum.at(end, chunk.of, chunk.ts_us)
    return {
        "lines": np.bincount(chunk.of, minlength=count),
        "amount": amount,
        "largest": largest,
        "start_us": start,
        "end_us": end,
        "throttled": np.bincount(chunk.of, weights=throttled, minlength=count).astype(np.int64),
    }
