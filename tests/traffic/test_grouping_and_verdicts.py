"""Groups, episodes, safe values, unused quotas and proposals: the pure parts around the replay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.formats.units import parse_value
from reconciler.model import CLIENT_KEYS, Verdict
from reconciler.model.backtest import NotJudged
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.quota import QuotaKey
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.judging.exact import JudgedGroups, SeriesCounts
from reconciler.traffic.judging.grouping import Series, group_series
from reconciler.traffic.judging.judged_quotas import unused_quotas
from reconciler.traffic.judging.recommendations import safe_byte_rate
from reconciler.traffic.judging.verdicts import enrich_verdicts, target_verdicts, worth_a_plot
from reconciler.traffic.kernels.exact_totals import NONE, Episodes, GroupVerdict, SideVerdict
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind
from tests.support.backtest_reports import provenance
from tests.support.backtest_reports import verdict as bucket_verdict

PRODUCE = "producer_byte_rate"
ALICE, ANYONE = Entity.of({"user": "alice"}), Entity.of({"user": DEFAULT})
PAIRS = Entity.of({"user": DEFAULT, "client-id": DEFAULT})


def resolvers(quotas: dict[Entity, dict[str, float]]) -> dict[str, Resolver]:
    return {KEY_OF_KIND[kind].value: Resolver(quotas, KEY_OF_KIND[kind].value) for kind in BYTES}


def series(*clients: tuple[str, str], broker: int = 1) -> list[Series]:
    return [Series(broker=broker, kind=Kind.PRODUCE, user=u, client_id=c, requests=10, amount=1000) for u, c in clients]


def verdict_of(group: int, *, peak: float, throttled: int = 0) -> GroupVerdict:
    side = SideVerdict(throttled=throttled, certain=throttled, expected=throttled, possible=throttled)
    return GroupVerdict(group=group, active=4, peak=peak, safe=peak, sides=(SideVerdict(), side))


CLIENTS = series(("alice", "a"), ("alice", "b"), ("bob", "a"))


def test_plots_are_of_quota_groups_with_all_their_brokers() -> None:
    rows = [
        bucket_verdict(user=user, broker=broker, verdict=found, changed=changed)
        for user, found, changed in (("a", Verdict.THROTTLED, True), ("b", Verdict.CLEAR, True), ("calm", Verdict.CLEAR, False))
        for broker in (1, 2, 3)
    ]
    assert [(one.name.user, one.broker) for one in worth_a_plot(rows, 1)] == [("a", 1), ("a", 2), ("a", 3)]
    assert {one.name.user for one in worth_a_plot(rows, 12)} == {"a", "b"}
    assert worth_a_plot(rows, 0) == ()


def test_a_bucket_with_the_same_members_is_replayed_once() -> None:
    grouping = group_series(CLIENTS, resolvers({ANYONE: {PRODUCE: 5.0}}), resolvers({ANYONE: {PRODUCE: 9.0}}))
    assert [(g.before and g.before.limit, g.after and g.after.limit) for g in grouping.groups] == [(5.0, 9.0), (5.0, 9.0)]
    assert grouping.groups_of_series == ((0,), (0,), (1,))


def test_a_bucket_that_splits_is_replayed_on_both_sides() -> None:
    grouping = group_series(CLIENTS, resolvers({ANYONE: {PRODUCE: 5.0}}), resolvers({PAIRS: {PRODUCE: 9.0}}))
    sides = [(g.before and g.before.limit, g.after and g.after.limit) for g in grouping.groups]
    assert sides == [(None, 9.0), (None, 9.0), (5.0, 9.0), (5.0, None)]
    assert grouping.groups_of_series == ((0, 3), (1, 3), (2,))


def test_without_known_current_quotas_there_is_one_side() -> None:
    grouping = group_series(CLIENTS, None, resolvers({ANYONE: {PRODUCE: 9.0}}))
    assert {g.before for g in grouping.groups} == {None}


def test_a_split_bucket_counts_what_was_throttled_before() -> None:
    grouping = group_series(CLIENTS, resolvers({ANYONE: {PRODUCE: 5.0}}), resolvers({PAIRS: {PRODUCE: 9.0}}))
    groups = {group: verdict_of(group, peak=8.0) for group in range(4)}
    counts = {number: SeriesCounts(throttled_before=number) for number in (1, 2)}
    judged = JudgedGroups(groups=groups, series=counts)
    verdicts = target_verdicts(judged, CLIENTS, grouping, DEFAULT_WINDOW, stated=True).values()
    assert [(v.name.user, v.name.client_id, v.replay and v.replay.before, v.limits.before, v.changed) for v in verdicts] == [
        ("alice", "a", 0, (5.0,), True), ("alice", "b", 1, (5.0,), True), ("bob", "a", 2, (5.0,), True),
    ]  # fmt: skip


def test_what_the_history_shows_too_little_of_is_inconclusive_only_where_it_was_clear() -> None:
    grouping = group_series(series(*((user, "a") for user in "abcd")), None, resolvers({ANYONE: {PRODUCE: 9.0}}))
    rows = [bucket_verdict(user=found.value, verdict=found) for found in (Verdict.CLEAR, Verdict.THROTTLED, Verdict.POSSIBLE)]
    rows.append(bucket_verdict(user="unlimited", limit_after=None))
    for hours, clear, reason in (
        (24, Verdict.INCONCLUSIVE, "the history is 8 h long, and 24 h are needed (history.hours)"),
        (8, Verdict.CLEAR, None),
    ):
        enriched = enrich_verdicts(dict(enumerate(rows)), grouping, provenance(), HistoryNeeds(hours=hours))
        assert {row.name.user: (row.verdict, row.reason) for row in enriched} == {
            "clear": (clear, reason),
            "throttled": (Verdict.THROTTLED, None),
            "possible": (Verdict.POSSIBLE, None),
            "unlimited": (Verdict.CLEAR, None),
        }
        assert all(row.advice.safe is not None and row.advice.margin > 0 for row in enriched)


@pytest.mark.parametrize(
    ("active", "over", "expected"),
    [
        ([1, 2, 3, 9], [1, 2, 3], (3, 1)),
        ([1, 2, 3, 4], [1, 3, 4], (2, 3)),
        ([1, 5, 9], [1, 5, 9], (9, 1)),
        ([1, 20, 21], [1, 20, 21], (2, 20)),
        ([1, 2], [], (0, NONE)),
    ],
)
def test_an_episode_is_a_run_of_active_seconds_that_are_all_over(
    active: list[int], over: list[int], expected: tuple[int, int]
) -> None:
    runs = Episodes(11)
    runs.feed(np.zeros(len(active), dtype=np.int64), np.array(active), np.isin(active, over))
    assert tuple(runs.columns(np.zeros(1, dtype=np.int64))[:, 0].tolist()) == expected


@given(st.floats(0.001, 1e15))
def test_a_safe_value_is_at_or_above_the_peak_close_to_it_and_can_be_written(peak: float) -> None:
    number, text = safe_byte_rate(peak)
    assert peak <= number <= max(10.0, peak * 1.13 + 10)
    assert parse_value(QuotaKey.PRODUCER_BYTE_RATE, text).number == number


@pytest.mark.parametrize(
    ("peak", "text"),
    [(5_400_000, "5.25MiB"), (1, "10B"), (1014, "1020B"), (1021, "1KiB"), (1024.5, "1.125KiB"), (1047552, "1MiB")],
)
def test_safe_values_are_what_a_person_would_write(peak: float, text: str) -> None:
    assert safe_byte_rate(peak)[1] == text


def test_unused_quotas_tell_hidden_from_unmatched() -> None:
    app, zoe = Entity.of({"client-id": "a"}), Entity.of({"user": "zoe"})
    quotas = {ANYONE: {PRODUCE: 1.0}, app: {PRODUCE: 2.0}, zoe: {PRODUCE: 3.0, "request_percentage": 4.0}}
    tables = Resolver.by_key(quotas, CLIENT_KEYS)
    unused = unused_quotas(CLIENTS, group_series(CLIENTS, tables, tables), tables, (), quotas)
    assert [(u.entity, u.reason) for u in unused] == [(zoe, NotJudged.NO_CLIENT), (app, NotJudged.OVERRIDDEN)]
