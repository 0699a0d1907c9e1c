"""The rules of ``spec.backtest``: which buckets of a backtest fail which of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.documents import selector_to_json
from reconciler.errors import StalePlanError
from reconciler.formats import canonical_bytes
from reconciler.model import (
    BacktestPolicy,
    BacktestReport,
    BucketVerdict,
    Change,
    Entity,
    EntityType,
    FailedBucket,
    FailRule,
    Finding,
    Message,
    Prediction,
    Related,
    RuleOutcome,
    Selector,
    Severity,
    Span,
    UnjudgedChange,
    Verdict,
    any_matches,
    broker_words,
    bucket_words,
    compose,
    display_name,
    group_verdicts,
    join_messages,
    key_part,
    name_part,
    peak_of,
    same_value,
)
from reconciler.text import amount, count_of

FAILED: Final = "backtest-policy"

_MOST_FINDINGS: Final = 50
"""Of one rule; the last one counts the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRows:
    """The rules of a cluster. ``owner_of``: who declares an entity."""

    policy: BacktestPolicy
    owners: Mapping[str, Sequence[Selector]] = field(default_factory=dict)
    """By owner, its entities."""
    owner_of: Mapping[Entity, str] = field(default_factory=dict)

    def judge(self, report: BacktestReport, sources: Mapping[tuple[Entity, str], Span]) -> BacktestReport:
        """The report with the outcome of each rule, and an error for each (entity, key) that one does not allow.

        ``sources``: where each proposed value is written.
        """
        rules: list[RuleOutcome] = []
        findings: list[Finding] = []
        for number, rule in enumerate(self.policy.fail, start=1):
            failing = self._failing(report.verdicts, rule)
            rules.append(_outcome(rule, failing, tuple(self._unjudged(report.unjudged, rule))))
            findings += _findings(number, rules[-1], [verdict for verdict, _ in failing], sources)
        return replace(report, rules=tuple(rules), findings=(*findings, *report.findings))

    def _failing(self, verdicts: Iterable[BucketVerdict], rule: FailRule) -> list[tuple[BucketVerdict, tuple[str, ...]]]:
        """Return the verdicts that fail a rule, with their owners: of the quota, and of a client of the quota group."""
        failing = []
        for verdict in verdicts:
            if verdict.verdict not in rule.verdicts or not (verdict.changed or rule.unchanged):
                continue
            if verdict.verdict is not Verdict.INCONCLUSIVE and _seconds(verdict) < rule.seconds:
                continue
            clients = list(_clients(verdict))
            if (rule.keys and verdict.key not in rule.keys) or not (rule.match is None or any(map(rule.match.matches, clients))):
                continue
            whose = self._owners(verdict.limits.entity, clients)
            if not rule.owners or not set(whose).isdisjoint(rule.owners):
                failing.append((verdict, whose))
        return failing

    def _unjudged(self, changes: Iterable[UnjudgedChange], rule: FailRule) -> Iterator[UnjudgedChange]:
        """Changes without recorded traffic count as inconclusive; their client is the quota's own entity."""
        for change in changes if Verdict.INCONCLUSIVE in rule.verdicts else ():
            if (rule.keys and change.key not in rule.keys) or not (rule.match is None or rule.match.matches(change.entity)):
                continue
            if not rule.owners or not set(self._owners(change.entity, [change.entity])).isdisjoint(rule.owners):
                yield change

    def _owners(self, entity: Entity | None, clients: Sequence[Entity]) -> tuple[str, ...]:
        names = {self.owner_of[entity]} if entity is not None and entity in self.owner_of else set()
        names |= {name for name, entities in self.owners.items() if any(any_matches(entities, client) for client in clients)}
        return tuple(sorted(names))


def _seconds(bucket_verdict: BucketVerdict) -> int:
    over = bucket_verdict.over
    return over.possible if bucket_verdict.verdict is Verdict.POSSIBLE else over.seconds


def _clients(bucket_verdict: BucketVerdict) -> Iterator[Entity]:
    """Return the clients of a quota group, each as the entity of its names, and of an address as the address."""
    addresses = [name for tag, name in bucket_verdict.name.other if tag == EntityType.IP]
    yield from (Entity.of({EntityType.IP.value: name}) for name in addresses)
    for member in () if addresses else bucket_verdict.recorded.members:
        names = {EntityType.USER.value: member.user, EntityType.CLIENT_ID.value: member.client_id}
        known = {entity_type: name for entity_type, name in names.items() if name}
        if known:
            yield Entity.of(known)


def _outcome(
    rule: FailRule, failing: Sequence[tuple[BucketVerdict, tuple[str, ...]]], unjudged: tuple[UnjudgedChange, ...]
) -> RuleOutcome:
    worst: dict[tuple[object, ...], FailedBucket] = {}
    for verdict, whose in failing:
        bucket = FailedBucket(
            bucket=verdict.name,
            key=verdict.key,
            broker=verdict.broker,
            verdict=verdict.verdict,
            seconds=_seconds(verdict),
            owners=whose,
        )
        place = (verdict.key, verdict.name)
        if place not in worst or bucket.seconds > worst[place].seconds:
            worst[place] = bucket
    failed = tuple(sorted(worst.values(), key=lambda b: (-b.seconds, b.key, b.bucket, b.broker)))
    return RuleOutcome(words=rule_words(rule), reason=rule.reason, span=rule.span, failed=failed, unjudged=unjudged)


