"""Kafka's precedence levels: the one table that everything about them derives from.

Source: ``DefaultQuotaCallback`` in Kafka's ``ClientQuotaManager`` for users and client-ids, ``ConnectionQuotas`` for addresses.
A level is a shape of entities. For a client, each level has at most one entity, and the first level whose entity carries the key
decides. No other module repeats the order of the levels, their shapes, or the quota groups that follow from them: resolution,
effects, the writing order, lint, renderers and the report page (which gets the table as data) read it here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.model import DEFAULT, OTHER, ClientName, Entity, EntityName, EntityType

LevelName: TypeAlias = ClientName | EntityName | None
"""One type in the entity of a level: the client's own name, ``DEFAULT``, or ``None`` for an absent type."""

_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value


class NameMatch(enum.StrEnum):
    """What the entities of a level have of one entity type."""

    NAME = "name"
    """The client's own name."""
    DEFAULT = "default"
    ABSENT = "absent"


class GroupedBy(enum.Enum):
    """The names that make a quota group: connections with equal names share one quota. Kafka's kinds of quota.

    The values are the bits of ``quotaTypesEnabled`` in ``ClientQuotaManager``.
    """

    CLIENT_ID = 1
    USER = 2
    USER_AND_CLIENT_ID = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedenceLevel:
    """One level; ``number`` 1 is the strongest of its table."""

    number: int
    user: NameMatch = NameMatch.ABSENT
    client_id: NameMatch = NameMatch.ABSENT

    is_default: bool = False
    """True when its one entity names no client, and so applies to all."""
    grouped_by: GroupedBy
    """The quota group of its winners: the types that its entities have, as names of the client."""

    def names_for(self, user: ClientName, client_id: ClientName) -> tuple[LevelName, LevelName]:
        """User and client-id of the entity that this level looks up for a client."""
        return _name(self.user, user), _name(self.client_id, client_id)

    def entity_for(self, user: ClientName, client_id: ClientName) -> Entity | None:
        """The entity that sets this level for a client; ``None`` when none can: it needs a name that is empty or ``OTHER``."""
        if self.is_default:
            return DEFAULT_ENTITIES[self.number]
        names: dict[str, EntityName] = {}
        for entity_type, name in zip((_USER, _CLIENT_ID), self.names_for(user, client_id), strict=True):
            if name is OTHER or name == "":
                return None
            if name is not None:
                names[entity_type] = name
        return Entity.of(names)


def _name(match: NameMatch, name: ClientName) -> LevelName:
    if match is NameMatch.NAME:
        return name
    return DEFAULT if match is NameMatch.DEFAULT else None


_BOTH: Final = GroupedBy.USER_AND_CLIENT_ID
CLIENT_PRECEDENCE: Final = (
    PrecedenceLevel(number=1, user=NameMatch.NAME, client_id=NameMatch.NAME, grouped_by=_BOTH),
    PrecedenceLevel(number=2, user=NameMatch.NAME, client_id=NameMatch.DEFAULT, grouped_by=_BOTH),
    PrecedenceLevel(number=3, user=NameMatch.NAME, grouped_by=GroupedBy.USER),
    PrecedenceLevel(number=4, user=NameMatch.DEFAULT, client_id=NameMatch.NAME, grouped_by=_BOTH),
    PrecedenceLevel(number=5, user=NameMatch.DEFAULT, client_id=NameMatch.DEFAULT, is_default=True, grouped_by=_BOTH),
    PrecedenceLevel(number=6, user=NameMatch.DEFAULT, is_default=True, grouped_by=GroupedBy.USER),
    PrecedenceLevel(number=7, client_id=NameMatch.NAME, grouped_by=GroupedBy.CLIENT_ID),
    PrecedenceLevel(number=8, client_id=NameMatch.DEFAULT, is_default=True, grouped_by=GroupedBy.CLIENT_ID),
)
"""The levels of users and client-ids, the strongest first. Each quota key is resolved by itself."""

