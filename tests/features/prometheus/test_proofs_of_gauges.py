"""What samples of a broker's own rate prove, and how they join what requests show."""

from __future__ import annotations

import dataclasses

from reconciler.features.prometheus.metric_verdicts import judge_metrics
from reconciler.model import Verdict
from reconciler.model.entity import Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic import BacktestRequest
from reconciler.traffic.judging.evidence import Evidence, Gauge
from reconciler.traffic.judging.grouping import Series, Tables
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import LocalRows
from tests.support.backtest_reports import altered, provenance

KEY = "producer_byte_rate"
ALICE = Entity.of({"user": "alice"})
ORIGIN_MS = 1_700_000_000_000

HISTORY = provenance()
"""Its length decides about recommended values only."""


def gauge(amount: int, *, kind: Kind = Kind.PRODUCE, client_id: str = "app") -> Gauge:
    series = Series(broker=1, kind=kind, user="alice", client_id=client_id, requests=1, amount=amount)
    return Gauge(series=series, start_us=ORIGIN_MS * 1000, end_us=ORIGIN_MS * 1000, since_us=5_000_000)


def judged(gauges: list[Gauge], before: Tables | None, after: Tables) -> Evidence:
    """Of a day of history."""
    question = BacktestRequest(current=None, proposed={}, declared={})
    return judge_metrics(gauges, LocalRows(lambda _: []), question, (after,) if before is None else (before, after), HISTORY)


def test_what_no_sampled_rate_limits_and_what_would_wrap_is_never_certain() -> None:
    key = "controller_mutation_rate"
    tables = {key: Resolver({ALICE: {key: 1.0}}, key)}
    (one,) = judged([gauge(10**6, kind=Kind.MUTATION)], None, tables).verdicts
    assert one.verdict is Verdict.INCONCLUSIVE
    (tiny,) = judged([gauge(10**9)], None, {KEY: Resolver({ALICE: {KEY: 1.0}}, KEY)}).verdicts
    assert tiny.verdict is Verdict.POSSIBLE, "a broker's throttle wraps around at such a limit"


def test_verdicts_of_requests_stay_unless_only_a_sample_proves_a_throttle() -> None:
    tables = {KEY: Resolver({ALICE: {KEY: 1000.0}}, KEY)}
    certain = judged([gauge(1_210)], {KEY: Resolver({}, KEY)}, tables)
    assert set(certain.rows) == {(ALICE, KEY)}
    (alone,) = certain.merge_into([])
    assert (alone.changed, alone.limits.before, alone.limits.after) == (True, (None,), 1000.0)
    (known,) = certain.merge_into([altered(alone, verdict=Verdict.CLEAR, requests=5)])
    assert (known.verdict, known.recorded.requests) == (Verdict.THROTTLED, 5)
    weak = judged([gauge(1)], None, tables)
    (kept,) = weak.merge_into([alone])
    assert kept == dataclasses.replace(alone, metrics=weak.verdicts[0].metrics)
