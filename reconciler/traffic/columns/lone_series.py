"""Samples of quota groups that are one series each, against their limits.

The samples of one moment are added up only where a group has several series. All other groups are counted row by row, in any
order, without bringing their rows together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from reconciler.traffic.columns.charged import ChargedRows, charged_rows, fold_by_code
from reconciler.traffic.columns.group_index import GroupIndex
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.sample_counts import NEVER, SCHEMA
from reconciler.traffic.kernels.sampled_rate import Doubles, Integers
from reconciler.traffic.sources.normal_form import GAUGE


def lone_groups(series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> set[int]:
    """Those of some groups in which all series have one identity."""
    identities: dict[int, set[object]] = defaultdict(set)
    for client, of_one in zip(series, grouping.groups_of_series, strict=True):
        for group in of_one:
            identities[group].add(client.sort_key)
    return {group for group in groups if len(identities[group]) == 1}


def count_lone_samples(
    batches: Iterable[pa.RecordBatch], groups: GroupIndex, before: Doubles, after: Doubles
) -> Iterator[pa.RecordBatch]:
    """Rows of ``sample_counts.SCHEMA``, one or more for each group. ``batches``: with the columns ``NEEDED``.

    ``before``, ``after``: limits by group number, NaN for none.
    """
    for batch in batches:
        rows = charged_rows(batch, GAUGE)
        _, slots = groups.of_rows(rows)
        for group_of in slots:
            yield _count(rows, group_of, before, after)


def _count(rows: ChargedRows, group_of: Integers, before: Doubles, after: Doubles) -> pa.RecordBatch:
    """``group_of``: the group of each client, -1 for none."""
    of, amount = rows.of, rows.amount
    limits = [np.where(group_of >= 0, limit[group_of], np.nan) for limit in (before, after)]
    over_before, over = (amount > limit[of] for limit in limits)
    figures: list[tuple[np.ufunc, Integers]] = [
        (np.add, np.ones(len(of), dtype=np.int64)), (np.add, over.astype(np.int64)), (np.add, over_before.astype(np.int64)),
        (np.maximum, amount), (np.minimum, np.where(over, rows.ts_us // 1000, NEVER)),
    ]  # fmt: skip
    if rows.begins is not None:
        figures = [(fold, fold.reduceat(values, rows.begins)) for fold, values in figures]
        of = of[rows.begins]
    counted = [fold_by_code(fold, of, values, rows.clients) for fold, values in figures]
    known = group_of >= 0
    columns = [group_of[known], *(values[known] for values in counted)]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)
