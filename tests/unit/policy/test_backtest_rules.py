"""Rules of ``spec.backtest``: which bucket fails which of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from reconciler.model import BacktestReport, BucketVerdict, Verdict
from reconciler.model.backtest import NotJudged, UnjudgedChange
from reconciler.model.cluster import BacktestPolicy, FailRule
from reconciler.model.entity import Entity, MatchKind, Selector, TypeMatch
from reconciler.model.finding import Span
from reconciler.policy.backtest_rules import FailingRows, rule_words
from tests.support.backtest_reports import altered, member, report_of, verdict

ALICE = Entity.of({"user": "alice"})
CERTAIN = (Verdict.THROTTLED,)
PLACE = Span(file="q.yaml", line=8, column=5)


def users(prefix: str) -> Selector:
    return Selector(types=(("user", TypeMatch(kind=MatchKind.PREFIX, text=prefix)),))


def judged(rule: FailRule, *verdicts: BucketVerdict, owners: Mapping[str, Sequence[Selector]] | None = None) -> BacktestReport:
    return judge(report_of(*verdicts), rule, owners)


def judge(report: BacktestReport, rule: FailRule, owners: Mapping[str, Sequence[Selector]] | None) -> BacktestReport:
    rules = FailingRows(policy=BacktestPolicy(fail=(rule,)), owners=owners or {}, owner_of={ALICE: "team-a"})
    return rules.judge(report, {(ALICE, "producer_byte_rate"): PLACE})


HIT = verdict(user="alice", entity=ALICE, verdict=Verdict.THROTTLED, changed=True, seconds_over=20)


@pytest.mark.parametrize(
    ("rule", "fails"),
    [
        (FailRule(verdicts=CERTAIN), True),
        (FailRule(verdicts=(Verdict.POSSIBLE, Verdict.INCONCLUSIVE)), False),
        (FailRule(verdicts=CERTAIN, keys=("consumer_byte_rate",)), False),
        (FailRule(verdicts=CERTAIN, keys=("consumer_byte_rate", "producer_byte_rate")), True),
        (FailRule(verdicts=CERTAIN, seconds=20), True),
        (FailRule(verdicts=CERTAIN, seconds=21), False),
        (FailRule(verdicts=CERTAIN, match=users("al")), True),
        (FailRule(verdicts=CERTAIN, match=users("bob")), False),
        (FailRule(verdicts=CERTAIN, owners=("team-a",)), True),
        (FailRule(verdicts=CERTAIN, owners=("team-b",)), False),
    ],
)
def test_a_rule_fails_when_all_that_it_says_holds(rule: FailRule, *, fails: bool) -> None:
    report = judged(rule, HIT)
    assert report.refused is fails
    assert [one.id for one in report.findings] == (["backtest-policy"] if fails else [])


def test_buckets_that_stay_as_they_are_fail_only_rules_that_say_so() -> None:
    stays = altered(HIT, changed=False)
    assert not judged(FailRule(verdicts=CERTAIN), stays).refused
    assert judged(FailRule(verdicts=CERTAIN, unchanged=True), stays).refused


def test_a_possible_verdict_is_measured_by_its_possible_seconds() -> None:
    maybe = altered(HIT, verdict=Verdict.POSSIBLE, seconds_over=0, seconds_certain=0, seconds_possible=9)
    rule = FailRule(verdicts=(Verdict.POSSIBLE,), seconds=9)
    assert [bucket.seconds for bucket in judged(rule, maybe).rules[0].failed] == [9]
    assert not judged(dataclasses.replace(rule, seconds=10), maybe).refused


def test_an_inconclusive_bucket_needs_no_seconds() -> None:
    unknown = altered(HIT, verdict=Verdict.INCONCLUSIVE, seconds_over=0)
    assert judged(FailRule(verdicts=(Verdict.INCONCLUSIVE,), seconds=50), unknown).refused


def test_owners_are_those_of_the_quota_and_of_clients_under_a_quota_of_others() -> None:
    owners = {"team-a": (), "team-p": (users("pay-"),)}
    rule = FailRule(verdicts=CERTAIN, owners=("team-p",))
    assert not judged(rule, HIT, owners=owners).refused, "alice is of another owner"
    shared = altered(HIT, members=(member("alice"), member("pay-1")))
    (failed,) = judged(rule, shared, owners=owners).rules[0].failed
    assert failed.owners == ("team-a", "team-p")


def test_an_owner_without_entities_has_no_clients_of_others() -> None:
    assert not judged(FailRule(verdicts=CERTAIN, owners=("team-z",)), HIT, owners={"team-z": ()}).refused


def test_an_address_is_matched_as_an_ip() -> None:
    address = altered(HIT, user="", client_id="", tags=(("ip", "10.0.0.7"),), entity=None)
    match = Selector(types=(("ip", TypeMatch(kind=MatchKind.NAME, text="10.0.0.7")),))
    assert judged(FailRule(verdicts=CERTAIN, match=match), address).refused
    assert not judged(FailRule(verdicts=CERTAIN, match=users("10.")), address).refused


def test_the_finding_is_an_error_at_the_quota_and_names_rule_reason_and_bucket() -> None:
    rule = FailRule(verdicts=CERTAIN, reason="gold is never throttled", span=Span(file="c.yaml", line=3, column=9))
    (found,) = judged(rule, HIT).findings
    assert (found.severity, found.span, found.entity, found.key) == ("error", PLACE, ALICE, "producer_byte_rate")
    assert found.message == (
        "Rule 1 (gold is never throttled): no quota group that changes may be throttled. user alice is "
        "throttled on broker 1 for 20 s."
    )
    assert [one.span for one in found.related] == [rule.span]


def test_a_bucket_is_told_once_where_it_is_worst() -> None:
    brokers = [altered(HIT, broker=broker, seconds_over=seconds) for broker, seconds in ((1, 5), (2, 9), (3, 9))]
    (failed,) = judged(FailRule(verdicts=CERTAIN), *brokers).rules[0].failed
    assert (failed.broker, failed.seconds) == (2, 9)


def test_the_findings_of_one_rule_are_bounded_and_the_last_counts_the_rest() -> None:
    many = [
        altered(HIT, user=f"u{n:03}", entity=Entity.of({"user": f"u{n:03}"}), members=(member(f"u{n:03}"),)) for n in range(120)
    ]
    report = judged(FailRule(verdicts=CERTAIN), *many)
    assert len(report.findings) == 50
    assert report.findings[-1].message.endswith(" 70 more quotas fail this rule.")
    assert len(report.rules[0].failed) == 120


def test_a_rule_reads_as_a_sentence() -> None:
    rule = FailRule(
        verdicts=(Verdict.THROTTLED, Verdict.POSSIBLE),
        owners=("team-p",),
        match=users("pay-"),
        keys=("producer_byte_rate",),
        seconds=10,
        unchanged=True,
    )
    assert rule_words(rule) == (
        'no producer_byte_rate quota group of owner team-p with clients {"user":{"prefix":"pay-"}}, whether it '
        "changes or not, may be throttled or possible for 10 s or more"
    )


def unjudged(name: str, key: str = "producer_byte_rate") -> UnjudgedChange:
    entity = Entity.of({"user": name})
    return UnjudgedChange(entity=entity, key=key, before=None, after=5.0, reason=NotJudged.NO_CLIENT)


INCONCLUSIVE = (Verdict.INCONCLUSIVE,)


@pytest.mark.parametrize(
    ("rule", "failed"),
    [
        (FailRule(verdicts=INCONCLUSIVE), ["alice", "bob"]),
        (FailRule(verdicts=INCONCLUSIVE, seconds=60), ["alice", "bob"]),
        (FailRule(verdicts=CERTAIN), []),
        (FailRule(verdicts=INCONCLUSIVE, match=users("bo")), ["bob"]),
        (FailRule(verdicts=INCONCLUSIVE, keys=("consumer_byte_rate",)), []),
        (FailRule(verdicts=INCONCLUSIVE, owners=("team-a",)), ["alice"]),
        (FailRule(verdicts=INCONCLUSIVE, owners=("team-b",)), ["bob"]),
    ],
)
def test_a_change_without_recorded_traffic_counts_as_inconclusive(rule: FailRule, failed: list[str]) -> None:
    owners = {"team-b": (users("bob"),)}
    report = judge(report_of(unjudged=(unjudged("alice"), unjudged("bob"))), rule, owners)
    assert report.refused is bool(failed)
    assert [one.entity for one in report.rules[0].unjudged] == [Entity.of({"user": name}) for name in failed]
    assert [one.id for one in report.findings] == ["backtest-policy"] * len(failed)
    assert [one.span for one in report.findings] == [PLACE if name == "alice" else None for name in failed]
