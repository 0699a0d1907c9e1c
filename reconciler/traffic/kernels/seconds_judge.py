"""Judges per-second totals group by group: a stream of any length in constant memory, even when one group has most of it.

A group is one bucket on one broker. Cells come in rising order of (group, second); a batch may end anywhere. What a
batch needs of the one before it is its last seconds, and the run of seconds over the limit that was still open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_totals import first_places
from reconciler.traffic.kernels.group_statistics import NEARLY_ALL, NONE, Episodes, Histograms
from reconciler.traffic.kernels.sampled_rate import Doubles, Era, Flags, Integers
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Bounds, Rule, ThrottledRates, bounds, longest_pause_s, reach

_SECOND: Final = (1 << SECOND_BITS) - 1
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class SideVerdict:
    """Seconds of one group under one limit, of those with traffic; each count includes the one before it.

    ``first_*`` are seconds since 1970, ``None`` when there is none; an episode is a run of active seconds that are all probably
    over, without a pause after which nothing of before is left in the rate.
    """

    certain: int
    expected: int
    possible: int
    first_certain: int | None
    first_expected: int | None
    first_possible: int | None
    longest_s: int
    longest_from: int | None


SIDE_FIELDS: Final = tuple(field.name for field in fields(SideVerdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """One group: its traffic, and a verdict for each side's limit. ``p999``: what 99.9 % of upper bounds do not exceed.

    ``near``: seconds whose estimated rate reaches the rate that was asked about.
    """

    group: int
    active: int
    amount: int
    peak_upper: float
    peak_expected: float
    p999: float
    sides: tuple[SideVerdict, ...]
    near: int = 0


@dataclass(frozen=True, slots=True)
class VerdictColumns:
    """Verdicts as columns, one row a group, by number.

    ``whole``: active seconds, amount and near seconds; ``rates``: ``peak_upper``, ``peak_expected``, ``p999``; a side has a
    row for each field of ``SideVerdict``, with ``NONE`` for ``None``.
    """

    groups: Integers
    whole: Integers
    rates: Doubles
    sides: tuple[Integers, ...]

    def verdicts(self) -> Iterator[GroupVerdict]:
        """One by one."""
        sides = [side.T.tolist() for side in self.sides]
        rows = zip(self.groups.tolist(), self.whole.T.tolist(), self.rates.T.tolist(), *sides, strict=True)
        for group, (active, amount, near), (upper, expected, p999), *of_sides in rows:
            yield GroupVerdict(
                group=group,
                active=active,
                amount=amount,
                peak_upper=upper,
                peak_expected=expected,
                p999=p999,
                sides=tuple(map(_side, of_sides)),
                near=near,
            )


@dataclass(slots=True)
class _Parts:
    """What the batches found so far, as arrays by group; a group on a border is there twice."""

    totals: list[Integers] = field(default_factory=list)
    peaks: list[Doubles] = field(default_factory=list)


class SecondsJudge:
    """Feed cells in order, then take the verdicts."""

    def __init__(
        self,
        limits: Sequence[Doubles],
        rule: Rule = Era.OVERLAPPING,
        *,
        capped: Flags | None = None,
        near: Doubles | None = None,
    ) -> None:
        """``limits``: for each side an array by group number; NaN is unlimited. ``near``: by group, from which rate on to count.

        ``capped``: by group number, whether Kafka caps a throttle before it narrows it to 32 bits. ``None``: it caps none.
        """
        self._rule, self._reach, self._near = rule, reach(rule), near
        # Sides with the same limits have the same verdicts.
        first_alike = [next(n for n, side in enumerate(limits) if np.array_equal(side, own, equal_nan=True)) for own in limits]
        judged = sorted(set(first_alike))
        self._side_of = tuple(map(judged.index, first_alike))
        self._throttled = tuple(ThrottledRates.of(limits[number], capped, rule) for number in judged)
        self._parts = _Parts()
        self._histograms = Histograms()
        self._sides: tuple[list[Integers], ...] = tuple([] for _ in self._throttled)
        self._runs = tuple(Episodes(longest_pause_s(rule)) for _ in self._throttled)
        self._tail_keys = np.empty(0, dtype=np.int64)
        self._tail_amounts = np.empty(0, dtype=np.int64)
        self._held = np.empty((2, 0), dtype=np.int64)

    def feed(self, keys: Integers, amounts: Integers) -> None:
        """The next cells; those of one group and second follow each other, and count as one.

        Raises ``ValueError`` when they are out of order, within or after the earlier ones.
        """
        keys, amounts = np.concatenate((self._held[0], keys)), np.concatenate((self._held[1], amounts))
        if not len(keys):
            return
        first = first_places(keys)
        keys, amounts = keys[first], np.add.reduceat(amounts, first)
        # More of the last second may follow.
        self._held = np.stack((keys[-1:], amounts[-1:]))
        self._feed(keys[:-1], amounts[:-1])

    def _feed(self, keys: Integers, amounts: Integers) -> None:
        if not len(keys):
            return
        all_keys, all_amounts = np.concatenate((self._tail_keys, keys)), np.concatenate((self._tail_amounts, amounts))
        bounded = bounds(all_keys, all_amounts, self._rule)
        new = slice(len(self._tail_keys), None)
        self._tail_keys, self._tail_amounts = all_keys[-self._reach :].copy(), all_amounts[-self._reach :].copy()
        self._judge(
            keys >> SECOND_BITS, keys & _SECOND, amounts, Bounds(bounded.lower[new], bounded.expected[new], bounded.upper[new])
        )

    def verdicts(self) -> Iterator[GroupVerdict]:
        """One a group that had cells, by number. Ends the stream."""
        return self.columns().verdicts()

    def columns(self) -> VerdictColumns:
        """The same as columns."""
        self._feed(*self._held)
        if not self._parts.totals:
            nothing = (np.empty((len(SIDE_FIELDS), 0), dtype=np.int64) for _ in self._side_of)
            return VerdictColumns(np.empty(0, dtype=np.int64), np.empty((3, 0), dtype=np.int64), np.empty((3, 0)), tuple(nothing))
        groups, *whole = _by_group(np.concatenate(self._parts.totals, axis=1), np.add)
        peaks = np.concatenate(self._parts.peaks, axis=1)
        top = np.maximum.reduceat(peaks[1:], first_places(peaks[0]), axis=1)
        p999 = self._histograms.highest(NEARLY_ALL)[1]
        sides = [
            _of_a_side(np.concatenate(side, axis=1), runs.columns(groups))
            for side, runs in zip(self._sides, self._runs, strict=True)
        ]
        every_side = tuple(sides[number] for number in self._side_of)
        return VerdictColumns(groups, np.stack(whole), np.concatenate((top, p999[None])), every_side)

    def _judge(self, groups: Integers, seconds: Integers, amounts: Integers, bounded: Bounds) -> None:
        first = first_places(groups)
        here = groups[first]
        seconds_here = np.diff(first, append=len(groups))
        near = np.zeros_like(here)
        if self._near is not None:
            near = np.add.reduceat((bounded.expected >= self._near[groups]).astype(np.int64), first)
        self._parts.totals.append(np.stack((here, seconds_here, np.add.reduceat(amounts, first), near)))
        upper, expected = np.maximum.reduceat(bounded.upper, first), np.maximum.reduceat(bounded.expected, first)
        self._parts.peaks.append(np.stack((here.astype(np.float64), upper, expected)))
        self._histograms.add(groups, bounded.upper)
        for throttled, side, runs in zip(self._throttled, self._sides, self._runs, strict=True):
            over = bounded.over(throttled.at(groups))
            side.append(np.stack((here, *(row for flags in over for row in _count_and_first(flags, seconds, first)))))
            runs.feed(groups, seconds, over[1])


def _count_and_first(flags: Flags, seconds: Integers, first: Integers) -> tuple[Integers, Integers]:
    return np.add.reduceat(flags.astype(np.int64), first), np.minimum.reduceat(np.where(flags, seconds, _NEVER), first)


def _by_group(rows: Integers, join: np.ufunc) -> Integers:
    first = first_places(rows[0])
    return np.concatenate((rows[:1, first], join.reduceat(rows[1:], first, axis=1)))


def _of_a_side(rows: Integers, episodes: Integers) -> Integers:
    first = first_places(rows[0])
    counted = np.add.reduceat(rows[1::2], first, axis=1)
    earliest = np.minimum.reduceat(rows[2::2], first, axis=1)
    return np.concatenate((counted, np.where(earliest == _NEVER, NONE, earliest), episodes))


def _side(values: Sequence[int]) -> SideVerdict:
    certain, expected, possible, first_certain, first_expected, first_possible, longest_s, longest_from = values
    return SideVerdict(
        certain=certain,
        expected=expected,
        possible=possible,
        first_certain=None if first_certain == NONE else first_certain,
        first_expected=None if first_expected == NONE else first_expected,
        first_possible=None if first_possible == NONE else first_possible,
        longest_s=longest_s,
        longest_from=None if longest_from == NONE else longest_from,
    )
