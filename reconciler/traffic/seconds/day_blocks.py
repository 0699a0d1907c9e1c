"""Per-second totals of days as blocks: workers add up rows and cut the totals by day and client, and others merge and sort them.

A block is many rows as one binary value in Arrow's stream format, so Spark moves, keeps and shuffles few large rows. A client has
the same slot in every block, so that the blocks of a day and of some slots have all totals of their clients.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.columns.charged import number_codes
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.seconds.day_columns import (
    DAY_S,
    FIGURES,
    NAMES,
    SECOND_SCHEMA,
    SECOND_US,
    count_batch,
)
from reconciler.traffic.sources.normal_form import integers

BLOCKS: Final = pa.schema([("date", pa.string()), ("slot", pa.int32()), ("rows", pa.binary())])
"""``slot``: of the clients of ``rows``; -1 for a summary (``SUMMARY``), which has no date."""
SUMMARY: Final = pa.schema(
    [
        ("file", pa.string()), ("date", pa.string()), ("status", pa.string()), ("cluster", pa.string()),
        ("requests", pa.int64()), ("last", pa.int64()), ("totals", pa.int64()),
    ]
)  # fmt: skip
"""What a share of the rows has. ``totals``: how many rows of blocks. Without a date: rows without a time, and ids of clusters."""
MOST_SLOTS: Final = 4096
TOTALS_A_SLOT: Final = 1_000_000
"""That one worker should have in memory at a time."""
DAYS: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()),
        ("client_id", pa.string()), ("ip", pa.string()), ("status", pa.string()), ("requests", pa.int64()),
        ("amount", pa.int64()), ("largest", pa.int64()), ("throttled", pa.int64()), ("first_us", pa.int32()),
        ("last_us", pa.int32()), ("date", pa.string()),
    ]
)  # fmt: skip
"""``day_columns.COLUMNS`` and the day."""
_CLIENT: Final = ("kind", "broker", "user", "client_id", "ip")
"""In the order of the files' rows."""
_SUMMARY_KEYS: Final = ("file", "date", "status", "cluster")
_MOST_HELD: Final = 500_000
_ROWS_A_BATCH: Final = 1 << 16
_LEAST_FOLDED: Final = 0.5
"""Totals that are more than this part of the rows that were added up will not become many fewer."""


def slots_for(totals: int) -> int:
    """Enough slots for about so many totals of a day: a power of two, so that fewer files take whole slots."""
    slots = 1
    while slots < MOST_SLOTS and slots * TOTALS_A_SLOT < totals:
        slots *= 2
    return slots


def count_blocks(batches: Iterable[pa.RecordBatch], slots: int, most_held: int = _MOST_HELD) -> Iterator[pa.RecordBatch]:
    """``BLOCKS`` of a share of rows with the columns ``SECOND_COLUMNS``, and its summaries. Memory is bounded."""
    held: list[pa.Table] = []
    rows = 0
    for batch in batches:
        made = [table for table in count_batch(batch) if table.num_rows]
        held += made
        rows += sum(table.num_rows for table in made)
        if rows > most_held:
            folded = fold_totals(pa.concat_tables(held))
            if folded.num_rows > _LEAST_FOLDED * rows:
                yield from _blocks(folded, slots)
                held, rows = [], 0
            else:
                held, rows = [folded], folded.num_rows
    if rows:
        yield from _blocks(fold_totals(pa.concat_tables(held)), slots)


def blocks_of_days(batches: Iterable[pa.RecordBatch], slots: int) -> Iterator[pa.RecordBatch]:
    """The same of rows that a dataset has already, with the columns ``day_columns.NAMES``. They have no file."""
    for batch in batches:
        ts_us = batch.column("ts").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        made = {
            **{name: batch.column(name) for name in SECOND_SCHEMA.names if name in batch.schema.names},
            "second": pc.divide(ts_us, SECOND_US),
            "first": pc.add(ts_us, batch.column("first_us").cast(pa.int64())),
            "last": pc.add(ts_us, batch.column("last_us").cast(pa.int64())),
        }
        columns = [
            made[field.name].cast(field.type) if field.name in made else pa.nulls(batch.num_rows, field.type)
            for field in SECOND_SCHEMA
        ]
        yield from _cut(pa.table(columns, schema=SECOND_SCHEMA), slots)


