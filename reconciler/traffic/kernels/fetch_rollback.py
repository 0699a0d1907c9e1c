"""Requests that are taken back when they violate, as fetches are: what stayed charged decides about the next one.

That is sequential, so the loop does as little as can be: for every width of the window there is a largest sum of which Kafka
makes no throttle, and a request stays charged when the sum with it is not above that. Rates and throttles follow with vectors.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_totals import first_places
from reconciler.traffic.kernels.sampled_rate import throttle_ms
from reconciler.traffic.kernels.second_sums import Flags
from reconciler.traffic.kernels.throttles import UNCAPPED, throttles
from reconciler.traffic.kernels.timeline import Doubles, Integers

_INT_MAX: Final = 2**31 - 1
_EXACT: Final = 2**52
"""Far enough below where doubles stop to hold every whole number."""
_NEAR: Final = 3
"""A largest sum is so near to what its formula gives in doubles, or nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecording:
    """Requests of one group: ``before`` earlier ones that may still be charged, then those to be judged.

    ``charged``: their amounts; what is taken back is set to 0 in it. ``first``: for each to be judged the place in ``charged`` of
    the first request of its oldest live sample; ``window_ms``: how long its window is.
    """

    before: int
    charged: Integers
    first: Integers
    window_ms: Integers
    limit: float
    cap_ms: int | None

    def judge(self, highest: float) -> tuple[Doubles, Integers]:
        """The rate that was judged and the throttle of each. No rate is above ``highest``, what it would be if all stayed."""
        largest = self._largest_sums(highest)
        stays = self._one_by_one() if largest is None else self._by_sums(largest)
        amounts = self.charged[self.before :].copy()
        self.charged[self.before :] = np.where(stays, amounts, 0)
        sums = np.append(0, np.cumsum(self.charged))
        rate = (sums[self.before : -1] + amounts - sums[self.first]) / (self.window_ms / 1000.0)
        caps = np.full(len(amounts), UNCAPPED if self.cap_ms is None else self.cap_ms, dtype=np.int64)
        return rate, throttles(rate, self.window_ms, np.full(len(amounts), self.limit), caps)

    def _largest_sums(self, highest: float) -> Integers | None:
        """For each request the largest sum that is not throttled; ``None`` where there is no such thing.

        A throttle so long that it is narrowed to a negative one throttles nobody.
        """
        if self.limit <= 0 or highest * float(self.window_ms.max()) >= _EXACT:
            return None
        if self.cap_ms is None and (highest - self.limit) / self.limit * float(self.window_ms.max()) >= _INT_MAX:
            return None
        low, high = int(self.window_ms.min()), int(self.window_ms.max())
        if high - low < len(self.window_ms):
            # Cheaper than looking which of them there are.
            widths, of = np.arange(low, high + 1), self.window_ms - low
        else:
            widths, of = np.unique(self.window_ms, return_inverse=True)
        near = np.floor(self.limit * (widths / 1000.0) * (1 + 0.5 / widths)).astype(np.int64)
        candidates = near[:, None] + np.arange(-_NEAR, _NEAR + 1)
        wide = np.broadcast_to(widths[:, None], candidates.shape)
        rate = (candidates / (wide / 1000.0)).ravel()
        free = (throttles(rate, wide.ravel(), np.full(rate.shape, self.limit)) <= 0).reshape(candidates.shape)
        # Sums that are free come before those that are not.
        if not free[:, 0].all() or free[:, -1].any():
            return None
        return np.asarray((near - _NEAR - 1 + free.sum(axis=1))[of], dtype=np.int64)

    def _by_sums(self, largest: Integers) -> Flags:
        """Which ones stay charged."""
        amounts = self.charged[self.before :].tolist()
        spaces = (largest - self.charged[self.before :]).tolist()
        # Where everything that stays is, and the sums of it; the first one is of nothing.
        places, sums = list(range(self.before)), self._sums_before()
        begins = first_places(self.first)
        for begin, end, oldest in zip(
            begins.tolist(), [*begins[1:].tolist(), len(spaces)], self.first[begins].tolist(), strict=True
        ):
            earlier = sums[bisect_left(places, oldest)]
            inside = sums[-1] - earlier
            for place, space in enumerate(spaces[begin:end], begin):
                if inside <= space:
                    inside += amounts[place]
                    places.append(self.before + place)
                    sums.append(earlier + inside)
        stays = np.zeros(len(amounts), dtype=np.bool_)
        stays[np.asarray(places[self.before :], dtype=np.int64) - self.before] = True
        return stays

    def _one_by_one(self) -> Flags:
        """The same with the throttle of each."""
        sums, stays = self._sums_before(), []
        amounts = self.charged[self.before :].tolist()
        for amount, oldest, width in zip(amounts, self.first.tolist(), self.window_ms.tolist(), strict=True):
            total = sums[-1] + amount
            asked = throttle_ms((total - sums[oldest]) / (width / 1000.0), width, self.limit, self.cap_ms)
            # Only a delay above zero sends the fetch away empty: a violation that rounds to 0 ms stays charged.
            stays.append(asked <= 0)
            sums.append(total if asked <= 0 else sums[-1])
        return np.asarray(stays, dtype=np.bool_)

    def _sums_before(self) -> list[int]:
        return [0, *np.cumsum(self.charged[: self.before]).tolist()]
