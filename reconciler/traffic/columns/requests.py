"""Charged rows as requests of the groups in which they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from reconciler.traffic.columns.chunk import NEEDED, Chunk, chunk_of, optional
from reconciler.traffic.columns.parts import Part
from reconciler.traffic.columns.places import Places
from reconciler.traffic.kernels.exact_batch import MICRO_BITS, ORDER_BITS, pack
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.sources.normal_form import ties_of


def requests(parts: Iterable[Part], places: Places) -> Iterator[list[Integers]]:
    """Key (``exact_batch.pack``), order, records, overhead and series."""
    for part in parts:
        for batch in part.batches((*NEEDED, "overhead", "tie", "part")):
            chunk = chunk_of(batch)
            tie = np.asarray(ties_of(batch).to_numpy(zero_copy_only=False), dtype=np.int64)
            overhead = np.clip(optional(batch, "overhead", chunk.rows), 0, chunk.amount)
            yield from _placed(chunk, overhead, tie if chunk.rows is None else tie[chunk.rows], places)


def _placed(chunk: Chunk, overhead: Integers, tie: Integers, places: Places) -> Iterator[list[Integers]]:
    series, turns = places.of_chunk(chunk)
    milli, micros = np.divmod(chunk.ts_us, 1000)
    order = micros << ORDER_BITS - MICRO_BITS | tie & (1 << ORDER_BITS - MICRO_BITS) - 1
    for groups in turns:
        group = groups[chunk.of]
        columns = [pack(group, milli), order, chunk.amount - overhead, overhead, series[chunk.of]]
        mine = group >= 0
        yield columns if mine.all() else [column[mine] for column in columns]
