"""Charged rows to the seconds of the groups in which they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from reconciler.traffic.columns.chunk import NEEDED, Chunk, chunk_of
from reconciler.traffic.columns.numbering import summed
from reconciler.traffic.columns.parts import Part
from reconciler.traffic.columns.places import Places
from reconciler.traffic.kernels.second_sums import Flags, keys_of
from reconciler.traffic.kernels.timeline import Integers


def cells(parts: Iterable[Part], places: Places) -> Iterator[tuple[Integers, Integers]]:
    """Key (``second_sums.keys_of``) and amount of seconds of groups; a key can come again."""
    for part in parts:
        for batch in part.batches(NEEDED):
            yield from _cells(chunk_of(batch), places)


def _cells(chunk: Chunk, places: Places) -> Iterator[tuple[Integers, Integers]]:
    _, turns = places.of_chunk(chunk)
    if not turns:
        return
    client, second, total = client_seconds(chunk, np.logical_or.reduce([groups >= 0 for groups in turns]))
    for groups in turns:
        group = groups[client]
        mine = group >= 0
        if mine.all():
            yield keys_of(group, second), total
        else:
            yield keys_of(group[mine], second[mine]), total[mine]


def client_seconds(chunk: Chunk, wanted: Flags) -> tuple[Integers, Integers, Integers]:
    """Client, second and amount, one row each, rising; of the clients that are ``wanted``."""
    of, ts_us, amount = chunk.of, chunk.ts_us, chunk.amount
    if not wanted.all():
        mine = wanted[of]
        of, ts_us, amount = of[mine], ts_us[mine], amount[mine]
    if not len(of):
        return of, ts_us, amount
    seconds = ts_us // 1_000_000
    first = int(seconds.min())
    span = int(seconds.max()) - first + 1
    found, total = summed(of * span + (seconds - first), chunk.clients * span, amount)
    return found // span, found % span + first, total
