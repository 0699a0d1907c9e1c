"""In which minutes a file has lines of a broker, as a segment's document keeps them: ranges, so that a month stays short."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import numpy as np

from reconciler.traffic.kernels.timeline import Integers

MINUTE_US: Final = 60_000_000
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""The first and the last minute since 1970 of each run of minutes, rising."""


def ranges_of(minutes: Collection[int]) -> Ranges:
    """The runs of minutes in any order, some of them several times."""
    rising = np.unique(np.fromiter(minutes, dtype=np.int64, count=len(minutes)))
    if not len(rising):
        return ()
    ends = np.flatnonzero(np.diff(rising) > 1)
    first, last = np.concatenate((rising[:1], rising[ends + 1])), np.concatenate((rising[ends], rising[-1:]))
    return tuple(zip(first.tolist(), last.tolist(), strict=True))


def minutes_in(ranges: Iterable[tuple[int, int]]) -> Integers:
    """Every minute of the ranges, rising, each once; they may overlap."""
    spread = [np.arange(first, last + 1, dtype=np.int64) for first, last in ranges]
    return np.unique(np.concatenate(spread)) if spread else np.empty(0, dtype=np.int64)


def ranges_of_hours(hours: Iterable[int]) -> Ranges:
    """Whole hours since 1970, as documents of format 1.0 keep them."""
    return ranges_of([minute for hour in hours for minute in range(hour * 60, hour * 60 + 60)])
