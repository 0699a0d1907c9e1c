"""Log-binned histograms of rates: 32 bins an octave, so a value read back is at most 2.2 % above the one counted."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Doubles, Integers

BINS: Final = 4096
_PER_OCTAVE: Final = 32
_ONE: Final = 512
"""The bin that begins at 1; the lowest begins at 2^-16 and holds everything below it too."""


NEARLY_ALL: Final = 0.999
"""The share of rates that a report's typical high rate is not below."""


def bins_of(rates: Doubles) -> Integers:
    """The bin of each rate, 0 to ``BINS`` - 1; rates are 0 or more."""
    with np.errstate(divide="ignore"):
        octaves = np.log2(rates)
    places = np.floor(np.clip(octaves, -_ONE / _PER_OCTAVE, (BINS - _ONE) / _PER_OCTAVE) * _PER_OCTAVE).astype(np.int64)
    return np.asarray(np.clip(places + _ONE, 0, BINS - 1), dtype=np.int64)


def top_of(one: int) -> float:
    """The upper edge of a bin: no rate in it is above."""
    return float(2.0 ** ((one + 1 - _ONE) / _PER_OCTAVE))


_TOPS: Final = np.asarray([top_of(one) for one in range(BINS)])


class Histograms:
    """A histogram of each group; groups come in batches, in order."""

    def __init__(self) -> None:
        self._packed: list[Integers] = []
        self._counts: list[Integers] = []

    def add(self, groups: Integers, rates: Doubles) -> None:
        """Count rates, each in its group."""
        packed, counts = np.unique(groups * BINS + bins_of(rates), return_counts=True)
        self._packed.append(packed)
        self._counts.append(counts)

    def quantiles(self, share: float) -> dict[int, float]:
        """For each group a rate that at least ``share`` (0 to 1) of its own do not exceed: the upper edge of their bin."""
        groups, rates = self.highest(share)
        return dict(zip(groups.tolist(), rates.tolist(), strict=True))

    def highest(self, share: float) -> tuple[Integers, Doubles]:
        """The same as groups, rising, and their rates."""
        if not self._packed:
            return np.empty(0, dtype=np.int64), np.empty(0)
        packed, where = np.unique(np.concatenate(self._packed), return_inverse=True)
        counts = np.zeros(len(packed), dtype=np.int64)
        np.add.at(counts, where, np.concatenate(self._counts))
        groups, bins = packed // BINS, packed % BINS
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        seen = np.cumsum(counts)
        before = np.repeat(seen[first] - counts[first], np.diff(first, append=len(groups)))
        total = np.repeat(np.add.reduceat(counts, first), np.diff(first, append=len(groups)))
        enough = np.flatnonzero(seen - before >= share * total)
        reached = enough[np.flatnonzero(np.diff(groups[enough], prepend=-1))]
        return groups[reached], _TOPS[bins[reached]]
