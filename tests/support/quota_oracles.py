"""What recorded requests come to under limits, told plainly: event by event with Kafka's classes, second by second in a loop.
Nothing of the product is in here, so that it can be held against it."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.kafka_quota_classes import Rate, bounded_throttle

SAMPLES, SAMPLE_MS = 11, 1000
_LONG_MAX = 2**63 - 1
ROUNDING = 1e-12
"""Within so much of a limit nothing is said."""
_LONGEST_MS = 2**31 - 1
"""A longer throttle does not fit into Kafka's int."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request; ``tie`` orders those of one microsecond."""

    ts_us: int
    broker: int
    user: str
    client_id: str
    kind: str
    amount: int
    tie: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Throttled requests and seconds that have one, the first of them in ms; ``None``: never."""

    throttled: int
    seconds: frozenset[int]
    first_ms: int | None


def replayed(arrivals: Sequence[Arrival], limit: float | None, *, spare: bool) -> Exact:
    """Kafka's own arithmetic: a throttled fetch is taken back, and none asks the log for more than ten seconds of its limit."""
    rate = Rate(SAMPLES, SAMPLE_MS, spare)
    hit: list[int] = []
    for one in _in_order(arrivals) if limit is not None else ():
        assert limit is not None
        now, fetch = one.ts_us // 1000, one.kind == "fetch"
        charged = min(one.amount, int(limit * (SAMPLES - 1))) if fetch else one.amount
        rate.record(charged, now)
        if throttle_ms(*rate.measure(now), limit) > 0:
            hit.append(now)
            if fetch:
                rate.record(-charged, now)
    return Exact(throttled=len(hit), seconds=frozenset(now // 1000 for now in hit), first_ms=hit[0] if hit else None)


def open_loop(arrivals: Sequence[Arrival], *, spare: bool) -> dict[int, float]:
    """The largest rate that Kafka measures in each second, with nobody held back."""
    rate, largest = Rate(SAMPLES, SAMPLE_MS, spare), defaultdict[int, float](float)
    for one in _in_order(arrivals):
        now = one.ts_us // 1000
        rate.record(one.amount, now)
        largest[now // 1000] = max(largest[now // 1000], rate.measure(now)[0])
    return dict(largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Which seconds are over a limit, by what their sums prove; and the longest episode with its first second."""

    certain: tuple[int, ...]
    expected: tuple[int, ...]
    possible: tuple[int, ...]
    longest: tuple[int, int | None]


def by_seconds(arrivals: Sequence[Arrival], limit: float | None, *, spare: bool) -> Seconds:
    """S11/12, S11/10.5 and max(S13/11, S12/10); of brokers before 3.8 S10/11, S11/10.5 and S12/10. A produce or fetch limit."""
    found: dict[str, list[int]] = {"certain": [], "expected": [], "possible": []}
    longest: tuple[int, int | None] = (0, None)
    began: int | None = None
    last = 0
    wraps_at = math.inf if limit is None else limit * (1 + _LONGEST_MS / (SAMPLE_MS * (SAMPLES + 1 if spare else SAMPLES)))
    for second, lower, rate, upper in bounds(arrivals, spare=spare):
        over = {
            "certain": limit is not None and lower > limit * (1 + ROUNDING) and upper < wraps_at * (1 - ROUNDING),
            "expected": limit is not None and limit < rate < wraps_at and upper > limit * (1 - ROUNDING),
            "possible": limit is not None and upper > limit * (1 - ROUNDING),
        }
        for name, flag in over.items():
            if flag:
                found[name].append(second)
        if not over["expected"]:
            began = None
        elif began is None or second - last > SAMPLES:
            began = second
        if began is not None and second - began + 1 > longest[0]:
            longest = (second - began + 1, began)
        last = second
    return Seconds(**{name: tuple(seconds) for name, seconds in found.items()}, longest=longest)


def bounds(arrivals: Sequence[Arrival], *, spare: bool) -> list[tuple[int, float, float, float]]:
    """Second, lower bound, estimate and upper bound of each second that has a request."""
    sums = defaultdict[int, int](int)
    for one in arrivals:
        sums[one.ts_us // 1_000_000] += one.amount
    seconds = sorted(sums)

    def back(second: int, count: int) -> int:
        since = bisect.bisect_right(seconds, second - count)
        return sum(sums[at] for at in seconds[since : bisect.bisect_right(seconds, second)])

    found = []
    for second in seconds:
        lower = back(second, 11) / 12 if spare else back(second, 10) / 11
        upper = max(back(second, 13) / 11, back(second, 12) / 10) if spare else back(second, 12) / 10
        found.append((second, lower, back(second, 11) / 10.5, upper))
    return found


def _in_order(arrivals: Sequence[Arrival]) -> list[Arrival]:
    return sorted(arrivals, key=lambda one: (one.ts_us, one.tie))


def throttle_ms(rate: float, window_ms: int, limit: float) -> int:
    """Without a cap, and narrowed to 32 bits, as a broker does: far too much is a negative delay, which holds nobody back."""
    whole = bounded_throttle(rate, limit, window_ms, _LONG_MAX)
    return (whole + 2**31) % 2**32 - 2**31
