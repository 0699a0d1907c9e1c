"""Controller mutations: Kafka's token bucket (KIP-599), permissive and strict, and what is proven without playing it.

Source: Kafka's ``TokenBucket`` and ``ControllerMutationQuotaManager``. A bucket holds at most ``limit x samples x W`` tokens, is
full at first, and refills by ``limit`` a second. Permissive (older API versions) takes the tokens whatever is left; strict
refuses a topic while the tokens are below zero, and a refused one takes none. A request of several topics asks for each in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Window, java_round
from reconciler.traffic.kernels.timeline import Doubles, Integers


class TokenBucket:
    """The plain model. Times are whole milliseconds and never go back; amounts are partitions."""

    __slots__ = ("_burst", "_limit", "_since_ms", "tokens")

    def __init__(self, limit: float, window: Window = DEFAULT_WINDOW) -> None:
        self._limit = limit
        self._burst = limit * window.samples * (window.sample_ms / 1000)
        self._since_ms: int | None = None
        self.tokens = self._burst

    def take(self, amount: float, now_ms: int, *, strict: bool) -> bool:
        """Ask for one topic's partitions; ``False`` when it is refused."""
        self._refill(now_ms)
        if strict and self.tokens < 0:
            return False
        self.tokens = min(self._burst, self.tokens - amount)
        return True

    def throttle_ms(self) -> int:
        """What the answer says, as of the last ``take``: 0 while tokens are left."""
        return java_round(-self.tokens / self._limit * 1000) if self.tokens < 0 else 0

    def _refill(self, now_ms: int) -> None:
        if self._since_ms is not None:
            self.tokens = min(self._burst, self.tokens + self._limit * ((now_ms - self._since_ms) / 1000))
        self._since_ms = now_ms


@dataclass(frozen=True, slots=True)
class Mutations:
    """What happened to each topic of each request, in the order given."""

    admitted: np.ndarray[tuple[int], np.dtype[np.bool_]]
    throttle: Integers
    """ms, as of the topic."""


def play(times_ms: Integers, amounts: Integers, strict: Integers, limit: float, window: Window = DEFAULT_WINDOW) -> Mutations:
    """One bucket, topic by topic. ``strict``: 1 where the API version refuses, 0 where it only delays."""
    bucket = TokenBucket(limit, window)
    admitted, throttles = [], []
    for at, amount, refuses in zip(times_ms.tolist(), amounts.tolist(), strict.tolist(), strict=True):
        admitted.append(bucket.take(amount, at, strict=bool(refuses)))
        throttles.append(bucket.throttle_ms())
    return Mutations(np.asarray(admitted, dtype=np.bool_), np.asarray(throttles, dtype=np.int64))


def permissive_tokens(times_ms: Integers, amounts: Integers, limit: float, window: Window = DEFAULT_WINDOW) -> Doubles:
    """Tokens left after each topic when every one is taken: two running operations in place of a loop.

    A strict bucket never has fewer, so where the tokens before a topic are not below zero here, it is not refused there; and it
    refuses something exactly when this one is below zero before some topic.
    """
    if not len(times_ms):
        return np.empty(0)
    allowed = limit * ((times_ms - times_ms[0]) / 1000.0)
    total = np.cumsum(amounts.astype(np.float64))
    burst = limit * window.samples * (window.sample_ms / 1000)
    done = total + np.maximum.accumulate(allowed - burst - (total - amounts))
    return np.asarray(allowed - done, dtype=np.float64)
