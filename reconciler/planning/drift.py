"""Drift classes: desired (D), baseline (B) and live (L) state compared entity by entity; pure, and total over all three.

For an entity that the manifests declare, or that the scope contains, the first that is true counts:

- in sync: L = D
- unapplied: L = B, and so B differs from D: merged, and not applied yet
- missing: in B, and nothing of it is live: it was removed from the cluster
- changed: live with other values than B, or than D if B does not have it: its values were changed on the cluster
- added: in neither B nor D, and live, where pruning removes it, where it certainly overrides a declared limit, or where it may
  override one and is new since the baseline
- unmanaged: in neither B nor D, and live

Without a baseline the middle three are ``differs`` for declared entities, and an undeclared entity may also be one that was
declared before. Entities outside the scope are never written, so they are unmanaged, whatever the baseline has. Values are
compared as brokers do, and only for the keys that this tool knows.

Entities that no manifest declares, but that were declared once or override a declared limit, are decided here for ``drift`` and
``plan`` alike, so that neither calls a difference what the other passes over. Nothing is known of such entities when only some
manifests were read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    KNOWN_KEYS,
    DesiredEntity,
    DesiredState,
    DriftClass,
    Entity,
    EntityDrift,
    KeyDrift,
    Limit,
    Prune,
    QuotaKey,
    Quotas,
    Scope,
    same_value,
)
from reconciler.planning.diff import brokers_of_part, expiry_of, uncomputed
from reconciler.planning.undeclared import OverriddenLimit, needs_decision, overriding_entities, undeclared_in_scope
from reconciler.resolution import is_alterable

_NOTHING: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that is not in sync, in canonical order, and how many entities each class has.

    ``overrides``: of the undeclared entities that ``prune: never`` keeps, by key a declared limit that each of them overrides.
    """

    entities: tuple[EntityDrift, ...]
    counts: Mapping[DriftClass, int]
    overrides: Mapping[Entity, Mapping[str, OverriddenLimit]]


def compare(
    desired: DesiredState,
    live: Mapping[Entity, Quotas],
    baseline: Mapping[Entity, Quotas] | None,
    *,
    scope: Scope,
    prune: Prune,
    unmanaged_then: Collection[Entity] | None = None,
) -> Comparison:
    """Classify every entity that any side has. ``unmanaged_then``: undeclared ones of the baseline; ``None``: not known.

    When only some manifests were read (``desired`` is not complete), only what they declare is looked at: of the rest it is not
    known whether another manifest has it. Raises ``ValueError`` while values of the desired state are not computed yet.
    """
    if desired.with_units:
        raise uncomputed(desired)
    candidates = set(desired.entities)
    if desired.complete:
        candidates |= live.keys() | (baseline or {}).keys()
    additions = [entity for entity in undeclared_in_scope(desired, live, scope) if entity not in (baseline or {})]
    overrides = overriding_entities(additions, desired, live, scope=scope) if prune is Prune.NEVER else {}
    sides = _Sides(
        desired=desired,
        live=live,
        baseline=baseline,
        scope=scope,
        added=frozenset(additions) if prune is not Prune.NEVER else frozenset(),
        overrides={
            entity: {key: override.limit for key, override in of_entity.items()}
            for entity, of_entity in overrides.items()
            if needs_decision(entity, of_entity, unmanaged_then)
        },
    )
    counts = dict.fromkeys(DriftClass, 0)
    drifted: list[EntityDrift] = []
    for entity in candidates:
        entity_drift = _entity(entity, sides)
        if entity_drift is None:
            continue
        counts[entity_drift.drift] += 1
        if entity_drift.drift is not DriftClass.IN_SYNC:
            drifted.append(entity_drift)
    drifted.sort(key=lambda entity_drift: entity_drift.entity.sort_key)
    return Comparison(entities=tuple(drifted), counts=counts, overrides=overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """What every entity is compared with. ``added``: undeclared entities that pruning removes."""

    desired: DesiredState
    live: Mapping[Entity, Quotas]
    baseline: Mapping[Entity, Quotas] | None
    scope: Scope
    added: frozenset[Entity]
    overrides: Mapping[Entity, Mapping[str, Limit]]


def _entity(entity: Entity, sides: _Sides) -> EntityDrift | None:
    """Return the drift of one entity. ``None`` when it is not there and is not declared."""
    owned = sides.scope.contains(entity)
    declared = sides.desired.entities.get(entity) if owned else None
    wanted = _NOTHING if declared is None else {key.value: quota.value for key, quota in declared.quotas.items()}
    present = sides.live.get(entity, _NOTHING)
    was = None if sides.baseline is None or not owned else sides.baseline.get(entity)
    overrides = sides.overrides.get(entity, {})
    has_baseline = sides.baseline is not None
    drift = _classify(wanted, _known(present), was, declared=declared is not None, has_baseline=has_baseline)
    if drift is DriftClass.IN_SYNC and not wanted and not present:
        return None
    if declared is None and not is_alterable(entity):
        drift = DriftClass.UNMANAGED
    elif declared is None and (drift is DriftClass.IN_SYNC or was is None):
        drift = DriftClass.ADDED if overrides or entity in sides.added else DriftClass.UNMANAGED
    whole = drift in (DriftClass.ADDED, DriftClass.UNMANAGED)
    return EntityDrift(
        entity=entity,
        drift=drift,
        keys=tuple(_keys(declared, wanted, present, was, overrides, everything=whole)),
        source=declared.source if declared else None,
        declared=declared is not None,
        in_scope=owned,
    )


def _classify(wanted: Quotas, live: Quotas, was: Quotas | None, *, declared: bool, has_baseline: bool) -> DriftClass:
    if _equal(live, wanted):
        return DriftClass.IN_SYNC
    if not has_baseline:
        return DriftClass.DIFFERS if declared else DriftClass.UNMANAGED
    if _equal(live, _known(was or _NOTHING)):
        return DriftClass.UNAPPLIED
    return DriftClass.CHANGED if live else DriftClass.MISSING


def _known(quotas: Quotas) -> Quotas:
    return quotas if quotas.keys() <= KNOWN_KEYS else {key: value for key, value in quotas.items() if key in KNOWN_KEYS}


def _equal(quotas: Quotas, other: Quotas) -> bool:
    return quotas.keys() == other.keys() and all(same_value(value, other[key]) for key, value in quotas.items())


def _keys(
    declared: DesiredEntity | None,
    wanted: Quotas,
    live: Quotas,
    was: Quotas | None,
    overrides: Mapping[str, Limit],
    *,
    everything: bool,
) -> Iterator[KeyDrift]:
    before = was or _NOTHING
    for key in sorted(wanted.keys() | live.keys() | before.keys()):
        sides = (wanted.get(key), before.get(key), live.get(key))
        agree = same_value(sides[0], sides[2]) and (was is None or same_value(sides[1], sides[2]))
        if not everything and (agree or key not in KNOWN_KEYS):
            continue
        quota = declared.quotas.get(QuotaKey(key)) if declared is not None and key in KNOWN_KEYS else None
        source = quota.source if quota else None
        unit = quota.unit if quota else None
        yield KeyDrift(
            key=key,
            desired=sides[0],
            baseline=sides[1],
            live=sides[2],
            source=source,
            overrides=overrides.get(key),
            unit=unit,
            brokers_before=brokers_of_part(unit, sides[2]),
            expiry=expiry_of(declared, QuotaKey(key)) if declared is not None and key in KNOWN_KEYS else None,
        )
