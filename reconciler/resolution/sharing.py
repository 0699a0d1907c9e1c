"""Buckets and their clients: the traffic that a broker counts together against one limit.

For a client with a limit the bucket follows from the winner's level alone, in every version of Kafka: brokers before 4.2 remember
kinds of quotas that are gone, which changes only the tags of clients without a limit.

A series of a broker has the tags of the quota group that applied when requests were recorded: ``{clientId}`` is the group of that
client-id, and ``{user}`` the group of that user. The quotas of that time decide who is in such a group. A client whose stronger
quota gives it other tags is in another series. Names that no quota has are all alike. Of the others, only a few properties count,
so one client stands for many.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from reconciler.model import OTHER, ClientName, Entity, EntityType, Known, KnownAddress, KnownClient
from reconciler.resolution.kafka_names import client_of, host_address
from reconciler.resolution.precedence import CLIENT_LEVELS, USER_LEVELS, GroupedBy
from reconciler.resolution.resolver import Resolver

Tags: TypeAlias = Mapping[str, str | None]
"""The broker's metric tags, with raw names; a tag that is empty there is absent here.

``None`` is whatever name the client has: of those that no quota names, each has a bucket of its own.
"""

_USER = EntityType.USER.value
_CLIENT_ID = EntityType.CLIENT_ID.value


_PAIRS: Final = 1
_OF_USERS: Final = (2, 3)
"""Levels that are looked up by the user alone."""
_OF_CLIENT_IDS: Final = (4, 7)
"""Levels that are looked up by the client-id alone."""


def tags_of(client: KnownClient, level: int) -> Tags:
    """The tags of a client whose limit comes from this level; an empty client id has no tag."""
    tags: dict[str, str | None] = {}
    user = "" if level in CLIENT_LEVELS else client.user
    client_id = "" if level in USER_LEVELS else client.client_id
    if user != "":
        tags[_USER] = None if user is OTHER else user
    if client_id != "":
        tags[_CLIENT_ID] = None if client_id is OTHER else client_id
    return tags


def tags_of_address(address: KnownAddress) -> Tags:
    """An address in the spelling that brokers use for it, whatever the spelling it was asked in; host names as they are."""
    if address.ip is OTHER:
        return {EntityType.IP.value: None}
    return {EntityType.IP.value: host_address(address.ip) or address.ip}


def known_clients(entities: Iterable[Entity]) -> Iterator[tuple[Entity, Known]]:
    """The clients that the entities of a state stand for, in canonical order; what no connection can be stands for none."""
    for entity in sorted(entities, key=lambda entity: entity.sort_key):
        with contextlib.suppress(ValueError):
            yield entity, client_of(entity)


_Marks: TypeAlias = tuple[bool, ...]
"""In which tables a name is."""


class TagGroups:
    """The groups of ``before``, and which of them keep their clients under ``after``."""

    def __init__(self, before: Resolver, after: Resolver) -> None:
        self._before, self._after = before, after
        self._groups_alike = before.groups_as(after)
        self._users = _by_marks(before, after, _OF_USERS)
        self._client_ids = _by_marks(before, after, _OF_CLIENT_IDS)
        self._client_ids_of: dict[ClientName, set[ClientName]] = {}
        self._users_of: dict[ClientName, set[ClientName]] = {}
        for user, client_id in itertools.chain(before.names_of_level(_PAIRS), after.names_of_level(_PAIRS)):
            self._client_ids_of.setdefault(user, set()).add(client_id)
            self._users_of.setdefault(client_id, set()).add(user)

    def exists(self, user: str | None, client_id: str | None) -> bool:
        """Whether some client is in the group with these tags before the change; ``None`` is an absent tag."""
        return any(True for _ in self._members(user, client_id))

    def stays(self, user: str | None, client_id: str | None) -> bool:
        """Whether all clients of a group that exists are in the group with the same tags after the change."""
        tags = _tags(user, client_id)
        return self._groups_alike or all(self._after.grouped_by(*member) is tags for member in self._members(user, client_id))

    def _members(self, user: str | None, client_id: str | None) -> Iterator[tuple[ClientName, ClientName]]:
        """Yield at least one of the clients that both tables treat alike, for all that are in the group before the change."""
        tags = _tags(user, client_id)
        for member in self._like_those(user, client_id):
            if self._before.grouped_by(*member) is tags:
                yield member

    def _like_those(self, user: str | None, client_id: str | None) -> Iterator[tuple[ClientName, ClientName]]:
        if user is not None and client_id is not None:
            yield user, client_id
        elif user is not None:
            known = self._client_ids_of.get(user, set())
            for name in (OTHER, "", *known, *_one_of_each(self._client_ids.values(), known)):
                yield user, name
        elif client_id is not None:
            known = self._users_of.get(client_id, set())
            for name in (OTHER, *known, *_one_of_each(self._users.values(), known)):
                yield name, client_id


def _tags(user: str | None, client_id: str | None) -> GroupedBy:
    if client_id is None:
        return GroupedBy.USER
    return GroupedBy.CLIENT_ID if user is None else GroupedBy.USER_AND_CLIENT_ID


def _by_marks(before: Resolver, after: Resolver, levels: Iterable[int]) -> dict[_Marks, list[ClientName]]:
    """Names that some quota has, by the tables they are in."""
    tables = [resolver.names_of_level(level) for resolver in (before, after) for level in levels]
    alike: dict[_Marks, list[ClientName]] = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        alike.setdefault(tuple(name in table for table in tables), []).append(name)
    return alike


def _one_of_each(names_alike: Iterable[list[ClientName]], known: set[ClientName]) -> Iterator[ClientName]:
    """A name of each list that is not among the known ones."""
    for names in names_alike:
        other = next((name for name in names if name not in known), None)
        if other is not None:
            yield other
