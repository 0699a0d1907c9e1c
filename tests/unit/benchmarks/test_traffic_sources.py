"""The benchmark of traffic sources: its model of gauges, its clients, its margins, and the page that has its figures."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.traffic_sources.clients import SHAPES, arrivals, quotas, senders
from benchmarks.traffic_sources.figures import read_figures, write_figures
from benchmarks.traffic_sources.gauges import Requests
from benchmarks.traffic_sources.real_run import Gauge, RealRun, Throttled
from benchmarks.traffic_sources.signals import signals
from benchmarks.traffic_sources.simulated import COUNTER, GAUGE, margin_figure, proven_share, ratios
from benchmarks.traffic_sources.tables import page_text
from benchmarks.traffic_sources.traces import Trace, synthetic
from reconciler.traffic.kernels.sampled_rate import SampledRate

PAGE = Path(__file__).parents[3] / "docs" / "traffic-sources.md"

rows = st.lists(st.tuples(st.integers(0, 60_000), st.integers(1, 1000)), min_size=1, max_size=60)
moments = st.lists(st.integers(0, 80_000), min_size=1, max_size=20)


def requests(some: list[tuple[int, int]]) -> Requests:
    times, amounts = zip(*sorted(some), strict=True)
    return Requests(np.asarray(times), np.asarray(amounts, dtype=np.float64))


@given(rows, moments)
def test_a_gauge_is_what_the_plain_model_measures_at_that_moment(some, at_ms):
    traffic, sensor, expected = requests(some), SampledRate(), []
    waiting = list(zip(traffic.times_ms.tolist(), traffic.amounts.tolist(), strict=True))
    for at in sorted(at_ms):
        while waiting and waiting[0][0] <= at:
            time, amount = waiting.pop(0)
            sensor.record(amount, time)
        expected.append(copy.deepcopy(sensor).measure(at)[0])

    assert traffic.gauge(np.asarray(sorted(at_ms))) == pytest.approx(expected)


@given(rows, moments)
def test_a_proof_by_gauges_or_counters_never_exceeds_the_highest_rate(some, at_ms):
    traffic = requests(some)
    gauge = traffic.gauge(np.asarray(at_ms)).max()
    ends = np.arange(0, 80_000, 15_000)

    assert gauge * proven_share(GAUGE, 15) <= traffic.rates.max() * (1 + 1e-9)
    assert traffic.means(ends).max() * proven_share(COUNTER, 15) <= traffic.rates.max() * (1 + 1e-9)


def test_a_burst_between_two_scrapes_has_an_infinite_ratio():
    burst = Trace(family="bursty", name="once", seconds=120.0, requests=requests([(61_000, 5000)]))

    found = ratios([burst], phases=4, lengths_s=(120.0,))

    assert 1.0 <= min(found[GAUGE, "bursty", 5, 120.0]["once"]) < max(found[GAUGE, "bursty", 5, 120.0]["once"]) < 1.2
    assert max(found[GAUGE, "bursty", 60, 120.0]["once"]) == math.inf


def test_a_margin_is_safe_in_99_of_100_runs_and_its_interval_contains_it():
    by_group = {f"group-{number}": [1.0 + number / 100] * 10 for number in range(100)}

    found = margin_figure((GAUGE, "steady", 15, 86_400.0), by_group, (0.5, 0.95))

    assert found.safe == pytest.approx(1.99)
    assert found.low <= found.safe <= found.high
    assert (found.groups, found.runs, found.false_proven) == (100, 1000, 0)
    assert found.proven[0.5] == pytest.approx(0.67)
    assert found.above[0.95] == pytest.approx(0.06)


def test_synthetic_clients_are_the_same_every_time():
    first, again = ([trace.requests.amounts.sum() for trace in synthetic(2, seconds=300.0)] for _ in range(2))

    assert first == again
    assert len(set(first)) == 2 * len(SHAPES)


def test_clients_of_a_run_have_a_limit_each_and_only_some_are_throttled_by_theirs():
    some = senders(1)
    limited = [one for one in some if one.limit is not None]

    assert len(quotas(some)) == len(limited) + 1
    assert {one.client.user.removeprefix("limited-").partition("-")[0] for one in limited} == set(SHAPES)
    script = arrivals(some, seconds=20, seed=1)
    assert [one.number for one in script] == list(range(1, len(script) + 1))
    assert script == arrivals(some, seconds=20, seed=1)


GROUP = ("producer_byte_rate", "limited-steady-0", "app")


def _run(gauges: tuple[Gauge, ...], throttled: tuple[Throttled, ...]) -> RealRun:
    return RealRun(
        seed=1, started=0.0, seconds=300.0, requests=(), throttled=throttled, gauges=gauges, limits={GROUP: 100.0}
    )  # fmt: skip


def _gauge(measure: str, *samples: tuple[float, float]) -> Gauge:
    key, user, client_id = ("producer_byte_rate", "", "") if measure == "queue_size" else GROUP
    return Gauge(every_s=15, key=key, measure=measure, user=user, client_id=client_id, samples=samples)


def test_signals_are_found_during_their_episode_and_false_elsewhere():
    throttled = tuple(
        Throttled(key=GROUP[0], user=GROUP[1], client_id=GROUP[2], at_ms=at_ms, throttle_ms=4000) for at_ms in (10_000, 200_000)
    )
    gauges = (
        _gauge("throttle_time", (5.0, math.nan), (65.0, 4000.0), (120.0, 4000.0), (215.0, 4000.0)),
        _gauge("queue_size", (5.0, 0.0), (12.0, 1.0), (120.0, 1.0), (215.0, 0.0)),
        _gauge("byte_rate", (5.0, 0.0), (15.0, 110.0), (120.0, 99.0), (215.0, 0.0)),
    )

    found = {one.signal: one for one in signals([_run(gauges, throttled)], 15)}

    counts = {name: (one.groups_found, one.episodes, one.episodes_found, one.false_samples) for name, one in found.items()}
    assert counts == {
        "throttle-time": (1, 2, 2, 1),
        "queue-size": (1, 2, 1, 1),
        "byte-rate, proof": (0, 2, 0, 0),
        "byte-rate above the limit": (1, 2, 1, 0),
    }


def test_the_page_has_the_figures_of_the_last_run(tmp_path):
    text = PAGE.read_text(encoding="utf-8")

    assert page_text(text, read_figures()) == text
    write_figures(read_figures(), tmp_path / "figures.json")
    assert read_figures(tmp_path / "figures.json") == read_figures()


def test_no_verdict_and_no_proof_of_the_figures_is_wrong():
    figures = read_figures()

    assert [one for one in figures.verdicts if one.wrong] == []
    assert [one for one in figures.margins if one.false_proven] == []
    assert [one for one in figures.signals if one.signal == "throttle-time" and one.false_samples] == []
