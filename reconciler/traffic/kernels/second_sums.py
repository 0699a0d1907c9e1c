"""Verdicts from one-second sums: what is proven about the sampled rate without the single requests.

With ``Sk`` the sum of the last k whole seconds, 11 samples of one second, and whatever requests within the seconds, the largest
sampled rate at any request of a second lies within

    S11 / 12  <=  rate  <=  max(S13 / 11, S12 / 10)        for brokers from 3.8 on
    S10 / 11  <=  rate  <=  S12 / 10                       for older ones

So against a limit a second is certain (the lower bound is above it), clear (the upper bound is not) or possible; ``S11 / 10.5``
is the estimate between them.

3.8 and newer: everything later than 11 s before the second's last request is in live samples, and they span less than 12 s. What
is summed is later than the oldest live start, which is less than 12 s ago: in the thirteenth second back the window is above
11 s, and it is 10 s at least. Older: a sample is dropped when its start is 11 s old, so everything of the last 10 s is in live
samples, they span less than 11 s, and what is summed is later than 11 s ago.

With N samples of W whole seconds the same reasoning gives, for brokers from 3.8 on and for older ones

    S(N W) / ((N + 1) W)  <=  rate  <=  max over k of S(k + 1) / max((N - 1) W, k - 1),   (N - 1) W < k <= (N + 1) W

where k is how many seconds back the oldest live start lies. For long samples the k are taken together in a few steps, which
widens the upper bound and leaves it proven.

Broker arithmetic is in doubles: a bound within rounding of the limit decides nothing.

A rate above the limit is not yet a throttle. With S bytes in a window of w ms the broker asks for ``1000 S / limit - w`` ms,
rounds to whole ms, and narrows that to 32 bits. The lower bound divides by more than the window's length, so where it is above
the limit the throttle is 1 ms or more. Above 2^31 - 1 ms the throttle wraps around, and a negative one throttles no request: a
second is certain only while the upper bound stays below ``longest_throttle_ratio`` times the limit. Throttles that Kafka caps
before it narrows them (request time, connections) never wrap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_totals import NONE, Episodes, VerdictColumns, first_places
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, LONGEST_THROTTLE_MS, Doubles, Era, Flags, Integers, Window

SECOND_BITS: Final = 33
"""A key is the group's number, shifted by this, plus the second since 1970."""
LONGEST_PROVEN_S: Final = 3600
"""Window settings that look further back than this are judged request by request, or not at all."""
_STEPS: Final = 8
"""Into how many steps the k of one bound are taken together."""
_FEW: Final = 40
"""Seconds: up to so many back are gone through one by one."""
ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class ThrottledRates:
    """By group or by cell: rates above ``limit`` are throttled (NaN: none is); above ``wraps_at`` the throttle wraps around."""

    limit: Doubles
    wraps_at: Doubles

    @classmethod
    def of(cls, limits: Doubles, capped: Flags | None, window: Window) -> ThrottledRates:
        """``capped``: Kafka caps the throttle before it narrows it, so that it never wraps. ``None``: nowhere."""
        wraps_at = limits * longest_throttle_ratio(window)
        if capped is not None or not window.wraps:
            # The cap of a negative throttle, as a limit below zero gives, is that throttle.
            unwrapped = np.where(limits < 0, -np.inf, np.inf)
            wraps_at = unwrapped if capped is None or not window.wraps else np.where(capped, unwrapped, wraps_at)
        return cls(limits, wraps_at)

    def at(self, groups: Integers) -> ThrottledRates:
        """Return the rates by cell. A group below 0 is unlimited."""
        limit = self.limit[groups]
        return ThrottledRates(np.where(groups < 0, np.nan, limit) if np.any(groups < 0) else limit, self.wraps_at[groups])


@dataclass(frozen=True, slots=True)
class Bounds:
    """Per cell, bytes (or whatever the amounts are) a second."""

    lower: Doubles
    expected: Doubles
    upper: Doubles

    def over(self, throttled: ThrottledRates) -> tuple[Flags, Flags, Flags]:
        """Mark seconds that certainly, probably and possibly have a throttle; each implies the next. ``throttled``: by cell."""
        limit, wraps_at = throttled.limit, throttled.wraps_at
        possible = self.upper > limit * (1 - ROUNDING)
        certain = (self.lower > limit * (1 + ROUNDING)) & (self.upper < wraps_at * (1 - ROUNDING))
        return certain, (self.expected > limit) & (self.expected < wraps_at) & possible, possible


