"""Samples of quota groups against their limits: how many moments there are, and in how many the rate is above a limit.

The gauges of one group at one moment are added up: a client has two series when its quota moved to another level, and each of
its requests is in exactly one of them. Where a group is one series, its gauges are counted row by row, in any order, without
bringing them together.
"""

from __future__ import annotations

import datetime
import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.model import GAUGE
from reconciler.traffic import (
    NEEDED,
    TIME_BITS,
    Doubles,
    GroupIndex,
    Grouping,
    GroupWork,
    Integers,
    Pieces,
    Rows,
    Series,
    Totals,
    add_up,
    charged_rows,
    first_places,
    fold_by_code,
    group_of_key,
    key_of_time,
    limits_of,
    rows_of_groups,
    time_of_key,
)

_SAMPLES_AT_ONCE: Final = 6_000_000
"""Gauges that are sorted at a time in one process: some 400 MB."""
SCHEMA: Final = pa.schema(
    [(name, pa.int64()) for name in ("group", "moments", "over", "over_before", "highest", "first_over_ms")]
)
FOLDS: Final = {"moments": "sum", "over": "sum", "over_before": "sum", "highest": "max", "first_over_ms": "min"}
NEVER: Final = np.iinfo(np.int64).max
"""As ``first_over_ms``: at no moment."""


