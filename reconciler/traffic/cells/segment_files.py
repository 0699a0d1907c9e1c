"""One file in the normal form to the files of its segment: written by a worker that reads it a column at a time."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.traffic.cells.minutes import MINUTE_US
from reconciler.traffic.cells.segments import CELLS, SERIES
from reconciler.traffic.columns.chunk import Chunk, chunk_of, moments
from reconciler.traffic.columns.counting import COUNTED, Counts
from reconciler.traffic.columns.parts import Part
from reconciler.traffic.columns.places import KnownClients
from reconciler.traffic.columns.seconds import client_seconds
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.sources.series_key import IDENTITY
from reconciler.traffic.sources.statuses import CHARGED

SCHEMA: Final = "file int, status string, broker int, lines bigint, start_us bigint, end_us bigint, minutes array<bigint>"
"""``status`` null: all rows of a broker that have a time, whatever they are."""
_ARROW: Final = pa.schema(
    [("file", pa.int32()), ("status", pa.string()), ("broker", pa.int32()),
     *((name, pa.int64()) for name in ("lines", "start_us", "end_us")),
     ("minutes", pa.list_(pa.int64()))]
)  # fmt: skip
ROWS_A_GROUP: Final = 25_000
"""Of cells: what is read, at least, of a few clients."""
_CELLS_A_FILE: Final = 4_000_000
_MOST_HELD: Final = 8_000_000


@dataclass(frozen=True, slots=True)
class Clients:
    """All that are in any file, and the key of each."""

    known: KnownClients
    keys: Integers

    def of_chunk(self, chunk: Chunk) -> Integers:
        """The keys of a chunk's clients. Raises ``RuntimeError`` for one that was not there before: a file has changed."""
        which = self.known.of_chunk(chunk)
        if (which < 0).any():
            raise RuntimeError("a file of recorded traffic was written to while it was read")
        return self.keys[which]


def write_segment(number: int, parts: Sequence[Part], clients: Clients, target: Path) -> pa.RecordBatch:
    """Cells and clients of one file below ``target``, whatever an earlier try left there; returns rows of ``SCHEMA``."""
    cells, counts, seen = _Cells(), Counts(), _Seen()
    for part in parts:
        for batch in part.batches(COUNTED):
            chunk = chunk_of(batch)
            keys = clients.of_chunk(chunk)
            client, second, amount = client_seconds(chunk, np.ones(chunk.clients, dtype=np.bool_))
            cells.add(keys[client], second, amount)
            counts.add(chunk, batch)
            seen.add(batch)
    counted = counts.folded()
    charged = counted.filter(pc.field("status") == CHARGED)
    if charged.num_rows:
        for place, table in enumerate(cells.tables()):
            _write(table, target / CELLS, place)
        _write(_series(charged, clients), target / SERIES, 0)
    return pa.RecordBatch.from_pylist([*seen.rows(number), *_lines(number, counted)], schema=_ARROW)


class _Cells:
    """Sums of clients and seconds, in the order of their keys at the end."""

    def __init__(self) -> None:
        self._held: list[tuple[Integers, Integers, Integers]] = []
        self._rows, self._patience = 0, _MOST_HELD

    def add(self, keys: Integers, seconds: Integers, amounts: Integers) -> None:
        self._held.append((keys, seconds, amounts))
        self._rows += len(keys)
        if self._rows > self._patience:
            self._held = [self._summed()]
            self._rows = len(self._held[0][0])
            self._patience = max(_MOST_HELD, 2 * self._rows)

    def tables(self) -> Iterator[pa.Table]:
        columns = dict(zip(("series", "second", "amount"), self._summed(), strict=True))
        whole = pa.table(columns)
        for begin in range(0, whole.num_rows, _CELLS_A_FILE):
            yield whole.slice(begin, _CELLS_A_FILE)

    def _summed(self) -> tuple[Integers, Integers, Integers]:
        keys, seconds, amounts = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
        order = np.lexsort((seconds, keys))
        keys, seconds, amounts = keys[order], seconds[order], amounts[order]
        fresh = (np.diff(keys, prepend=keys[:1]) != 0) | (np.diff(seconds, prepend=seconds[:1] - 1) != 0)
        first = np.flatnonzero(fresh)
        return keys[first], seconds[first], np.add.reduceat(amounts, first)


class _Seen:
    """When each broker was recorded: of every row with a time."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, int, Integers]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        ts_us, brokers = moments(batch)
        for broker in np.unique(brokers).tolist():
            mine = ts_us[brokers == broker]
            start, end, minutes = int(mine.min()), int(mine.max()), np.unique(mine // MINUTE_US)
            known = self._found.get(broker, (start, end, minutes))
            self._found[broker] = min(known[0], start), max(known[1], end), np.union1d(known[2], minutes)

    def rows(self, number: int) -> list[dict[str, object]]:
        return [
            {"file": number, "status": None, "broker": broker, "lines": 0, "start_us": start, "end_us": end, "minutes": minutes}
            for broker, (start, end, minutes) in sorted(self._found.items())
        ]


def _lines(number: int, counted: pa.Table) -> Iterator[dict[str, object]]:
    grouped = counted.group_by(["status", "broker"], use_threads=False)
    for row in grouped.aggregate([("lines", "sum"), ("start_us", "min"), ("end_us", "max")]).to_pylist():
        start, end = row["start_us_min"], row["end_us_max"]
        figures = {"lines": row["lines_sum"], "start_us": start, "end_us": end, "minutes": None}
        yield {"file": number, "status": row["status"], "broker": row["broker"], **figures}


def _series(charged: pa.Table, clients: Clients) -> pa.Table:
    names = {"requests": "lines", **{name: name for name in ("amount", "largest", "throttled", "start_us", "end_us")}}
    names_of = (charged.column(name).combine_chunks() for name in ("user", "client_id", "kind", "broker"))
    keys = clients.keys[clients.known.of_names(*names_of)]
    columns = {"series": pa.array(keys), **{name: charged.column(name) for name in IDENTITY}}
    return pa.table(columns | {name: charged.column(theirs) for name, theirs in names.items()})


def _write(table: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{uuid.uuid4().hex}"
    try:
        pq.write_table(table, made, compression="zstd", row_group_size=ROWS_A_GROUP)
        made.replace(folder / f"part-{number:05}.parquet")
    finally:
        made.unlink(missing_ok=True)
