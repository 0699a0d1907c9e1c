"""Which quotas of other entities take clients away from the declared ones, by the eight precedence levels and by address.

A quota takes clients from a declared one when it applies to a client that the declared one would limit without it: the client
then has another limit, or a quota group of its own. Each such quota is judged alone, so the order of entities does not matter.

Such a client need not exist: ``user=alice`` overrides ``client-id=etl`` once alice sends that client-id. An override is certain
where one entity contains the other: all clients of the declared one get another limit, or those that both of them name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.model import CLIENT_KEYS, DEFAULT, OTHER, ClientName, Entity, EntityType, Limit
from reconciler.resolution.addresses import ADDRESS_KEY, AddressTable
from reconciler.resolution.precedence import CLIENT_PRECEDENCE, GroupedBy, NameMatch, PrecedenceLevel, level_of
from reconciler.resolution.resolver import Candidate, QuotaTable, Resolver

_TYPES: Final = (EntityType.USER.value, EntityType.CLIENT_ID.value, EntityType.IP.value)
_NAMES_USER: Final = frozenset(level.number for level in CLIENT_PRECEDENCE if level.user is NameMatch.NAME)
_USER_ALONE: Final = max(_NAMES_USER)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenLimit:
    """A declared limit that another quota overrides for some client. ``certain``: one entity contains the other."""

    limit: Limit
    certain: bool


def is_contained(entity: Entity, declared: Entity) -> bool:
    """Whether one of the two entities has all clients of the other, by the same user and client-id, or the same address.

    A declared default counts only where the other entity has all of its clients: to be overridden by names is what it is for.
    """
    names = [(entity.name(kind), declared.name(kind)) for kind in _TYPES]
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
