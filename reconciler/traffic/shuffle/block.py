"""Rows cut by partition into blocks, and blocks merged into rows in the order of their keys.

A partition is a range of group numbers with about as many rows as any other, so that every group is whole in one of them. A block
is columns of rows as one binary value in Arrow's stream format, so that Spark moves many rows without opening them. Whole numbers
travel as narrow as their values allow. Texts are columns of objects. Merging needs memory that does not grow with one group's
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.sampled_rate import Integers

Columns: TypeAlias = Sequence[Integers]
"""Columns of one length. The first has the keys: a group's number, and a time in the bits below."""
Partitions: TypeAlias = np.ndarray[tuple[int], np.dtype[np.integer]]
"""For each row the number of its partition."""
Narrow: TypeAlias = np.ndarray[tuple[int], np.dtype[np.signedinteger]]
"""Whole numbers of any width."""

SCHEMA: Final = pa.schema([("partition", pa.int32()), ("first", pa.int64()), ("rows", pa.binary())])
_WIDTHS: Final = (np.int8, np.int16, np.int32)
_MOST_ROWS: Final = 1 << 18
"""Rows of one block: Spark sorts and copies a block as a whole."""


def cut_into_blocks(columns: Columns, ranges: GroupRanges, bits: int) -> pa.RecordBatch:
    """Rows of ``SCHEMA``: the columns (one row or more), cut by partition; within a partition rows keep their order.

    ``bits``: how many bits of a key are below the group's number.
    """
    of = ranges.partition_of(columns[0] >> bits)
    order = np.argsort(of, kind="stable")
    ordered = [_narrow(column)[order] for column in columns]
    numbers, counts = np.unique(of, return_counts=True)
    begin = 0
    rows = []
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for start in range(begin, begin + count, _MOST_ROWS):
            part = [column[start : min(begin + count, start + _MOST_ROWS)] for column in ordered]
            rows.append((number, int(part[0].min()), pack_columns(part)))
        begin += count
    arrays = [pa.array(values, type=field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def pack_rows(rows: pa.Table | pa.RecordBatch, compression: str | None = None) -> bytes:
    """Write rows in Arrow's stream format. ``compression``: ``lz4`` or ``zstd``; ``None``: none."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write(rows)
    return bytes(sink.getvalue())


def pack_columns(columns: Sequence[Narrow]) -> bytes:
    """Write columns of one length as a stream of one Arrow batch."""
    return pack_rows(pa.RecordBatch.from_arrays([*map(pa.array, columns)], names=[*map(str, range(len(columns)))]))


def unpack_columns(rows: pa.Buffer | bytes) -> list[Narrow]:
    """The inverse of ``pack_columns``; each column has the width in which it was packed."""
    with pa.ipc.open_stream(rows) as stream:
        return [column.to_numpy(zero_copy_only=pa.types.is_integer(column.type)) for column in stream.read_next_batch().columns]


def _narrow(column: Integers) -> Narrow:
    if column.dtype == np.object_:
        return column
    low, high = int(column.min()), int(column.max())
    for width in _WIDTHS:
        limits = np.iinfo(width)
        if limits.min <= low and high <= limits.max:
            return column.astype(width)
    return column


ROWS_A_PARTITION: Final = 1_000_000
"""Rows that one worker has in memory at a time, unless one group alone has more: sorting them stays close to its caches."""
_MOST_PARTITIONS: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class GroupRanges:
    """``ends``: for each partition the first group number after it, rising (int64)."""

    ends: Integers

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def of(cls, rows: Sequence[int], least: int) -> GroupRanges:
        """``rows``: the expected rows of each group, by its number, 0 or more. ``least``: the smallest number of partitions."""
        if not len(rows):
            return cls(np.ones(1, dtype=np.int64))
        whole = sum(rows)
        share = max(1.0, whole / _MOST_PARTITIONS, min(ROWS_A_PARTITION, whole / max(1, least)))
        # A partition ends with the group that reaches the next multiple of a share.
        reached = (np.cumsum(rows) / share).astype(np.int64)
        ends = np.flatnonzero(np.diff(reached)) + 1
        return cls(np.unique(np.append(ends, len(rows))))

    def partition_of(self, groups: Integers) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
        """The partition of each group number."""
        table = np.repeat(np.arange(len(self.ends), dtype=np.uint16), np.diff(self.ends, prepend=0))
        return table[groups]


_ROWS_A_PIECE: Final = 1 << 16
_LONG_RUN: Final = 64


def merge_blocks(batches: Iterable[pa.RecordBatch], most_held: int = 2 * ROWS_A_PARTITION) -> Iterator[list[Integers]]:
    """Columns in the order of their keys, at most ``_ROWS_A_PIECE`` rows at a time.

    ``batches``: rows of ``block.SCHEMA``, sorted by partition and first key. Above ``most_held`` rows of one partition, the rows
    that precede every later block are yielded early.
    """
    for columns in _sorted_runs(batches, most_held):
        yield from cut_into_pieces(columns)


def cut_into_pieces(columns: list[Narrow]) -> Iterator[list[Integers]]:
    """The same rows, at most ``_ROWS_A_PIECE`` at a time, numbers as int64."""
    for begin in range(0, len(columns[0]), _ROWS_A_PIECE):
        some = (column[begin : begin + _ROWS_A_PIECE] for column in columns)
        yield [column if column.dtype == np.object_ else column.astype(np.int64) for column in some]


def sort_by_key(parts: list[list[Narrow]]) -> list[Narrow]:
    """All rows of one or more lists of columns, in the order of the first column."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    keys = columns[0]
    runs = np.count_nonzero(keys[1:] < keys[:-1])
    # Long runs that rise, as of a file with one client after the other, are merged in half of the time.
    order = np.argsort(keys, kind="stable" if runs * _LONG_RUN < len(keys) else None)
    return [column[order] for column in columns]


def _sorted_runs(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[list[Narrow]]:
    parts, rows, limit, last = list[list[Narrow]](), 0, most, -1
    for batch in batches:
        numbers, firsts, blocks = batch.columns
        for number, first, block in zip(numbers.to_pylist(), firsts.to_pylist(), blocks, strict=True):
            if parts and number != last:
                yield sort_by_key(parts)
                parts, rows, limit = [], 0, most
            elif rows > limit:
                # No later block of the partition has a key before this one's first.
                whole = sort_by_key(parts)
                known = int(np.searchsorted(whole[0], first))
                if known:
                    yield [column[:known] for column in whole]
                parts = [[column[known:] for column in whole]]
                rows = len(parts[0][0])
                limit = max(most, 2 * rows)
            columns = unpack_columns(block.as_buffer())
            parts.append(columns)
            rows += len(columns[0])
            last = number
    if parts:
        yield sort_by_key(parts)
