"""A change that touches few buckets, judged in this process from the cells alone: the same kernel, and the same answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from reconciler.traffic.judging.by_seconds import Limits
from reconciler.traffic.judging.cell_keys import CellKeys
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers


def judged_locally(
    cells: Iterable[tuple[Integers, Integers, Integers]],
    series: Iterable[Series],
    grouping: Grouping,
    groups: Collection[int],
    limits: Limits,
) -> dict[int, GroupVerdict]:
    """Verdicts of these groups. ``cells``: batches of series keys, seconds and amounts, in any order; they must fit memory."""
    of = CellKeys.of(series, grouping, groups)
    keyed = [one for cell in cells for one in of.keyed(*cell)]
    judge = limits.judge()
    if keyed:
        key, amount = (np.concatenate(parts) for parts in zip(*keyed, strict=True))
        order = np.argsort(key, kind="stable")
        judge.feed(key[order], amount[order])
    return {verdict.group: verdict for verdict in judge.verdicts()}
