"""Cells of clients to the groups in which they are judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.second_sums import keys_of
from reconciler.traffic.kernels.timeline import Integers


@dataclass(frozen=True, slots=True)
class CellKeys:
    """Which client is in which groups; small, since it travels with the code.

    ``clients``: keys of series, rising. ``turns`` have the first group of each, then the second, and -1 where there is none: a
    client whose bucket changes is in one group of each side.
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
        turns = tuple(
            np.asarray([groups_of[turn] if turn < len(groups_of) else -1 for groups_of in found], dtype=np.int64)
            for turn in range(max(map(len, found), default=0))
        )
        return cls(clients, turns)

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
