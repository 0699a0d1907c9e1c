"""Guards and drift as findings, for the formats that know nothing else."""

from __future__ import annotations

import re
from typing import Final

from reconciler.model import (
    Drift,
    DriftClass,
    EntityDrift,
    Finding,
    GuardResult,
    GuardStatus,
    KeyDrift,
    Plan,
    Severity,
    Span,
    compose,
    escaped,
    name_part,
)
from reconciler.render.drift_text import class_words, overrides_words
from reconciler.text import amount

GUARD_PREFIX: Final = "guard/"
"""What comes before a guard's id where ids of findings and guards meet."""

_PLACE: Final = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]*):(?P<column>[1-9][0-9]*)", re.DOTALL)
_SEVERITIES: Final = {GuardStatus.NEEDS_ACCEPTANCE: Severity.ERROR, GuardStatus.ACCEPTED: Severity.INFO}


def findings_of_guards(plan: Plan) -> tuple[Finding, ...]:
    """An error for every guard that needs acceptance, an info for every accepted one; those that passed are silent.

    Where owners are isolated, also the findings that withhold an owner.
    """
    guards = tuple(
        Finding(
            id=f"{GUARD_PREFIX}{guard.id}",
            severity=_SEVERITIES[guard.status],
            message=guard_sentence(guard),
            span=_span(guard, plan),
        )
        for guard in (*plan.guards, *plan.withholding_guards)
        if guard.status in _SEVERITIES
    )
    return (*guards, *plan.owner_errors)


def _span(guard: GuardResult, plan: Plan) -> Span | None:
    """The proposed line that the guard is about, else where its limit is set, unless that is a file of another commit."""
    changes = (*plan.changes, *(change for each in plan.withheld for change in each.changes))
    about = [change for change in changes if change.entity in guard.entities]
    if guard.status is GuardStatus.NEEDS_ACCEPTANCE and not about:
        about = list(changes)
    source = next((key.source for change in about for key in change.keys if key.source is not None), None)
    place = _place(guard.set_in)
    return source or (None if place is None or ":" in place.file else place)


def guard_sentence(guard: GuardResult) -> str:
    """The guard's message, and whose changes it is about; for one that needs acceptance also how to accept it."""
    message = guard.message
    if guard.owner is not None:
        message = compose("Owner {owner}: {message}", owner=name_part(guard.owner), message=message)
    if guard.status is not GuardStatus.NEEDS_ACCEPTANCE:
        return message
    return compose("{message} {advice}", message=message, advice=guard.advice or f"To accept, pass {acceptance(guard)}.")


def acceptance(guard: GuardResult) -> str:
    """What to type: ``--accept default-entity``."""
    return f"--accept {guard.id}"


def _place(set_in: str) -> Span | None:
    match = _PLACE.fullmatch(set_in)
    return Span(file=match["file"], line=int(match["line"]), column=int(match["column"])) if match else None


DRIFT_PREFIX: Final = "drift/"
"""What comes before a class of drift where ids of findings and classes meet; ``explain`` knows the class."""


def findings_of_drift(drift: Drift) -> tuple[Finding, ...]:
    """In the order of the entities, each where its manifest declares it; unmanaged entities are none."""
    return tuple(_finding(entity, drift) for entity in drift.entities if entity.drift.is_difference)


def _finding(entity_drift: EntityDrift, drift: Drift) -> Finding:
    keys = "; ".join(_key(key, entity_drift.drift) for key in entity_drift.keys)
    why = f" ({class_words(entity_drift, drift.prune)})" if entity_drift.source is None else ""
    place = entity_drift.source or next((key.source for key in entity_drift.keys if key.source), None)
    return Finding(
        id=f"{DRIFT_PREFIX}{entity_drift.drift.value}",
        severity=Severity.WARNING,
        message=f"{entity_drift.entity}{why}: {keys}",
        span=place,
        entity=entity_drift.entity,
    )


def _key(key: KeyDrift, drift: DriftClass) -> str:
    if drift is DriftClass.ADDED:
        return f"{escaped(key.key)} is {amount(key.key, key.live)} on the cluster{overrides_words(key)}"
    return f"{escaped(key.key)} is {amount(key.key, key.live)} on the cluster, declared {amount(key.key, key.desired)}"
