"""The rules of ``spec.backtest``: which buckets of a backtest fail which of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.documents import selector_to_json
from reconciler.formats import canonical_bytes
from reconciler.model import (
    BacktestPolicy,
    BacktestReport,
    BucketVerdict,
    Entity,
    EntityType,
    FailedBucket,
    FailRule,
    Filling,
    Finding,
    KnownOwner,
    Message,
    OwnerChoice,
    Related,
    RuleOutcome,
    Severity,
    Span,
    UnjudgedChange,
    Verdict,
    any_matches,
    broker_words,
    compose,
    display_name,
    join_messages,
    key_part,
    name_part,
)

FAILED: Final = "backtest-policy"

_MOST_FINDINGS: Final = 50
"""Of one rule; the last one counts the rest."""


def judged_by_rules(
    report: BacktestReport,
    policy: BacktestPolicy,
    *,
    owners: Sequence[KnownOwner] = (),
    owner_of: Mapping[Entity, str] | None = None,
    sources: Mapping[tuple[Entity, str], Span] | None = None,
) -> BacktestReport:
    """The report with the outcome of each rule, and an error for each (entity, key) that one does not allow.

    ``owner_of``: who declares an entity. ``sources``: where each proposed value is written.
    """
    known = owner_of or {}
    failing = [_failing(report.verdicts, rule, owners, known) for rule in policy.fail]
    unjudged = [tuple(_failing_unjudged(report.unjudged, rule, owners, known)) for rule in policy.fail]
    rules = tuple(map(_outcome, policy.fail, failing, unjudged))
    findings = [
        finding
        for number, (rule, outcome) in enumerate(zip(failing, rules, strict=True), start=1)
        for finding in _findings(number, outcome, rule, sources or {})
    ]
    return replace(report, rules=rules, findings=(*findings, *report.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRows:
    """The rows that a rule does not allow, as a function of rows that travels to other processes."""

    policy: BacktestPolicy
    owners: tuple[KnownOwner, ...] = ()
    owner_of: Mapping[Entity, str] = field(default_factory=dict)

    def __call__(self, verdicts: Sequence[BucketVerdict]) -> list[BucketVerdict]:
        """Each row once, in their order."""
        failing = (_failing(verdicts, rule, self.owners, self.owner_of) for rule in self.policy.fail)
        chosen = {id(verdict) for of_rule in failing for verdict, _ in of_rule}
        return [verdict for verdict in verdicts if id(verdict) in chosen]


def _failing(
    verdicts: Iterable[BucketVerdict], rule: FailRule, owners: Sequence[KnownOwner], owner_of: Mapping[Entity, str]
) -> list[tuple[BucketVerdict, tuple[str, ...]]]:
    failing = []
    labels = {owner.name: owner.labels for owner in owners}
    for verdict in verdicts:
        if not _concerns(verdict, rule):
            continue
        whose = tuple(_owners(verdict, owners, owner_of))
        if rule.owners is None or any(rule.owners.chooses(name, labels.get(name, {})) for name in whose):
            failing.append((verdict, whose))
    return failing


def _failing_unjudged(
    unjudged: Iterable[UnjudgedChange], rule: FailRule, owners: Sequence[KnownOwner], owner_of: Mapping[Entity, str]
) -> Iterator[UnjudgedChange]:
    """Changes without recorded traffic count as inconclusive; who they are about is the quota's own entity."""
    labels = {owner.name: owner.labels for owner in owners}
    for change in unjudged if Verdict.INCONCLUSIVE in rule.verdicts else ():
        if (rule.keys and change.key not in rule.keys) or (rule.match is not None and not rule.match.matches(change.entity)):
            continue
        names = {owner.name for owner in owners if any_matches(owner.entities, change.entity)}
        names |= {owner_of[change.entity]} if change.entity in owner_of else set()
        if rule.owners is None or any(rule.owners.chooses(name, labels.get(name, {})) for name in names):
            yield change


def _concerns(bucket_verdict: BucketVerdict, rule: FailRule) -> bool:
    if bucket_verdict.verdict not in rule.verdicts or not (bucket_verdict.changed or rule.unchanged):
        return False
    if rule.keys and bucket_verdict.key not in rule.keys:
        return False
    if bucket_verdict.verdict is not Verdict.INCONCLUSIVE and _seconds(bucket_verdict) < rule.seconds:
        return False
    return rule.match is None or any(rule.match.matches(entity) for entity in _clients(bucket_verdict))


def _seconds(bucket_verdict: BucketVerdict) -> int:
    return (
        bucket_verdict.over.possible
        if bucket_verdict.verdict is Verdict.POSSIBLE
        else max(bucket_verdict.over.seconds, bucket_verdict.over.certain)
    )


def _clients(bucket_verdict: BucketVerdict) -> Iterator[Entity]:
    """Who is in a bucket, each as the entity of its names; of an address, the address."""
    addresses = [name for tag, name in bucket_verdict.name.other if tag == EntityType.IP]
    yield from (Entity.of({EntityType.IP.value: name}) for name in addresses)
    for member in () if addresses else bucket_verdict.recorded.members:
        names = {EntityType.USER.value: member.user, EntityType.CLIENT_ID.value: member.client_id}
        known = {entity_type: name for entity_type, name in names.items() if name}
        if known:
            yield Entity.of(known)


