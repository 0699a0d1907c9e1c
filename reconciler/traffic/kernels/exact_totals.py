"""Totals of each group's requests: seconds with traffic, seconds with a throttled request, episodes, peaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers, Window


class SideVerdict(NamedTuple):
    """One group under one limit: seconds with traffic that are certainly, probably and possibly over, each among the next.

    A second of a replay is over when one of its requests is throttled, so that the three are equal. Of sums, ``throttled`` is 0,
    and ``first_ms``, since 1970, is that of the first second that is probably over, or where none is, possibly. An episode is a
    run of active seconds that are all probably over, without a pause after which nothing of before is left in the rate.
    """

    throttled: int = 0
    certain: int = 0
    expected: int = 0
    possible: int = 0
    first_ms: int | None = None
    longest_s: int = 0
    longest_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """One group; rates are amounts a second.

    ``active``: its seconds with traffic. ``near``: those whose rate reaches the rate that was asked about. ``peak``: the largest
    open-loop rate, of sums its upper bound. ``safe``: the smallest limit at which nothing is throttled, or its upper bound.
    """

    group: int
    active: int
    peak: float
    safe: float
    sides: tuple[SideVerdict, ...]
    near: int = 0


OF_ALL: Final = ("active", "near")
_SIDE: Final = len(SideVerdict._fields)


@dataclass(frozen=True, slots=True)
class VerdictColumns:
    """Verdicts as columns, one row a group, by number.

    ``counts`` has a row for each of ``OF_ALL``, then for each side those of ``SideVerdict``, with ``NONE`` for ``None``.
    """

    groups: Integers
    counts: Integers
    peaks: Doubles
    safe: Doubles

    @classmethod
    def none(cls, sides: int) -> VerdictColumns:
        """Return no group."""
        width = len(OF_ALL) + _SIDE * sides
        return cls(np.empty(0, dtype=np.int64), np.empty((width, 0), dtype=np.int64), np.empty(0), np.empty(0))

    def verdicts(self) -> Iterator[GroupVerdict]:
        """One by one."""
        rows = zip(self.groups.tolist(), self.counts.T.tolist(), self.peaks.tolist(), self.safe.tolist(), strict=True)
        for group, (active, near, *sides), peak, safe in rows:
            known: list[Any] = [None if count == NONE else count for count in sides]
            yield GroupVerdict(
                group=group,
                active=active,
                near=near,
                peak=peak,
                safe=safe,
                sides=tuple(SideVerdict(*known[begin : begin + _SIDE]) for begin in range(0, len(known), _SIDE)),
            )


class ReplayTotals:
    """Add batches in order. No second is in two of them."""

    def __init__(self, sides: int, window: Window, *, near: Doubles | None = None) -> None:
        """``near``: by group, from which rate on a second is near."""
        self._near = near
        pause = -(-window.expiry_ms // 1000)
        self._counts: list[Integers] = []
        self._peaks: list[Doubles] = []
        self._firsts: list[Integers] = []
        self._runs = tuple(Episodes(pause) for _ in range(sides))
        self._sides = sides

    def add(self, keys: Integers, rates: Doubles, throttled: Sequence[Flags]) -> tuple[Flags, ...]:
        """Keys, open-loop rates, and for each side which requests are throttled; returns which are in a second that is over."""
        groups, times = group_of(keys), time_of(keys)
        cell = np.flatnonzero((np.diff(groups, prepend=-1) != 0) | (np.diff(times // 1000, prepend=-1) != 0))
        cell_groups, seconds = groups[cell], times[cell] // 1000
        top = np.maximum.reduceat(rates, cell)
        over = [np.logical_or.reduceat(flags, cell) for flags in throttled]
        for runs, flags in zip(self._runs, over, strict=True):
            runs.feed(cell_groups, seconds, flags)
        request, second = first_places(groups), first_places(cell_groups)
        counts = [
            groups[request],
            _added(np.ones(len(cell), dtype=np.int64), second),
            np.zeros_like(second) if self._near is None else _added(top >= self._near[cell_groups], second),
        ]
        for flags, seconds_over in zip(throttled, over, strict=True):
            counts += [_added(flags, request), _added(seconds_over, second)]
        self._counts.append(np.stack(counts))
        self._peaks.append(np.maximum.reduceat(top, second))
        never = np.iinfo(np.int64).max
        self._firsts.append(
            np.stack([np.minimum.reduceat(np.where(flags, times, never), request) for flags in throttled])
            if throttled
            else np.empty((0, len(request)), dtype=np.int64)
        )
        lengths = np.diff(cell, append=len(keys))
        return tuple(np.repeat(flags, lengths) for flags in over)

    def columns(self) -> VerdictColumns:
        """One row a group, by number."""
        if not self._counts:
            return VerdictColumns.none(self._sides)
        counts, peaks = np.concatenate(self._counts, axis=1), np.concatenate(self._peaks)
        firsts = np.concatenate(self._firsts, axis=1)
        at = first_places(counts[0])
        groups, counts = counts[0, at], np.add.reduceat(counts[1:], at, axis=1)
        peaks, firsts = np.maximum.reduceat(peaks, at), np.minimum.reduceat(firsts, at, axis=1) if self._sides else firsts
        figures = [*counts[: len(OF_ALL)]]
        for number, runs in enumerate(self._runs):
            throttled, over = counts[len(OF_ALL) + 2 * number :][:2]
            first = np.where(throttled > 0, firsts[number], NONE)
            figures += [throttled, over, over, over, first, *runs.columns(groups)]
        # A sampled rate does not depend on the limit, and a broker throttles only above the limit.
        return VerdictColumns(groups, np.stack(figures), peaks, safe=peaks)


def _added(values: Flags | Integers, at: Integers) -> Integers:
    return np.asarray(np.add.reduceat(values.astype(np.int64), at), dtype=np.int64)


TIME_BITS: Final = 42
"""A key is the group's number, shifted by this, plus the charge time in ms since 1970."""
_TIME: Final = (1 << TIME_BITS) - 1
ORDER_BITS: Final = 46
MICRO_BITS: Final = 10
"""Of an order, the highest bits: the microseconds within the ms."""
_RUN_BITS: Final = 63 - ORDER_BITS


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests. ``order``, 0 to 2^46, decides between requests of one key; ``rows`` are numbers that the caller knows them by."""

    keys: Integers
    order: Integers
    records: Integers
    overhead: Integers
    rows: Integers

    def __len__(self) -> int:
        return len(self.keys)

    def then(self, other: Batch) -> Batch:
        """Both, one after the other."""
        return Batch(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in self.__slots__))

    def part(self, chosen: slice | Integers) -> Batch:
        """Return some of them."""
        return Batch(*(getattr(self, n)[chosen] for n in self.__slots__))

    def in_order(self) -> Batch:
        """The same, with requests of one key in their order. Keys must be rising."""
        again = self.keys[1:] == self.keys[:-1]
        if not again.any():
            return self
        # Only those that share a key, numbered by it, need sorting, as one number.
        shared = np.append(again, False)
        shared[1:] |= again
        places = np.flatnonzero(shared)
        run = np.cumsum(np.append(False, ~again)[places])
        order = np.arange(len(self))
        if run[-1] >= 1 << _RUN_BITS:
            order[places] = places[np.lexsort((self.order[places], run))]
        else:
            order[places] = places[np.argsort(run << ORDER_BITS | self.order[places], kind="stable")]
        return self.part(order)

    @classmethod
    def empty(cls) -> Batch:
        """Return nothing."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in range(5)))


