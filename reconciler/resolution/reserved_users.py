"""Groups and totals as quotas of reserved users, which the broker plugin in ``callback/`` reads (its class ``StoredRule``).

Kafka replicates quotas to every broker and applies those of one request together. Without the plugin they have no effect, because
no client is authenticated as such a user. A member of a group without a quota of its own has the limit of the group where that
quota would be: level 3 for a user, level 7 for a client-id.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.model import (
    DEFAULT,
    OTHER,
    ClientName,
    ClusterIdentity,
    Entity,
    EntityName,
    EntityType,
    GroupPart,
    KnownClient,
    Message,
    compose,
    display_name,
    flag_part,
    name_part,
)
from reconciler.resolution.kafka_names import sanitize_name, unsanitize_name
from reconciler.resolution.resolver import QuotaTable

GROUP_CALLBACK: Final = "kafkaquotas.callback.GroupQuotaCallback"
"""The value of ``client.quota.callback.class`` on brokers that have the plugin."""
RESERVED_USERS: Final = "kafka-quotas:"
"""The beginning of every reserved user's name."""
LONGEST_PREFIX: Final = 255
"""The plugin ignores longer prefixes: a broker looks each prefix of a name up, with every request."""
_GROUP: Final = RESERVED_USERS + "group:"
_PROPORTIONAL: Final = RESERVED_USERS + "proportional:"
_LEADERS: Final = "leaders"
_TOPIC: Final = "topic:"
_GROUP_PART: Final = "group"
_DEFAULT: Final = "<default>"
_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value


class MemberKind(enum.StrEnum):
    """How a group names a member."""

    USER = "user"
    CLIENT_ID = "client-id"
    USER_PREFIX = "user-prefix"
    CLIENT_ID_PREFIX = "client-id-prefix"

    @property
    def is_prefix(self) -> bool:
        """Whether it names all members whose names begin with a text."""
        return self in (MemberKind.USER_PREFIX, MemberKind.CLIENT_ID_PREFIX)

    def takes(self, name: str) -> bool:
        """Whether the plugin takes this name or prefix. It counts UTF-16 units, as Java does."""
        return not self.is_prefix or len(name.encode("utf-16-le", "surrogatepass")) <= 2 * LONGEST_PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimit:
    """The entity has the limits of a group."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """The entity names a member of a group, or the prefix of members. Its value has no weight."""

    group: str
    kind: MemberKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionalTotal:
    """The entity has the total that brokers share by the partitions they lead: of all topics (``topic`` is ``None``), or of one.

    ``subject`` is the entity whose limit it is, or the name of a group.
    """

    subject: Entity | str
    topic: str | None


StoredRule: TypeAlias = GroupLimit | GroupMember | ProportionalTotal


def is_reserved(entity: Entity) -> bool:
    """Whether the entity is one of the plugin's, understood or not."""
    user = entity.name(_USER)
    return isinstance(user, str) and user.startswith(RESERVED_USERS)


def reserved_entity(rule: StoredRule) -> Entity:
    """The entity in which a cluster stores a rule."""
    match rule:
        case GroupLimit(group=group):
            return Entity.of({_USER: _GROUP + group})
        case GroupMember(group=group, kind=kind, name=name):
            return Entity.of({_USER: _GROUP + group, _CLIENT_ID: f"{kind.value}:{name}"})
        case ProportionalTotal(subject=subject, topic=topic):
            target = _LEADERS if topic is None else _TOPIC + topic
            return Entity.of({_USER: _PROPORTIONAL + _subject_text(subject), _CLIENT_ID: target})


def stored_rule(entity: Entity) -> StoredRule | None:
    """The rule of a reserved entity. ``None`` for names that follow no rule, which the plugin ignores."""
    user, client_id = entity.name(_USER), entity.name(_CLIENT_ID)
    if not isinstance(user, str) or client_id is DEFAULT:
        return None
    group = user.removeprefix(_GROUP) if user.startswith(_GROUP) else ""
    if group:
        return GroupLimit(group=group) if client_id is None else _member(group, client_id)
    if not user.startswith(_PROPORTIONAL) or client_id is None:
        return None
    topic = client_id.removeprefix(_TOPIC) if client_id.startswith(_TOPIC) else None
    subject = _subject(user.removeprefix(_PROPORTIONAL))
    if subject is None or topic == "" or (topic is None and client_id != _LEADERS):
        return None
    return ProportionalTotal(subject=subject, topic=topic)


def _member(group: str, text: str) -> GroupMember | None:
    kind, _, name = text.partition(":")
    if not name or kind not in {member.value for member in MemberKind}:
        return None
    return GroupMember(group=group, kind=MemberKind(kind), name=name) if MemberKind(kind).takes(name) else None


def _subject_text(subject: Entity | str) -> str:
    parts: tuple[tuple[str, EntityName], ...] = ((_GROUP_PART, subject),) if isinstance(subject, str) else subject.parts
    return ",".join(f"{kind}={_DEFAULT if name is DEFAULT else sanitize_name(name)}" for kind, name in parts)


def _subject(text: str) -> Entity | str | None:
    names: dict[str, EntityName] = {}
    for part in text.split(","):
        kind, _, encoded = part.partition("=")
        if kind not in (_USER, _CLIENT_ID, _GROUP_PART) or kind in names or not encoded:
            return None
        if encoded == _DEFAULT and kind != _GROUP_PART:
            names[kind] = DEFAULT
        elif (name := unsanitize_name(encoded)) is not None:
            names[kind] = name
        else:
            return None
    group = names.pop(_GROUP_PART, None)
    if group is None:
        return Entity.of(names)
    return group if isinstance(group, str) and not names else None


def callback_notes(cluster: ClusterIdentity) -> Iterator[Message]:
    """Yield a note about brokers with a class of their own. Nothing for Kafka's own rules and the groups' plugin."""
    callback = cluster.quota_callback
    if callback is not None and callback != GROUP_CALLBACK:
        yield compose(
            "The brokers resolve quotas with their own class {callback} ({setting}). A quota may limit other clients than it "
            "names, or none.",
            callback=name_part(display_name(callback)),
            setting=flag_part("client.quota.callback.class"),
        )


_WHOLE: Final = {MemberKind.USER: _USER, MemberKind.CLIENT_ID: _CLIENT_ID}
_PREFIX: Final = {_USER: MemberKind.USER_PREFIX, _CLIENT_ID: MemberKind.CLIENT_ID_PREFIX}


class GroupedQuotas:
    """The quotas of a cluster whose brokers have the plugin. ``quotas``: without reserved users, with the limits of members."""

    def __init__(self, stored: QuotaTable) -> None:
        self._limits: dict[str, Mapping[str, float]] = {}
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
