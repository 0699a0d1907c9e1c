"""What a mean proves, against Kafka's own arithmetic request by request."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_verdicts import judge_metrics, proven_rate
from reconciler.model import PeakBound, Verdict
from reconciler.model.entity import Entity
from reconciler.model.metric_samples import MetricSemantics
from reconciler.resolution.resolver import Resolver
from reconciler.traffic import BacktestRequest
from reconciler.traffic.client_totals import MEAN_TOTALS
from reconciler.traffic.judging.evidence import Evidence, Mean, means_of
from reconciler.traffic.judging.grouping import Series, Tables
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Era, Window
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import LocalRows
from tests.support.backtest_reports import altered, provenance
from tests.support.quota_oracles import Arrival, replayed

KEY = "producer_byte_rate"
ALICE = Entity.of({"user": "alice"})
ORIGIN_MS = 1_700_000_000_000

HISTORY = provenance()
"""Its length decides about recommended values only."""

gaps = st.integers(min_value=0, max_value=4000) | st.integers(min_value=9_500, max_value=11_500) | st.just(60_000)
worlds = st.lists(st.tuples(gaps, st.integers(min_value=1, max_value=50_000)), min_size=1, max_size=60)


def arrivals_of(world: list[tuple[int, int]]) -> list[Arrival]:
    at, found = ORIGIN_MS, []
    for number, (gap, amount) in enumerate(world):
        at += gap
        found.append(Arrival(ts_us=at * 1000, broker=1, user="alice", client_id="app", kind="produce", amount=amount, tie=number))
    return found


def mean(amount: int, interval_us: int, *, kind: Kind = Kind.PRODUCE, client_id: str = "app") -> Mean:
    series = Series(broker=1, kind=kind, user="alice", client_id=client_id, requests=1, amount=amount)
    semantics = MetricSemantics.DELTA if interval_us else MetricSemantics.GAUGE
    return Mean(
        series=series,
        semantics=semantics,
        interval_us=interval_us,
        start_us=ORIGIN_MS * 1000,
        end_us=ORIGIN_MS * 1000 + interval_us,
    )


def judged(means: list[Mean], before: Tables | None, after: Tables) -> Evidence:
    """Of a day of history."""
    question = BacktestRequest(current=None, proposed={}, declared={})
    return judge_metrics(means, LocalRows(lambda _: []), question, (after,) if before is None else (before, after), HISTORY)


@settings(max_examples=150)
@given(worlds, st.integers(min_value=1, max_value=120), st.integers(min_value=0, max_value=30_000))
def test_a_mean_calls_certain_only_what_kafka_throttles(world: list[tuple[int, int]], length_s: int, begin_ms: int) -> None:
    arrivals = arrivals_of(world)
    start, end = (ORIGIN_MS + begin_ms) * 1000, (ORIGIN_MS + begin_ms) * 1000 + length_s * 1_000_000
    amount = sum(one.amount for one in arrivals if start < one.ts_us <= end)
    proven = proven_rate(mean(amount, length_s * 1_000_000), DEFAULT_WINDOW)
    for limit in (proven * 0.999, proven / 2):
        if limit > 0:
            assert replayed(arrivals, limit, spare=True).throttled > 0, "a limit below the proven rate throttles nobody"


def test_a_minute_at_a_fifth_above_the_limit_is_certain_and_a_minute_at_the_limit_is_not() -> None:
    tables = {KEY: Resolver({ALICE: {KEY: 1000.0}}, KEY)}
    (above,) = judged([mean(72_200, 60_000_000)], None, tables).verdicts
    assert (above.verdict, above.peak.bound, above.over.certain) == (Verdict.THROTTLED, PeakBound.LOWER, 1)
    assert above.peak.rate == pytest.approx(72_200 / 72, rel=1e-3)
    (at,) = judged([mean(60_000, 60_000_000)], None, tables).verdicts
    assert (at.verdict, at.over.first) == (Verdict.INCONCLUSIVE, None)
    assert "never its absence" in str(at.reason)


def test_a_longer_window_needs_a_larger_mean() -> None:
    short, long = Window(samples=11, sample_ms=1000), Window(samples=31, sample_ms=1000, era=Era.OVERLAPPING)
    one = mean(72_200, 60_000_000)
    assert proven_rate(one, short) == pytest.approx(72_200 / 72, rel=1e-3)
    assert proven_rate(one, long) == pytest.approx(72_200 / 92, rel=1e-3)


def test_what_no_sampled_rate_limits_and_what_would_wrap_is_never_certain() -> None:
    key = "controller_mutation_rate"
    tables = {key: Resolver({ALICE: {key: 1.0}}, key)}
    (one,) = judged([mean(10**6, 60_000_000, kind=Kind.MUTATION)], None, tables).verdicts
    assert one.verdict is Verdict.INCONCLUSIVE
    (tiny,) = judged([mean(10**9, 60_000_000)], None, {KEY: Resolver({ALICE: {KEY: 1.0}}, KEY)}).verdicts
    assert tiny.verdict is Verdict.POSSIBLE, "a broker's throttle wraps around at such a limit"


def test_the_largest_mean_of_each_client_and_length_is_kept() -> None:
    rows = pa.table(
        {
            "status": ["delta", "delta", "delta", "gauge"],
            "broker": pa.array([1, 1, 1, 1], type=pa.int32()),
            "kind": ["produce"] * 4,
            "user": ["alice"] * 4,
            "client_id": ["app", "app", "app", None],
            "interval_us": pa.array([60_000_000, 59_999_000, None, 15_000_000], type=pa.int64()),
            "ts_us": pa.array([120_000_000, 60_000_000, 7, 9], type=pa.int64()),
            "records": pa.array([5, 9, 100, 6], type=pa.int64()),
            "overhead": pa.array([0, 0, 0, 1], type=pa.int64()),
            "throttled": [False, True, False, True],
        }
    )
    unknown, known = means_of(LocalRows(lambda _: rows.to_batches()).total(MEAN_TOTALS))
    assert (known.series.amount, known.series.requests, known.start_us, known.end_us) == (9, 2, 0, 120_000_000)
    assert (known.series.throttled, known.semantics) == (1, MetricSemantics.DELTA)
    assert (unknown.series.client_id, unknown.interval_us, unknown.since_us) == (None, 0, 15_000_000)


def test_verdicts_of_requests_stay_unless_only_a_mean_proves_a_throttle() -> None:
    tables = {KEY: Resolver({ALICE: {KEY: 1000.0}}, KEY)}
    certain = judged([mean(72_200, 60_000_000)], {KEY: Resolver({}, KEY)}, tables)
    assert set(certain.rows) == {(ALICE, KEY)}
    (alone,) = certain.merge_into([])
    assert (alone.changed, alone.limits.before, alone.limits.after) == (True, (None,), 1000.0)
    (known,) = certain.merge_into([altered(alone, verdict=Verdict.CLEAR, requests=5)])
    assert (known.verdict, known.recorded.requests) == (Verdict.THROTTLED, 5)
    weak = judged([mean(1, 60_000_000)], None, tables)
    (kept,) = weak.merge_into([alone])
    assert kept == dataclasses.replace(alone, metrics=weak.verdicts[0].metrics)
