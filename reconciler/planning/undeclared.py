"""Entities on the cluster that no manifest declares: those that were declared once, and those that override a declared limit.

``drift`` and ``plan`` both ask here, so that neither calls a difference what the other passes over. Nothing is known of such
entities when only some manifests were read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from reconciler.model import (
    KNOWN_KEYS,
    CurrentState,
    DesiredState,
    Entity,
    Limit,
    Message,
    Prune,
    Quotas,
    Scope,
    compose,
    join_messages,
    name_part,
)
from reconciler.resolution import DeclaredLimits


def undeclared_in_scope(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> tuple[Entity, ...]:
    """Undeclared entities that the scope contains and that have a key this tool knows, sorted."""
    if not desired.complete:
        return ()
    found = (
        entity
        for entity, quotas in live.items()
        if entity not in desired.entities and not KNOWN_KEYS.isdisjoint(quotas) and scope.contains(entity)
    )
    return tuple(sorted(found, key=lambda entity: entity.sort_key))


def kept_entities(entities: Iterable[Entity], earlier: Container[Entity], prune: Prune) -> tuple[Entity, ...]:
    """Those ``entities`` of the scope that were declared earlier and that no apply removes, because of ``prune: never``."""
    return tuple(entity for entity in entities if entity in earlier) if prune is Prune.NEVER else ()


def overriding_entities(
    entities: Iterable[Entity], desired: DesiredState, live: Mapping[Entity, Quotas], *, scope: Scope
) -> dict[Entity, dict[str, Limit]]:
    """Those ``entities`` of the scope that override a declared limit for some client: by key, one limit that each overrides."""
    found: dict[Entity, dict[str, Limit]] = {}
    limits: DeclaredLimits | None = None
    for entity in entities:
        if limits is None:
            beside = {one: quotas for one, quotas in live.items() if not scope.contains(one)}
            declared = {one: quotas for one, quotas in desired.values().items() if scope.contains(one)}
            limits = DeclaredLimits(declared, beside)
        overridden = {key: limit for key in live[entity] if (limit := limits.overridden_by(entity, key)) is not None}
        if overridden:
            found[entity] = overridden
    return found


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
