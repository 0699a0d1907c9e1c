"""A client that waits: one connection sends one request after the other, each as soon as the broker reads again.

The next request is charged at the earlier one's charge time, plus its throttle, plus what the round takes without any limit.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fidelity.comparison import quantile
from benchmarks.fidelity.prediction import Predicted
from reconciler.traffic.kernels.sampled_rate import SampledRate, throttle_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Sends:
    """What a client does when nobody limits it: its sizes in order, and how long a round takes (ms)."""

    sizes: tuple[int, ...]
    round_ms: float

    @classmethod
    def of(cls, rows: Sequence[Predicted]) -> Sends:
        """From a recording without quotas, of a client that is saturated."""
        times = [row.at_ms for row in rows]
        rounds = sorted(later - earlier for earlier, later in itertools.pairwise(times))
        # The first requests of a client are smaller: nothing had gathered yet.
        settled = rows[len(rows) // 10 :]
        return cls(sizes=tuple(int(row.amount) for row in settled), round_ms=max(1.0, quantile(rounds, 0.5)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Requests of one client: when each was charged (ms after the first), its bytes, its throttle."""

    at_ms: tuple[int, ...]
    amounts: tuple[int, ...]
    throttles_ms: tuple[int, ...]

    def total(self, seconds: float) -> int:
        return sum(amount for at, amount in zip(self.at_ms, self.amounts, strict=True) if at < seconds * 1000)

    def pulse_share(self, limit: float) -> float:
        """The share of its bytes in seconds with more than twice the limit."""
        by_second: dict[int, int] = defaultdict(int)
        for at, amount in zip(self.at_ms, self.amounts, strict=True):
            by_second[at // 1000] += amount
        whole = sum(by_second.values())
        return sum(amount for amount in by_second.values() if amount > 2 * limit) / whole if whole else 0.0


def waiting(sends: Sends, *, limit: float, seconds: float) -> Model:
    """What ``limit`` bytes a second make of such a client in its first ``seconds``."""
    sensor, now = SampledRate(), 0.0
    times: list[int] = []
    amounts: list[int] = []
    throttles: list[int] = []
    while now < seconds * 1000:
        amount = sends.sizes[len(times) % len(sends.sizes)]
        at = int(now)
        sensor.record(amount, at)
        pause = max(0, throttle_ms(*sensor.measure(at), limit))
        times.append(at)
        amounts.append(amount)
        throttles.append(pause)
        now += pause + sends.round_ms
    return Model(at_ms=tuple(times), amounts=tuple(amounts), throttles_ms=tuple(throttles))
