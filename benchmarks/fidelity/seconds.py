"""Whole seconds: what the product proves from sums of a second, against what brokers did in it.

Proven is this: the largest sampled rate of a second lies between two bounds. So in a certain second somebody is throttled, and in
a clear one nobody. A throttled fetch leaves no debt: there, only the first certain second of a bucket is proven, in that somebody
was throttled by its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fidelity.comparison import CONSUME, BucketId, Pair
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW
from reconciler.traffic.kernels.second_sums import ThrottledRates, bounds

_BYTES = ("producer_byte_rate", CONSUME)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsFound:
    """How many seconds of all buckets were which, and how many of them the broker contradicted."""

    certain: int = 0
    possible: int = 0
    clear: int = 0
    certain_unthrottled: int = 0
    clear_throttled: int = 0

    def __add__(self, other: SecondsFound) -> SecondsFound:
        return SecondsFound(
            certain=self.certain + other.certain,
            possible=self.possible + other.possible,
            clear=self.clear + other.clear,
            certain_unthrottled=self.certain_unthrottled + other.certain_unthrottled,
            clear_throttled=self.clear_throttled + other.clear_throttled,
        )


def judged_seconds(some: Sequence[Pair]) -> SecondsFound:
    """Of all byte rate buckets, by the charge times of ``some``: those requests' own seconds, wherever the clock stood."""
    parts: dict[BucketId, list[Pair]] = defaultdict(list)
    for one in some:
        if one.bucket.key in _BYTES:
            parts[one.bucket].append(one)
    return sum((_judged(part) for part in parts.values()), SecondsFound())


def _judged(part: Sequence[Pair]) -> SecondsFound:
    amounts: dict[int, int] = defaultdict(int)
    throttled: dict[int, bool] = defaultdict(bool)
    for one in part:
        second = int(one.at_ms // 1000)
        amounts[second] += int(one.amount)
        throttled[second] |= one.observed_ms > 0
    seconds = sorted(amounts)
    found = bounds(np.asarray(seconds, dtype=np.int64), np.asarray([amounts[s] for s in seconds], dtype=np.int64))
    limit = part[0].limit
    limits = ThrottledRates.of(np.full(len(seconds), limit), None, DEFAULT_WINDOW)
    certain, _, possible = (flags.tolist() for flags in found.over(limits))
    observed = [throttled[second] for second in seconds]
    if part[0].bucket.key == CONSUME:
        cut = max(one.amount for one in part) >= DEFAULT_WINDOW.fetch_cap(limit)
        certain = [False] * len(seconds) if cut else _first_only(certain)
        before = [any(observed[: place + 1]) for place in range(len(seconds))]
    else:
        before = observed
    return SecondsFound(
        certain=sum(certain),
        possible=sum(p and not c for p, c in zip(possible, certain, strict=True)),
        clear=sum(not p for p in possible),
        certain_unthrottled=sum(c and not b for c, b in zip(certain, before, strict=True)),
        clear_throttled=sum(o and not p for o, p in zip(observed, possible, strict=True)),
    )


def _first_only(flags: Sequence[bool]) -> list[bool]:
    first = flags.index(True) if True in flags else -1
    return [place == first for place in range(len(flags))]
