"""Charged rows to the seconds of the groups in which they are judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.columns.chunk import NEEDED, Chunk, chunk_of
from reconciler.traffic.columns.numbering import summed
from reconciler.traffic.columns.parts import Part
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.second_sums import keys_of
from reconciler.traffic.kernels.timeline import Integers

SCHEMA: Final = "key bigint, amount bigint"
_ARROW: Final = pa.schema([("key", pa.int64()), ("amount", pa.int64())])


@dataclass(frozen=True, slots=True)
class Places:
    """Which client is in which groups; made to be small, since it travels with the code.

    A client's number is made of the places of its four names. ``numbers`` rise; ``turns`` have the first group of each, then the
    second, and -1 where there is none.
    """

    users: pa.Array
    client_ids: pa.Array
    kinds: pa.Array
    brokers: pa.Array
    numbers: Integers
    turns: tuple[Integers, ...]

    @classmethod
    def of(cls, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> Places:
        """Those that are in one of ``groups``. Raises ``OverflowError`` for more names than there are numbers."""
        mine = [
            (one, tuple(group for group in of_one if group in groups))
            for one, of_one in zip(series, grouping.groups_of_series, strict=True)
        ]
        mine = [(one, found) for one, found in mine if found]
        columns = ([one.user for one, _ in mine], [one.client_id for one, _ in mine], [one.kind.value for one, _ in mine])
        pools = [pa.array(column, type=pa.string()).unique() for column in columns]
        pools.append(pa.array([one.broker for one, _ in mine], type=pa.int64()).unique())
        if np.prod([float(len(pool)) for pool in pools]) >= float(2**62):
            raise OverflowError("too many different names")
        places = [pa.array(column, type=pool.type) for column, pool in zip(columns, pools[:3], strict=True)]
        places.append(pa.array([one.broker for one, _ in mine], type=pa.int64()))
        numbers = _numbers([_place(column, pool) for column, pool in zip(places, pools, strict=True)], pools)
        order = np.argsort(numbers, kind="stable")
        most = max((len(found) for _, found in mine), default=0)
        turns = tuple(
            np.asarray([found[turn] if turn < len(found) else -1 for _, found in mine], dtype=np.int64)[order]
            for turn in range(most)
        )
        users, client_ids, kinds, brokers = pools
        return cls(users, client_ids, kinds, brokers, numbers[order], turns)

    def groups_of(self, chunk: Chunk) -> tuple[Integers, ...]:
        """For each turn the group of each client of a chunk, -1 for none."""
        pools = [self.users, self.client_ids, self.kinds, self.brokers]
        names = (chunk.user, chunk.client_id, chunk.kind, pa.array(chunk.broker))
        places = [_place(column, pool) for column, pool in zip(names, pools, strict=True)]
        numbers = _numbers(places, pools)
        where = np.minimum(np.searchsorted(self.numbers, numbers), max(0, len(self.numbers) - 1))
        if not len(self.numbers):
            return ()
        known = (self.numbers[where] == numbers) & np.logical_and.reduce([place >= 0 for place in places])
        return tuple(np.where(known, turn[where], -1) for turn in self.turns)


def cells(parts: Iterable[Part], places: Places) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``: the key of a group and second as ``second_sums`` packs it, and an amount; a key can come again."""
    for part in parts:
        for batch in part.batches(NEEDED):
            for key, amount in _cells(chunk_of(batch), places):
                yield pa.RecordBatch.from_arrays([pa.array(key), pa.array(amount)], schema=_ARROW)


def _cells(chunk: Chunk, places: Places) -> Iterator[tuple[Integers, Integers]]:
    turns = places.groups_of(chunk)
    if not turns or not len(chunk.of):
        return
    judged = np.logical_or.reduce([groups >= 0 for groups in turns])
    of, ts_us, amount = chunk.of, chunk.ts_us, chunk.amount
    if not judged.all():
        mine = judged[of]
        of, ts_us, amount = of[mine], ts_us[mine], amount[mine]
        if not len(of):
            return
    seconds = ts_us // 1_000_000
    first = int(seconds.min())
    span = int(seconds.max()) - first + 1
    found, total = summed(of * span + (seconds - first), chunk.clients * span, amount)
    client, second = found // span, found % span + first
    for groups in turns:
        group = groups[client]
        mine = group >= 0
        if mine.all():
            yield keys_of(group, second), total
        elif mine.any():
            yield keys_of(group[mine], second[mine]), total[mine]


def _place(column: pa.Array, pool: pa.Array) -> Integers:
    found = pc.fill_null(pc.index_in(column, value_set=pool), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _numbers(places: Sequence[Integers], pools: Sequence[pa.Array]) -> Integers:
    number = np.zeros(len(places[0]), dtype=np.int64)
    for place, pool in zip(places, pools, strict=True):
        number = number * len(pool) + place
    return number
