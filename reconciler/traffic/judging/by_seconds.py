"""Judges one-second sums: verdicts of groups, and rates over time for plots, on workers or in this process.

Amounts are integers and sums do not depend on their order, so neither does the result on how rows are partitioned. A plot has at
most 240 equal intervals, whatever the length of the history. It is made in a second pass over the few groups that are shown:
cells go by in order, and each interval keeps its largest rate and how many of its seconds are over.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.model import Coverage, RateSeries
from reconciler.traffic.judging.exact import NEAR, Work, numbers_of, rows_of
from reconciler.traffic.judging.grouping import Grouping, groups_before
from reconciler.traffic.kernels.exact_totals import first_places
from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers
from reconciler.traffic.kernels.second_sums import SECOND_BITS, SecondsJudge, SecondStream, ThrottledRates
from reconciler.traffic.kinds import SAMPLED
from reconciler.traffic.shuffle.rows import Pieces


def judge_seconds_of(work: Work) -> Callable[[Pieces], Iterator[pa.RecordBatch]]:
    """A judge of keys (``second_sums.keys_of``) and amounts, of which equal keys add up. It gives batches of ``exact.SCHEMA``."""

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        before, after = work.before.limits, work.after.limits
        near = np.where(before > 0, NEAR * before, np.nan)
        seconds = SecondsJudge((before, after), work.window, capped=work.after.capped, near=near)
        for keys, amounts in pieces:
            seconds.feed(keys, amounts)
        yield rows_of(seconds.columns(), {})

    return judge


MOST_POINTS: Final = 240
_MOST_BEFORE: Final = 8
"""A bucket that was put together from more than this many shows nothing of before."""
_SECOND: Final = (1 << SECOND_BITS) - 1
_COUNTS: Final = ("place", "over_before", "over", "possible")
POINTS: Final = pa.schema([*((name, pa.int64()) for name in _COUNTS), ("rate", pa.float64()), ("upper", pa.float64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """``count`` intervals of ``step_s`` seconds from ``start`` (since 1970) on."""

    start: int
    step_s: int
    count: int

    @classmethod
    def over(cls, coverage: Sequence[Coverage]) -> Grid:
        """The whole history, of all brokers."""
        start = int(min(part.start for part in coverage).timestamp())
        seconds = int(max(part.end for part in coverage).timestamp()) - start + 1
        step = -(-seconds // MOST_POINTS)
        return cls(start=start, step_s=step, count=-(-seconds // step))


@dataclass(frozen=True, slots=True)
class Lines:
    """What rates are drawn against: limits and the intervals."""

    limits: Work
    grid: Grid


@dataclass(frozen=True, slots=True)
class Points:
    """One group, an item an interval; rates are amounts a second."""

    rate: Doubles
    upper: Doubles
    over_before: Integers
    over: Integers
    possible: Integers


def groups_to_plot(grouping: Grouping, targets: Collection[int]) -> set[int]:
    """The groups whose points these targets need: their own, and those that their members were in."""
    groups = set(targets)
    for target in targets:
        earlier = groups_before(grouping, target)
        groups.update(earlier if len(earlier) <= _MOST_BEFORE else ())
    return groups


def points_of(batches_of_cells: Iterable[tuple[Integers, Integers]], lines: Lines) -> pa.RecordBatch:
    """Rows of ``place`` (group and interval in one number) from batches of keys and amounts in rising order of their keys."""
    window, grid, sides = lines.limits.window, lines.grid, (lines.limits.before, lines.limits.after)
    stream, (before, after) = SecondStream(window), (ThrottledRates.of(side.limits, side.capped, window) for side in sides)
    batches = []
    for cells in stream.whole(batches_of_cells):
        bounded, groups = stream.bounds(cells), cells[0] >> SECOND_BITS
        place = groups * grid.count + np.clip(((cells[0] & _SECOND) - grid.start) // grid.step_s, 0, grid.count - 1)
        _, over_before, _ = bounded.over(before.at(groups))
        _, over, possible = bounded.over(after.at(groups))
        batches.append(_joined(place, (over_before, over, possible), (bounded.expected, bounded.upper)))
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=POINTS)
    # The last interval of a batch may go on in the next.
    place, *counts, rate, upper = (column.to_numpy() for column in pa.Table.from_batches(batches).columns)
    return _joined(place, counts, (rate, upper))


def _joined(place: Integers, counts: Sequence[Flags | Integers], rates: Sequence[Doubles]) -> pa.RecordBatch:
    """``POINTS``, one row for each of the places, which rise."""
    first = first_places(place)
    counted = [np.add.reduceat(column.astype(np.int64), first) for column in counts]
    largest = [np.maximum.reduceat(column, first) for column in rates]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in (place[first], *counted, *largest)], schema=POINTS)


def by_group(table: pa.Table, grid: Grid) -> dict[int, Points]:
    """Rows as ``points_of`` makes them, spread over the intervals."""
    place, points_of = numbers_of(table, "place"), {}
    for group in np.unique(place // grid.count).tolist():
        rows = np.flatnonzero(place // grid.count == group)
        columns = {}
        for name in Points.__slots__:
            values = table.column(name).to_numpy(zero_copy_only=False)
            columns[name] = np.zeros(grid.count, dtype=values.dtype)
            columns[name][place[rows] % grid.count] = values[rows]
        points_of[group] = Points(**columns)
    return points_of


def rate_series(
    grouping: Grouping, target: int, points: Mapping[int, Points], grid: Grid, holes: Integers | None
) -> RateSeries | None:
    """One target's series in the unit of its key; ``None`` for what no sampled rate limits, and for one without points.

    ``holes``: of the recording of the target's broker, as ``history_gaps.holes_of`` has them; ``None``: not known.
    """
    kind, own = grouping.targets[target].kind, points.get(target)
    if own is None or kind not in SAMPLED:
        return None
    unit, earlier = kind.amounts_a_unit, groups_before(grouping, target)
    before = [points[group].over_before for group in earlier if group in points]
    known = len(before) == len(earlier) > 0
    return RateSeries(
        start=datetime.datetime.fromtimestamp(grid.start, tz=datetime.UTC),
        step_s=grid.step_s,
        rate=tuple(round(value / unit, 3) for value in own.rate.tolist()),
        upper=tuple(round(value / unit, 3) for value in own.upper.tolist()),
        over=tuple(own.over.tolist()),
        possible=tuple(own.possible.tolist()),
        over_before=tuple(np.maximum.reduce(before).tolist()) if known else None,
        recorded=_recorded(grid, holes),
    )


def _recorded(grid: Grid, holes: Integers | None) -> tuple[bool, ...]:
    """Return for each interval whether any of it is outside of all holes."""
    if holes is None or not len(holes):
        return (True,) * grid.count
    starts = grid.start + grid.step_s * np.arange(grid.count, dtype=np.int64)
    hole = np.maximum(np.searchsorted(holes[:, 0] * 60, starts, side="right") - 1, 0)
    missing = (starts >= holes[hole, 0] * 60) & (starts + grid.step_s <= holes[hole, 1] * 60)
    return tuple((~missing).tolist())
