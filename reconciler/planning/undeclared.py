"""Entities on the cluster that no manifest declares: which of them need a decision, and which stay without one.

A quota takes clients from a declared one when it applies to a client that the declared one would limit without it, by the eight
precedence levels or by address: the client then has another limit, or a quota group of its own. Each such quota is judged alone,
so their order does not matter. Such a client need not exist: ``user=alice`` overrides ``client-id=etl`` once alice sends
that client-id. An override is certain where one entity contains the other: all clients of the declared one get another limit, or
those that both of them name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    CLIENT_KEYS,
    DEFAULT,
    KNOWN_KEYS,
    OTHER,
    ClientName,
    CurrentState,
    DesiredState,
    Entity,
    EntityType,
    Limit,
    Message,
    Quotas,
    Scope,
    compose,
    join_messages,
    name_part,
)
from reconciler.resolution import (
    ADDRESS_KEY,
    CLIENT_PRECEDENCE,
    AddressTable,
    Candidate,
    GroupedBy,
    NameMatch,
    PrecedenceLevel,
    QuotaTable,
    Resolver,
    is_alterable,
    level_of,
    needs_broker,
)
from reconciler.text import count_of, list_some

_MOST_NAMED: Final = 10
_REFUSED: Final = "Kafka refuses each request about such names, also a removal."
_HOST_NAME: Final = (
    "Each broker limits the address that it found for such a name, which may be one that a manifest declares. Kafka refuses each "
    "request about a name that its controller cannot resolve, also a removal. Where it can, kafka-quotas alter removes the quota."
)
_NAMES_USER: Final = frozenset(level.number for level in CLIENT_PRECEDENCE if level.user is NameMatch.NAME)
_USER_ALONE: Final = max(_NAMES_USER)


def undeclared_in_scope(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> tuple[Entity, ...]:
    """Undeclared entities that the scope contains, that have a key this tool knows, and that a broker can change; sorted."""
    return tuple(entity for entity in _undeclared(desired, live, scope) if is_alterable(entity))


def unalterable_entities(desired: DesiredState, live: Mapping[Entity, Quotas], scope: Scope) -> tuple[Entity, ...]:
    """Undeclared entities of the scope whose change brokers refuse, or may refuse; sorted.

    No scope contains a combination of types that Kafka does not have, so those of any scope are here.
    """
    if not desired.complete:
        return ()
    combined = (entity for entity in live if not entity.is_known and set(EntityType).issuperset(entity.types))
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
    """Yield why entities of ``unalterable_entities`` stay as they are: a sentence, and one about host names."""
    by_reason: dict[str, list[str]] = {}
    for entity in entities:
        empty = any(name == "" for _, name in entity.parts)
        by_reason.setdefault(_HOST_NAME if needs_broker(entity) and not empty else _REFUSED, []).append(str(entity))
    for reason, alike in by_reason.items():
        yield compose(
            "{entities} {stay} on the cluster, and no plan changes {them}. " + reason,
            entities=list_some(alike, _MOST_NAMED),
            stay="stays" if len(alike) == 1 else "stay",
            them="it" if len(alike) == 1 else "them",
        )


def needs_decision(entity: Entity, overrides: Mapping[str, OverriddenLimit], known: Collection[Entity] | None) -> bool:
    """Whether the overrides of an undeclared entity need a decision: a certain one, or an entity that is new since ``known``."""
    return any(override.certain for override in overrides.values()) or (known is not None and entity not in known)


def overriding_entities(
    entities: Iterable[Entity], desired: DesiredState, live: Mapping[Entity, Quotas], *, scope: Scope
) -> dict[Entity, dict[str, OverriddenLimit]]:
    """Return the ``entities`` of the scope that override a declared limit for some client, with one such limit for each key."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenLimit:
    """A declared limit that another quota overrides for some client. ``certain``: one entity contains the other."""

    limit: Limit
    certain: bool


