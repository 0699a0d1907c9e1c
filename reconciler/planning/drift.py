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

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    KNOWN_KEYS,
    CurrentState,
    DesiredEntity,
    DesiredState,
    DriftClass,
    Entity,
    EntityDrift,
    KeyDrift,
    Limit,
    Message,
    Prune,
    QuotaKey,
    Quotas,
    Scope,
    compose,
    join_messages,
    name_part,
    same_value,
)
from reconciler.planning.diff import expiry_of, require_computed
from reconciler.planning.rebalance import brokers_of_part
from reconciler.resolution import DeclaredLimits, Override
from reconciler.text import count_of

_NOTHING: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that is not in sync, in canonical order, and how many entities each class has.

    ``overrides``: of the undeclared entities that ``prune: never`` keeps, by key a declared limit that each of them overrides.
    """

    entities: tuple[EntityDrift, ...]
    counts: Mapping[DriftClass, int]
    overrides: Mapping[Entity, Mapping[str, Override]]


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
    require_computed(desired)
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
    """``None`` for an entity that is not there and shall not be."""
    owned = sides.scope.contains(entity)
    declared = sides.desired.entities.get(entity) if owned else None
    wanted = _wanted(declared)
    present = sides.live.get(entity, _NOTHING)
    was = None if sides.baseline is None or not owned else sides.baseline.get(entity)
    overrides = sides.overrides.get(entity, {})
    has_baseline = sides.baseline is not None
    drift = _classify(wanted, _known(present), was, declared=declared is not None, has_baseline=has_baseline)
    if drift is DriftClass.IN_SYNC and not wanted and not present:
        return None
    if declared is None and (drift is DriftClass.IN_SYNC or was is None):
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


def _wanted(declared: DesiredEntity | None) -> Quotas:
    return _NOTHING if declared is None else {key.value: quota.value for key, quota in declared.quotas.items()}


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


def undeclared_in_scope(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> tuple[Entity, ...]:
    """Undeclared entities that the scope contains and that have a key this tool knows, sorted."""
    if not desired.complete:
        return ()
    undeclared = (
        entity
        for entity, quotas in live.items()
        if entity not in desired.entities and not KNOWN_KEYS.isdisjoint(quotas) and scope.contains(entity)
    )
    return tuple(sorted(undeclared, key=lambda entity: entity.sort_key))


def kept_entities(entities: Iterable[Entity], earlier: Container[Entity], prune: Prune) -> tuple[Entity, ...]:
    """Those ``entities`` of the scope that were declared earlier and that no apply removes, because of ``prune: never``."""
    return tuple(entity for entity in entities if entity in earlier) if prune is Prune.NEVER else ()


def needs_decision(entity: Entity, overrides: Mapping[str, Override], known: Collection[Entity] | None) -> bool:
    """Whether the overrides of an undeclared entity need a decision: a certain one, or an entity that is new since ``known``."""
    return any(override.certain for override in overrides.values()) or (known is not None and entity not in known)


def overriding_entities(
    entities: Iterable[Entity], desired: DesiredState, live: Mapping[Entity, Quotas], *, scope: Scope
) -> dict[Entity, dict[str, Override]]:
    """Those ``entities`` of the scope that override a declared limit for some client: by key, one limit that each overrides."""
    overrides: dict[Entity, dict[str, Override]] = {}
    limits: DeclaredLimits | None = None
    for entity in entities:
        if limits is None:
            beside = {other: quotas for other, quotas in live.items() if not scope.contains(other)}
            declared = {other: quotas for other, quotas in desired.values().items() if scope.contains(other)}
            limits = DeclaredLimits(declared, beside)
        overridden = {key: override for key in live[entity] if (override := limits.overridden_by(entity, key)) is not None}
        if overridden:
            overrides[entity] = overridden
    return overrides


def possible_overrides(overrides: Mapping[Entity, Mapping[str, Override]], known: Collection[Entity] | None) -> Message | None:
    """One sentence about all entities whose overrides need no decision: they only may meet a client of a declared entity."""
    quiet = [entity for entity, of_entity in overrides.items() if not needs_decision(entity, of_entity, known)]
    if not quiet:
        return None
    first = min(quiet, key=lambda entity: entity.sort_key)
    return compose(
        "{entities} that no manifest declares {override} a declared limit for clients that both apply to, if there are such "
        "clients: {first} overrides {limit}{more}. No apply changes {them}.",
        entities=count_of(len(quiet), "entity", "entities"),
        override="overrides" if len(quiet) == 1 else "override",
        first=first,
        limit=min(overrides[first].items())[1].limit.entity,
        more="" if len(quiet) == 1 else ", for example",
        them="it" if len(quiet) == 1 else "them",
    )


def forgotten_entities(
    before: Iterable[Entity], desired: DesiredState, current: CurrentState, scope: Scope
) -> tuple[Entity, ...]:
    """Entities declared before and not now, outside the scope now, and still on the cluster; sorted."""
    if not desired.complete:
        return ()
    gone = (entity for entity in before if entity not in desired.entities and current.entities.get(entity))
    return tuple(sorted((entity for entity in gone if not scope.contains(entity)), key=lambda entity: entity.sort_key))


def forgotten_note(entities: tuple[Entity, ...], since: str) -> Message:
    """One sentence that names them all."""
    left = (
        "is neither declared nor in the scope any more, and keeps its"
        if len(entities) == 1
        else "are neither declared nor in the scope any more, and keep their"
    )
    return compose(
        "Forgotten, not removed: {names} (declared at {since}) {left} quotas on the cluster.",
        names=join_messages(entities),
        since=name_part(since),
        left=left,
    )
