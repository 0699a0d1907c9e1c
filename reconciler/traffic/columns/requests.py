"""Charged rows as requests of the groups in which they are judged, in the columns of ``judging.placing.placed``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from reconciler.traffic.columns.chunk import NEEDED, Chunk, chunk_of, optional
from reconciler.traffic.columns.parts import Part
from reconciler.traffic.columns.places import Places
from reconciler.traffic.judging.placing import MICRO_BITS
from reconciler.traffic.kernels.exact_batch import ORDER_BITS, pack
from reconciler.traffic.kernels.timeline import Integers

SCHEMA: Final = "key bigint, order_ bigint, records bigint, overhead bigint, series int"
_ARROW: Final = pa.schema(
    [("key", pa.int64()), ("order_", pa.int64()), ("records", pa.int64()), ("overhead", pa.int64()), ("series", pa.int32())]
)
_ROWS_A_BATCH: Final = 200_000


def requests(parts: Iterable[Part], places: Places) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``; every row must have a ``tie``."""
    for part in parts:
        for batch in part.batches((*NEEDED, "overhead", "tie")):
            chunk = chunk_of(batch)
            overhead, tie = optional(batch, "overhead", chunk.rows), optional(batch, "tie", chunk.rows)
            for found in _placed(chunk, overhead, tie, places):
                for begin in range(0, found.num_rows, _ROWS_A_BATCH):
                    yield found.slice(begin, _ROWS_A_BATCH)


def _placed(chunk: Chunk, overhead: Integers, tie: Integers, places: Places) -> Iterator[pa.RecordBatch]:
    series, turns = places.of_chunk(chunk)
    micros = chunk.ts_us % 1000 << ORDER_BITS - MICRO_BITS
    order = micros | tie & (1 << ORDER_BITS - MICRO_BITS) - 1
    for groups in turns:
        group = groups[chunk.of]
        columns = [pack(group, chunk.ts_us // 1000), order, chunk.amount - overhead, overhead, series[chunk.of]]
        if (group < 0).any():
            columns = [column[group >= 0] for column in columns]
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
