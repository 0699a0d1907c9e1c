"""Columns of whole numbers as bytes and back: Arrow's stream format, each column as narrow as its values allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.parcels.bins import Bins

Columns: TypeAlias = Sequence[Integers]
"""As many values each; the first are keys: a group's number, and below it a time."""
Narrow: TypeAlias = np.ndarray[tuple[int], np.dtype[np.signedinteger]]
"""Whole numbers of any width."""

SCHEMA: Final = "bin int, first bigint, rows binary"
_ARROW: Final = pa.schema([("bin", pa.int32()), ("first", pa.int64()), ("rows", pa.binary())])
_WIDTHS: Final = (np.int8, np.int16, np.int32)
_MOST_ROWS: Final = 1 << 18
"""Of one parcel: what Spark sorts and copies whole."""


def parcels(columns: Columns, bins: Bins, bits: int) -> pa.RecordBatch:
    """Rows of ``SCHEMA``: the columns, not empty ones, cut into bins; within a bin rows stay in their order.

    ``bits``: how many of a key are below the group's number.
    """
    of = bins.of_groups(columns[0] >> bits)
    order = np.argsort(of, kind="stable")
    ordered = [_narrow(column)[order] for column in columns]
    numbers, counts = np.unique(of, return_counts=True)
    begin = 0
    rows = []
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for first in range(begin, begin + count, _MOST_ROWS):
            part = [column[first : min(begin + count, first + _MOST_ROWS)] for column in ordered]
            rows.append((number, int(part[0].min()), packed(part)))
        begin += count
    arrays = [pa.array(values, type=field.type) for values, field in zip(zip(*rows, strict=True), _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def packed(columns: Sequence[Narrow]) -> bytes:
    """Columns of one length."""
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=[*map(str, range(len(columns)))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(rows: pa.Buffer | bytes) -> list[Narrow]:
    """What was ``packed``, in whatever width it was."""
    with pa.ipc.open_stream(rows) as stream:
        return [column.to_numpy(zero_copy_only=True) for column in stream.read_next_batch().columns]


def _narrow(column: Integers) -> Narrow:
    low, high = int(column.min()), int(column.max())
    for width in _WIDTHS:
        limits = np.iinfo(width)
        if limits.min <= low and high <= limits.max:
            return column.astype(width)
    return column