def merge_blocks(batches: Iterable[pa.RecordBatch], wanted: Collection[tuple[str, str]] | None) -> Iterator[pa.RecordBatch]:
    """``DAYS`` of the blocks of one day: each second of a client once, in the order of clients.

    ``wanted``: the files and days that count; ``None`` for all. Rows that the dataset has already always count.
    """
    tables = []
    for batch in batches:
        for date, block in zip(batch.column("date").to_pylist(), batch.column("rows"), strict=True):
            with pa.ipc.open_stream(block.as_buffer()) as stream:
                table = stream.read_all()
            if wanted is not None:
                table = _of_files(table, {file for file, day in wanted if day == date})
            tables.append(table)
    if not any(table.num_rows for table in tables):
        return
    whole = pa.concat_tables(tables).select([name for name in SECOND_SCHEMA.names if name not in {"file", "cluster"}])
    del tables
    yield from _rows_of_days(fold_totals(whole))


def read_summaries(blocks: Iterable[bytes]) -> tuple[Mapping[str, Any], ...]:
    """The rows of summaries, added up."""
    tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
    return tuple(_summed(pa.concat_tables([SUMMARY.empty_table(), *tables])).to_pylist())


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Combinations of columns. ``of``: for each row the place of its combination in ``distinct``, which is sorted."""

    of: Integers
    distinct: pa.Table

    @classmethod
    def by(cls, table: pa.Table, names: Sequence[str]) -> _Numbered:
        number, size = np.zeros(table.num_rows, dtype=np.int64), 1
        for name in names:
            codes, width = _codes(table.column(name))
            if width > 1:
                distinct, number = number_codes(number * width + codes, size * width)
                size = len(distinct)
        example = np.empty(size, dtype=np.int64)
        example[number[::-1]] = np.arange(table.num_rows - 1, -1, -1)
        known = table.select(list(names)).take(pa.array(example))
        order = pc.sort_indices(known, sort_keys=[(name, "ascending") for name in names])
        rank = np.empty(size, dtype=np.int64)
        rank[order.to_numpy()] = np.arange(size)
        return cls(rank[number], known.take(order))


def fold_totals(table: pa.Table) -> pa.Table:
    """One row for each combination of the columns that are not figures, sorted by client, second and the others.

    Texts are numbered first: to hash and to compare numbers takes a fraction of the time.
    """
    if not table.num_rows:
        return table
    clients = _Numbered.by(table, _CLIENT)
    others = _Numbered.by(table, [name for name in table.schema.names if name not in {*_CLIENT, *FIGURES, "second"}])
    second, known = _numbers(table.column("second"))
    begin = int(second[known].min()) - 1 if known.any() else 0
    second = np.where(known, second, begin) - begin
    span, width = int(second.max()) + 1, max(1, others.distinct.num_rows)
    keys = (clients.of * span + second) * width + others.of
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    rest, other = np.divmod(keys[first], width)
    client, second = np.divmod(rest, span)
    made: dict[str, pa.Array | pa.ChunkedArray] = {
        "second": pa.array(second + begin, mask=second == 0 if not known.all() else None),
        **dict(zip(_CLIENT, clients.distinct.take(pa.array(client)).columns, strict=True)),
        **dict(zip(others.distinct.schema.names, others.distinct.take(pa.array(other)).columns, strict=True)),
        **{name: _folded(table.column(name), fold, order, first) for name, fold in FIGURES.items()},
    }
    return pa.table([made[field.name].cast(field.type) for field in table.schema], schema=table.schema)


_UFUNCS: Final[Mapping[str, np.ufunc]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def _folded(column: pa.ChunkedArray, fold: str, order: Integers, first: Integers) -> pa.Array:
    values, known = _numbers(column)
    if known.all():
        return pa.array(_UFUNCS[fold].reduceat(values[order], first))
    limits = np.iinfo(np.int64)
    neutral = {"sum": 0, "max": limits.min, "min": limits.max}[fold]
    folded = _UFUNCS[fold].reduceat(np.where(known, values, neutral)[order], first)
    return pa.array(folded, mask=~np.logical_or.reduceat(known[order], first))


def _numbers(column: pa.ChunkedArray) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    whole = column.combine_chunks()
    known = np.ones(len(whole), dtype=np.bool_) if not whole.null_count else whole.is_valid().to_numpy(zero_copy_only=False)
    return integers(whole), known


def _codes(column: pa.ChunkedArray) -> tuple[Integers, int]:
    """Numbers for the values of a column, null included, and how many there are."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64), len(encoded.dictionary)


