"""Clients that wait: what was measured with ordinary producers on real brokers, and laws of the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.closed_loop import PAUSE_MS, Played, Pulses, Sent, outcome_of, play, pulses, service_ms
from reconciler.traffic.kernels.exact_stream import judge_one
from reconciler.traffic.kernels.sampled_rate import Era, SampledRate, Window, throttle_ms
from tests.support.arrivals import PATTERNS, arrivals

WINDOW = Window()


def saturated(*, size: int, gap_ms: int, connections: int, seconds: int) -> Sent:
    """Clients that always have more to send: without a limit each sends one request every ``gap_ms``."""
    count = seconds * 1000 // gap_ms
    times = np.concatenate([np.arange(count) * gap_ms + number for number in range(connections)])
    owners = np.repeat(np.arange(connections), count)
    order = np.argsort(times, kind="stable")
    random = np.random.default_rng(7)
    return Sent(
        times_ms=times[order].astype(np.int64),
        records=random.integers(size * 9 // 10, size * 11 // 10, len(order)),
        overhead=np.full(len(order), 90),
        connections=owners[order],
    )


def by_second(played: Played, limit: float, seconds: int) -> np.ndarray:
    kept = played.charged_ms < seconds * 1000
    return np.bincount(played.charged_ms[kept] // 1000, weights=played.amounts[kept], minlength=seconds) / limit


CLIENTS = [
    pytest.param(100_000.0, {"size": 16_000, "gap_ms": 5, "connections": 1}, id="one producer"),
    pytest.param(200_000.0, {"size": 16_000, "gap_ms": 5, "connections": 3}, id="three connections"),
    pytest.param(1_000_000.0, {"size": 100_000, "gap_ms": 5, "connections": 3}, id="large requests"),
]


@pytest.mark.bulk
@pytest.mark.parametrize(("limit", "client"), CLIENTS)
@pytest.mark.parametrize("refuses", [False, True], ids=["produce", "fetch"])
def test_a_saturated_client_pulses(limit: float, client: dict[str, int], refuses: bool) -> None:
    sent = saturated(seconds=40, **client)
    played = play(sent, limit=limit, refuses=refuses, window=WINDOW)
    shares = by_second(played, limit, 40)
    # Ten times the limit within one or two seconds, then about a tenth of it for ten.
    assert 9.5 <= shares[:2].sum() <= 12.5
    assert shares[2:11].mean() < 0.35
    found = outcome_of(sent, played, limit=limit, window=WINDOW).pulses
    assert found is not None
    assert 8 <= found.of_limit <= 13
    assert found.length_s <= 2.5
    assert 10.5 <= found.every_s <= 13


@pytest.mark.bulk
@pytest.mark.parametrize(("limit", "client"), CLIENTS)
def test_forty_seconds_read_more_than_the_limit_and_twenty_minutes_do_not(limit: float, client: dict[str, int]) -> None:
    short, long = saturated(seconds=40, **client), saturated(seconds=1200, **client | {"gap_ms": 40})
    ratios = [
        by_second(play(sent, limit=limit, refuses=False, window=WINDOW), limit, seconds).mean()
        for sent, seconds in ((short, 40), (long, 1200))
    ]
    assert 1.07 <= ratios[0] <= 1.28
    # To two digits, as measured.
    assert 1.00 <= round(ratios[1], 2) <= 1.04


def test_a_wait_between_pulses_is_about_one_sample_and_a_request() -> None:
    sent = saturated(size=16_000, gap_ms=5, connections=1, seconds=40)
    played = play(sent, limit=100_000.0, refuses=False, window=WINDOW)
    early = played.throttled_ms[(played.done_ms < 40_000) & (played.throttled_ms > 1000)]
    assert np.median(early) == pytest.approx(1160, abs=30)


def test_throttles_of_the_open_loop_are_not_what_a_waiting_client_suffers() -> None:
    sent = saturated(size=16_000, gap_ms=5, connections=1, seconds=40)
    limit = 100_000.0
    played = play(sent, limit=limit, refuses=False, window=WINDOW)
    opened = judge_one(sent.times_ms, sent.records, sent.overhead, limit=limit, unrecords=False, window=WINDOW).throttle
    assert np.median(opened[opened > 0]) > 50 * np.median(played.throttled_ms[played.throttled_ms > 0])


def drawn(pattern: str, seed: int, count: int, connections: int) -> Sent:
    times, overhead, records = arrivals(pattern, seed, count)
    owners = np.random.default_rng(seed).integers(0, connections, count)
    return Sent(times_ms=times, records=records, overhead=overhead, connections=owners)


DRAWN = st.builds(drawn, st.sampled_from(PATTERNS), st.integers(0, 10**6), st.integers(1, 200), st.integers(1, 4))
WINDOWS = st.builds(
    Window, samples=st.sampled_from([2, 11, 20]), sample_ms=st.sampled_from([1000, 2000]), era=st.sampled_from(Era)
)


@settings(max_examples=150, deadline=None)
@given(DRAWN, st.floats(200, 1e6), WINDOWS)
def test_everything_produced_is_charged_once_and_nobody_overtakes_himself(sent: Sent, limit: float, window: Window) -> None:
    played = play(sent, limit=limit, refuses=False, window=window)
    assert played.complete
    assert played.amounts.sum() == (sent.records + sent.overhead).sum()
    assert np.all(np.diff(played.charged_ms) >= 0)
    assert np.all(played.done_ms >= sent.times_ms)
    service = service_ms(sent)
    for connection, quick in service.items():
        mine = sent.connections == connection
        done, throttled = played.done_ms[mine], played.throttled_ms[mine]
        assert np.all(np.diff(done) >= throttled[:-1] + quick + PAUSE_MS)


@settings(max_examples=100, deadline=None)
@given(DRAWN, st.floats(500, 1e6), WINDOWS)
def test_throttles_are_those_of_the_plain_sensor_at_the_times_played(sent: Sent, limit: float, window: Window) -> None:
    played = play(sent, limit=limit, refuses=False, window=window)
    sensor, asked = SampledRate(window), []
    for at, amount in zip(played.charged_ms.tolist(), played.amounts.tolist(), strict=True):
        sensor.record(amount, at)
        asked.append(max(0, throttle_ms(*sensor.measure(at), limit)))
    assert sorted(asked) == sorted(played.throttled_ms.tolist())


@settings(max_examples=80, deadline=None)
@given(DRAWN, st.integers(1, 4))
def test_under_a_limit_that_nobody_reaches_nobody_waits(sent: Sent, refusing: int) -> None:
    played = play(sent, limit=1e9, refuses=refusing == 1, window=WINDOW)
    found = outcome_of(sent, played, limit=1e9, window=WINDOW)
    assert (found.waited, found.wait_longest_s, found.pulses) == (0, 0.0, None)
    # A connection that was recorded faster than a quick answer allows falls behind a little.
    assert played.complete


@settings(max_examples=80, deadline=None)
@given(DRAWN, st.floats(5000, 1e6))
def test_what_is_refused_comes_again_and_nothing_is_lost(sent: Sent, limit: float) -> None:
    played = play(sent, limit=limit, refuses=True, window=WINDOW)
    if played.complete:
        fetched = played.amounts.sum() - sent.records.sum()
        # A fetch that was cut has its header once for each part.
        assert fetched >= sent.overhead.sum()
    # What is charged in eleven seconds is all in live samples, which span less than twelve.
    total = np.concatenate(([0], np.cumsum(played.amounts)))
    recent = total[1:] - total[np.searchsorted(played.charged_ms, played.charged_ms - WINDOW.expiry_ms, side="right")]
    assert np.all(recent <= limit * 12.001)


def test_pulses_are_told_by_their_middle() -> None:
    times = np.asarray([1000, 1500, 2200, 6000, 13_000, 13_400, 25_100, 25_200])
    amounts = np.asarray([400, 400, 200, 50, 500, 500, 600, 400])
    assert pulses(times, amounts, 100.0, longest_pause_s=22) == Pulses(of_limit=10.0, length_s=1.0, every_s=12.05)
    assert pulses(times[:3], amounts[:3], 100.0, longest_pause_s=22) is None
    assert pulses(np.arange(20) * 1000, np.full(20, 100), 100.0, longest_pause_s=22) is None
    assert pulses(times[:0], amounts[:0], 100.0, longest_pause_s=22) is None