def rule_words(rule: FailRule) -> Message:
    """A rule as a clause: ``no quota group of owners labelled tier=gold that changes may be throttled``."""
    named = {Verdict.INCONCLUSIVE: "inconclusive or not checked"}
    verdicts = " or ".join(named.get(verdict, verdict.value) for verdict in rule.verdicts)
    unchanged = ", whether it changes or not," if rule.unchanged else " that changes"
    keys = join_messages((Message([key_part(key)]) for key in rule.keys), " or ")
    owners = join_messages((Message([name_part(display_name(name))]) for name in rule.owners), " or ")
    match = name_part("" if rule.match is None else canonical_bytes(selector_to_json(rule.match)).decode())
    return compose(
        "no{keys} quota group{owners}{match}{unchanged} may be {verdicts}{seconds}",
        keys=compose(" {keys}", keys=keys) if keys else "",
        owners=compose(" of owner {owners}", owners=owners) if rule.owners else "",
        match=compose(" with clients {match}", match=match) if match.text else "",
        unchanged=unchanged,
        verdicts=verdicts,
        seconds=f" for {rule.seconds} s or more" if rule.seconds > 1 else "",
    )


def _findings(
    number: int, rule: RuleOutcome, failing: Sequence[BucketVerdict], sources: Mapping[tuple[Entity, str], Span]
) -> Iterator[Finding]:
    by_quota: dict[tuple[Entity | None, str], list[BucketVerdict]] = {}
    for verdict in failing:
        by_quota.setdefault((verdict.limits.entity, verdict.key), []).append(verdict)
    failed = [(quota, _worst(rows)) for quota, rows in by_quota.items()]
    for change in rule.unjudged:
        words = compose("{key} of {entity} limits no recorded traffic", key=key_part(change.key), entity=change.entity)
        failed.append(((change.entity, change.key), words))
    reason = compose(" ({reason})", reason=name_part(rule.reason)) if rule.reason else ""
    for count, ((entity, key), words) in enumerate(failed[:_MOST_FINDINGS], start=1):
        rest = len(failed) - count
        yield Finding(
            id=FAILED,
            severity=Severity.ERROR,
            message=compose(
                "Rule {number}{why}: {rule}. {words}.{more}",
                number=number,
                why=reason,
                rule=rule.words,
                words=words,
                more=f" {count_of(rest, 'more quota fails', 'more quotas fail')} this rule."
                if count == _MOST_FINDINGS and rest
                else "",
            ),
            span=sources.get((entity, key)) if entity is not None else None,
            related=(Related(span=rule.span, message="the rule"),) if rule.span is not None else (),
            entity=entity,
            key=key,
        )


def _worst(rows: Sequence[BucketVerdict]) -> Message:
    worst = max(rows, key=lambda verdict: (_seconds(verdict), -verdict.broker, verdict.name))
    others = len({verdict.name for verdict in rows}) - 1
    return compose(
        "{group}{also} is {verdict} on {broker}{long}",
        group=bucket_words(worst.name),
        also=f" (and {others} more of the same quota)" if others else "",
        verdict=worst.verdict.value,
        broker=broker_words(worst.broker),
        long="" if worst.verdict is Verdict.INCONCLUSIVE else f" for {_seconds(worst)} s",
    )


def predictions_of(report: BacktestReport, changes: Iterable[Change], cluster: str | None = None) -> tuple[Prediction, ...]:
    """Return the predictions for quota groups that the changes limit, each on the broker where it is worst.

    ``cluster``: the name of the changes' Cluster manifest; ``None``: not known. Raises ``StalePlanError`` for a backtest of
    another cluster, or of another value than the changes write.
    """
    if None not in (report.cluster, cluster) and report.cluster != cluster:
        of, to = display_name(report.cluster or ""), display_name(cluster or "")
        raise StalePlanError(f"the backtest is of cluster {of}, and the plan is of {to}. Run backtest for {to}")
    planned = {(change.entity, key.key): key.after for change in changes for key in change.keys}
    made = []
    for group in group_verdicts(report.verdicts):
        entity, key, limit = group.worst.limits.entity, group.worst.key, group.worst.limits.after
        if entity is None or limit is None or (entity, key) not in planned:
            continue
        if not same_value(limit, value := planned[entity, key]):
            raise StalePlanError(
                f"the backtest judged {key} of {entity} at {amount(key, limit)}, and the plan writes {amount(key, value)}. Run "
                "backtest again"
            )
        over, samples = group.time_over, group.samples
        moments = samples.share_high if samples is not None and samples.over is not None else 0.0
        made.append(
            Prediction(
                bucket=group.worst.name,
                key=key,
                entity=entity,
                limit=limit,
                verdict=group.verdict,
                share=over.share,
                share_at_most=max(over.share, over.possible_share, moments if group.verdict is not Verdict.CLEAR else 0.0),
                peak=peak_of(group.highest),
            )
        )
    return tuple(made)
