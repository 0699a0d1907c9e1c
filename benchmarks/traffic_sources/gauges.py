"""What a broker's gauge shows at a moment, and a counter between two, computed from requests: with vectors, for any moment.

Kafka's sensor as in ``kernels.sampled_rate``, asked at moments without a request. One thing is left out: a scrape also resets
samples that are too old, so the next request finds a sample that began at the scrape. Real gauges show what that comes to.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Doubles, Integers, live_samples
from reconciler.traffic.kernels.second_sums import bounds

_WINDOW: Final = DEFAULT_WINDOW


@dataclass(frozen=True)
class Requests:
    """Of one quota group on one broker: times (ms) in order, and amounts."""

    times_ms: Integers
    amounts: Doubles

    @cached_property
    def rates(self) -> Doubles:
        """What the broker compares with the limit, at each request: the truth."""
        spans = live_samples(self.times_ms, _WINDOW)
        return (self._sums[1:] - self._sums[spans.first]) / (spans.window_ms / 1000)

    @cached_property
    def _sums(self) -> Doubles:
        return np.concatenate(([0.0], np.cumsum(self.amounts)))

    @cached_property
    def _starts(self) -> Integers:
        """The first request of each sample."""
        times, starts = self.times_ms.tolist(), [0]
        while (following := bisect_left(times, times[starts[-1]] + _WINDOW.sample_ms, starts[-1])) < len(times):
            starts.append(following)
        return np.asarray(starts, dtype=np.int64)

    def gauge(self, at_ms: Integers) -> Doubles:
        """The rate that the broker's metric has at these moments."""
        count = np.searchsorted(self.times_ms, at_ms, side="right")
        ends = np.append(self._starts[1:], len(self.times_ms))
        lasts = self.times_ms[ends - 1]
        oldest = np.searchsorted(lasts, at_ms - _WINDOW.expiry_ms, side="right")
        live = oldest < len(self._starts)
        first = self._starts[np.where(live, oldest, 0)]
        live &= first < count
        elapsed = at_ms - self.times_ms[first]
        missing = np.maximum(0, _WINDOW.samples - 1 - elapsed // _WINDOW.sample_ms)
        window_ms = np.maximum(1, elapsed + missing * _WINDOW.sample_ms)
        return np.where(live, (self._sums[count] - self._sums[first]) / (window_ms / 1000), 0.0)

    def means(self, at_ms: Integers) -> Doubles:
        """Amounts a second between each two of these moments, as the differences of a counter."""
        totals = self._sums[np.searchsorted(self.times_ms, at_ms, side="right")]
        return np.diff(totals) / (np.diff(at_ms) / 1000)

    def second_bounds(self) -> tuple[float, float]:
        """From sums of whole seconds: a rate that some request certainly had, and one that none exceeded."""
        seconds, place = np.unique(self.times_ms // 1000, return_inverse=True)
        found = bounds(seconds, np.bincount(place, weights=self.amounts).astype(np.int64))
        return float(found.lower.max()), float(found.upper.max())
