"""Which quotas of other entities take clients away from the declared ones, by the eight precedence levels and by address.

A quota takes clients from a declared one when it applies to a client that the declared one would limit without it: the client
then has another limit, or a quota group of its own. Each such quota is judged alone, so the order of entities does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import CLIENT_KEYS, DEFAULT, OTHER, ClientName, Entity, EntityType, Limit
from reconciler.resolution.addresses import ADDRESS_KEY, AddressTable
from reconciler.resolution.precedence import CLIENT_PRECEDENCE, GroupedBy, NameMatch, PrecedenceLevel, level_of
from reconciler.resolution.resolver import Candidate, QuotaTable, Resolver

_NAMES_USER: Final = frozenset(level.number for level in CLIENT_PRECEDENCE if level.user is NameMatch.NAME)


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

    def overridden_by(self, entity: Entity, key: str) -> Limit | None:
        """A declared limit that this key of an undeclared entity overrides for some client; ``None``: it overrides none."""
        candidate = self._address(entity) if key == ADDRESS_KEY else self._client(entity, key)
        return None if candidate is None else Limit(value=candidate.value, entity=candidate.entity, level=candidate.level)

    def _client(self, entity: Entity, key: str) -> Candidate | None:
        level = level_of(entity)
        if level is None or level is CLIENT_PRECEDENCE[-1] or key not in self._resolvers:
            return None
        name = entity.name(EntityType.USER)
        # A client whose user no quota names has the fewest stronger quotas in the way, so it stands for all of them.
        user: ClientName = name if isinstance(name, str) else OTHER
        resolver = self._resolvers[key]
        for client_id in self._client_ids_of(entity, key, level):
            winner = resolver.winner(user, client_id)
            if winner is not None and winner.level > level.number and winner.entity in self._declared:
                return winner
            if client_id is OTHER and winner is not None and winner.level in _NAMES_USER:
                # Another quota of the user has all its other client ids, too.
                return None
        return None

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
