"""Guards: limits on how much one run may change, each measured, named, and accepted on its own."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import (
    MOST_EXCEPTED,
    Acceptance,
    Finding,
    GuardResult,
    GuardStatus,
    KeptEntity,
    Message,
    Prune,
    RebalancePolicy,
    compose,
    flag_part,
    name_part,
)
from reconciler.policy.change_guards import (
    FREEZE_WINDOW,
    GuardContext,
    Measurement,
    default_entity,
    empty_desired_state,
    freeze_window,
    large_reduction,
    managed_entity,
    protected_entity,
    prune,
    rebalance,
    scope_overlap,
    too_many_changes,
    too_many_removals,
    unknown_current_keys,
)
from reconciler.text import near_miss, shown

GUARDS: Final[Mapping[str, Callable[[GuardContext], Measurement]]] = {
    "default-entity": default_entity,
    "empty-desired-state": empty_desired_state,
    FREEZE_WINDOW: freeze_window,
    "large-reduction": large_reduction,
    "managed-entity": managed_entity,
    "protected-entity": protected_entity,
    "prune": prune,
    "rebalance": rebalance,
    "scope-overlap": scope_overlap,
    "too-many-changes": too_many_changes,
    "too-many-removals": too_many_removals,
    "unknown-current-keys": unknown_current_keys,
}
"""Every guard by its id, in the order they are reported."""

_NEEDED: Final[Mapping[str, Callable[[GuardContext], bool]]] = {
    FREEZE_WINDOW: lambda context: bool(context.spec.safety.freeze),
    "default-entity": lambda context: any(change.entity.has_default for change in context.changes),
    "managed-entity": lambda context: bool(context.managed),
    "protected-entity": lambda context: bool(context.spec.safety.protected),
    "prune": lambda context: context.spec.prune is Prune.CONFIRM,
    "rebalance": lambda context: (
        context.spec.rebalance is RebalancePolicy.CONFIRM
        and any(key.brokers_before is not None for change in context.changes for key in change.keys)
    ),
    "scope-overlap": lambda context: bool(context.claimed_elsewhere),
}
"""What there has to be before a guard can trip. Without it, the guard passes and is not entered."""
_PASSED: Final = Measurement(measured="0 entities", limit="0 entities")


def check_guard_ids(accepted: Sequence[str]) -> None:
    """Raise ``UsageError`` for an id that no guard has."""
    unknown = [guard_id for guard_id in accepted if guard_id not in GUARDS]
    if unknown:
        near = near_miss(unknown[0], GUARDS) or f". The guards are {', '.join(GUARDS)}"
        msg = f"unknown guard {shown(unknown[0])}{near}"
        raise UsageError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge of a change finds: lint and the guards give the same."""

    guards: tuple[GuardResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    kept: tuple[KeptEntity, ...] = ()
    """Entities that left the manifests and stay."""


def by_option(guard_id: str) -> Message:
    """Return how to accept a guard in the commands that write once."""
    return compose("To accept, pass {flag}.", flag=flag_part(f"--accept {guard_id}"))


def in_manifest(guard_id: str) -> Message:
    """Return how to accept a guard in the service, which takes no acceptance for a single run."""
    return compose(
        "To accept, add guard {guard} to {field} of the Cluster manifest, with a reason and an expiry date in {until}.",
        guard=name_part(guard_id),
        field=flag_part("spec.accept"),
        until=flag_part("until"),
    )


def judge(
    context: GuardContext,
    *,
    accepted: Sequence[str],
    leave_out: Container[str] = (),
    advice: Callable[[str], Message] = by_option,
) -> Judgement:
    """Measure every guard against the plan; ``accepted`` are the ids named on the command line. Days are those of UTC.

    ``leave_out``: ids of guards that have no meaning for this plan. ``advice``: how to accept one where this
    plan is made. Raises ``UsageError`` for an id that no guard has.
    """
    if accepted:
        check_guard_ids(accepted)
    today = context.now.astimezone(datetime.UTC).date()
    results: list[GuardResult] = []
    notes: list[Message] = []
    for guard_id, measure in GUARDS.items():
        if guard_id in leave_out:
            continue
        is_needed = _NEEDED.get(guard_id)
        seen = measure(context) if is_needed is None or is_needed(context) else _PASSED
        standing = [a for a in context.spec.safety.accept if a.guard == guard_id]
        result = _result(guard_id, seen, accepted=guard_id in accepted, standing=standing, today=today, advice=advice)
        results.append(result)
        if seen.only_warns and seen.entities and result.status is GuardStatus.PASSED:
            notes.append(compose("{why} (guard {guard})", why=seen.why, guard=name_part(guard_id)))
        if standing or guard_id in accepted:
            notes += _notes(guard_id, seen, accepted=guard_id in accepted, standing=standing, today=today)
    return Judgement(guards=tuple(results), notes=tuple(notes))


def _result(
    guard_id: str,
    seen: Measurement,
    *,
    accepted: bool,
    standing: list[Acceptance],
    today: datetime.date,
    advice: Callable[[str], Message],
) -> GuardResult:
    set_in = str(seen.set_in) if seen.set_in else "built in"
    valid = [a for a in standing if a.until >= today]
    open_entities = [e for e in seen.entities if not any(a.match is None or a.match.matches(e) for a in valid)]
    measured = compose("Measured {measured}, limit {limit}", measured=seen.measured, limit=seen.limit)
    how = None
    if not seen.entities:
        passed = compose("Nothing to check.") if seen is _PASSED else compose("Within the limit ({limit}).", limit=seen.limit)
        status, message = GuardStatus.PASSED, passed
    elif accepted:
        status, message = GuardStatus.ACCEPTED, compose("{why} Accepted on the command line.", why=seen.why)
    elif not open_entities:
        status = GuardStatus.ACCEPTED
        reason = name_part(valid[0].reason.rstrip(" ."))
        message = compose("{why} Accepted in the manifest: {reason}.", why=seen.why, reason=reason)
    elif seen.only_warns:
        status, message = GuardStatus.PASSED, seen.why
    else:
        status, how = GuardStatus.NEEDS_ACCEPTANCE, advice(guard_id)
        place = compose("set in {place}", place=seen.set_in) if seen.set_in else compose("built in")
        message = compose("{why} {measured}, {place}.", why=seen.why, measured=measured, place=place)
    return GuardResult(
        id=guard_id,
        status=status,
        measured=seen.measured,
        limit=seen.limit,
        set_in=set_in,
        message=message,
        advice=how,
        entities=tuple(open_entities) if how is not None and len(open_entities) <= MOST_EXCEPTED else (),
    )


def _notes(
    guard_id: str, seen: Measurement, *, accepted: bool, standing: list[Acceptance], today: datetime.date
) -> Iterable[Message]:
    guard = name_part(guard_id)
    if accepted and not seen.entities:
        yield compose("Guard {guard} was accepted on the command line but did not trip.", guard=guard)
    for acceptance in standing:
        where = compose(" ({place})", place=acceptance.span) if acceptance.span else ""
        if acceptance.until < today:
            yield compose(
                "The exception for guard {guard}{where} expired on {day}.",
                guard=guard,
                where=where,
                day=acceptance.until.isoformat(),
            )
