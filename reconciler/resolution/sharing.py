"""Buckets and who falls into them: what the broker counts together against one limit.

For a client with a limit the bucket follows from the winner's level alone, in every version of Kafka: brokers before 4.2 remember
kinds of quotas that are gone, which changes only the tags of clients without a limit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model.effect import OTHER, ClientName, Known, KnownAddress, KnownClient
from reconciler.model.entity import Entity, EntityType
from reconciler.model.ip_literals import address_of
from reconciler.resolution.asked import asked_client
from reconciler.resolution.levels import CLIENT_LEVELS, USER_LEVELS, Resolver

Tags: TypeAlias = Mapping[str, str | None]
"""The broker's metric tags, with raw names; a tag that is empty there is absent here.

``None`` is whatever name the client has: of those that no quota names, each has a bucket of its own.
"""

_USER = EntityType.USER.value
_CLIENT_ID = EntityType.CLIENT_ID.value

_Place: TypeAlias = tuple[ClientName, ClientName]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWith:
    """Other known clients in one bucket, in the order of entities; ``more`` are not listed."""

    clients: tuple[Entity, ...] = ()
    more: int = 0


def tags_of(client: KnownClient, level: int) -> Tags:
    """The tags of a client whose limit comes from this level; an empty client id has no tag."""
    tags: dict[str, str | None] = {}
    user, client_id = _place(client, level)
    if user != "":
        tags[_USER] = None if user is OTHER else user
    if client_id != "":
        tags[_CLIENT_ID] = None if client_id is OTHER else client_id
    return tags


def tags_of_address(address: KnownAddress) -> Tags:
    """An address in the spelling that brokers use for it, whatever the spelling it was asked in; host names as they are."""
    if address.ip is OTHER:
        return {EntityType.IP.value: None}
    packed = address_of(address.ip)
    return {EntityType.IP.value: address.ip if packed is None else _as_java_prints(packed)}


class Sharing:
    """The known clients of a state by the buckets of one key; those without a limit are in none."""

    def __init__(self, resolver: Resolver, known: Iterable[tuple[Entity, Known]]) -> None:
        """``known`` in the order in which they are listed; addresses are in no bucket of clients."""
        self._buckets: dict[_Place, list[tuple[Entity, KnownClient]]] = {}
        for entity, client in known:
            if isinstance(client, KnownAddress):
                continue
            winner = resolver.winner(client.user, client.client_id)
            if winner is not None:
                self._buckets.setdefault(_place(client, winner.level), []).append((entity, client))

    def others(self, client: KnownClient, level: int, *, most: int) -> SharedWith:
        """Who else is in the bucket of a client whose limit comes from this level."""
        place = _place(client, level)
        if OTHER in place:
            return SharedWith()
        others = [entity for entity, other in self._buckets.get(place, ()) if other != client]
        return SharedWith(clients=tuple(others[:most]), more=max(0, len(others) - most))


def known_clients(entities: Iterable[Entity]) -> Iterator[tuple[Entity, Known]]:
    """The clients that the entities of a state stand for, in canonical order; what no connection can be stands for none."""
    for entity in sorted(entities, key=lambda entity: entity.sort_key):
        with contextlib.suppress(ValueError):
            yield entity, asked_client(entity)


def _place(client: KnownClient, level: int) -> _Place:
    return "" if level in CLIENT_LEVELS else client.user, "" if level in USER_LEVELS else client.client_id


def _as_java_prints(packed: bytes) -> str:
    if len(packed) == 4:
        return ".".join(str(part) for part in packed)
    return ":".join(f"{high << 8 | low:x}" for high, low in zip(packed[::2], packed[1::2], strict=True))
