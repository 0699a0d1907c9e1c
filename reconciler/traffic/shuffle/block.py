"""Blocks: columns of rows as one binary value in Arrow's stream format, so that Spark moves many rows without opening them.

Whole numbers travel as narrow as their values allow. Texts are columns of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.shuffle.partition import GroupRanges

Columns: TypeAlias = Sequence[Integers]
"""Columns of one length. The first holds the keys: a group's number, and a time in the bits below."""
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
        for first in range(begin, begin + count, _MOST_ROWS):
            part = [column[first : min(begin + count, first + _MOST_ROWS)] for column in ordered]
            rows.append((number, int(part[0].min()), pack_columns(part)))
        begin += count
    arrays = [pa.array(values, type=field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def pack_columns(columns: Sequence[Narrow]) -> bytes:
    """Columns of one length as a stream of one Arrow batch."""
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=[*map(str, range(len(columns)))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


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
