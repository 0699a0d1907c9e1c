"""What a report advises: safe and recommended values with their margins, and present limits that stay."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model import BucketVerdict, Coverage, Verdict
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.quota import QuotaKey
from reconciler.text import recommended_text, safe_text
from reconciler.traffic.judging.findings import throttle_findings
from reconciler.traffic.judging.history_gaps import doubts_of
from reconciler.traffic.judging.recommendations import advice_for, margin_of
from tests.support.backtest_reports import START, altered, provenance, verdict


def advised(
    verdicts: list[BucketVerdict],
    *,
    days: float,
    brokers: int = 1,
    source: str = "",
    regrouped: Collection[tuple[object, ...]] = (),
) -> list[BucketVerdict]:
    """``verdicts`` with their recommendations, of a history of so many days of some brokers."""
    end = START + datetime.timedelta(days=days)
    coverage = tuple(Coverage(broker=broker, requests=1, start=START, end=end) for broker in range(1, brokers + 1))
    advice = advice_for(verdicts, provenance(coverage=coverage, source=source), regrouped)
    return [dataclasses.replace(one, advice=recommended) for one, recommended in zip(verdicts, advice, strict=True)]


@pytest.mark.parametrize(("days", "margin"), [(0.01, 0.5), (2, 0.5), (4, 0.25), (7, 0.15), (30, 0.15)])
def test_a_short_history_asks_for_a_larger_margin(days: float, margin: float) -> None:
    assert margin_of(days) == margin


def test_a_recommended_value_has_room_for_a_lost_broker_and_a_safe_one_does_not() -> None:
    def advice(**given: object) -> BucketVerdict:
        fields = {"peak": 1024.0 * 1024, **given}
        (found,) = advised([verdict(**fields)], days=100, brokers=3)
        return found

    found = advice()
    assert (found.advice.safe, found.advice.recommended) == (1024.0 * 1024, 1.75 * 1024**2)
    assert found.advice.margin == pytest.approx(0.725)
    assert "50 % because the traffic of a lost broker moves to the other 2" in str(found.advice.reason)
    assert advice(key="controller_mutation_rate", peak=100.0).advice.recommended == 120.0


MIB = 1024.0**2


def test_a_present_limit_that_throttled_nobody_is_kept_where_a_higher_value_would_be_recommended() -> None:
    def advice(*, regrouped: bool = False, **given: Any) -> BucketVerdict:
        one = verdict(**{"limits_before": (8 * MIB,), "peak": 6.2 * MIB, **given})
        (found,) = advised([one], days=1, brokers=3, regrouped=[one.group] if regrouped else [])
        return found

    for after in (8 * MIB, 4 * MIB, 16 * MIB):
        kept = advice(limit_after=after)
        assert (kept.advice.safe, kept.advice.recommended) == (6.25 * MIB, 8 * MIB)
        assert (recommended_text(kept), safe_text(kept)) == ("keep 8 MiB/s", "6.25 MiB/s")
        assert str(kept.advice.reason).startswith(
            "keep 8 MiB/s, which no recorded request is over. 6.25MiB is the smallest round value"
        )
        assert "14MiB adds 50 % because the history is 24 h long (15 % or more), and 50 % because" in str(kept.advice.reason)
    assert advice(peak=7.9 * MIB).advice.safe == 8 * MIB, "a rounded value above a limit that throttled nobody is not the least"
    changes: list[dict[str, Any]] = [
        {"limits_before": (6 * MIB,)},
        {"limits_before": (4 * MIB, 8 * MIB)},
        {"limits_before": (None,)},
        {"limits_before": ()},
        {"throttled_then": 1},
        {"regrouped": True},
    ]
    for changed in changes:
        raised = advice(**changed)
        assert (raised.advice.recommended, recommended_text(raised)) == (14 * MIB, "14 MiB/s"), changed
        assert "adds 50 % because the history is 24 h long (15 % or more), and 50 % because" in str(raised.advice.reason)
    below = advice(limits_before=(100 * MIB,))
    assert (below.advice.recommended, recommended_text(below)) == (14 * MIB, "14 MiB/s"), (
        "a lower value than the present one is advice"
    )
    held = advice(censored=True)
    assert (recommended_text(held), safe_text(held)) == ("at least 14 MiB/s", "at least 6.25 MiB/s")


def test_safe_and_recommended_values_of_mutations_come_from_the_smallest_limit_that_throttles_nothing() -> None:
    one = verdict(key="controller_mutation_rate", peak=450.0, least_safe=8.0)
    (found,) = advised([one], days=100)
    assert (found.advice.safe, found.advice.recommended) == (8.0, 9.5)
    (both, _) = advised([one, altered(one, broker=2, least_safe=None)], days=100)
    assert both.advice.safe == 450.0


@pytest.mark.parametrize(
    ("key", "smallest"), [("producer_byte_rate", 16_384.0), ("request_percentage", 1.0), ("controller_mutation_rate", 1.0)]
)
def test_a_recommended_value_is_never_too_small_to_be_of_use(key: str, smallest: float) -> None:
    (found,) = advised([verdict(key=key, peak=0.02)], days=100)
    assert found.advice.recommended == smallest
    assert found.advice.safe is not None
    assert found.advice.safe < smallest
    assert "Recommended values are" in str(found.advice.reason)
    (large,) = advised([verdict(key=key, peak=1e6)], days=100)
    assert "Recommended values are" not in str(large.advice.reason)


@settings(max_examples=200)
@given(st.sampled_from(list(QuotaKey)), st.floats(0.01, 1e12), st.integers(1, 9), st.floats(0.01, 400))
def test_recommended_values_are_never_below_what_is_safe_with_the_smallest_margin(
    key: QuotaKey, peak: float, brokers: int, days: float
) -> None:
    (found,) = advised([verdict(key=key.value, peak=peak)], days=days, brokers=brokers, source="recorder")
    assert found.advice.safe is not None
    assert found.advice.recommended is not None
    assert peak <= found.advice.safe
    loss = brokers / (brokers - 1) if brokers > 1 and key is not QuotaKey.CONTROLLER_MUTATION_RATE else 1.0
    assert found.advice.recommended >= peak * 1.15 * loss * (1 - 1e-12)


@pytest.mark.parametrize(
    ("source", "doubted"),
    [("request-log", True), ("log-cells", True), ("cells", False), ("normal-form", False), ("recorder", False)],
)
def test_logged_time_clears_no_limit_and_makes_no_value_safe(source: str, *, doubted: bool) -> None:
    doubt = doubts_of(provenance(source=source), HistoryNeeds(hours=8))
    for limit in (10.5, 1e6):
        one = verdict(key="request_percentage", peak=10.0, limit_after=limit)
        assert ("lacks the time of network threads" in str(doubt(one))) == (doubt(one) is not None) == doubted
        assert ("a broker plugin (kafka-quotas explain record-traffic)" in str(doubt(one))) == doubted
        (found,) = advised([one], days=100, source=source)
        assert (found.advice.safe is None, found.advice.recommended is None) == (doubted, doubted)
        assert ("no value is recommended: a request log lacks" in str(found.advice.reason)) == doubted
        over = dataclasses.replace(found, verdict=Verdict.THROTTLED)
        assert doubt(over) is None, "a throttle that was found stays one"
        (finding,) = throttle_findings([over], {}, of_requests=True)
        assert ("No safe value is known, because a request log lacks" in str(finding.message)) == doubted
    # A byte rate may be clear above its limit, where the throttle overflows.
    assert doubt(verdict(peak=1e9, limit_after=1.0)) is None


def test_one_value_with_its_margin_is_good_for_all_brokers() -> None:
    both = [verdict(peak=1000.0 * 1024, broker=1), verdict(peak=500.0, broker=2)]
    found = advised(both, days=10)
    assert {(one.advice.safe, one.advice.recommended, one.advice.margin) for one in found} == {
        (1000.0 * 1024, 1.125 * 1024**2, 0.15)
    }
    assert "1.125MiB adds 15 % because the history is 10 days long (15 % or more)" in (found[0].advice.reason or "")
    assert "lower bound" not in (found[0].advice.reason or "")


def test_values_of_censored_clients_are_lower_bounds() -> None:
    both = [verdict(), verdict(broker=2, active_seconds=2999)]
    found = advised([altered(one, censored=True) for one in both], days=10)
    assert "both are lower bounds" in (found[0].advice.reason or "")
    hits = [dataclasses.replace(one, verdict=Verdict.THROTTLED) for one in found]
    (finding,) = throttle_findings(hits, {}, of_requests=True)
    assert "is needed, since quotas throttled these clients when they were recorded" in finding.message
