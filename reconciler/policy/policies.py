"""Policies judged over a plan: violated ones that refuse are guards, the others warn. What cannot be evaluated is violated."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.errors import UsageError
from reconciler.model import (
    POLICY_PREFIX,
    Acceptance,
    Change,
    ClusterSpec,
    Entity,
    Finding,
    GuardResult,
    GuardStatus,
    Message,
    PlanPolicy,
    PolicySeverity,
    PolicySubject,
    Severity,
    compose,
    name_part,
)
from reconciler.policy.expressions import ExpressionError, evaluate_expression, policy_time
from reconciler.policy.guard_context import name_entities
from reconciler.policy.guards import Judgement
from reconciler.text import near_miss, shown

POLICY_VIOLATED: Final = "policy-violated"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInput:
    """What policies see. ``document``: the plan's JSON; ``changes``: the same changes, in the same order."""

    document: Mapping[str, object]
    changes: tuple[Change, ...]
    owner_of: Callable[[Entity], str | None]
    spec: ClusterSpec
    now: datetime.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Violation:
    why: Message
    entities: tuple[Entity, ...] = ()


def judge_policies(
    policies: Sequence[PlanPolicy], about: PolicyInput, *, accepted: Sequence[str], advice: Callable[[str], Message]
) -> Judgement:
    """Evaluate every policy. Raises ``MissingDependencyError``."""
    variables = _variables(about)
    guards: list[GuardResult] = []
    findings: list[Finding] = []
    for policy in policies:
        violation = _violation(policy, about, variables)
        if policy.severity is PolicySeverity.REFUSE:
            guards.append(_guard(policy, violation, about, accepted=policy.guard_id in accepted, advice=advice))
        elif violation is not None:
            findings.append(
                Finding(id=POLICY_VIOLATED, severity=Severity.WARNING, message=_words(policy, violation), span=policy.span)
            )
    return Judgement(guards=tuple(guards), findings=tuple(findings))


def check_accepted_policies(policies: Sequence[PlanPolicy], accepted: Sequence[str]) -> None:
    """Raise ``UsageError`` for an accepted policy that the repository does not have, or that cannot be accepted."""
    known = {policy.guard_id: policy for policy in policies if policy.severity is PolicySeverity.REFUSE}
    for guard_id in accepted:
        if not guard_id.startswith(POLICY_PREFIX):
            continue
        if guard_id not in known:
            raise UsageError(f"unknown policy {shown(guard_id)}{near_miss(guard_id, known)}")
        if not known[guard_id].acceptable:
            raise UsageError(f"{shown(guard_id)} cannot be accepted: the policy does not set acceptable: true")


def _variables(about: PolicyInput) -> dict[str, Any]:
    # Texts of the document may be of subclasses of str, which the evaluator refuses.
    document = json.loads(json.dumps(about.document))
    document["changes"] = [
        {**row, "owner": about.owner_of(change.entity) or "", "keys": {key: _key(value) for key, value in row["keys"].items()}}
        for row, change in zip(document["changes"], about.changes, strict=True)
    ]
    cluster = {"name": about.spec.name or "", "labels": {str(name): str(value) for name, value in about.spec.labels.items()}}
    return {"plan": document, "cluster": cluster, "now": policy_time(about.now)}


def _key(row: Mapping[str, object]) -> dict[str, object]:
    """Values are doubles, whether they are whole or not, so that an expression need not know which."""
    values = {side: float(value) for side in ("before", "after") if isinstance(value := row[side], int | float)}
    return {**row, **values}


def _violation(policy: PlanPolicy, about: PolicyInput, variables: Mapping[str, Any]) -> _Violation | None:
    if policy.subject is PolicySubject.PLAN:
        try:
            violated = _is_violated(policy, variables)
        except ExpressionError as error:
            return _Violation(why=compose("The expression could not be evaluated: {reason}.", reason=name_part(str(error))))
        return _Violation(why=compose("The plan violates it.")) if violated else None
    entities: list[Entity] = []
    reasons: list[str] = []
    # Every evaluation converts its variables, so each change would cost as much as the whole plan.
    shared = {**variables, "plan": {name: value for name, value in variables["plan"].items() if name != "changes"}}
    for change, row in zip(about.changes, variables["plan"]["changes"], strict=True):
        try:
            if not _is_violated(policy, {**shared, "change": row}):
                continue
        except ExpressionError as error:
            reasons.append(str(error))
        entities.append(change.entity)
    if not entities:
        return None
    why = compose("Changes that violate it: {entities}.", entities=name_entities(entities))
    if reasons:
        why = compose(
            "{why} The expression could not be evaluated for {count} of them: {reason}.",
            why=why,
            count=len(reasons),
            reason=name_part(reasons[0]),
        )
    return _Violation(why=why, entities=tuple(entities))


def _is_violated(policy: PlanPolicy, variables: Mapping[str, object]) -> bool:
    when = policy.when
    if when is not None and not evaluate_expression(when.text, policy.subject, variables):
        return False
    return not evaluate_expression(policy.require.text, policy.subject, variables)


def _words(policy: PlanPolicy, violation: _Violation) -> Message:
    text = (policy.message or policy.description).rstrip(".")
    if not text:
        return compose("Policy {name}: {why}", name=name_part(policy.name), why=violation.why)
    return compose("Policy {name}: {text}. {why}", name=name_part(policy.name), text=name_part(text), why=violation.why)


def _guard(
    policy: PlanPolicy, violation: _Violation | None, about: PolicyInput, *, accepted: bool, advice: Callable[[str], Message]
) -> GuardResult:
    measured, how = "satisfied", None
    if violation is None:
        status, message = GuardStatus.PASSED, compose("The plan satisfies the policy.")
    else:
        measured = f"violated by {len(violation.entities)}" if violation.entities else "violated"
        message = _words(policy, violation)
        standing = list(_standing(policy, violation, about))
        if accepted:
            status, message = GuardStatus.ACCEPTED, compose("{why} Accepted on the command line.", why=message)
        elif standing:
            status = GuardStatus.ACCEPTED
            message = compose("{why} Accepted in the manifest: {reason}.", why=message, reason=name_part(standing[0].reason))
        else:
            status = GuardStatus.NEEDS_ACCEPTANCE
            how = advice(policy.guard_id) if policy.acceptable else compose("This policy cannot be accepted. Correct the change.")
    return GuardResult(
        id=policy.guard_id,
        status=status,
        measured=measured,
        limit="satisfied",
        set_in=str(policy.span),
        message=message,
        advice=how,
        # One exception has to cover all of a violation.
        entities=violation.entities if violation is not None and policy.acceptable and _is_one(violation, how) else (),
    )


def _is_one(violation: _Violation, advice: Message | None) -> bool:
    return advice is not None and len(violation.entities) == 1


def _standing(policy: PlanPolicy, violation: _Violation, about: PolicyInput) -> Iterator[Acceptance]:
    """Acceptances of the Cluster manifest that cover the whole violation today; days are those of UTC."""
    if not policy.acceptable:
        return
    today = about.now.astimezone(datetime.UTC).date()
    for acceptance in about.spec.safety.accept:
        if acceptance.guard != policy.guard_id or acceptance.until < today:
            continue
        match = acceptance.match
        if match is None or (violation.entities and all(match.matches(entity) for entity in violation.entities)):
            yield acceptance
