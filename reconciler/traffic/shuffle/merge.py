"""Blocks of a worker's partitions to rows in the order of their keys, in memory that does not grow with one group's rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.shuffle.block import Narrow, unpack_columns
from reconciler.traffic.shuffle.partition import ROWS_A_PARTITION

_ROWS_A_PIECE: Final = 1 << 16


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
        yield [_wide(column[begin : begin + _ROWS_A_PIECE]) for column in columns]


def sort_by_key(parts: list[list[Narrow]]) -> list[Narrow]:
    """All rows of one or more lists of columns, in the order of the first column."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0])
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


def _wide(column: Narrow) -> Integers:
    return column if column.dtype == np.object_ else column.astype(np.int64)