def is_contained(entity: Entity, declared: Entity) -> bool:
    """Whether one of the two entities has all clients of the other, by the same user and client-id, or the same address.

    A declared default counts only where the other entity has all of its clients: to be overridden by names is what it is for.
    """
    names = [(entity.name(kind), declared.name(kind)) for kind in EntityType]
    if all(name == other for name, other in names if isinstance(name, str)):
        return True
    named = [(name, other) for name, other in names if isinstance(other, str)]
    return bool(named) and all(name == other for name, other in named)


class DeclaredLimits:
    """What the declared quotas limit. Built once for a cluster, then a few look-ups for each other quota."""

    def __init__(self, declared: QuotaTable, beside: QuotaTable) -> None:
        """``beside``: quotas of entities that others own; they apply, and what they override is not reported."""
        table = {**beside, **declared}
        self._table = table
        self._declared = declared.keys()
        self._resolvers = Resolver.by_key(table, CLIENT_KEYS)
        self._addresses = AddressTable(table)
        self._client_ids: dict[str, tuple[str, ...]] = {}

    def overridden_by(self, entity: Entity, key: str) -> OverriddenLimit | None:
        """The declared limit that this key of an undeclared entity overrides, a certain one before others; ``None``: none."""
        if key == ADDRESS_KEY:
            candidate = self._address(entity)
            return None if candidate is None else _override(candidate, certain=not candidate.entity.has_default)
        possible = None
        for candidate in self._clients(entity, key):
            if is_contained(entity, candidate.entity):
                return _override(candidate, certain=True)
            possible = possible or candidate
        return None if possible is None else _override(possible, certain=False)

    def _clients(self, entity: Entity, key: str) -> Iterator[Candidate]:
        level = level_of(entity)
        if level is None or level is CLIENT_PRECEDENCE[-1] or key not in self._resolvers:
            return
        name = entity.name(EntityType.USER)
        # A client whose user no quota names has the fewest stronger quotas in the way, so it stands for all of them.
        user: ClientName = name if isinstance(name, str) else OTHER
        resolver = self._resolvers[key]
        for client_id in self._client_ids_of(entity, key, level):
            winner = resolver.winner(user, client_id)
            if winner is not None and winner.level > level.number and winner.entity in self._declared:
                yield winner
                if level.number == _USER_ALONE:
                    # All that is weaker names no user, and so contains none of its clients: one example is enough.
                    return
            if client_id is OTHER and winner is not None and winner.level in _NAMES_USER:
                # Another quota of the user has all its other client ids, too.
                return

    def _client_ids_of(self, entity: Entity, key: str, level: PrecedenceLevel) -> Iterator[ClientName]:
        """Client ids that stand for all those that the entity applies to."""
        client_id = entity.name(EntityType.CLIENT_ID)
        if isinstance(client_id, str):
            yield client_id
            return
        if level.grouped_by is GroupedBy.USER:
            yield ""
        yield OTHER
        if key not in self._client_ids:
            self._client_ids[key] = tuple(self._named(key))
        yield from self._client_ids[key]

    def _named(self, key: str) -> Iterator[str]:
        """Client ids that a declared quota limits whatever the user is."""
        resolver = self._resolvers[key]
        names = {
            name
            for entity, values in self._table.items()
            if key in values
            and isinstance(name := entity.name(EntityType.CLIENT_ID), str)
            and not isinstance(entity.name(EntityType.USER), str)
        }
        for name in sorted(names):
            winner = resolver.winner(OTHER, name)
            if winner is not None and winner.entity in self._declared:
                yield name

    def _address(self, entity: Entity) -> Candidate | None:
        name = entity.name(EntityType.IP)
        if name is None or name is DEFAULT:
            return None
        return next(
            (candidate for candidate in self._addresses.resolve(name).candidates if candidate.entity in self._declared), None
        )


def _override(candidate: Candidate, *, certain: bool) -> OverriddenLimit:
    return OverriddenLimit(limit=Limit(value=candidate.value, entity=candidate.entity, level=candidate.level), certain=certain)
