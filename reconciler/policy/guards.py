"""Guards: limits on how much one run may change, each measured, named, and accepted on its own."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import Acceptance, GuardResult, GuardStatus
from reconciler.policy.change_guards import (
    default_entity,
    empty_desired_state,
    large_reduction,
    managed_entity,
    protected_entity,
    prune,
    scope_overlap,
    too_many_changes,
    too_many_removals,
    unknown_current_keys,
)
from reconciler.policy.freeze import FREEZE_WINDOW, freeze_window
from reconciler.policy.guard_context import GuardContext, Measurement

__all__ = ["GUARDS", "RENAMED", "GuardContext", "Judgement", "check_guard_ids", "judge"]

GUARDS: Final[Mapping[str, Callable[[GuardContext], Measurement]]] = {
    "default-entity": default_entity,
    "empty-desired-state": empty_desired_state,
    FREEZE_WINDOW: freeze_window,
    "large-reduction": large_reduction,
    "managed-entity": managed_entity,
    "protected-entity": protected_entity,
    "prune": prune,
    "scope-overlap": scope_overlap,
    "too-many-changes": too_many_changes,
    "too-many-removals": too_many_removals,
    "unknown-current-keys": unknown_current_keys,
}
"""Every guard by its id, in the order they are reported."""

RENAMED: Final[Mapping[str, str]] = {"unmanaged-change": "managed-entity"}
"""Former ids that acceptances may still give, until the next release."""


def check_guard_ids(accepted: Sequence[str]) -> None:
    """Raise ``UsageError`` for an id that no guard has."""
    unknown = [guard_id for guard_id in accepted if guard_id not in GUARDS and guard_id not in RENAMED]
    if unknown:
        msg = f"there is no guard {unknown[0]!r}; the guards are {', '.join(GUARDS)}"
        raise UsageError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All guards, measured, and what there is to say about acceptances that did nothing."""

    guards: tuple[GuardResult, ...]
    notes: tuple[str, ...]


def by_option(guard_id: str) -> str:
    """How to accept a guard in the commands that write once."""
    return f"accept with --accept {guard_id}"


def in_manifest(guard_id: str) -> str:
    """How to accept a guard in the service, which takes no acceptance for a single run."""
    return f"accept it in the Cluster manifest: under spec.accept with guard {guard_id}, a reason and a date for until"


def judge(
    context: GuardContext,
    *,
    accepted: Sequence[str],
    leave_out: Container[str] = (),
    advice: Callable[[str], str] = by_option,
) -> Judgement:
    """Measure every guard against the plan; ``accepted`` are the ids named on the command line. Days are those of UTC.

    ``leave_out``: ids of guards that have no meaning for this plan. ``advice``: how to accept one where this
    plan is made. Raises ``UsageError`` for an id that no guard has.
    """
    check_guard_ids(accepted)
    by_hand = frozenset(_current_id(guard_id) for guard_id in accepted)
    today = context.now.astimezone(datetime.UTC).date()
    results: list[GuardResult] = []
    notes: list[str] = []
    for guard_id, measure in GUARDS.items():
        if guard_id in leave_out:
            continue
        seen = measure(context)
        standing = [a for a in context.spec.accept if _current_id(a.guard) == guard_id]
        result = _result(guard_id, seen, accepted=guard_id in by_hand, standing=standing, today=today, advice=advice)
        results.append(result)
        if seen.only_warns and seen.entities and result.status is GuardStatus.PASSED:
            notes.append(f"{seen.why} (guard {guard_id})")
        notes += _notes(guard_id, seen, accepted=guard_id in by_hand, standing=standing, today=today)
    return Judgement(guards=tuple(results), notes=tuple(notes))


def _current_id(guard_id: str) -> str:
    return RENAMED.get(guard_id, guard_id)


def _result(
    guard_id: str,
    seen: Measurement,
    *,
    accepted: bool,
    standing: list[Acceptance],
    today: datetime.date,
    advice: Callable[[str], str],
) -> GuardResult:
    set_in = str(seen.set_in) if seen.set_in else "built in"
    valid = [a for a in standing if a.until >= today]
    open_entities = [e for e in seen.entities if not any(a.match is None or a.match.matches(e) for a in valid)]
    if not seen.entities:
        status, message = GuardStatus.PASSED, f"within the limit ({seen.limit})"
    elif accepted:
        status, message = GuardStatus.ACCEPTED, f"{seen.why}; accepted on the command line"
    elif not open_entities:
        status, message = GuardStatus.ACCEPTED, f"{seen.why}; accepted in the manifest: {valid[0].reason}"
    elif seen.only_warns:
        status, message = GuardStatus.PASSED, seen.why
    else:
        status = GuardStatus.NEEDS_ACCEPTANCE
        message = f"{seen.why} (measured {seen.measured}, limit {seen.limit}, set in: {set_in}); {advice(guard_id)}"
    return GuardResult(id=guard_id, status=status, measured=seen.measured, limit=seen.limit, set_in=set_in, message=message)


def _notes(
    guard_id: str, seen: Measurement, *, accepted: bool, standing: list[Acceptance], today: datetime.date
) -> Iterable[str]:
    if accepted and not seen.entities:
        yield f"guard {guard_id} was accepted on the command line but did not trip"
    for acceptance in standing:
        where = f" ({acceptance.span})" if acceptance.span else ""
        if acceptance.until < today:
            yield f"the acceptance of guard {guard_id}{where} ended on {acceptance.until.isoformat()}"
        elif not seen.entities:
            yield f"guard {guard_id} is accepted in the manifest{where} but did not trip"
