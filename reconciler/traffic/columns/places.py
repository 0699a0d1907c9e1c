"""Which client of a chunk is in which groups, as workers look it up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.columns.chunk import Chunk
from reconciler.traffic.judging.cell_keys import turns_of
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.timeline import Integers


@dataclass(frozen=True, slots=True)
class KnownClients:
    """Clients by their names; made to be small, since it travels with the code.

    A client's number is made of the places of its four names. ``numbers`` rise; ``which`` says for each whose it is.
    """

    users: pa.Array
    client_ids: pa.Array
    kinds: pa.Array
    brokers: pa.Array
    numbers: Integers
    which: Integers

    @classmethod
    def of(cls, series: Sequence[Series]) -> KnownClients:
        """By place in ``series``. Raises ``OverflowError`` for more names than there are numbers."""
        columns = ([one.user for one in series], [one.client_id for one in series], [one.kind.value for one in series])
        names = [pa.array(column, type=pa.string()) for column in columns]
        names.append(pa.array([one.broker for one in series], type=pa.int64()))
        pools = [column.unique() for column in names]
        if np.prod([float(len(pool)) for pool in pools]) >= float(2**62):
            raise OverflowError("too many different names")
        numbers = _numbers([_place(column, pool) for column, pool in zip(names, pools, strict=True)], pools)
        order = np.argsort(numbers, kind="stable")
        users, client_ids, kinds, brokers = pools
        return cls(users, client_ids, kinds, brokers, numbers[order], order)

    def of_chunk(self, chunk: Chunk) -> Integers:
        """For each client of a chunk whose it is, -1 for nobody known."""
        return self.of_names(chunk.user, chunk.client_id, chunk.kind, pa.array(chunk.broker))

    def of_names(self, *names: pa.Array) -> Integers:
        """The same for columns of users, client ids, kinds and brokers."""
        if not len(self.numbers):
            return np.full(len(names[0]), -1, dtype=np.int64)
        pools = [self.users, self.client_ids, self.kinds, self.brokers]
        places = [_place(column, pool) for column, pool in zip(names, pools, strict=True)]
        numbers = _numbers(places, pools)
        where = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        known = (self.numbers[where] == numbers) & np.logical_and.reduce([place >= 0 for place in places])
        return np.where(known, self.which[where], -1)


@dataclass(frozen=True, slots=True)
class Places:
    """In which groups clients are.

    ``series`` are the indexes of their series; ``turns``: as ``turns_of`` makes them.
    """

    clients: KnownClients
    series: Integers
    turns: tuple[Integers, ...]

    @classmethod
    def of(cls, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> Places:
        """Those that are in one of ``groups``. Raises ``OverflowError`` as ``KnownClients``."""
        groups_of = [tuple(group for group in of_one if group in groups) for of_one in grouping.groups_of_series]
        indexes = [index for index, found in enumerate(groups_of) if found]
        turns = turns_of([groups_of[index] for index in indexes])
        return cls(KnownClients.of([series[index] for index in indexes]), np.asarray(indexes, dtype=np.int64), turns)

    def of_chunk(self, chunk: Chunk) -> tuple[Integers, tuple[Integers, ...]]:
        """For each client of a chunk its series, and for each turn its group, -1 for none; no turns when nobody has a group."""
        which = self.clients.of_chunk(chunk)
        known = which >= 0
        return (
            np.where(known, self.series[which], -1) if len(self.series) else which,
            tuple(np.where(known, turn[which], -1) for turn in self.turns),
        )


def _place(column: pa.Array, pool: pa.Array) -> Integers:
    found = pc.fill_null(pc.index_in(column, value_set=pool), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _numbers(places: Sequence[Integers], pools: Sequence[pa.Array]) -> Integers:
    number = np.zeros(len(places[0]), dtype=np.int64)
    for place, pool in zip(places, pools, strict=True):
        number = number * len(pool) + place
    return number
