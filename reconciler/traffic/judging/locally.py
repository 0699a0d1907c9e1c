"""A change that touches few buckets, judged in this process from the cells alone: the same kernel, and the same answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from reconciler.traffic.judging.by_seconds import Limits
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.second_sums import keys_of
from reconciler.traffic.kernels.seconds_judge import GroupVerdict, SecondsJudge
from reconciler.traffic.kernels.timeline import Integers


def judged_locally(
    cells: Iterable[tuple[Integers, Integers, Integers]],
    series: Iterable[Series],
    grouping: Grouping,
    groups: Collection[int],
    limits: Limits,
) -> dict[int, GroupVerdict]:
    """Verdicts of these groups. ``cells``: batches of series keys, seconds and amounts, in any order; they must fit memory."""
    places: dict[int, list[int]] = {}
    for index, one in enumerate(series):
        for group in grouping.groups_of_series[index]:
            if group in groups:
                places.setdefault(one.key, []).append(group)
    numbers = np.asarray(sorted(places), dtype=np.int64)
    found = [places[number] for number in numbers.tolist()]
    # A series whose bucket changes is in one group of each side.
    turns = [
        np.asarray([groups_of[turn] if turn < len(groups_of) else -1 for groups_of in found], dtype=np.int64)
        for turn in range(max(map(len, found), default=0))
    ]
    keys, amounts = [], []
    for of_series, seconds, amount in cells:
        where = np.searchsorted(numbers, of_series)
        for group_of in turns:
            groups_here = group_of[where]
            mine = groups_here >= 0
            keys.append(keys_of(groups_here[mine], seconds[mine]))
            amounts.append(amount[mine])
    judge = SecondsJudge((limits.before, limits.after), limits.era)
    if keys:
        key, amount = np.concatenate(keys), np.concatenate(amounts)
        order = np.argsort(key, kind="stable")
        judge.feed(key[order], amount[order])
    return {verdict.group: verdict for verdict in judge.verdicts()}
