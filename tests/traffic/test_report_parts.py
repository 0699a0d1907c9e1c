"""What a report says beside its counts: who shared limits, what to write, gaps, fits, capacity, rates over time."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.backtest import BucketName, BucketVerdict, Coverage, Fit, Regrouped, Verdict
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity
from reconciler.model.quota import QuotaKey
from reconciler.model.quota_use import NotJudged, UnjudgedChange
from reconciler.resolution.resolver import Resolver
from reconciler.text import recommended_text, safe_text
from reconciler.traffic.columns.group_index import KeyIndex
from reconciler.traffic.judging.by_seconds import (
    Grid,
    Lines,
    Points,
    by_group,
    groups_to_plot,
    plot_points,
    points_of,
    rate_series,
)
from reconciler.traffic.judging.findings import report_findings, throttle_findings
from reconciler.traffic.judging.grouping import Grouping, Series, group_series
from reconciler.traffic.judging.history_gaps import add_gaps, doubts_of, holes_of, may_have_gaps
from reconciler.traffic.judging.judged_quotas import unjudged_changes, unjudged_findings, unused_quotas
from reconciler.traffic.judging.recommendations import capacity_uses, margin_of, quota_fits, recommended_fields
from reconciler.traffic.judging.verdicts import regroupings
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Integers
from reconciler.traffic.kernels.second_sums import ThrottledRates, bounds, keys_of
from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import SegmentFolder, minutes_in, ranges_of
from reconciler.traffic.shuffle.rows import LocalRows
from tests.support.backtest_reports import END, START, provenance, verdict

KEY = "producer_byte_rate"
ANYONE, PAIRS, APP = (
    Entity.of({"user": DEFAULT}),
    Entity.of({"user": DEFAULT, "client-id": DEFAULT}),
    Entity.of({"client-id": "a"}),
)
HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)


def grouped(before: dict[Entity, float] | None, after: dict[Entity, float], *, broker: int = 1) -> Grouping:
    def tables(quotas: dict[Entity, float]) -> dict[str, Resolver]:
        return {KEY: Resolver({entity: {KEY: value} for entity, value in quotas.items()}, KEY)}

    return group_series(clients(broker), None if before is None else tables(before), tables(after))


def clients(broker: int = 1) -> list[Series]:
    pairs = (("alice", "a"), ("alice", "b"), ("bob", "a"))
    return [
        Series(broker=broker, kind=Kind.PRODUCE, user=u, client_id=c, requests=9, amount=9, key=n)
        for n, (u, c) in enumerate(pairs, start=100)
    ]


def test_a_bucket_that_splits_says_from_which() -> None:
    found = regroupings(grouped({ANYONE: 5.0}, {PAIRS: 9.0}))
    alice = BucketName(user="alice", client_id="")
    assert found[0] == found[1] == (Regrouped.SPLIT, (alice,))
    assert 2 not in found, "bob has one client before and after"


def test_buckets_that_merge_are_named() -> None:
    found = regroupings(grouped({PAIRS: 9.0}, {ANYONE: 5.0}))
    names = tuple(BucketName(user="alice", client_id=c) for c in ("a", "b"))
    assert found == {0: (Regrouped.MERGED, names)}


def test_clients_that_change_places_are_regrouped() -> None:
    # Before, client-id a is one bucket of alice and bob, and alice's b another; then alice's are one and bob's another.
    assert regroupings(grouped({APP: 5.0, Entity.of({"client-id": "b"}): 6.0}, {ANYONE: 7.0})) == {
        0: (Regrouped.REGROUPED, (BucketName(user="", client_id="a"), BucketName(user="", client_id="b"))),
        1: (Regrouped.SPLIT, (BucketName(user="", client_id="a"),)),
    }


@pytest.mark.parametrize(
    ("before", "after"), [({}, {ANYONE: 5.0}), ({ANYONE: 5.0}, {}), ({ANYONE: 5.0}, {ANYONE: 9.0}), (None, {})]
)
def test_who_is_unlimited_shares_nothing(before: dict[Entity, float] | None, after: dict[Entity, float]) -> None:
    assert regroupings(grouped(before, after)) == {}


def test_limits_of_the_recorded_buckets_add_up_on_each_broker() -> None:
    (use,) = capacity_uses(grouped({PAIRS: 4.0}, {Entity.of({"user": "alice"}): 9.0}), {KEY: 100.0})
    assert (use.broker, use.before, use.after, use.buckets, use.unlimited) == (1, 12.0, 9.0, 1, 1)
    (unknown,) = capacity_uses(grouped(None, {ANYONE: 9.0}), {KEY: 10.0})
    assert (unknown.before, unknown.after) == (None, 18.0)
    assert capacity_uses(grouped(None, {ANYONE: 9.0}), {"consumer_byte_rate": 10.0}) == ()


def test_a_sum_above_the_capacity_is_a_finding() -> None:
    uses = capacity_uses(grouped(None, {ANYONE: 9.0}), {KEY: 10.0})
    (found,) = report_findings((), uses)
    assert (found.id, found.severity) == ("limits-above-capacity", "info")
    assert "add up to 18 B/s, 1.8 times its capacity of 10 B/s." in found.message
    assert list(report_findings((), capacity_uses(grouped(None, {ANYONE: 9.0}), {KEY: 18.0}))) == []


def advised(verdicts: list[BucketVerdict], **history: Any) -> list[BucketVerdict]:
    """``verdicts`` with their recommendations. ``history``: as ``recommended_fields`` takes it."""
    fields = recommended_fields(verdicts, **history)
    return [dataclasses.replace(one, **recommended) for one, recommended in zip(verdicts, fields, strict=True)]


def used(share: float, **given: object) -> BucketVerdict:
    return verdict(**{"limit_after": 100.0, "peak": 100 * share, "p999": 100 * share, **given})


@pytest.mark.parametrize(
    ("share", "fit"), [(0.81, Fit.NEAR), (1.0, Fit.NEAR), (0.8, None), (0.2, None), (0.19, Fit.LOOSE), (1.01, None)]
)
def test_a_quota_is_near_above_four_fifths_and_loose_below_one(share: float, fit: Fit | None) -> None:
    assert [one.fit for one in quota_fits([used(share)])] == ([fit] if fit else [])


def test_a_quota_is_as_full_as_its_fullest_bucket() -> None:
    (fit,) = quota_fits([used(0.1, broker=1), used(0.9, broker=2), used(0.3, broker=3)])
    assert (fit.fit, fit.broker, fit.buckets, fit.share) == (Fit.NEAR, 2, 3, 0.9)
    assert quota_fits([used(0.9), used(0.9, broker=2, verdict=Verdict.THROTTLED)]) == ()
    assert quota_fits([used(0.1, limit_after=None), used(0.1, active_seconds=0)]) == ()


@pytest.mark.parametrize(("days", "margin"), [(0.01, 0.5), (2, 0.5), (4, 0.25), (7, 0.15), (30, 0.15)])
def test_a_short_history_asks_for_a_larger_margin(days: float, margin: float) -> None:
    assert margin_of(days) == margin


def test_a_recommended_value_has_room_for_a_lost_broker_and_a_safe_one_does_not() -> None:
    def advice(**given: object) -> BucketVerdict:
        fields = {"peak": 1024.0 * 1024, "p999": 1024.0 * 1024, **given}
        (found,) = advised([verdict(**fields)], days=100, brokers=3)
        return found

    found = advice()
    assert (found.safe, found.recommended) == (1024.0 * 1024, 1.75 * 1024**2)
    assert found.margin == pytest.approx(0.725)
    assert "50 % because the traffic of a lost broker moves to the other 2" in str(found.recommended_reason)
    assert advice(key="controller_mutation_rate", peak=100.0).recommended == 120.0


MIB = 1024.0**2


def test_a_present_limit_that_throttled_nobody_is_kept_where_a_higher_value_would_be_recommended() -> None:
    def advice(*, regrouped: bool = False, **given: Any) -> BucketVerdict:
        one = verdict(
            **{"limits_before": (8 * MIB,), "limit_before": 8 * MIB, "peak": 6.2 * MIB, "p999": 6.0 * MIB, **given},
        )
        (found,) = advised([one], days=1, brokers=3, regrouped=[one.group] if regrouped else [])
        return found

    for after in (8 * MIB, 4 * MIB, 16 * MIB):
        kept = advice(limit_after=after)
        assert (kept.safe, kept.recommended, kept.margin_reason) == (6.25 * MIB, 8 * MIB, None)
        assert (recommended_text(kept), safe_text(kept)) == ("keep 8 MiB/s", "6.25 MiB/s")
        assert str(kept.recommended_reason).startswith(
            "keep 8 MiB/s, which throttled no recorded request. 6.25MiB is the smallest round value"
        )
        assert "14MiB adds 50 % because the history is 24 h long (15 % or more), and 50 % because" in str(kept.recommended_reason)
    assert advice(peak=7.9 * MIB).safe == 8 * MIB, "a rounded value above a limit that throttled nobody is not the least"
    changes: list[dict[str, Any]] = [
        {"limits_before": (6 * MIB,), "limit_before": 6 * MIB},
        {"limits_before": (4 * MIB, 8 * MIB)},
        {"limits_before": (None,)},
        {"limits_before": ()},
        {"throttled_then": 1},
        {"regrouped": True},
    ]
    for changed in changes:
        raised = advice(**changed)
        assert (raised.recommended, recommended_text(raised)) == (14 * MIB, "14 MiB/s"), changed
        assert str(raised.margin_reason).startswith("50 % because the history is 24 h long (15 % or more), and 50 % because")
    below = advice(limits_before=(100 * MIB,), limit_before=100 * MIB)
    assert (below.recommended, recommended_text(below)) == (14 * MIB, "14 MiB/s"), "a lower value than the present one is advice"
    held = advice(censored=True)
    assert (recommended_text(held), safe_text(held)) == ("at least 14 MiB/s", "at least 6.25 MiB/s")


def test_safe_and_recommended_values_of_mutations_come_from_the_smallest_limit_that_throttles_nothing() -> None:
    one = verdict(key="controller_mutation_rate", peak=450.0, p999=450.0, least_safe=8.0)
    (found,) = advised([one], days=100)
    assert (found.safe, found.safe_p999, found.recommended) == (8.0, 8.0, 9.5)
    (both, _) = advised([one, dataclasses.replace(one, broker=2, least_safe=None)], days=100)
    assert both.safe == 450.0


@pytest.mark.parametrize(
    ("key", "smallest"),
    [("producer_byte_rate", 16_384.0), ("request_percentage", 1.0), ("controller_mutation_rate", 1.0)],
)
def test_a_recommended_value_is_never_too_small_to_be_of_use(key: str, smallest: float) -> None:
    (found,) = advised([verdict(key=key, peak=0.02, p999=0.02)], days=100)
    assert found.recommended == smallest
    assert found.safe is not None
    assert found.safe < smallest
    assert "Recommended values are" in str(found.recommended_reason)
    (large,) = advised([verdict(key=key, peak=1e6, p999=1e6)], days=100)
    assert "Recommended values are" not in str(large.recommended_reason)


@settings(max_examples=200)
@given(st.sampled_from(list(QuotaKey)), st.floats(0.01, 1e12), st.integers(1, 9), st.floats(0.01, 400))
def test_recommended_values_are_never_below_what_is_safe_with_the_smallest_margin(
    key: QuotaKey, peak: float, brokers: int, days: float
) -> None:
    (found,) = advised([verdict(key=key.value, peak=peak)], days=days, brokers=brokers, source="recorder")
    assert found.safe is not None
    assert found.recommended is not None
    assert peak <= found.safe
    loss = brokers / (brokers - 1) if brokers > 1 and key is not QuotaKey.CONTROLLER_MUTATION_RATE else 1.0
    assert found.recommended >= peak * 1.15 * loss * (1 - 1e-12)


@pytest.mark.parametrize(
    ("source", "doubted"), [("request-log", True), ("cells", True), ("normal-form", False), ("recorder", False)]
)
def test_logged_time_clears_no_limit_and_makes_no_value_safe(source: str, *, doubted: bool) -> None:
    doubt = doubts_of(provenance(source=source), HistoryNeeds(hours=8))
    for limit in (10.5, 1e6):
        one = verdict(key="request_percentage", peak=10.0, limit_after=limit)
        assert ("lacks the time of network threads" in str(doubt(one))) == (doubt(one) is not None) == doubted
        assert ("the recorder, the broker plugin of docs/recorder.md" in str(doubt(one))) == doubted
        (found,) = advised([one], days=100, source=source)
        assert (found.safe is None, found.safe_p999 is None, found.recommended is None) == (doubted, doubted, doubted)
        assert ("no value is recommended: a request log lacks" in str(found.recommended_reason)) == doubted
        over = dataclasses.replace(found, verdict=Verdict.THROTTLED)
        assert doubt(over) is None, "a throttle that was found stays one"
        (finding,) = throttle_findings([over])
        assert ("No safe value is known, because a request log lacks" in str(finding.message)) == doubted
        loose = dataclasses.replace(one, entity=Entity.of({"user": "a"}), limit_after=1e6)
        assert len(quota_fits([loose], source=source)) == (0 if doubted else 1)
    # A byte rate may be clear above its limit, where the throttle overflows.
    assert doubt(verdict(peak=1e9, limit_after=1.0)) is None


def test_one_value_with_its_margin_is_good_for_all_brokers() -> None:
    both = [verdict(peak=1000.0 * 1024, p999=600.0 * 1024, broker=1), verdict(peak=500.0, p999=400.0, broker=2)]
    found = advised(both, days=10)
    assert {(one.safe, one.safe_p999, one.recommended, one.margin) for one in found} == {
        (1000.0 * 1024, 600.0 * 1024, 1.125 * 1024**2, 0.15)
    }
    assert "1.125MiB adds 15 % because the history is 10 days long (15 % or more)" in (found[0].recommended_reason or "")
    assert "lower bound" not in (found[0].recommended_reason or "")


def test_few_seconds_know_no_share_of_one_in_a_thousand_and_censored_ones_only_a_lower_bound() -> None:
    both = [verdict(), verdict(broker=2, active_seconds=2999)]
    found = advised([dataclasses.replace(one, censored=True) for one in both], days=10)
    assert {one.safe_p999 for one in found} == {None}
    assert "both are lower bounds" in (found[0].recommended_reason or "")
    (finding,) = throttle_findings([dataclasses.replace(one, verdict=Verdict.THROTTLED) for one in found])
    assert "is needed, since quotas throttled these clients when they were recorded" in finding.message


def covered(broker: int, start: float, end: float) -> Coverage:
    return Coverage(broker=broker, requests=5, start=START + start * HOUR, end=START + end * HOUR)


FIRST = int(START.timestamp()) // 60
"""The first minute of a history that begins at ``START``."""


def gaps(coverage: list[Coverage], minutes: dict[int, list[int]] | None = None) -> tuple[Coverage, ...]:
    """``minutes``: of the history, those in which a broker has lines; a broker without an entry has all of its own."""
    known = {broker: np.asarray(of_broker, dtype=np.int64) + FIRST for broker, of_broker in (minutes or {}).items()}
    return add_gaps(coverage, holes_of(coverage, known))


def missing(*minutes: range) -> tuple[int, datetime.datetime | None]:
    """Of a broker with eight hours of history: the minutes in holes, and the first of them."""
    (found,) = gaps([covered(1, 0, 8)], {1: [minute for some in minutes for minute in some]})
    assert found.minutes == 480
    return found.minutes_missing, found.first_missing


def test_a_hole_of_110_minutes_that_covers_no_whole_clock_hour_is_seen() -> None:
    assert missing(range(125), range(235, 480)) == (110, START + 125 * MINUTE)
    assert {minute // 60 for minute in (*range(125), *range(235, 480))} == set(range(8)), "with a line in every clock hour"


def test_a_silence_is_a_hole_when_it_is_unusual_for_its_broker() -> None:
    assert missing(range(480)) == (0, None)
    assert missing(range(100), range(109, 480)) == (0, None), "nine minutes are never a hole"
    assert missing(range(100), range(110, 480)) == (10, START + 100 * MINUTE)
    every_quarter = range(0, 480, 15)
    assert missing(every_quarter) == (0, None), "quiet by habit"
    assert missing(range(0, 241, 15), range(330, 480, 15)) == (0, None)
    assert missing(range(0, 241, 15), range(331, 480, 15)) == (90, START + 241 * MINUTE), "a hole whatever the habit"


def test_a_broker_that_is_recorded_from_later_on_has_a_hole_at_the_beginning() -> None:
    one, other = gaps([covered(1, 0, 8), covered(2, 2.5, 7.9)], {1: list(range(481))})
    assert (one.minutes, one.minutes_missing, one.first_missing, one.share) == (480, 0, None, 1.0)
    assert (other.minutes_missing, other.first_missing, other.share) == (150, START, 1 - 150 / 480)


def test_brokers_that_begin_in_different_minutes_of_a_short_history_miss_nothing() -> None:
    found = gaps([covered(1, 0.98, 1.1), covered(2, 1.01, 1.12)])
    assert [(one.minutes, one.minutes_missing) for one in found] == [(8, 0), (8, 0)]
    assert not may_have_gaps(found)
    assert may_have_gaps([covered(1, 0.9, 1.5)])


def test_a_clear_bucket_of_a_broker_with_gaps_is_inconclusive_and_says_why() -> None:
    holes = gaps([covered(1, 0, 8), covered(2, 0, 8)], {1: list(range(420, 480)), 2: list(range(480))})
    history = provenance(coverage=holes)
    verdicts = [
        verdict(broker=1),
        verdict(broker=2),
        verdict(broker=1, verdict=Verdict.THROTTLED),
        verdict(broker=1, verdict=Verdict.POSSIBLE),
        verdict(broker=1, limit_after=None),
    ]
    why = [doubts_of(history, HistoryNeeds(hours=8))(one) for one in verdicts]
    assert why == [
        "broker 1 has no lines for 7 h of 8 h, first from 2026-11-20 08:00 UTC on, and 95 % are needed (history.coveragePercent)",
        *[None] * 4,
    ]
    assert doubts_of(history, HistoryNeeds(hours=8, coverage_percent=12.5))(verdicts[0]) is None


def test_a_history_that_is_too_short_or_lacks_brokers_clears_nothing() -> None:
    needed = "the history is 8 h long, and 24 h are needed (history.hours)"
    assert doubts_of(provenance(), HistoryNeeds(hours=24))(verdict()) == needed
    assert doubts_of(provenance(), HistoryNeeds(hours=8))(verdict()) is None
    # The files of a day: from its first request to its last.
    day = provenance(end=START + 24 * HOUR - datetime.timedelta(seconds=2))
    assert doubts_of(day, HistoryNeeds(hours=24))(verdict()) is None
    short = provenance(end=START + 24 * HOUR - datetime.timedelta(seconds=62))
    needed = "the history is 23 h 58 min 58 s long, and 24 h are needed (history.hours)"
    assert doubts_of(short, HistoryNeeds(hours=24))(verdict()) == needed
    many = provenance(coverage=(covered(1, 0, 8),), cluster_brokers=tuple(range(1, 14)))
    why = doubts_of(many, HistoryNeeds(hours=8))(verdict())
    assert "(1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more), and traffic of 1 is given (1): give" in str(why)


def test_inconclusive_buckets_are_one_finding_a_reason() -> None:
    some = [verdict(user=u, verdict=Verdict.INCONCLUSIVE, reason="a hole") for u in "ab"]
    other = verdict(user="c", verdict=Verdict.INCONCLUSIVE, changed=False, reason="another")
    (found,) = report_findings([*some, other], ())
    assert (found.id, found.severity) == ("history-incomplete", "warning")
    assert found.message == "2 quota groups that this change touches are inconclusive: a hole."


def test_what_may_be_throttled_is_told_once_and_only_where_nothing_is_certain() -> None:
    maybe = verdict(verdict=Verdict.POSSIBLE, seconds_possible=7, seconds_over=2, peak=120_000.0)
    (found,) = throttle_findings([maybe, dataclasses.replace(maybe, broker=2)])
    assert (found.id, found.severity) == ("may-throttle", "info")
    assert "may have been throttled while producing, on broker 1 in up to 7 of 4,000 s" in found.message
    assert "--exact decides. 118 KiB/s is safe." in found.message
    certain = dataclasses.replace(maybe, verdict=Verdict.THROTTLED, broker=3)
    assert [one.id for one in throttle_findings([certain, maybe])] == ["would-throttle"]
    assert throttle_findings([dataclasses.replace(maybe, changed=False)]) == ()


def cells(seed: int, seconds: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Series keys, seconds and amounts, sorted by neither."""
    random = np.random.default_rng(seed)
    at = random.choice(seconds, size=seconds // 2, replace=False) + int(START.timestamp())
    of = random.integers(100, 103, size=len(at))
    return of.astype(np.int64), at.astype(np.int64), random.integers(0, 1000, size=len(at)).astype(np.int64)


LIMITS = grouped({ANYONE: 300.0}, {ANYONE: 150.0})
GRID = Grid.over([Coverage(broker=1, requests=1, start=START, end=START + datetime.timedelta(seconds=1999))])


@settings(max_examples=20)
@given(st.integers(0, 1000), st.lists(st.integers(0, 1000), max_size=6))
def test_points_are_the_largest_of_every_second_wherever_batches_end(seed: int, cuts: list[int]) -> None:
    of, at, amount = cells(seed)
    group = np.asarray([LIMITS.target_of_series[key - 100] for key in of.tolist()], dtype=np.int64)
    key = keys_of(group, at)
    order = np.lexsort((key,))
    key, value = key[order], amount[order]
    lines = Lines.of(LIMITS, DEFAULT_WINDOW, GRID)
    whole = points_of([(key, value)], lines)
    parts = [*np.split(key, sorted(cuts))], [*np.split(value, sorted(cuts))]
    assert points_of(zip(*parts, strict=True), lines).equals(whole)

    unique, first = np.unique(key, return_index=True)
    sums = np.add.reduceat(value, first)
    found = bounds(unique, sums, DEFAULT_WINDOW)
    for number, points in by_group(pa.Table.from_batches([whole]), GRID).items():
        mine = unique >> 33 == number
        place = ((unique[mine] & ((1 << 33) - 1)) - GRID.start) // GRID.step_s
        for interval in range(GRID.count):
            here = place == interval
            assert points.rate[interval] == max(found.expected[mine][here], default=0.0)
            assert points.upper[interval] == max(found.upper[mine][here], default=0.0)
            _, over, possible = (
                flags[mine][here] for flags in found.over(ThrottledRates.of(np.full(len(unique), 150.0), None, DEFAULT_WINDOW))
            )
            before = found.over(ThrottledRates.of(np.full(len(unique), 300.0), None, DEFAULT_WINDOW))[1][mine][here]
            assert (points.over[interval], points.possible[interval], points.over_before[interval]) == (
                over.sum(), possible.sum(), before.sum(),
            )  # fmt: skip


def points_of_clients(totals: tuple[Integers, Integers, Integers], grouping: Grouping, groups: set[int]) -> dict[int, Points]:
    keyed, lines = KeyIndex.of(clients(), grouping, groups).keyed, Lines.of(grouping, DEFAULT_WINDOW, GRID)
    return plot_points(LocalRows(lambda _: [totals]), keyed, [1] * len(grouping.groups), lines)


def test_a_split_bucket_takes_what_was_over_before_from_where_its_clients_were() -> None:
    split, grid, targets = grouped({ANYONE: 150.0}, {PAIRS: 150.0}), GRID, {0, 1, 2}
    groups = groups_to_plot(split, targets)
    assert groups == {0, 1, 2, 3}, "the earlier bucket of alice, too"
    points = points_of_clients(cells(5), split, groups)
    series = [rate_series(split, target, points, grid, None) for target in sorted(targets)]
    assert all(one is not None and len(one.rate) == len(one.over) == grid.count for one in series)
    earlier = points[3].over_before.tolist()
    assert series[0] is not None
    assert series[1] is not None
    assert list(series[0].over_before or ()) == list(series[1].over_before or ()) == earlier
    assert sum(earlier) > sum(series[0].over), "together they were over more often than each alone"


def test_an_interval_is_recorded_unless_all_of_it_is_in_a_hole() -> None:
    split = grouped({ANYONE: 150.0}, {PAIRS: 150.0})
    points = points_of_clients(cells(5), split, {0})
    grid = Grid(start=7200, step_s=1800, count=GRID.count)
    found = rate_series(split, 0, points, grid, np.asarray([[150, 210], [239, 301], [310, 400]], dtype=np.int64))
    assert found is not None
    # Half hours from minute 120 on.
    assert found.recorded[:9] == (True, False, False, True, False, False, True, False, False)
    assert found.recorded[9:] == (True,) * (GRID.count - 9)
    everything = rate_series(split, 0, points, grid, None)
    assert everything is not None
    assert all(everything.recorded)


def unjudged(
    before: dict[Entity, float] | None, after: dict[Entity, float], series: list[Series] | None = None
) -> list[tuple[str, NotJudged]]:
    """Entities and reasons, of byte rates of producers."""

    def quotas(of: dict[Entity, float]) -> dict[Entity, dict[str, float]]:
        return {entity: {KEY: value} for entity, value in of.items()}

    known = clients() if series is None else series
    tables = [{KEY: Resolver(quotas(of), KEY)} for of in (before, after) if of is not None]
    grouping = group_series(known, tables[0] if before is not None else None, tables[-1])
    unused, kinds = unused_quotas(known, quotas(after), quotas(after)), {one.kind for one in known}
    found = unjudged_changes(known, grouping, tables, (None if before is None else quotas(before), quotas(after)), unused, kinds)
    assert all(one.key == KEY for one in found)
    return [(str(one.entity), one.reason) for one in found]


QUIET, ALICE = Entity.of({"user": "quiet"}), Entity.of({"user": "alice"})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {QUIET: 5.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        (None, {QUIET: 5.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        ({QUIET: 5.0}, {QUIET: 5.0}, []),
        ({QUIET: 5.0}, {}, []),
        ({QUIET: 5.0, ANYONE: 9.0}, {ANYONE: 9.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        ({}, {ALICE: 5.0, QUIET: 5.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        ({ALICE: 5.0, ANYONE: 9.0}, {ANYONE: 9.0}, []),
        ({PAIRS: 1.0}, {PAIRS: 1.0, ANYONE: 2.0}, [("user=<default>", NotJudged.OVERRIDDEN)]),
    ],
)
def test_changes_that_limit_no_recorded_client_are_not_judged(
    before: dict[Entity, float] | None, after: dict[Entity, float], expected: list[tuple[str, NotJudged]]
) -> None:
    assert unjudged(before, after) == expected


def test_without_any_traffic_of_its_kind_no_change_is_judged() -> None:
    fetches = [dataclasses.replace(one, kind=Kind.FETCH) for one in clients()]
    assert not unjudged({}, {ALICE: 5.0}, clients())
    tables = {"consumer_byte_rate": Resolver({}, "consumer_byte_rate"), KEY: Resolver({}, KEY)}
    grouping = group_series(fetches, tables, tables)
    (found,) = unjudged_changes(fetches, grouping, (tables, tables), ({}, {ALICE: {KEY: 5.0}}), (), {Kind.FETCH})
    assert (found.entity, found.reason) == (ALICE, NotJudged.NO_TRAFFIC)
    assert found.why == "the history has no produce requests"


def test_a_client_that_is_known_in_part_may_be_the_one_whose_quota_changes() -> None:
    partly = [dataclasses.replace(clients()[0], user=None)]
    assert unjudged({}, {ALICE: 5.0}, partly) == []
    assert unjudged({}, {Entity.of({"client-id": "z"}): 5.0}, partly) == [("client-id=z", NotJudged.NO_CLIENT)]


def test_many_unjudged_changes_of_one_key_are_fifty_findings_and_a_count() -> None:
    changes = [
        UnjudgedChange(entity=Entity.of({"user": f"u{n:03}"}), key=KEY, before=None, after=1.0, reason=NotJudged.NO_CLIENT)
        for n in range(60)
    ]
    found = list(unjudged_findings(changes, {}))
    assert len(found) == 50
    assert {one.severity for one in found} == {Severity.WARNING}
    assert found[-1].message.endswith("10 more changed quotas of this key are not judged either.")
    assert "more changed quotas" not in found[-2].message


def test_a_grid_is_never_finer_than_a_second_nor_longer_than_240_intervals() -> None:
    def grid(seconds: float) -> Grid:
        return Grid.over([Coverage(broker=1, requests=1, start=START, end=START + datetime.timedelta(seconds=seconds))])

    assert (grid(0).step_s, grid(0).count) == (1, 1)
    assert (grid(239.9).step_s, grid(239.9).count) == (1, 240)
    assert (grid(240).step_s, grid(240).count) == (2, 121)
    assert grid((END - START).total_seconds()).count == 239


@given(st.sets(st.integers(0, 300)))
def test_ranges_of_minutes_give_back_the_same_minutes(minutes: set[int]) -> None:
    ranges = ranges_of(sorted(minutes) * 2)
    assert minutes_in(ranges).tolist() == sorted(minutes)
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges)), "no two ranges touch"


def test_a_segment_of_format_1_0_has_every_minute_of_its_hours(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    (tmp_path / "data" / "a-run").mkdir(parents=True)
    (tmp_path / "segments").mkdir()
    covered_then = {"broker": 1, "requests": 5, "start_us": 0, "end_us": 9, "hours": [3, 4, 6]}
    document = {
        "format_version": "1.0", "id": "a", "source": "a.log", "size": 1, "folder": "a-run", "coverage": [covered_then],
        "statuses": {"charged": 5}, "clusters": [],
    }  # fmt: skip
    (tmp_path / "segments" / "a.json").write_text(json.dumps(document), encoding="utf-8")
    (segment,) = folder.segments()
    assert segment.coverage[0].minutes == ((180, 299), (360, 419))