def keys_of(groups: Integers, seconds: Integers) -> Integers:
    """Packed keys; in their order, groups lie together and each is in the order of time."""
    return (groups << SECOND_BITS) | seconds


def proves(window: Window) -> bool:
    """Whether whole seconds prove anything: samples of whole seconds, more than one of them, and not too many."""
    return window.sample_ms % 1000 == 0 and window.samples > 1 and reach(window) <= LONGEST_PROVEN_S


def reach(window: Window) -> int:
    """Return the number of seconds for which a cell still counts."""
    return (window.samples + (window.era is Era.OVERLAPPING)) * window.sample_ms // 1000


def longest_throttle_ratio(window: Window) -> float:
    """A rate of so many times the limit, or less, is throttled for at most 2^31 - 1 ms, whatever its window."""
    return 1 + LONGEST_THROTTLE_MS / window.longest_ms


def bounds(keys: Integers, amounts: Integers, window: Window = DEFAULT_WINDOW) -> Bounds:
    """Bound the rates of cells, which are in strictly rising order of their keys.

    Raises ``ValueError`` for another order, which would tear sums apart, and for settings of which seconds prove nothing.
    """
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("totals must be in strictly rising order of group and second")
    parts = frames(window)
    lengths = tuple(dict.fromkeys(length for length, _ in parts))
    total = dict(zip(lengths, _sums(keys, amounts, lengths), strict=True))
    lower, expected, *upper = (total[length] / divisor for length, divisor in parts)
    return Bounds(lower=lower, expected=expected, upper=reduce(np.maximum, upper))


def frames(window: Window) -> tuple[tuple[int, float], ...]:
    """Return the seconds to sum and their divisors: of the lower bound, the estimate, then each part of the upper one.

    Raises ``ValueError`` for settings of which seconds prove nothing.
    """
    if not proves(window):
        raise ValueError(f"whole seconds prove nothing about {window.samples} samples of {window.sample_ms} ms")
    count, sample, spare = window.samples, window.sample_ms // 1000, window.era is Era.OVERLAPPING
    whole, least, most = (count - 1 + spare) * sample, (count - 1) * sample, reach(window)
    # Lengths for all k above the least up to the most, some at a time.
    wide = -(-(most - least) // _STEPS)
    steps = ((min(k + wide - 1, most) + 1, float(max(least, k - 1))) for k in range(least + 1, most + 1, wide))
    return (whole, float(whole + sample)), (count * sample, (count - 0.5) * sample), *steps


def _sums(keys: Integers, amounts: Integers, lengths: Sequence[int]) -> tuple[Integers, ...]:
    """Return, for each cell, the amounts of the last so many seconds, its own included."""
    # Sums of the first so many, from none on; their differences are exact whatever they wrap around to.
    total = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(amounts)))
    if max(lengths) > _FEW:
        return tuple(total[1:] - total[np.searchsorted(keys, keys - length, side="right")] for length in lengths)
    # How many of the cells before belong to each sum, in numbers so small that counting costs next to nothing.
    counts = tuple(np.zeros(len(keys), dtype=np.int8) for _ in lengths)
    for back in range(1, min(max(lengths), len(keys))):
        apart = keys[back:] - keys[:-back]
        if not np.any(apart < max(lengths)):
            break
        for count, length in zip(counts, lengths, strict=True):
            count[back:] += apart < length
    places = np.arange(len(keys))
    return tuple(total[1:] - total[places - count] for count in counts)


_SECOND: Final = (1 << SECOND_BITS) - 1
_NEVER: Final = np.iinfo(np.int64).max


class SecondStream:
    """Cells in rising order of (group, second), in batches that may end anywhere: seconds whole, with what reaches into them."""

    def __init__(self, window: Window) -> None:
        self._window, self._reach = window, reach(window)
        self._tail = np.empty((2, 0), dtype=np.int64)
        self.held = np.empty((2, 0), dtype=np.int64)
        """The last second, of which more may follow. All cells have shape ``(2, n)``: keys and amounts."""

    def feed(self, keys: Integers, amounts: Integers) -> Integers:
        """The cells that are whole now; those of one group and second follow each other, and count as one."""
        cells = np.concatenate((self.held, np.stack((keys, amounts))), axis=1)
        if cells.size:
            first = first_places(cells[0])
            cells = np.stack((cells[0, first], np.add.reduceat(cells[1], first)))
        self.held = cells[:, -1:]
        return cells[:, :-1]

    def whole(self, batches: Iterable[tuple[Integers, Integers]]) -> Iterator[Integers]:
        """All of these, some at a time."""
        yield from (cells for keys, amounts in batches if (cells := self.feed(keys, amounts)).size)
        if self.held.size:
            yield self.held

    def bounds(self, cells: Integers) -> Bounds:
        """Return the bounds of the whole cells that come next. Raises ``ValueError`` as ``bounds`` does."""
        every = np.concatenate((self._tail, cells), axis=1)
        bounded, new = bounds(every[0], every[1], self._window), slice(self._tail.shape[1], None)
        self._tail = every[:, -self._reach :].copy()
        return Bounds(bounded.lower[new], bounded.expected[new], bounded.upper[new])


