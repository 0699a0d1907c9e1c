"""Groups of the broker plugin as quotas of their members, which have the same limits and the same precedence.

A member without a quota of its own has the limit of its group where that quota would be: level 3 for a user, level 7 for a
client-id. Only the sharing differs, which ``GroupedQuotas`` knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.model import OTHER, ClientName, Entity, EntityType, GroupPart, KnownClient
from reconciler.resolution.reserved_users import GroupLimit, GroupMember, MemberKind, is_reserved, stored_rule
from reconciler.resolution.resolver import QuotaTable

_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value
_WHOLE: Final = {MemberKind.USER: _USER, MemberKind.CLIENT_ID: _CLIENT_ID}
_PREFIX: Final = {_USER: MemberKind.USER_PREFIX, _CLIENT_ID: MemberKind.CLIENT_ID_PREFIX}


class GroupedQuotas:
    """The quotas of a cluster whose brokers have the plugin. ``quotas``: without reserved users, with the limits of members."""

    def __init__(self, stored: QuotaTable) -> None:
        self._limits: dict[str, Mapping[str, float]] = {}
        self._members: dict[str, list[Entity]] = {}
        self._prefixes: dict[tuple[MemberKind, str], str] = {}
        self.units: dict[tuple[Entity, str], GroupPart] = {}
        """By member and key, the group that sets its limit."""
        self.quotas: dict[Entity, Mapping[str, float]] = {}
        groups: dict[Entity, str] = {}
        for entity, values in stored.items():
            if not is_reserved(entity):
                self.quotas[entity] = values
                continue
            match stored_rule(entity):
                case GroupLimit(group=group):
                    self._limits[group] = values
                case GroupMember(group=group, kind=kind, name=name) if kind in _WHOLE:
                    member = Entity.of({_WHOLE[kind]: name})
                    self._members.setdefault(group, []).append(member)
                    groups[member] = min(group, groups.get(member, group))
                case GroupMember(group=group, kind=kind, name=name):
                    self._prefixes[kind, name] = min(group, self._prefixes.get((kind, name), group))
        self._groups = groups
        for member, group in groups.items():
            self._limit(member, group)

    def _limit(self, member: Entity, group: str) -> None:
        own = self.quotas.get(member, {})
        values = {key: value for key, value in self._limits.get(group, {}).items() if key not in own}
        if values:
            self.quotas[member] = {**own, **values}
            self.units.update(((member, key), GroupPart(group=group, limit=value)) for key, value in values.items())

    def members(self, group: str) -> tuple[Entity, ...]:
        """Members by their full names, in canonical order."""
        return tuple(sorted(self._members.get(group, ()), key=lambda entity: entity.sort_key))

    def with_client(self, client: KnownClient) -> bool:
        """Give a client that only a prefix makes a member its limits. Whether there are such limits."""
        before = len(self.units)
        for entity_type, name in ((_USER, client.user), (_CLIENT_ID, client.client_id)):
            for group in self._by_prefix(entity_type, name):
                self._limit(Entity.of({entity_type: str(name)}), group)
        return len(self.units) > before

    @property
    def has_prefixes(self) -> bool:
        """Whether clients that no entity names may be members."""
        return bool(self._prefixes)

    def _by_prefix(self, entity_type: str, name: ClientName) -> Iterator[str]:
        if name is OTHER or name == "" or Entity.of({entity_type: name}) in self._groups:
            return
        for length in range(len(name), 0, -1):
            group = self._prefixes.get((_PREFIX[entity_type], name[:length]))
            if group is not None:
                yield group
                return
