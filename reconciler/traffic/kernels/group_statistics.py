"""Statistics of each group over batches that may end anywhere: its longest run of marked seconds, and quantiles of its rates.

Histograms are log-binned, 32 bins an octave, so a value read back is at most 2.2 % above the one counted.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers

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

    def longest(self) -> dict[int, tuple[int, int]]:
        """Length (both ends counted) and first second of each group's longest run, the earliest of several. Ends the stream."""
        self._close()
        return self._best

    def columns(self, groups: Integers) -> Integers:
        """The same for rising ``groups``, all that there are: a row of lengths, 0 for none, and one of first seconds."""
        longest = self.longest()
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


BINS: Final = 4096
_PER_OCTAVE: Final = 32
_ONE: Final = 512
"""The bin that begins at 1; the lowest begins at 2^-16 and counts everything below it, too."""


_TABLE: Final = 16
"""A table of all bins may have so many places for each rate; else rates are sorted."""


NEARLY_ALL: Final = 0.999
"""The share of rates that a report's typical high rate is not below."""


def bins_of(rates: Doubles) -> Integers:
    """The bin of each rate, 0 to ``BINS`` - 1; rates are 0 or more."""
    with np.errstate(divide="ignore"):
        octaves = np.log2(rates)
    places = np.floor(np.clip(octaves, -_ONE / _PER_OCTAVE, (BINS - _ONE) / _PER_OCTAVE) * _PER_OCTAVE).astype(np.int64)
    return np.asarray(np.clip(places + _ONE, 0, BINS - 1), dtype=np.int64)


def top_of(number: int) -> float:
    """The upper edge of a bin: no rate in it is above."""
    return float(2.0 ** ((number + 1 - _ONE) / _PER_OCTAVE))


_TOPS: Final = np.asarray([top_of(number) for number in range(BINS)])


class Histograms:
    """A histogram of each group; groups come in batches, in order."""

    def __init__(self) -> None:
        self._packed: list[Integers] = []
        self._counts: list[Integers] = []

    def add(self, groups: Integers, rates: Doubles) -> None:
        """Count rates, each in its group; ``groups`` rise."""
        if not len(groups):
            return
        first = np.diff(groups, prepend=groups[0] - 1) != 0
        known, codes = groups[first], (np.cumsum(first) - 1) * BINS + bins_of(rates)
        if len(known) * BINS <= _TABLE * len(codes):
            every = np.bincount(codes, minlength=len(known) * BINS)
            distinct = np.flatnonzero(every)
            counts = every[distinct]
        else:
            distinct, counts = np.unique(codes, return_counts=True)
        self._packed.append(known[distinct // BINS] * BINS + distinct % BINS)
        self._counts.append(counts)

    def quantiles(self, share: float) -> dict[int, float]:
        """For each group a rate that at least ``share`` (0 to 1) of its own do not exceed: the upper edge of their bin."""
        groups, rates = self.highest(share)
        return dict(zip(groups.tolist(), rates.tolist(), strict=True))

    def highest(self, share: float) -> tuple[Integers, Doubles]:
        """The same as groups, rising, and their rates."""
        if not self._packed:
            return np.empty(0, dtype=np.int64), np.empty(0)
        packed, counts = np.concatenate(self._packed), np.concatenate(self._counts)
        # In order but for the groups on the borders of batches.
        order = np.argsort(packed, kind="stable")
        begins = np.flatnonzero(np.diff(packed[order], prepend=-1))
        packed, counts = packed[order][begins], np.add.reduceat(counts[order], begins)
        groups, bins = packed // BINS, packed % BINS
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        seen = np.cumsum(counts)
        before = np.repeat(seen[first] - counts[first], np.diff(first, append=len(groups)))
        total = np.repeat(np.add.reduceat(counts, first), np.diff(first, append=len(groups)))
        enough = np.flatnonzero(seen - before >= share * total)
        reached = enough[np.flatnonzero(np.diff(groups[enough], prepend=-1))]
        return groups[reached], _TOPS[bins[reached]]
