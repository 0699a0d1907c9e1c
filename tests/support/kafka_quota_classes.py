"""Kafka's own classes for quotas, written again from their description, event by event, with nothing of the product in them.

``Rate`` with its samples, the request quota (percent of a thread), the connection quota of an address, and the bucket of tokens
with its strict and permissive users. Slow and plain on purpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Sample:
    start: int
    last: int
    total: float = 0.0

    def empty(self, now: int) -> None:
        self.start, self.last, self.total = now, now, 0.0


@dataclass
class Rate:
    """``spare``: brokers from 3.8 on hold one sample more, and judge a sample's age by its last event."""

    samples: int
    length_ms: int
    spare: bool
    ring: list[Sample] = field(default_factory=list)
    current: int = 0

    def record(self, value: float, now: int) -> None:
        if not self.ring:
            self.ring.append(Sample(now, now))
        elif now - self.ring[self.current].start >= self.length_ms:
            self.current = (self.current + 1) % (self.samples + (1 if self.spare else 0))
            if self.current == len(self.ring):
                self.ring.append(Sample(now, now))
            else:
                self.ring[self.current].empty(now)
        sample = self.ring[self.current]
        sample.total += value
        sample.last = now

    def measure(self, now: int) -> tuple[float, int]:
        for sample in self.ring:
            if now - (sample.last if self.spare else sample.start) >= self.samples * self.length_ms:
                sample.empty(now)
        elapsed = now - min(sample.start for sample in self.ring)
        whole = elapsed // self.length_ms
        if whole < self.samples - 1:
            elapsed += (self.samples - 1 - whole) * self.length_ms
        elapsed = max(1, elapsed)
        return sum(sample.total for sample in self.ring) / (elapsed / 1000), elapsed


def bounded_throttle(rate: float, bound: float, window_ms: int, most_ms: int) -> int:
    """``QuotaUtils.boundedThrottleTime``: 0 within the bound."""
    if rate <= bound:
        return 0
    return min(most_ms, math.floor((rate - bound) / bound * window_ms + 0.5))


class RequestQuota:
    """``ClientRequestQuotaManager`` for one pair of tags: percent of a thread."""

    def __init__(self, percent: float, samples: int, length_ms: int, *, spare: bool) -> None:
        self.percent, self.length_ms = percent, length_ms
        self.rate = Rate(samples, length_ms, spare)

    def charge(self, nanoseconds: int, now: int) -> int:
        """The throttle in ms."""
        self.rate.record(nanoseconds * (100.0 / 1_000_000_000), now)
        measured, window = self.rate.measure(now)
        return bounded_throttle(measured, self.percent, window, self.length_ms)


class AddressQuota:
    """``ConnectionQuotas`` for one address: what is over is not counted."""

    def __init__(self, bound: float, samples: int, length_ms: int, *, spare: bool) -> None:
        self.bound, self.length_ms = bound, length_ms
        self.rate = Rate(samples, length_ms, spare)

    def accept(self, now: int) -> int:
        """The delay in ms after which the connection is closed; 0: it is accepted."""
        self.rate.record(1.0, now)
        measured, window = self.rate.measure(now)
        throttle = bounded_throttle(measured, self.bound, window, self.length_ms)
        if throttle > 0:
            self.rate.record(-1.0, now)
        return throttle


class Tokens:
    """``TokenBucket``: empty at the epoch, so full whenever it is first looked at."""

    def __init__(self, bound: float, samples: int, length_ms: int) -> None:
        self.bound, self.burst = bound, bound * samples * (length_ms / 1000)
        self.tokens, self.updated, self.recorded = 0.0, 0, 0

    def refill(self, now: int) -> None:
        if now - self.recorded > 3_600_000:
            # The broker has dropped the sensor, and makes a new one, whose bucket is of the epoch again.
            self.tokens, self.updated, self.recorded = 0.0, 0, now
        self.tokens = min(self.burst, self.tokens + self.bound * ((now - self.updated) / 1000))
        self.updated = now

    def take(self, permits: int, now: int) -> None:
        self.refill(now)
        self.recorded = now
        self.tokens = min(self.burst, self.tokens - permits)

    def throttle(self) -> int:
        return math.floor(-self.tokens / self.bound * 1000 + 0.5)

    def strict(self, permits: int, now: int) -> tuple[bool, int]:
        """``StrictControllerMutationQuota``: admitted or not, and the throttle of the answer in ms."""
        self.refill(now)
        if self.tokens < 0:
            return False, self.throttle()
        self.take(permits, now)
        return True, 0

    def permissive(self, permits: int, now: int) -> tuple[bool, int]:
        """``PermissiveControllerMutationQuota``: always admitted."""
        self.take(permits, now)
        return True, self.throttle() if self.tokens < 0 else 0