ADDRESS_PRECEDENCE: Final = (NameMatch.NAME, NameMatch.DEFAULT)
"""The levels of connection limits, the strongest first: the address itself, then the default address."""

DEFAULT_ENTITIES: Final[Mapping[int, Entity]] = {
    level.number: Entity.of(
        {t: DEFAULT for t, m in ((_USER, level.user), (_CLIENT_ID, level.client_id)) if m is NameMatch.DEFAULT}
    )
    for level in CLIENT_PRECEDENCE
    if level.is_default
}
"""By level number, the entities of users and client-ids that name no client."""

USER_LEVELS: Final = tuple(level.number for level in CLIENT_PRECEDENCE if level.grouped_by is GroupedBy.USER)
"""Numbers of the levels whose quota group is the user, whatever the client-id; the only ones that an empty client-id meets."""
CLIENT_LEVELS: Final = tuple(level.number for level in CLIENT_PRECEDENCE if level.grouped_by is GroupedBy.CLIENT_ID)
"""Numbers of the levels whose quota group is the client-id, for all users of it."""

_BY_SHAPE: Final = {(level.user, level.client_id): level for level in CLIENT_PRECEDENCE}
_MATCHES: Final = {None: NameMatch.ABSENT, False: NameMatch.NAME, True: NameMatch.DEFAULT}
_LEVELS: Final = {
    (user, client_id): _BY_SHAPE[_MATCHES[user], _MATCHES[client_id]]
    for user in _MATCHES
    for client_id in _MATCHES
    if (_MATCHES[user], _MATCHES[client_id]) in _BY_SHAPE
}


def level_of_names(user: EntityName | None, client_id: EntityName | None) -> PrecedenceLevel:
    """The level of an entity with these names, of which ``None`` is an absent type. Raises ``KeyError`` when both are absent."""
    # Looked up by booleans: hashing members of an enum takes most of the time to build the tables of a large cluster.
    return _LEVELS[None if user is None else user is DEFAULT, None if client_id is None else client_id is DEFAULT]


def client_names(entity: Entity) -> tuple[EntityName | None, EntityName | None] | None:
    """User and client-id of an entity; ``None`` for an address and for shapes that Kafka does not resolve by these levels."""
    parts = entity.parts
    first, name = parts[0]
    if len(parts) == 1:
        return (name, None) if first == _USER else (None, name) if first == _CLIENT_ID else None
    second, other = parts[1]
    return (name, other) if len(parts) == 2 and first == _USER and second == _CLIENT_ID else None


def level_of(entity: Entity) -> PrecedenceLevel | None:
    """The level of an entity of users and client-ids; ``None`` for an address and for shapes that Kafka resolves otherwise."""
    names = client_names(entity)
    return None if names is None else level_of_names(*names)


def weaker_levels(entity: Entity) -> tuple[PrecedenceLevel, ...]:
    """The levels that decide for the clients of an entity without it, the strongest first; none for other entities."""
    level = level_of(entity)
    return () if level is None else CLIENT_PRECEDENCE[level.number :]


def named_or_other(entity: Entity) -> tuple[ClientName, ClientName]:
    """User and client-id of a client of this entity, of which ``OTHER`` may be any name."""
    user, client_id = entity.name(_USER), entity.name(_CLIENT_ID)
    return user if isinstance(user, str) else OTHER, client_id if isinstance(client_id, str) else OTHER


def overlap(entity: Entity, other: Entity) -> bool:
    """True when some client or address meets both entities, so that one decides where the other does not set a key."""
    if (EntityType.IP in entity.types) != (EntityType.IP in other.types):
        return False
    for entity_type in EntityType:
        name, other_name = entity.name(entity_type), other.name(entity_type)
        if isinstance(name, str) and isinstance(other_name, str) and name != other_name:
            return False
    return True


def strength(entity: Entity) -> int:
    """The number of its level in its table: a smaller one decides first."""
    level = level_of(entity)
    if level is not None:
        return level.number
    return ADDRESS_PRECEDENCE.index(NameMatch.DEFAULT if entity.has_default else NameMatch.NAME) + 1
