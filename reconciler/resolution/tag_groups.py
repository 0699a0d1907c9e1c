"""Quota groups that are known by their metric tags, before and after a change of one key.

A series of a broker has the tags of the quota group that applied when requests were recorded. ``{clientId}`` is the group of that
client-id, and ``{user}`` the group of that user. The quotas of that time decide who is in such a group. A client whose stronger
quota gives it other tags is in another series.

Names that no quota has are all alike. Of the others, only a few properties count, so one client stands for many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from reconciler.model import OTHER, ClientName
from reconciler.resolution.precedence import GroupedBy
from reconciler.resolution.resolver import Resolver

_PAIRS: Final = 1
_OF_USERS: Final = (2, 3)
"""Levels that are looked up by the user alone."""
_OF_CLIENT_IDS: Final = (4, 7)
"""Levels that are looked up by the client-id alone."""
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
        for user, client_id in _pairs(before, after):
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
        """At least one of the clients that both tables treat alike, for all that are in the group before the change."""
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


def _pairs(before: Resolver, after: Resolver) -> Iterator[tuple[ClientName, ClientName]]:
    for resolver in (before, after):
        yield from resolver.names_of_level(_PAIRS)


def _one_of_each(names_alike: Iterable[list[ClientName]], known: set[ClientName]) -> Iterator[ClientName]:
    """A name of each list that is not among the known ones."""
    for names in names_alike:
        other = next((name for name in names if name not in known), None)
        if other is not None:
            yield other
