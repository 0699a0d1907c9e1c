"""What samples of several series of one quota group prove together, against Kafka's own arithmetic request by request."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.exact_totals import pack
from reconciler.traffic.kernels.sample_counts import LONGEST_TAIL, count_samples, proven_by_runs
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Era, Window
from tests.support.command import invoke
from tests.support.gauge_parquet import Client, Shape, steady, write_gauges
from tests.support.kafka_quota_classes import Rate
from tests.support.manifests import cluster, quotas
from tests.support.quota_oracles import throttle_ms

ORIGIN_MS = 1_700_000_000_000
MIB = 2**20
windows = st.builds(
    Window,
    samples=st.sampled_from([2, 3, 11]),
    sample_ms=st.sampled_from([500, 1000, 2000]),
    era=st.sampled_from(list(Era)),
)
EVERY = st.sampled_from([1000, 5000, 11_000, 12_000, 15_000])
Request = tuple[int, int, int]
"""Time, amount, and the number of the series."""


def keys_of(times_ms: list[int], group: int = 0) -> Any:
    return pack(np.full(len(times_ms), group, dtype=np.int64), np.asarray(times_ms, dtype=np.int64))


def requests_of(seed: int, count: int) -> list[Request]:
    """Steady, in bursts, and with silences about as long as a window: what tells the ends of windows apart."""
    draw = random.Random(seed)
    pauses = draw.choice([(0, 300), (0, 2500), (900, 1100), (9_900, 12_100)])
    at, requests = ORIGIN_MS, []
    for _ in range(count):
        at += draw.randint(*(pauses if draw.random() < 0.9 else (0, 13_000)))
        requests.append((at, draw.choice([1, 1000, draw.randint(1, 50_000)]), draw.randrange(3)))
    return requests


def scraped(requests: list[Request], window: Window, every_ms: int, jitter_ms: int, seed: int) -> tuple[list[int], list[int]]:
    """Moments, and the rates of all series at each, rounded down."""
    draw, pending = random.Random(seed), list(requests)
    sensors = [Rate(window.samples, window.sample_ms, spare=window.era is Era.OVERLAPPING) for _ in range(3)]
    moments, totals, at = [], [], ORIGIN_MS + draw.randrange(every_ms)
    while at <= requests[-1][0] + 15_000:
        while pending and pending[0][0] <= at:
            now, amount, series = pending.pop(0)
            sensors[series].record(amount, now)
        moments.append(at)
        totals.append(sum(int(sensor.measure(at)[0]) for sensor in sensors if sensor.ring))
        at += max(1, every_ms + draw.randint(-jitter_ms, jitter_ms))
    return moments, totals


def throttles(requests: list[Request], window: Window, limit: float) -> bool:
    rate = Rate(window.samples, window.sample_ms, spare=window.era is Era.OVERLAPPING)
    for now, amount, _ in requests:
        rate.record(amount, now)
        if throttle_ms(*rate.measure(now), limit) > 0:
            return True
    return False


@settings(max_examples=400, deadline=None)
@given(
    windows,
    st.integers(0, 2**32),
    st.integers(1, 150),
    st.sampled_from([1000, 5000, 11_000, 12_000, 15_000]),
    st.integers(0, 3000),
)
def test_each_limit_below_what_a_run_proves_throttles_a_request_of_the_group(
    window: Window, seed: int, count: int, every_ms: int, jitter_ms: int
) -> None:
    requests = requests_of(seed, count)
    moments, totals = scraped(requests, window, every_ms, jitter_ms, seed)
    proven = float(proven_by_runs(keys_of(moments), np.asarray(totals, dtype=np.int64), window).max())
    for limit in (proven * 0.999, proven / 2):
        if limit > 0.01:
            assert throttles(requests, window, limit)


@pytest.mark.parametrize(
    ("moments", "every_s", "times"), [(1, 15, 2.4), (8, 15, 1.61), (128, 15, 1.51), (128, 5, 1.51), (128, 30, 2.4)]
)
def test_a_limit_is_proven_too_low_at_a_known_multiple_of_it(moments: int, every_s: int, times: float) -> None:
    keys = keys_of([ORIGIN_MS + 1000 * every_s * number for number in range(moments * (3 if every_s == 5 else 1))])
    totals = np.full(len(keys), 1_000_000, dtype=np.int64)
    assert 1_000_000 / proven_by_runs(keys, totals, DEFAULT_WINDOW).max() == pytest.approx(times, abs=0.006)


def test_a_run_never_goes_on_in_another_group() -> None:
    moments = [ORIGIN_MS + 15_000 * number for number in range(4)]
    both = np.concatenate([keys_of(moments, 0), keys_of([at + 60_000 for at in moments], 1)])
    totals = np.asarray([1_000_000] * 4 + [0] * 4, dtype=np.int64)
    alone = proven_by_runs(keys_of(moments), totals[:4], DEFAULT_WINDOW)
    assert proven_by_runs(both, totals, DEFAULT_WINDOW).tolist() == [*alone.tolist(), 0, 0, 0, 0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(0, 1000))
def test_runs_do_not_depend_on_where_pieces_are_cut(sizes: list[int], seed: int) -> None:
    assert sum(sizes) < 3 * LONGEST_TAIL
    draw = np.random.default_rng(seed)
    keys = keys_of([ORIGIN_MS + 15_000 * number for number in range(sum(sizes))], 3)
    amounts = draw.integers(0, 1000, len(keys))
    cuts = np.cumsum(sizes)[:-1]
    limits = np.full(4, np.nan)

    def proven(pieces: list[list[Any]]) -> int:
        rows = [row for batch in count_samples(pieces, limits, limits, DEFAULT_WINDOW) for row in batch.to_pylist()]
        return max(row["proven"] for row in rows)

    whole = proven([[keys, amounts]])
    parts = [list(part) for part in zip(np.split(keys, cuts), np.split(amounts, cuts), strict=True)]
    assert proven(parts) <= whole
    if len(keys) <= LONGEST_TAIL:
        assert proven(parts) == whole


LIMIT = 10 * MIB
HIGH = steady(23 * MIB // 2)
ONCE = steady(MIB, peaks={7: 23 * MIB // 2})


@pytest.mark.parametrize(
    ("clients", "verdict"),
    [
        ({("alice", "app", 1): HIGH, ("alice", "etl", 1): HIGH}, "throttled"),
        ({("alice", "app", 1): ONCE, ("alice", "etl", 1): ONCE}, "possible"),
        ({("alice", "app", 1): steady(8 * MIB), ("alice", "etl", 1): steady(7 * MIB)}, "possible"),
        ({("alice", "app", 1): steady(9 * MIB), ("alice", "etl", 1): steady(8 * MIB)}, "throttled"),
        ({("alice", "app", 1): steady(MIB, peaks={7: 121 * MIB // 10})}, "throttled"),
    ],
    ids=["2.3 in ten samples", "2.3 in one sample", "1.5 in ten samples", "1.7 in ten samples", "one series at 1.21"],
)
def test_several_series_of_a_group_convict_by_their_run(tmp_path: Path, clients: dict[Client, Shape], verdict: str) -> None:
    write_gauges(tmp_path / "gauges", clients, every_s=15, samples=10)
    (tmp_path / "quotas").mkdir()
    text = cluster() + "---\n" + quotas(({"user": "alice"}, {"producer_byte_rate": LIMIT}))
    (tmp_path / "quotas" / "quotas.yaml").write_text(text)
    done = invoke("backtest", "quotas", "--traffic", "gauges", "--format", "json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    (row,) = done.json()["verdicts"]
    assert (row["verdict"], row["metrics"]["samples"]) == (verdict, 10)
