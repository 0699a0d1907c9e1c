"""The vector kernel against the plain model of Kafka's rate, on several patterns of arrivals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.sampled_rate import Era, SampledRate, Window, throttle_ms
from reconciler.traffic.kernels.timeline import open_loop_rates, replay_fetch, replay_produce
from tests.support.arrivals import PATTERNS, arrivals

WINDOWS = [Window(), Window(samples=2, sample_ms=3000), Window(samples=1, sample_ms=1000), Window(era=Era.DROPPING)]


def model(times: np.ndarray, amounts: np.ndarray, limit: float, window: Window, *, fetch: bool) -> tuple[list[float], list[int]]:
    sensor, rates, throttles = SampledRate(window), [], []
    for at, amount in zip(times.tolist(), amounts.tolist(), strict=True):
        sensor.record(amount, at)
        rate, width = sensor.measure(at)
        rates.append(rate)
        throttles.append(throttle_ms(rate, width, limit))
        if fetch and throttles[-1] > 0:
            sensor.record(-amount, at)
    return rates, throttles


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PATTERNS), st.sampled_from(WINDOWS), st.integers(0, 10**6), st.integers(1, 400), st.floats(0.05, 1.5))
def test_produce_and_fetch_equal_the_model_at_every_request(
    pattern: str, window: Window, seed: int, count: int, share: float
) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    amounts = overhead + records
    limit = max(1.0, float(np.round(share * open_loop_rates(times, amounts, window).max())))

    produce = replay_produce(times, amounts, limit, window)
    assert (produce.rate.tolist(), produce.throttle.tolist()) == model(times, amounts, limit, window, fetch=False)

    fetch = replay_fetch(times, overhead, records, limit, window)
    capped = overhead + np.minimum(records, window.fetch_cap(limit))
    assert (fetch.rate.tolist(), fetch.throttle.tolist()) == model(times, capped, limit, window, fetch=True)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PATTERNS), st.sampled_from(WINDOWS), st.integers(0, 10**6), st.integers(1, 300))
def test_nobody_is_throttled_at_the_open_loop_peak(pattern: str, window: Window, seed: int, count: int) -> None:
    times, overhead, records = arrivals(pattern, seed, count)
    peak = float(np.ceil(open_loop_rates(times, overhead + records, window).max())) or 1.0
    assert not replay_produce(times, overhead + records, peak, window).throttle.any()
    assert not replay_fetch(times, overhead, records, peak, window).throttle.any()


def test_times_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="order"):
        replay_produce(np.array([2, 1]), np.array([1, 1]), 1.0, Window())


def test_limits_of_zero_and_below_do_as_kafka_does() -> None:
    times, amounts = np.array([0, 500]), np.array([10, 10])
    for limit in (0.0, -5.0, 0.001, float("nan")):
        assert (
            replay_produce(times, amounts, limit, Window()).throttle.tolist()
            == model(times, amounts, limit, Window(), fetch=False)[1]
        )
