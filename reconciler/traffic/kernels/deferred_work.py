"""What a waiting client would wait: a throttled client sends later, so its work queues up behind the limit.

A leaky bucket of depth ``d`` seconds of the limit: ``Z`` is the work let in, in units, ``A`` = limit x time. With requests (or
cells) in order, ``Z_i = max(Z_(i-1), A_i - d x limit) + x_i`` and the wait of i is ``max(0, Z_(i-1) - A_i) / limit``. Unrolled,
that is a running sum and a running maximum: ``Z_i = C_i + max over j <= i of (A_j - d x limit - C_(j-1))``, C the running sum.

The real wait of one connection lies between those of depth 12 and of depth 0; depth 1 is the best single estimate. It does not
hold for coarse requests (one is worth more than a quarter of a second of the limit), and shows no pulses of a saturated client.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Doubles, Integers

DEPTHS: Final = (12.0, 1.0, 0.0)
"""Seconds of the limit: the least wait, the estimate, the most."""


class DeferredWork:
    """One group's work under one limit and depth; feed it in the order of time."""

    def __init__(self, limit: float, depth_s: float) -> None:
        self._limit = limit
        self._depth = depth_s
        self._done = -np.inf
        """Z after what was fed so far: the limit times when it will all be done, from the first second on."""
        self._origin: float | None = None

    def waits(self, seconds: Integers | Doubles, amounts: Integers) -> Doubles:
        """Seconds that each request waits. Times are in any seconds; amounts below 2^53 in all are exact."""
        if not len(amounts):
            return np.empty(0)
        if self._origin is None:
            self._origin = float(seconds[0])
        allowed = self._limit * (seconds.astype(np.float64) - self._origin)
        total = np.cumsum(amounts.astype(np.float64))
        before = total - amounts
        start = np.maximum.accumulate(allowed - self._depth * self._limit - before)
        done = total + np.maximum(start, self._done)
        earlier = np.concatenate(([self._done], done[:-1]))
        self._done = float(done[-1])
        return np.asarray(np.maximum(0.0, earlier - allowed) / self._limit)
