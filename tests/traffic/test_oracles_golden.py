"""Points printed by Kafka's own classes, for what other tests compare with them: plain oracles, and the kernels themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reconciler.traffic.kernels.exact_stream import judge_one
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.token_bucket import TokenBucket, play
from tests.support.kafka_quota_classes import Rate, Tokens
from tests.support.quota_oracles import throttle_ms
from tests.traffic.test_sampled_rate_golden import CASES, QUOTA

Points = list[tuple[int, int, float | None, int | None, int]]
FETCHES: Points = [
    (0, 9000, 900, None, 0),
    (200, 4000, 1274.5098039215686, 10200, 2800),
    (2200, 4000, 1274.5098039215686, 10200, 2800),
    (11500, 9000, 873.7864077669903, 10300, 0),
]
FETCH_CASES = [(f"D {era.name}", Window(era=era), FETCHES) for era in Era]
ALL = [*((*case, False) for case in CASES), *((*case, True) for case in FETCH_CASES)]
IDS = [case[0] for case in ALL]


@pytest.mark.parametrize(("window", "points", "fetch"), [case[1:] for case in ALL], ids=IDS)
def test_the_plain_oracle_is_kafkas_rate(window: Window, points: Points, fetch: bool) -> None:
    rate = Rate(window.samples, window.sample_ms, window.era is Era.OVERLAPPING)
    for at, amount, expected, width, throttle in points:
        rate.record(amount, at)
        measured, measured_width = rate.measure(at)
        assert expected is None or measured == pytest.approx(expected, rel=1e-9)
        assert width is None or measured_width == width
        assert throttle_ms(measured, measured_width, QUOTA) == throttle
        if fetch and throttle:
            rate.record(-amount, at)


@pytest.mark.parametrize(("window", "points", "fetch"), [case[1:] for case in ALL], ids=IDS)
def test_the_kernel_for_requests_is_kafkas_rate(window: Window, points: Points, fetch: bool) -> None:
    times, amounts = (np.asarray([point[place] for point in points], dtype=np.int64) for place in (0, 1))
    found = judge_one(times, amounts, np.zeros_like(amounts), limit=QUOTA, unrecords=fetch, window=window)
    assert found.throttle.tolist() == [point[4] for point in points]
    for rate, point in zip(found.rate.tolist(), points, strict=True):
        assert point[2] is None or rate == pytest.approx(point[2], rel=1e-9)


# Limit, samples, strict, and then ms, permits, admitted, throttle, tokens left.
BUCKETS: dict[str, tuple[Any, ...]] = {
    "K": (5, 100, True, [(0, 560, True, 0, -60), (0, 1, False, 12000, -60), (11999, 1, False, 1, -0.005), (12000, 1, True, 0, -1),
                         (12000, 1, False, 200, -1)]),
    "L": (10, 11, True, [(0, 100, True, 0, 10), (0, 20, True, 0, -10), (0, 1, False, 1000, -10), (500, 1, False, 500, -5),
                         (1000, 1, True, 0, -1), (1001, 1, False, 99, -0.99)]),
    "M": (10, 11, False, [(0, 100, True, 0, 10), (0, 20, True, 1000, -10), (0, 5, True, 1500, -15), (2000, 1, True, 0, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BUCKETS)
def test_the_plain_oracle_and_the_kernel_are_kafkas_bucket_of_tokens(name: str) -> None:
    limit, samples, strict, points = BUCKETS[name]
    start = 1_700_000_000_000
    oracle, bucket = Tokens(limit, samples, 1000), TokenBucket(limit, Window(samples=samples))
    for at, permits, admitted, throttle, left in points:
        take = oracle.strict if strict else oracle.permissive
        assert take(permits, start + at) == (admitted, throttle)
        assert oracle.tokens == pytest.approx(left, abs=1e-6)
        assert bucket.take(permits, start + at, strict=strict) is admitted
        assert bucket.tokens == pytest.approx(left, abs=1e-6)
        assert throttle in (0, bucket.throttle_ms())
    times, permits = (np.asarray([point[place] for point in points]) for place in (0, 1))
    found = play(times, permits, np.full(len(points), strict), float(limit), Window(samples=samples))
    assert (~found.refused).tolist() == [point[2] for point in points]
    assert found.throttle.tolist() == [point[3] for point in points]