def pack(groups: Integers, times_ms: Integers) -> Integers:
    """Keys of requests."""
    return (groups << TIME_BITS) | times_ms


def group_of(keys: Integers) -> Integers:
    """The groups of keys."""
    return np.asarray(keys >> TIME_BITS, dtype=np.int64)


def time_of(keys: Integers) -> Integers:
    """The times of keys, ms since 1970."""
    return np.asarray(keys & _TIME, dtype=np.int64)


def first_places(values: Integers | Doubles) -> Integers:
    """Return the places where a new value begins. ``values``: not empty, equal ones beside each other."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.flatnonzero(np.diff(values)) + 1))


NONE: Final = -1
"""In columns, a moment that there is not."""


class Episodes:
    """A run: cells of one group, all marked, with no unmarked one and no longer pause between them."""

    def __init__(self, longest_pause_s: int) -> None:
        self._pause = longest_pause_s
        self._best: dict[int, tuple[int, int]] = {}
        self._open: tuple[int, int, int] | None = None
        """Group, first and last second of the run that the next batch may continue."""

    def feed(self, groups: Integers, seconds: Integers, marked: Flags) -> None:
        """The next cells, in order."""
        places = np.flatnonzero(marked)
        if not len(places):
            self._close()
            return
        group, second = groups[places], seconds[places]
        fresh = (np.diff(places) > 1) | (np.diff(group) != 0) | (np.diff(second) > self._pause)
        first = np.concatenate((np.zeros(1, dtype=np.int64), np.flatnonzero(fresh) + 1))
        last = np.concatenate((first[1:] - 1, [len(places) - 1]))
        begins, ends, owners = second[first], second[last], group[first]
        if self._open is not None:
            owner, begin, end = self._open
            if places[0] == 0 and owners[0] == owner and begins[0] - end <= self._pause:
                begins[0] = begin
            else:
                self._close()
        self._open = None
        if places[-1] == len(groups) - 1:
            self._open = int(owners[-1]), int(begins[-1]), int(ends[-1])
            begins, ends, owners = begins[:-1], ends[:-1], owners[:-1]
        self._keep(owners, begins, ends)

    def columns(self, groups: Integers) -> Integers:
        """Return a row of lengths, 0 for none, and one of first seconds, of each group's longest run. Ends the stream.

        ``groups``: all that there are, rising. Both ends of a run count, and of several runs the earliest does.
        """
        self._close()
        longest = self._best
        runs = np.stack((np.zeros(len(groups), dtype=np.int64), np.full(len(groups), NONE)))
        if longest:
            places = np.searchsorted(groups, np.fromiter(longest, dtype=np.int64))
            runs[:, places] = np.asarray(list(longest.values()), dtype=np.int64).T
        return runs

    def _close(self) -> None:
        if self._open is not None:
            owner, begin, end = self._open
            self._open = None
            self._keep(*(np.array([value], dtype=np.int64) for value in (owner, begin, end)))

    def _keep(self, owners: Integers, begins: Integers, ends: Integers) -> None:
        lengths = ends - begins + 1
        order = np.lexsort((begins, -lengths, owners))
        owners, begins, lengths = owners[order], begins[order], lengths[order]
        for place in np.flatnonzero(np.diff(owners, prepend=-1)):
            owner, episode = int(owners[place]), (int(lengths[place]), int(begins[place]))
            known = self._best.get(owner)
            if known is None or (-episode[0], episode[1]) < (-known[0], known[1]):
                self._best[owner] = episode
