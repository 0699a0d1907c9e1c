"""What a change of quotas does to clients: every known client resolved before and after, and those that differ.

Only keys and clients that a changed entity can reach are resolved, so that a small change to a large cluster stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.model import (
    CLIENT_KEYS,
    DEFAULT,
    OTHER,
    Effect,
    Entity,
    EntityType,
    Known,
    KnownAddress,
    KnownClient,
    Limit,
    QuotaKey,
    same_value,
)
from reconciler.resolution.addresses import AddressTable, canonical_address
from reconciler.resolution.levels import Candidate, QuotaTable, Resolver

_NOTHING: Final[dict[str, float]] = {}


def moves(before: QuotaTable, after: QuotaTable, known: Iterable[Known]) -> tuple[Effect, ...]:
    """The effects on the known clients: exactly those whose value or source differs, per key.

    In the order of ``known``, then of the keys; a client that is given twice is reported twice.
    """
    changed = changed_entities(before, after)
    keys = client_keys(before, after, changed)
    addresses = AddressMoves(before, after, changed)
    found: list[Effect | None] = []
    for client in known:
        if isinstance(client, KnownAddress):
            found.append(addresses.move(client))
        else:
            found += (key.move(client) for key in keys)
    return tuple(effect for effect in found if effect is not None)


def changed_entities(before: QuotaTable, after: QuotaTable) -> tuple[Entity, ...]:
    """Entities that have another value for some key, in no particular order."""
    return tuple(
        entity
        for entity in before.keys() | after.keys()
        if (one := before.get(entity, _NOTHING)) is not (other := after.get(entity, _NOTHING))
        and any(not same_value(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    )


def client_keys(before: QuotaTable, after: QuotaTable, changed: Iterable[Entity]) -> tuple[KeyMoves, ...]:
    """The four keys of users and client ids, without those that no changed entity touches."""
    found = []
    for key in CLIENT_KEYS:
        values = {
            entity: now
            for entity in changed
            if not same_value(before.get(entity, _NOTHING).get(key), now := after.get(entity, _NOTHING).get(key))
        }
        if values:
            found.append(KeyMoves(before, key, values))
    return tuple(found)


class KeyMoves:
    """One key before and after; built once, then a few look-ups a client."""

    def __init__(self, before: QuotaTable, key: QuotaKey, changed: dict[Entity, float | None]) -> None:
        """``changed``: the entities whose value of this key differs, with the value after (``None``: not set)."""
        self.key = key.value
        self._was = Resolver(before, key.value)
        self._now = self._was.changed(changed)
        names = {(e.name(EntityType.USER), e.name(EntityType.CLIENT_ID)) for e in changed}
        self._touched: frozenset[tuple[object, object]] = frozenset(names)
        self.users = frozenset(user for user, _ in names if isinstance(user, str))
        """Users that a changed entity names."""
        self.client_ids = frozenset(client for _, client in names if isinstance(client, str))
        """Client ids that a changed entity names."""
        self.reaches_everyone = any(not isinstance(user, str) and not isinstance(client, str) for user, client in names)
        """True when a changed entity names nobody: it may move any client."""

    def move(self, client: KnownClient) -> Effect | None:
        """The effect on one client; ``None`` when it keeps its limit."""
        if not self._touches(client):
            return None
        was, now = self.before(client), self.after(client)
        return None if _same(was, now) else Effect(client=client, key=self.key, before=was, after=now)

    def before(self, client: KnownClient) -> Limit | None:
        """The client's limit before."""
        return _winner(self._was, client)

    def after(self, client: KnownClient) -> Limit | None:
        """The client's limit after."""
        return _winner(self._now, client)

    def _touches(self, client: KnownClient) -> bool:
        user, client_id = client.user, client.client_id
        return not self._touched.isdisjoint(
            (
                (user, None),
                (None, client_id),
                (user, client_id),
                (user, DEFAULT),
                (DEFAULT, client_id),
                (DEFAULT, DEFAULT),
                (DEFAULT, None),
                (None, DEFAULT),
            )
        )


class AddressMoves:
    """Connection limits before and after, by address and not by text, as brokers keep them."""

    def __init__(self, before: QuotaTable, after: QuotaTable, changed: Iterable[Entity]) -> None:
        self._was, self._now = AddressTable(before), AddressTable(after)
        names = {name for e in changed if (name := e.name(EntityType.IP)) is not None}
        self.reaches_everyone = DEFAULT in names
        """True when the default address changes: it may move any."""
        self.names = frozenset(canonical_address(name) for name in names if isinstance(name, str))
        """Addresses that a changed entity names, each in one spelling."""

    def move(self, address: KnownAddress) -> Effect | None:
        """The effect on one address; ``None`` when it keeps its limit, or when its spellings disagree."""
        name = address.ip
        if not self.reaches_everyone and (name is OTHER or canonical_address(name) not in self.names):
            return None
        return address_effect(self._was, self._now, address)


def address_effect(before: AddressTable, after: AddressTable, address: KnownAddress) -> Effect | None:
    """What two states mean to an address; ``None``: the same, or not known because its spellings disagree."""
    was, now = before.resolve(address.ip), after.resolve(address.ip)
    if was.unclear or now.unclear:
        return None
    one, other = (_limit(next(iter(answer.found), None)) for answer in (was, now))
    key = QuotaKey.CONNECTION_CREATION_RATE.value
    return None if _same(one, other) else Effect(client=address, key=key, before=one, after=other)


def _winner(resolver: Resolver, client: KnownClient) -> Limit | None:
    return _limit(resolver.winner(client.user, client.client_id))


def _limit(found: Candidate | None) -> Limit | None:
    return None if found is None else Limit(value=found.value, entity=found.entity, level=found.level)


def _same(one: Limit | None, other: Limit | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.entity == other.entity and same_value(one.value, other.value)