class SecondsJudge:
    """Feed cells in order, then take the verdicts: a stream of any length in constant memory.

    What a batch needs of the one before it is in ``SecondStream``, and the run of seconds over the limit that was still open.
    """

    def __init__(
        self,
        limits: Sequence[Doubles],
        window: Window = DEFAULT_WINDOW,
        *,
        capped: Flags | None = None,
        near: Doubles | None = None,
    ) -> None:
        """``limits``: for each side an array by group number; NaN is unlimited. ``near``: by group, from which rate on to count.

        ``capped``: by group number, whether Kafka caps a throttle before it narrows it to 32 bits. ``None``: it caps none.
        """
        self._stream, self._near = SecondStream(window), near
        # Sides with the same limits have the same verdicts.
        first_alike = [next(n for n, side in enumerate(limits) if np.array_equal(side, own, equal_nan=True)) for own in limits]
        judged = sorted(set(first_alike))
        self._side_of = tuple(map(judged.index, first_alike))
        self._throttled = tuple(ThrottledRates.of(limits[number], capped, window) for number in judged)
        self._totals: list[Integers] = []
        self._peaks: list[Doubles] = []
        """By group, as is ``_totals``; a group on a border of batches is there twice."""
        self._sides: tuple[list[Integers], ...] = tuple([] for _ in self._throttled)
        self._runs = tuple(Episodes(window.expiry_ms // 1000) for _ in self._throttled)

    def feed(self, keys: Integers, amounts: Integers) -> None:
        """The next cells; those of one group and second follow each other, and count as one.

        Raises ``ValueError`` when they are out of order, within or after the earlier ones.
        """
        self._judge(self._stream.feed(keys, amounts))

    def columns(self) -> VerdictColumns:
        """One row a group that had cells, by number. Ends the stream."""
        self._judge(self._stream.held)
        if not self._totals:
            return VerdictColumns.none(len(self._side_of))
        totals = np.concatenate(self._totals, axis=1)
        first = first_places(totals[0])
        groups, whole = totals[0, first], np.add.reduceat(totals[1:], first, axis=1)
        sides = []
        for side, runs in zip(self._sides, self._runs, strict=True):
            counts, earliest = np.split(np.concatenate(side, axis=1), [3])
            counted, (probably, possibly) = np.add.reduceat(counts, first, axis=1), np.minimum.reduceat(earliest, first, axis=1)
            over = np.where(probably == _NEVER, possibly, probably)
            moments = np.where(over == _NEVER, NONE, over * 1000)
            sides.append(np.stack((np.zeros_like(groups), *counted, moments, *runs.columns(groups))))
        peaks = np.maximum.reduceat(np.concatenate(self._peaks), first)
        return VerdictColumns(groups, np.concatenate((whole, *(sides[number] for number in self._side_of))), peaks, safe=peaks)

    def _judge(self, cells: Integers) -> None:
        if not cells.size:
            return
        bounded = self._stream.bounds(cells)
        groups, seconds = cells[0] >> SECOND_BITS, cells[0] & _SECOND
        first = first_places(groups)
        here = groups[first]
        near = np.zeros_like(here)
        if self._near is not None:
            near = np.add.reduceat((bounded.expected >= self._near[groups]).astype(np.int64), first)
        self._totals.append(np.stack((here, np.diff(first, append=len(groups)), near)))
        self._peaks.append(np.maximum.reduceat(bounded.upper, first))
        for throttled, side, runs in zip(self._throttled, self._sides, self._runs, strict=True):
            over = bounded.over(throttled.at(groups))
            counted = [np.add.reduceat(flags.astype(np.int64), first) for flags in over]
            earliest = [np.minimum.reduceat(np.where(flags, seconds, _NEVER), first) for flags in over[1:]]
            side.append(np.stack((*counted, *earliest)))
            runs.feed(groups, seconds, over[1])
