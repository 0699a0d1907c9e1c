"""Buckets and their clients: the traffic that a broker counts together against one limit.

For a client with a limit the bucket follows from the winner's level alone, in every version of Kafka: brokers before 4.2 remember
kinds of quotas that are gone, which changes only the tags of clients without a limit.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model import OTHER, ClientName, Entity, EntityType, Known, KnownAddress, KnownClient
from reconciler.resolution.clients import client_of
from reconciler.resolution.kafka_names import address_of
from reconciler.resolution.precedence import CLIENT_LEVELS, USER_LEVELS
from reconciler.resolution.resolver import Resolver

Tags: TypeAlias = Mapping[str, str | None]
"""The broker's metric tags, with raw names; a tag that is empty there is absent here.

``None`` is whatever name the client has: of those that no quota names, each has a bucket of its own.
"""

_USER = EntityType.USER.value
_CLIENT_ID = EntityType.CLIENT_ID.value

_Place: TypeAlias = tuple[ClientName, ClientName]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWith:
    """Other known clients in one bucket, in the order of entities. ``more`` are not listed."""

    clients: tuple[Entity, ...] = ()
    """Some of the clients."""
    more: int = 0
    """So many are not listed."""


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
    """The known clients of a state by the names that their buckets can have; those without a limit are in no bucket."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        """Whatever an entity names may be shared; which of it is, depends on the key."""
        self._by_name: dict[tuple[str, str], list[Entity]] = {}
        for entity in entities:
            for part in entity.parts:
                if isinstance(part[1], str):
                    self._by_name.setdefault((part[0], part[1]), []).append(entity)
        self._buckets: dict[tuple[str, str, str], _Bucket] = {}

    def others(self, key: str, resolver: Resolver, client: KnownClient, level: int, *, most: int) -> SharedWith:
        """Who else is in the bucket of a client whose limit for this key, of this resolver, comes from this level.

        Only levels of users and of client ids pool; all others give every client a bucket of its own.
        """
        if level in USER_LEVELS:
            entity_type, name = _USER, client.user
        elif level in CLIENT_LEVELS:
            entity_type, name = _CLIENT_ID, client.client_id
        else:
            return SharedWith()
        if not isinstance(name, str):
            return SharedWith()
        place = (key, entity_type, name)
        bucket = self._buckets.get(place)
        if bucket is None:
            bucket = self._buckets[place] = self._bucket(resolver, entity_type, name)
        others = itertools.islice((entity for entity, other in bucket.members if other != client), most)
        listed = tuple(others)
        return SharedWith(clients=listed, more=len(bucket.members) - bucket.count[client] - len(listed))

    def _bucket(self, resolver: Resolver, entity_type: str, name: str) -> _Bucket:
        levels = USER_LEVELS if entity_type == _USER else CLIENT_LEVELS
        members = []
        for entity, client in known_clients(self._by_name.get((entity_type, name), ())):
            if isinstance(client, KnownClient):
                winner = resolver.winner(client.user, client.client_id)
                if winner is not None and winner.level in levels:
                    members.append((entity, client))
        return _Bucket(members=members, count=Counter(client for _, client in members))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """Its known clients in the order of entities. ``count``: how many entities stand for one client."""

    members: list[tuple[Entity, KnownClient]]
    count: Counter[KnownClient]


def known_clients(entities: Iterable[Entity]) -> Iterator[tuple[Entity, Known]]:
    """The clients that the entities of a state stand for, in canonical order; what no connection can be stands for none."""
    for entity in sorted(entities, key=lambda entity: entity.sort_key):
        with contextlib.suppress(ValueError):
            yield entity, client_of(entity)


def _place(client: KnownClient, level: int) -> _Place:
    return "" if level in CLIENT_LEVELS else client.user, "" if level in USER_LEVELS else client.client_id


def _as_java_prints(packed: bytes) -> str:
    if len(packed) == 4:
        return ".".join(str(part) for part in packed)
    return ":".join(f"{high << 8 | low:x}" for high, low in zip(packed[::2], packed[1::2], strict=True))