def count_samples(pieces: Iterable[Sequence[Integers]], before: Doubles, after: Doubles) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``, one or more for each group. A piece has keys (``exact_totals.pack``), which rise, and amounts.

    ``before``, ``after``: limits by group number, NaN for none.
    """
    kept = np.empty((2, 0), dtype=np.int64)
    for piece in pieces:
        rows = np.concatenate((kept, np.stack(piece[:2]).astype(np.int64)), axis=1)
        # The last moment may go on in the next piece.
        cut = int(np.searchsorted(rows[0], rows[0, -1])) if rows.size else 0
        kept = rows[:, cut:]
        if cut:
            yield _counted(rows[:, :cut], before, after)
    if kept.size:
        yield _counted(kept, before, after)


def _counted(rows: Integers, before: Doubles, after: Doubles) -> pa.RecordBatch:
    first = first_places(rows[0])
    moments, totals = rows[0, first], np.add.reduceat(rows[1], first)
    group = group_of_key(moments)
    begin = first_places(group)
    over = totals > after[group]
    columns = (
        group[begin],
        np.diff(begin, append=len(group)),
        np.add.reduceat(over.astype(np.int64), begin),
        np.add.reduceat((totals > before[group]).astype(np.int64), begin),
        np.maximum.reduceat(totals, begin),
        np.minimum.reduceat(np.where(over, time_of_key(moments), NEVER), begin),
    )
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCounts:
    """The gauges of one quota group, those of one moment added up. ``highest``: amounts a second."""

    moments: int
    over: int
    over_before: int
    highest: int
    first_over_ms: int

    @property
    def first(self) -> datetime.datetime | None:
        """The first moment over the limit after the change."""
        return None if self.first_over_ms == NEVER else datetime.datetime.fromtimestamp(self.first_over_ms / 1000, datetime.UTC)


def count_gauges(
    rows: Rows[pa.RecordBatch], series: Sequence[Series], grouping: Grouping, groups: Collection[int]
) -> Mapping[int, SampleCounts]:
    """Count the gauges of these groups by target. In this process, as many at a time as memory allows.

    Where a group is one series, no moment has two samples to add up: each row counts as it comes.
    """
    before, after = limits_of(grouping.groups)
    alone = lone_groups(series, grouping, groups)
    tables = [SCHEMA.empty_table()]
    if alone:
        index = GroupIndex.of(series, grouping, alone)
        lone: Totals[pa.RecordBatch] = Totals(
            name="samples above limits",
            columns=NEEDED,
            count=functools.partial(count_lone_samples, groups=index, before=before, after=after),
            schema=SCHEMA,
            keys=("group",),
            folds=FOLDS,
        )
        tables.append(rows.total(lone))
    if groups := set(groups) - alone:
        tables.append(_joint_samples(rows, series, grouping, groups))
    return {row.pop("group"): SampleCounts(**row) for row in pa.concat_tables(tables).to_pylist()}


def _joint_samples(rows: Rows[pa.RecordBatch], series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> pa.Table:
    """``SCHEMA`` of groups of several series."""
    before, after = limits_of(grouping.groups)

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        return count_samples(pieces, before, after)

    index, expected = GroupIndex.of(series, grouping, groups), rows_of_groups(series, grouping, groups)
    work: GroupWork[pa.RecordBatch] = GroupWork(
        name="samples above limits",
        columns=NEEDED,
        send=functools.partial(keyed_samples, groups=index),
        judge=judge,
        schema=SCHEMA,
        rows=expected,
        bits=TIME_BITS,
    )
    # A moment is in one slice of time, and a group in one share of the groups.
    counted = [
        part_of_time.judge(replace(work, send=functools.partial(keyed_samples, groups=part)))
        for share, part_of_time in rows.in_slices()
        for some in _shares(sorted(groups), expected, _SAMPLES_AT_ONCE / share)
        for part in (index if len(some) == len(groups) else GroupIndex.of(series, grouping, some),)
    ]
    return add_up(pa.concat_tables(counted or [rows.judge(work)]), ("group",), FOLDS)


def _shares(groups: Sequence[int], rows: Sequence[int], most: float) -> Iterator[set[int]]:
    """Groups in order, some at a time, with no more than ``most`` rows unless one alone has more."""
    some: set[int] = set()
    held = 0
    for group in groups:
        if some and held + rows[group] > most:
            yield some
            some, held = set(), 0
        some.add(group)
        held += rows[group]
    if some:
        yield some


def keyed_samples(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """Keys (``exact_totals.pack``) and amounts of the gauges of groups."""
    for batch in batches:
        rows = charged_rows(batch, GAUGE)
        _, slots = groups.of_rows(rows)
        for of_client in slots:
            group = of_client[rows.of]
            chosen = group >= 0
            yield key_of_time(group[chosen], rows.ts_us[chosen] // 1000), rows.amount[chosen]


def lone_groups(series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> set[int]:
    """Return those of some groups in which all series have one identity."""
    identities: dict[int, set[object]] = defaultdict(set)
    for client, of_one in zip(series, grouping.groups_of_series, strict=True):
        for group in of_one:
            identities[group].add(client.sort_key)
    return {group for group in groups if len(identities[group]) == 1}


def count_lone_samples(
    batches: Iterable[pa.RecordBatch], groups: GroupIndex, before: Doubles, after: Doubles
) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``, one or more for each group. ``batches``: with the columns ``NEEDED``.

    ``before``, ``after``: limits by group number, NaN for none.
    """
    for batch in batches:
        rows = charged_rows(batch, GAUGE)
        _, slots = groups.of_rows(rows)
        for group_of in slots:
            limits = [np.where(group_of >= 0, limit[group_of], np.nan) for limit in (before, after)]
            of, (over_before, over) = rows.of, [rows.amount > limit[rows.of] for limit in limits]
            figures: list[tuple[np.ufunc, Integers]] = [
                (np.add, np.ones(len(of), dtype=np.int64)), (np.add, over.astype(np.int64)),
                (np.add, over_before.astype(np.int64)), (np.maximum, rows.amount),
                (np.minimum, np.where(over, rows.ts_us // 1000, NEVER)),
            ]  # fmt: skip
            if rows.begins is not None:
                figures = [(fold, fold.reduceat(values, rows.begins)) for fold, values in figures]
                of = of[rows.begins]
            known = group_of >= 0
            counted = [fold_by_code(fold, of, values, rows.clients)[known] for fold, values in figures]
            columns = [pa.array(column, pa.int64()) for column in (group_of[known], *counted)]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
