"""Guards: limits on how much one run may change, each measured, named, and accepted on its own."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UsageError
from reconciler.model.change import Action, Change, Reason
from reconciler.model.cluster import Acceptance, ClusterSpec, Prune
from reconciler.model.entity import Entity
from reconciler.model.plan import GuardResult, GuardStatus
from reconciler.model.selector import any_matches
from reconciler.model.source import Span
from reconciler.model.state import CurrentState, DesiredState

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a guard may look at."""

    changes: tuple[Change, ...]
    desired: DesiredState
    current: CurrentState
    spec: ClusterSpec

    def live_in_scope(self) -> int:
        """Entities on the cluster that this repository owns."""
        return sum(1 for entity in self.current.entities if self.spec.scope.contains(entity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a guard saw. It trips exactly when ``entities`` is not empty; ``why`` completes "Refused because ..."."""

    entities: tuple[Entity, ...]
    measured: str
    limit: str
    why: str
    set_in: Span | None = None


def default_entity(situation: Situation) -> Measurement:
    """A change to a default entity reaches every client that has no quota of its own."""
    touched = tuple(c.entity for c in situation.changes if c.entity.has_default)
    return Measurement(
        entities=touched,
        measured=_entities(len(touched)),
        limit="0 entities",
        why=f"it changes {_listed(touched)}, which reaches every client there without a quota of its own",
    )


def empty_desired_state(situation: Situation) -> Measurement:
    """Manifests that declare nothing, where pruning would then remove everything: rather a wrong folder than an intention."""
    declared = sum(1 for d in situation.desired.entities.values() if d.quotas)
    removed = tuple(c.entity for c in situation.changes if c.action is Action.DELETE) if declared == 0 else ()
    return Measurement(
        entities=removed,
        measured=f"{_entities(declared)} declared",
        limit="at least 1 declared",
        why=f"the manifests declare no quota at all, and all {_entities(len(removed))} in scope would be removed",
        set_in=None,
    )


def too_many_removals(situation: Situation) -> Measurement:
    """Many entities that lose a limit at once; a removed limit falls back to the next level, or to none."""
    limit = situation.spec.removal_limit
    losing = tuple(c.entity for c in situation.changes if any(k.after is None for k in c.keys))
    live = situation.live_in_scope()
    percent = 100 * len(losing) / live if live else 0.0
    exceeds = len(losing) > limit.count or percent > limit.percent
    return Measurement(
        entities=losing if exceeds else (),
        measured=f"{len(losing)} of {_entities(live)} ({percent:.3g} %)",
        limit=f"{limit.percent:.3g} % and {_entities(limit.count)}",
        why=f"{len(losing)} of {_entities(live)} in scope ({percent:.3g} %) would lose limits: {_listed(losing)}",
        set_in=limit.set_in,
    )


def protected_entity(situation: Situation) -> Measurement:
    """A change to an entity on the cluster's protected list, which is kept apart from what it protects."""
    protected = situation.spec.protected
    touched = tuple(c.entity for c in situation.changes if any_matches(protected, c.entity))
    return Measurement(
        entities=touched,
        measured=_entities(len(touched)),
        limit="0 entities",
        why=f"it changes {_listed(touched)}, which the cluster protects",
        set_in=situation.spec.span if protected else None,
    )


def prune(situation: Situation) -> Measurement:
    """Whole entities that no manifest declares, under ``prune: confirm``."""
    gone: tuple[Entity, ...] = ()
    if situation.spec.prune is Prune.CONFIRM:
        gone = tuple(c.entity for c in situation.changes if any(k.reason is Reason.ENTITY_NOT_IN_MANIFEST for k in c.keys))
    return Measurement(
        entities=gone,
        measured=_entities(len(gone)),
        limit="0 entities",
        why=f"no manifest declares {_listed(gone)}, so pruning would remove {'it' if len(gone) == 1 else 'them'}",
        set_in=situation.spec.span,
    )


GUARDS: Final[Mapping[str, Callable[[Situation], Measurement]]] = {
    "default-entity": default_entity,
    "empty-desired-state": empty_desired_state,
    "protected-entity": protected_entity,
    "prune": prune,
    "too-many-removals": too_many_removals,
}
"""Every guard by its id, in the order they are reported."""


def check_guard_ids(accepted: Sequence[str]) -> None:
    """Raise ``UsageError`` for an id that no guard has."""
    unknown = [guard_id for guard_id in accepted if guard_id not in GUARDS]
    if unknown:
        msg = f"there is no guard {unknown[0]!r}; the guards are {', '.join(GUARDS)}"
        raise UsageError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All guards, measured, and what there is to say about acceptances that did nothing."""

    guards: tuple[GuardResult, ...]
    notes: tuple[str, ...]


def judge(situation: Situation, *, accepted: Sequence[str], today: datetime.date) -> Judgement:
    """Measure every guard against the plan; ``accepted`` are the ids named on the command line.

    Raises ``UsageError`` for an id that no guard has.
    """
    check_guard_ids(accepted)
    results: list[GuardResult] = []
    notes: list[str] = []
    for guard_id, measure in GUARDS.items():
        seen = measure(situation)
        in_manifest = [a for a in situation.spec.accept if a.guard == guard_id]
        results.append(_result(guard_id, seen, accepted=guard_id in accepted, standing=in_manifest, today=today))
        notes += _notes(guard_id, seen, accepted=guard_id in accepted, standing=in_manifest, today=today)
    return Judgement(guards=tuple(results), notes=tuple(notes))


def _result(guard_id: str, seen: Measurement, *, accepted: bool, standing: list[Acceptance], today: datetime.date) -> GuardResult:
    set_in = str(seen.set_in) if seen.set_in else "built in"
    valid = [a for a in standing if a.until >= today]
    open_entities = [e for e in seen.entities if not any(a.match is None or a.match.matches(e) for a in valid)]
    if not seen.entities:
        status, message = GuardStatus.PASSED, f"within the limit ({seen.limit})"
    elif accepted:
        status, message = GuardStatus.ACCEPTED, f"{seen.why}; accepted on the command line"
    elif not open_entities:
        status, message = GuardStatus.ACCEPTED, f"{seen.why}; accepted in the manifest: {valid[0].reason}"
    else:
        status = GuardStatus.NEEDS_ACCEPTANCE
        message = f"{seen.why} (measured {seen.measured}, limit {seen.limit}, set in: {set_in}); accept with --accept {guard_id}"
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


def _entities(count: int) -> str:
    return "1 entity" if count == 1 else f"{count} entities"


def _listed(entities: Sequence[Entity]) -> str:
    shown = ", ".join(str(e) for e in entities[:_SHOWN])
    more = len(entities) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