def _owners(bucket_verdict: BucketVerdict, owners: Sequence[KnownOwner], owner_of: Mapping[Entity, str]) -> Iterator[str]:
    """Who declares the quota, and who has a client of the bucket; sorted."""
    entity = bucket_verdict.limits.entity
    names = {owner_of[entity]} if entity is not None and entity in owner_of else set()
    for owner in owners:
        if owner.name not in names and any(any_matches(owner.entities, entity) for entity in _clients(bucket_verdict)):
            names.add(owner.name)
    yield from sorted(names)


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
    verdicts = " or ".join(verdict.value for verdict in rule.verdicts)
    unchanged = ", whether it changes or not," if rule.unchanged else " that changes"
    keys = join_messages((Message([key_part(key)]) for key in rule.keys), " or ")
    match = name_part("" if rule.match is None else canonical_bytes(selector_to_json(rule.match)).decode())
    return compose(
        "no{keys} quota group{owners}{match}{unchanged} may be {verdicts}{seconds}",
        keys=compose(" {keys}", keys=keys) if keys else "",
        owners="" if rule.owners is None else compose(" of {owners}", owners=_owner_words(rule.owners)),
        match=compose(" with clients {match}", match=match) if match.text else "",
        unchanged=unchanged,
        verdicts=verdicts,
        seconds=f" for {rule.seconds} s or more" if rule.seconds > 1 else "",
    )


def _owner_words(owners: OwnerChoice) -> Message:
    if owners.labels is not None:
        labels = (f"{display_name(label)}={display_name(value)}" for label, value in owners.labels.items())
        return "owners labelled " + join_messages(Message([name_part(label)]) for label in labels)
    return "owner " + join_messages((Message([name_part(display_name(name))]) for name in owners.names), " or ")


def _findings(
    number: int,
    rule: RuleOutcome,
    failing: Sequence[tuple[BucketVerdict, tuple[str, ...]]],
    sources: Mapping[tuple[Entity, str], Span],
) -> Iterator[Finding]:
    by_quota: dict[tuple[Entity | None, str], list[BucketVerdict]] = {}
    for verdict, _ in failing:
        by_quota.setdefault((verdict.limits.entity, verdict.key), []).append(verdict)
    reason = compose(" ({reason})", reason=name_part(rule.reason)) if rule.reason else ""
    of_rule: dict[str, Filling] = {"number": number, "why": reason}
    for count, ((entity, key), hit) in enumerate(by_quota.items()):
        rest = len(by_quota) - count
        more = f" {rest - 1} more quotas fail this rule." if count == _MOST_FINDINGS - 1 and rest > 1 else ""
        message = compose(
            "Rule {number}{why}: {words}. {worst}.{more}", words=rule.words, worst=_worst(hit), more=more, **of_rule
        )
        yield _finding(message, rule, (entity, key), sources)
        if more:
            break
    for count, change in enumerate(rule.unjudged[:_MOST_FINDINGS], start=1):
        rest = len(rule.unjudged) - count
        more = f" {rest} more changed quotas limit none either." if count == _MOST_FINDINGS and rest else ""
        message = compose(
            "Rule {number}{why}: {words}. {key} of {entity} limits no recorded traffic.{more}",
            words=rule.words,
            key=key_part(change.key),
            entity=change.entity,
            more=more,
            **of_rule,
        )
        yield _finding(message, rule, (change.entity, change.key), sources)


def _finding(
    message: Message, rule: RuleOutcome, quota: tuple[Entity | None, str], sources: Mapping[tuple[Entity, str], Span]
) -> Finding:
    entity, key = quota
    return Finding(
        id=FAILED,
        severity=Severity.ERROR,
        message=message,
        span=sources.get((entity, key)) if entity is not None else None,
        related=(Related(span=rule.span, message="the rule"),) if rule.span is not None else (),
        entity=entity,
        key=key,
    )


def _worst(hit: Sequence[BucketVerdict]) -> Message:
    worst = max(hit, key=lambda verdict: (_seconds(verdict), -verdict.broker, verdict.name))
    others = len({verdict.name for verdict in hit}) - 1
    return compose(
        "{group}{also} is {verdict} on {broker}{long}",
        group=_group_words(worst),
        also=f" (and {others} more of the same quota)" if others else "",
        verdict=worst.verdict.value,
        broker=broker_words(worst.broker),
        long="" if worst.verdict is Verdict.INCONCLUSIVE else f" for {_seconds(worst)} s",
    )


def _group_words(bucket_verdict: BucketVerdict) -> Message:
    tags = (
        (EntityType.USER.value, bucket_verdict.name.user),
        (EntityType.CLIENT_ID.value, bucket_verdict.name.client_id),
        *bucket_verdict.name.other,
    )
    named = [compose("{tag} {name}", tag=display_name(tag), name=name_part(display_name(name))) for tag, name in tags if name]
    return join_messages(named, " ") or compose("A quota group without tags")
