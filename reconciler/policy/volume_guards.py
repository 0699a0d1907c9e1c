"""Guards about how much changes at once."""

from __future__ import annotations

from reconciler.formats import number_text
from reconciler.model import Action, KeyChange
from reconciler.policy.situation import Measurement, Situation, counted, listed, share


def empty_desired_state(situation: Situation) -> Measurement:
    """Manifests that declare nothing, where pruning would then remove everything: rather a wrong folder than an intention."""
    declared = sum(1 for d in situation.desired.entities.values() if d.quotas)
    removed = tuple(c.entity for c in situation.changes if c.action is Action.DELETE) if declared == 0 else ()
    return Measurement(
        entities=removed,
        measured=f"{counted(declared)} declared",
        limit="at least 1 declared",
        why=f"the manifests declare no quota at all, and all {counted(len(removed))} in scope would be removed",
        set_in=None,
    )


def too_many_removals(situation: Situation) -> Measurement:
    """Many entities lose a limit at once; a removed limit falls back to the next level, or to none.

    The percentage does not apply to one entity alone, nor to a small cluster: there every removal is a large share.
    """
    limit = situation.spec.guards.too_many_removals
    losing = tuple(c.entity for c in situation.changes if any(k.after is None for k in c.keys))
    percent, affected = share(losing, situation)
    shares = len(losing) > 1 and situation.live_in_scope() > limit.minimum
    exceeds = len(losing) > limit.count or (shares and percent > limit.percent)
    return Measurement(
        entities=losing if exceeds else (),
        measured=affected,
        limit=f"{limit.percent:.3g} % or {counted(limit.count)}" if shares else counted(limit.count),
        why=f"{affected} in scope would lose limits: {listed(losing)}",
        set_in=limit.set_in,
    )


def too_many_changes(situation: Situation) -> Measurement:
    """Many of the cluster's entities change at once. New entities are not counted: they are not part of what exists."""
    limit = situation.spec.guards.too_many_changes
    touched = tuple(c.entity for c in situation.changes if any(k.before is not None for k in c.keys))
    percent, affected = share(touched, situation)
    exceeds = len(touched) > limit.count and percent > limit.percent
    return Measurement(
        entities=touched if exceeds else (),
        measured=affected,
        limit=f"{limit.percent:.3g} % and {counted(limit.count)}",
        why=f"{affected} in scope would change: {listed(touched)}",
        set_in=limit.set_in,
    )


def large_reduction(situation: Situation) -> Measurement:
    """A new value far below the current one, most often a slip of the unit. Removed keys are for ``too-many-removals``."""
    limit = situation.spec.guards.large_reduction
    reduced = [(c.entity, k) for c in situation.changes for k in c.keys if _ratio(k) < limit.of(k.key)]
    if not reduced:
        return Measurement(
            entities=(), measured="none", limit=f"x{limit.factor:.3g} of the current value", why="", set_in=limit.set_in
        )
    entity, key = min(reduced, key=lambda pair: _ratio(pair[1]))
    values = f"{number_text(key.before or 0.0)} to {number_text(key.after or 0.0)}"
    touched = tuple(dict.fromkeys(one for one, _ in reduced))
    more = f"; {counted(len(touched))} in all" if len(touched) > 1 else ""
    return Measurement(
        entities=touched,
        measured=f"x{_ratio(key):.3g}",
        limit=f"x{limit.of(key.key):.3g} of the current value",
        why=f"it takes {key.key} of {entity} from {values}, x{_ratio(key):.3g}{more}",
        set_in=limit.set_in,
    )


def _ratio(key: KeyChange) -> float:
    """New over old; 1 where there is not both, or the old value is none that a limit can have."""
    if key.before is None or key.after is None or not key.before > 0:
        return 1.0
    return key.after / key.before
