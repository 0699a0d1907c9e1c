"""Entities on the cluster that no manifest declares: which of them need a decision, and which stay without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from reconciler.model import (
    KNOWN_KEYS,
    CurrentState,
    DesiredState,
    Entity,
    EntityType,
    Message,
    Quotas,
    Scope,
    compose,
    join_messages,
    name_part,
)
from reconciler.resolution import DeclaredLimits, OverriddenLimit, is_alterable, needs_broker
from reconciler.text import count_of, list_some

_MOST_NAMED: Final = 10
_EMPTY_NAME: Final = (
    "Kafka refuses each request about an empty name, also a removal. Migrations from ZooKeeper left such names, which limit no "
    "client."
)
_EMPTY_IP: Final = (
    "Kafka refuses each request about an ip without a name, also a removal. Brokers read the empty name as their loopback "
    "address, and limit its connections."
)
_HOST_NAME: Final = (
    "Kafka refuses each request about a host name that its controller cannot resolve, also a removal. Where the controller "
    "resolves it, kafka-quotas alter removes the quota."
)
_COMBINATION: Final = "Kafka refuses each request about an ip beside a user or a client-id, also a removal."
_TYPES: Final = frozenset(EntityType)
_NO_ADDRESS: Final = "Kafka refuses each request about an ip that is not an address, also a removal. It limits no client."


def undeclared_in_scope(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> tuple[Entity, ...]:
    """Undeclared entities that the scope contains, that have a key this tool knows, and that a broker can change; sorted."""
    return tuple(entity for entity in _undeclared(desired, live, scope) if is_alterable(entity))


def unalterable_entities(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> tuple[Entity, ...]:
    """Undeclared entities of the scope whose change brokers refuse, or may refuse; sorted.

    No scope contains a combination of types that Kafka does not have, so those of any scope are here.
    """
    if not desired.complete:
        return ()
    combined = (entity for entity in live if not entity.is_known and _TYPES.issuperset(entity.types))
    every = {*_undeclared(desired, live, scope), *combined}
    return tuple(sorted((entity for entity in every if not is_alterable(entity)), key=lambda entity: entity.sort_key))


def _undeclared(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> list[Entity]:
    if not desired.complete:
        return []
    undeclared = (
        entity
        for entity, quotas in live.items()
        if entity not in desired.entities and not KNOWN_KEYS.isdisjoint(quotas) and scope.contains(entity)
    )
    return sorted(undeclared, key=lambda entity: entity.sort_key)


def unalterable_notes(entities: Iterable[Entity]) -> Iterator[Message]:
    """A sentence for each reason why entities of ``unalterable_entities`` stay as they are."""
    by_reason: dict[str, list[Entity]] = {}
    for entity in entities:
        by_reason.setdefault(_reason(entity), []).append(entity)
    for reason, alike in by_reason.items():
        yield compose(
            "{entities} {stay} on the cluster, and no plan changes {them}. " + reason,
            entities=list_some([str(entity) for entity in alike], _MOST_NAMED),
            stay="stays" if len(alike) == 1 else "stay",
            them="it" if len(alike) == 1 else "them",
        )


def _reason(entity: Entity) -> str:
    empty = [entity_type for entity_type, name in entity.parts if name == ""]
    if empty == [EntityType.IP]:
        return _EMPTY_IP
    if empty:
        return _EMPTY_NAME
    if not entity.is_known:
        return _COMBINATION
    return _HOST_NAME if needs_broker(entity) else _NO_ADDRESS


def needs_decision(entity: Entity, overrides: Mapping[str, OverriddenLimit], known: Collection[Entity] | None) -> bool:
    """Whether the overrides of an undeclared entity need a decision: a certain one, or an entity that is new since ``known``."""
    return any(override.certain for override in overrides.values()) or (known is not None and entity not in known)


def overriding_entities(
    entities: Iterable[Entity], desired: DesiredState, live: Mapping[Entity, Quotas], *, scope: Scope
) -> dict[Entity, dict[str, OverriddenLimit]]:
    """Those ``entities`` of the scope that override a declared limit for some client: by key, one limit that each overrides."""
    overrides: dict[Entity, dict[str, OverriddenLimit]] = {}
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


def possible_overrides(
    overrides: Mapping[Entity, Mapping[str, OverriddenLimit]], known: Collection[Entity] | None
) -> Message | None:
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
