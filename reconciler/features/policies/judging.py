"""Policies judged over a plan: violated ones that refuse are guards, the others warn. What cannot be evaluated is violated.

Expressions are in CEL, checked once, then evaluated over the plan's document. The library is Google's evaluator. An expression
reads its variables and nothing else, its loops end after 10,000 steps, and its regular expressions are RE2.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from reconciler.documents import PLAN
from reconciler.errors import MissingDependencyError, MissingPackageError, UsageError
from reconciler.manifest import RepositoryDocument, finding
from reconciler.model import (
    NOT_ACCEPTABLE,
    POLICY_PREFIX,
    POLICY_VIOLATED,
    Acceptance,
    Change,
    ClusterSpec,
    Entity,
    Finding,
    GuardResult,
    GuardStatus,
    Message,
    Plan,
    PlanPolicy,
    PolicySeverity,
    PolicySubject,
    Severity,
    compose,
    name_part,
)
from reconciler.policy import GuardContext, Judgement
from reconciler.text import list_entities, near_miss, shown, shown_part
from reconciler.workflows import Intent, owner_lookup

MAX_EXPRESSION: Final = 4000
"""Characters of one expression."""
_PROBLEM: Final = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(-?[0-9]+):(-?[0-9]+): (.*)$", re.MULTILINE)
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_CONTAINER: Final = " (in container '')"
_BOOL: Final = "BOOL"
_MIXED: Final = "No matching overloads found"


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


def expression_findings(repository: RepositoryDocument) -> Iterator[Finding]:
    """Yield a finding for each expression that could not be evaluated, at its place."""
    for entry in repository.policies:
        for expression in entry.policy.expressions:
            try:
                problems = check_expression(expression.text, entry.policy.subject)
            except MissingDependencyError as error:
                yield finding("invalid-policy", str(error), expression.span)
                return
            for problem in problems:
                place = expression.place(problem.line, problem.column)
                message = compose(
                    "policy {name}: {problem}", name=shown_part(entry.policy.name), problem=shown_part(problem.message)
                )
                yield finding("invalid-policy", message, place)


def judge_plan(
    intent: Intent, context: GuardContext, *, accepted: Sequence[str], advice: Callable[[str], Message]
) -> Iterator[Callable[[Plan], Judgement]]:
    """Yield the judge of the policies of a cluster, if it has any. Raises ``UsageError`` as ``check_accepted_policies``."""
    policies = intent.loaded.repository.policies
    # One command may plan many clusters, and an accepted policy need not be about each of them.
    check_accepted_policies([entry.policy for entry in policies], accepted)
    spec = intent.spec
    if chosen := [entry.policy for entry in policies if entry.clusters is None or entry.clusters.chooses(spec)]:
        owner_of = owner_lookup(intent.desired, intent.owners)
        yield lambda plan: judge_policies(
            chosen,
            PolicyInput(document=PLAN.write(plan), changes=plan.changes, owner_of=owner_of, spec=spec, now=context.now),
            accepted=accepted,
            advice=advice,
        )


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
    why = compose("Changes that violate it: {entities}.", entities=list_entities(entities))
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
            how = advice(policy.guard_id) if policy.acceptable else compose(NOT_ACCEPTABLE)
    return GuardResult(
        id=policy.guard_id,
        status=status,
        measured=measured,
        limit="satisfied",
        set_in=str(policy.span),
        message=message,
        advice=how,
        # One exception has to cover all of a violation.
        entities=violation.entities if violation and how and policy.acceptable and len(violation.entities) == 1 else (),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionProblem:
    """What is wrong with an expression. ``line`` and ``column`` count from 1; 0 where the place is not known."""

    message: str
    line: int = 0
    column: int = 0


class ExpressionError(Exception):
    """An expression that cannot be compiled or evaluated."""

    def __init__(self, problems: Sequence[ExpressionProblem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


def check_expression(text: str, subject: PolicySubject) -> tuple[ExpressionProblem, ...]:
    """Return the problems of an expression, before it is evaluated. Raises ``MissingDependencyError``."""
    try:
        _compiled(text, subject)
    except ExpressionError as error:
        return error.problems
    return ()


def evaluate_expression(text: str, subject: PolicySubject, variables: Mapping[str, object]) -> bool:
    """The value. Raises ``ExpressionError``, also for a value that is not true or false, and ``MissingDependencyError``."""
    program = _compiled(text, subject)
    try:
        value = program.eval(data=dict(variables))
        kind, result = value.type().name(), value.value()
    except (RuntimeError, TypeError, ValueError) as error:
        raise _error(str(error)) from None
    if kind == _BOOL or isinstance(result, bool):
        return bool(result)
    if kind == "ERROR":
        raise _error(str(result))
    raise _error(f"the result is {kind.lower()}, and must be true or false")


def _error(text: str) -> ExpressionError:
    message = _STATUS.sub("", _STATUS.sub("", text.strip()))
    if _MIXED in message:
        message += ". Quota values and other fractions are of type double, so write 2.0 instead of 2 beside them"
    return ExpressionError((ExpressionProblem(message=message),))


@lru_cache(maxsize=1024)
def _compiled(text: str, subject: PolicySubject) -> Any:
    if len(text) > MAX_EXPRESSION:
        raise _error(f"the expression has {len(text)} characters, and {MAX_EXPRESSION} is the most")
    try:
        program = _environment(subject).compile(text)
    except RuntimeError as error:
        raise ExpressionError(_problems(str(error))) from None
    kind = program.return_type().name()
    if kind not in (_BOOL, "DYN"):
        message = f"the result is {kind.lower()}, and must be true or false"
        raise ExpressionError((ExpressionProblem(message=message, line=1, column=1),))
    return program


@lru_cache(maxsize=8)
def _environment(subject: PolicySubject) -> Any:
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise MissingPackageError("policies need", "cel_expr_python") from error
    variables = {"plan": cel.Type.DYN, "cluster": cel.Type.DYN, "now": cel.Type.TIMESTAMP}
    if subject is PolicySubject.CHANGE:
        variables["change"] = cel.Type.DYN
    return cel.NewEnv(variables=variables)


def _problems(text: str) -> tuple[ExpressionProblem, ...]:
    """Lines and columns of CEL, where a line begins with column 1, and -1 stands for an unknown place."""
    problems = [
        ExpressionProblem(message=message.removesuffix(_CONTAINER), line=max(0, int(line)), column=max(0, int(column)))
        for line, column, message in _PROBLEM.findall(text)
    ]
    return tuple(dict.fromkeys(problems)) or _error(text).problems


def policy_time(now: datetime.datetime) -> datetime.datetime:
    """The moment of ``now`` in expressions: UTC, whole seconds."""
    return now.astimezone(datetime.UTC).replace(microsecond=0)
