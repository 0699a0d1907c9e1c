"""Parcels of a worker's bins to rows in the order of their keys, in memory that does not grow with one group's rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.parcels.bins import ROWS_A_BIN
from reconciler.traffic.parcels.parcel import Narrow, unpacked

_ROWS_A_PIECE: Final = 1 << 16


def merged(batches: Iterable[pa.RecordBatch], most_held: int = 2 * ROWS_A_BIN) -> Iterator[list[Integers]]:
    """Columns in the order of their keys, a piece at a time.

    ``batches``: rows of ``parcel.SCHEMA``, sorted by bin and first key. When more than ``most_held`` rows of one bin are there,
    those that nothing can come before are given already.
    """
    for piece in _sorted_parts(batches, most_held):
        for begin in range(0, len(piece[0]), _ROWS_A_PIECE):
            yield [column[begin : begin + _ROWS_A_PIECE].astype(np.int64) for column in piece]


def _sorted_parts(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[list[Narrow]]:
    held, rows, patience, last = list[list[Narrow]](), 0, most, -1
    for batch in batches:
        numbers, firsts, parcels = batch.columns
        for number, first, parcel in zip(numbers.to_pylist(), firsts.to_pylist(), parcels, strict=True):
            if held and number != last:
                yield _in_order(held)
                held, rows, patience = [], 0, most
            elif rows > patience:
                # No later parcel of the bin has a key before this one's first.
                whole = _in_order(held)
                known = int(np.searchsorted(whole[0], first))
                if known:
                    yield [column[:known] for column in whole]
                held = [[column[known:] for column in whole]]
                rows = len(held[0][0])
                patience = max(most, 2 * rows)
            columns = unpacked(parcel.as_buffer())
            held.append(columns)
            rows += len(columns[0])
            last = number
    if held:
        yield _in_order(held)


def _in_order(held: list[list[Narrow]]) -> list[Narrow]:
    columns = [np.concatenate(parts) for parts in zip(*held, strict=True)]
    order = np.argsort(columns[0])
    return [column[order] for column in columns]
