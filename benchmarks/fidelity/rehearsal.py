"""How many connections a run will need: the planned requests through the sampled rate, before anything is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.fidelity.arrivals import Arrival
from benchmarks.fidelity.scenarios import Quotas, limits_of
from benchmarks.fidelity.sender import Place
from reconciler.model import BucketName
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, SampledRate, throttle_ms

KEY_OF = {"produce": "producer_byte_rate", "fetch": "consumer_byte_rate"}
_SPARE = 6
_BUSY_S = 0.25
"""A connection waits for its answer, and is not trusted at once."""
_HEADERS = 100


def planned_throttles(arrivals: Sequence[Arrival], quotas: Quotas) -> list[int]:
    """Milliseconds for each, as far as the plan can tell: sizes are rough, and nothing takes time."""
    limits = limits_of(quotas)
    resolvers = {kind: limits.get(key) or Resolver(quotas, key) for kind, key in KEY_OF.items()}
    sensors: dict[tuple[str, int, BucketName], SampledRate] = defaultdict(SampledRate)
    found = []
    for one in arrivals:
        kind = one.client.kind
        resolved = resolvers[kind].resolve(one.client.user, one.client.client_id)
        if resolved.value is None:
            found.append(0)
            continue
        size = one.size if kind == "produce" else min(one.size, DEFAULT_WINDOW.fetch_cap(resolved.value))
        sensor, now = sensors[kind, one.broker, resolved.bucket], int(one.at_s * 1000)
        sensor.record(size + _HEADERS, now)
        throttle = max(0, throttle_ms(*sensor.measure(now), resolved.value))
        if throttle and kind == "fetch":
            sensor.record(-(size + _HEADERS), now)
        found.append(throttle)
    return found


def connections_needed(arrivals: Sequence[Arrival], throttles_ms: Sequence[int], *, longest_s: float = 0.0) -> dict[Place, int]:
    """The most that are busy or muted at once, by broker and user, and some more.

    ``longest_s``: what a request may be throttled by limits that cannot be rehearsed.
    """
    ends: dict[Place, list[tuple[float, int]]] = defaultdict(list)
    once: dict[Place, int] = defaultdict(int)
    for arrival, throttle in zip(arrivals, throttles_ms, strict=True):
        place = (arrival.broker, arrival.client.user)
        if arrival.client.kind == "produce" and arrival.client.acks == 0:
            once[place] += 1
            continue
        pause = max(longest_s, throttle * 1.5 / 1000) + _BUSY_S
        ends[place] += [(arrival.at_s, 1), (arrival.at_s + pause, -1)]
    return {place: once[place] + _SPARE + _most(ends[place]) * 5 // 4 for place in sorted({*ends, *once})}


def _most(changes: Sequence[tuple[float, int]]) -> int:
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