def _blocks(totals: pa.Table, slots: int) -> Iterator[pa.RecordBatch]:
    """The summary of added-up totals, and the blocks of those with a time."""
    second, known = _numbers(totals.column("second"))
    dates = _dates(second // DAY_S, known)
    summary = totals.select(["file", "status", "cluster", "requests", "last"])
    summary = summary.append_column("date", dates).append_column("totals", pa.array(known.astype(np.int64)))
    yield _batch(None, -1, _summed(summary.select(SUMMARY.names)))
    yield from _cut(totals if known.all() else totals.filter(pa.array(known)), slots)


def _cut(totals: pa.Table, slots: int) -> Iterator[pa.RecordBatch]:
    """Blocks of totals that all have a time."""
    if not totals.num_rows:
        return
    day = _numbers(totals.column("second"))[0] // DAY_S
    slot = _slots(totals, slots)
    keys = (day - day.min()) * slots + slot
    order = np.argsort(keys, kind="stable")
    rising = bool((np.diff(keys) >= 0).all())
    ordered, keys = (totals, keys) if rising else (totals.take(pa.array(order)), keys[order])
    begins = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(keys)], strict=True):
        of_day, number = divmod(int(keys[begin]), slots)
        yield _batch(_date(of_day + int(day.min())), number, ordered.slice(begin, end - begin))


def _slots(totals: pa.Table, slots: int) -> Integers:
    """Of each row the slot of its client, which the names alone decide."""
    if slots == 1:
        return np.zeros(totals.num_rows, dtype=np.int64)
    clients = _Numbered.by(totals, _CLIENT)
    names = zip(*(column.to_pylist() for column in clients.distinct.columns), strict=True)
    hashes = [zlib.crc32(repr(name).encode("utf-8", "surrogatepass")) for name in names]
    return (np.asarray(hashes, dtype=np.int64) % slots)[clients.of]


def _batch(date: str | None, slot: int, rows: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows)
    packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
    return pa.RecordBatch.from_arrays([pa.array([date], pa.string()), pa.array([slot], pa.int32()), packed], schema=BLOCKS)


def _summed(summary: pa.Table) -> pa.Table:
    grouped = summary.group_by(list(_SUMMARY_KEYS), use_threads=False).aggregate(
        [("requests", "sum"), ("last", "max"), ("totals", "sum")]
    )
    names = {"requests": "requests_sum", "last": "last_max", "totals": "totals_sum"}
    return pa.table([grouped.column(names.get(name, name)) for name in SUMMARY.names], schema=SUMMARY)


def _of_files(table: pa.Table, files: Collection[str]) -> pa.Table:
    file = table.column("file")
    return table.filter(pc.or_kleene(pc.is_null(file), pc.is_in(file, pa.array(sorted(files), pa.string()))))


def _rows_of_days(totals: pa.Table) -> Iterator[pa.RecordBatch]:
    second = _numbers(totals.column("second"))[0]
    begin = second * SECOND_US
    made: dict[str, pa.Array | pa.ChunkedArray] = {
        **{name: totals.column(name) for name in NAMES if name in totals.schema.names},
        "ts": pa.array(begin).cast(pa.timestamp("us", "UTC")),
        "first_us": pa.array(_numbers(totals.column("first"))[0] - begin),
        "last_us": pa.array(_numbers(totals.column("last"))[0] - begin),
        "date": _dates(second // DAY_S, np.ones(len(second), dtype=np.bool_)),
    }
    table = pa.table([made[field.name].cast(field.type) for field in DAYS], schema=DAYS).combine_chunks()
    yield from table.to_batches(_ROWS_A_BATCH)


def _dates(day: Integers, known: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    distinct, place = np.unique(np.where(known, day, 0), return_inverse=True)
    names = pa.array([_date(number) for number in distinct.tolist()], pa.string())
    return names.take(pa.array(place, mask=~known))


def _date(day: int) -> str:
    return str(np.datetime64(day, "D"))
