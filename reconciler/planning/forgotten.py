"""Entities that left the manifests and the scope together: no plan mentions them, so a note has to."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.cluster import Scope
from reconciler.model.entity import Entity
from reconciler.model.state import CurrentState, DesiredState


def forgotten(before: Iterable[Entity], desired: DesiredState, current: CurrentState, scope: Scope) -> tuple[Entity, ...]:
    """Entities declared before and not now, outside the scope now, and still on the cluster; sorted.

    Nothing is known of them when only some manifests were read.
    """
    if not desired.complete:
        return ()
    gone = (entity for entity in before if entity not in desired.entities and current.entities.get(entity))
    return tuple(sorted((entity for entity in gone if not scope.contains(entity)), key=lambda entity: entity.sort_key))


def forgotten_note(entities: tuple[Entity, ...], since: str) -> str:
    """One sentence that names them all."""
    named = ", ".join(str(entity) for entity in entities)
    left = (
        "is neither declared nor in the scope any more, and keeps its"
        if len(entities) == 1
        else ("are neither declared nor in the scope any more, and keep their")
    )
    return f"forgotten, not removed: {named} (declared at {since}) {left} quotas on the cluster"
