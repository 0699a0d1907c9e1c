"""Cells of clients to the groups in which they are judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.second_sums import keys_of
from reconciler.traffic.kernels.timeline import Integers


def turns_of(groups: Sequence[Sequence[int]]) -> tuple[Integers, ...]:
    """The first group of each client, then the second of each, and so on; -1 where there is none.

    A client whose bucket changes is in one group of each side.
    """
    return tuple(
        np.asarray([of_one[turn] if turn < len(of_one) else -1 for of_one in groups], dtype=np.int64)
        for turn in range(max(map(len, groups), default=0))
    )


@dataclass(frozen=True, slots=True)
class CellKeys:
    """Which client is in which groups; small, since it travels with the code.

    ``clients``: keys of series, rising. ``turns``: as ``turns_of`` makes them.
    """

    clients: Integers
    turns: tuple[Integers, ...]

    @classmethod
    def of(cls, series: Iterable[Series], grouping: Grouping, groups: Collection[int]) -> CellKeys:
        """Those that are in one of ``groups``."""
        places: dict[int, list[int]] = {}
        for one, of_one in zip(series, grouping.groups_of_series, strict=True):
            for group in of_one:
                if group in groups:
                    places.setdefault(one.key, []).append(group)
        clients = np.asarray(sorted(places), dtype=np.int64)
        found = [places[client] for client in clients.tolist()]
        return cls(clients, turns_of(found))

    def keyed(self, series: Integers, seconds: Integers, amounts: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Keys as ``second_sums.keys_of`` makes them, and amounts, in no order; cells of others are left out."""
        if not len(self.clients):
            return
        where = np.minimum(np.searchsorted(self.clients, series), len(self.clients) - 1)
        known = self.clients[where] == series
        for group_of in self.turns:
            group = group_of[where]
            mine = known & (group >= 0)
            yield keys_of(group[mine], seconds[mine]), amounts[mine]
