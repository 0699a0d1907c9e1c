"""Quota callbacks: their protocol, and the limits of a broker that has one in place of the precedence levels.

Source: Kafka's ``ClientQuotaCallback`` (KIP-257), method by method, with Python's spelling and this package's values: entities
as ``Entity``, where a default has no name but the marker ``DEFAULT``, and raw user names where Kafka percent-encodes them. A
broker has one instance for all quota types. Connection quotas (``ip``) never pass through it.

``DefaultQuotaCallback`` is Kafka's own (of that name in ``ClientQuotaManager``): precedence levels by tags, as in a broker
without its own class. ``Resolver`` gives the same buckets and limits with their reasons. This one is what a user's class may
build on. ``GroupQuotaCallback`` is the plugin in ``callback/`` (``TypeLimits``, ``GroupMembers``, ``LeaderShares``). A test runs
both on the same quotas.
"""

from __future__ import annotations

import enum
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from reconciler.errors import QuotaCallbackError
from reconciler.model import BucketName, Entity, EntityName, EntityType, LeaderSpread, QuotaKey, escaped
from reconciler.resolution import (
    CLIENT_PRECEDENCE,
    BrokerLimits,
    GroupedBy,
    GroupLimit,
    GroupMember,
    LevelName,
    MemberKind,
    PrecedenceLevel,
    ProportionalTotal,
    QuotaTable,
    Resolved,
    is_reserved,
    level_of_names,
    stored_rule,
)

USER_TAG: Final = "user"
CLIENT_ID_TAG: Final = "client-id"
_Pair: TypeAlias = tuple[EntityName | None, EntityName | None]


_OF_CLIENTS: Final = frozenset({EntityType.USER.value, EntityType.CLIENT_ID.value})
GROUP_TAG: Final = "group"
_INTERNAL: Final = "__"
_NAMING_USER: Final = 3
"""The last level that names a user."""
_WEAKEST: Final = 8
"""The level of the default client-id."""


class QuotaType(enum.StrEnum):
    """What is limited, as Kafka's ``ClientQuotaType`` names it."""

    PRODUCE = "PRODUCE"
    FETCH = "FETCH"
    REQUEST = "REQUEST"
    CONTROLLER_MUTATION = "CONTROLLER_MUTATION"


TYPE_OF_KEY: Final[Mapping[str, QuotaType]] = {
    QuotaKey.PRODUCER_BYTE_RATE.value: QuotaType.PRODUCE,
    QuotaKey.CONSUMER_BYTE_RATE.value: QuotaType.FETCH,
    QuotaKey.REQUEST_PERCENTAGE.value: QuotaType.REQUEST,
    QuotaKey.CONTROLLER_MUTATION_RATE.value: QuotaType.CONTROLLER_MUTATION,
}
"""The quota keys that reach a callback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who a connection is authenticated as: Kafka's ``KafkaPrincipal``."""

    name: str
    type: str = "User"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLeader:
    """One partition. ``leader`` is a broker's id, ``None`` when it has none."""

    topic: str
    partition: int
    leader: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMetadata:
    """The cluster as one broker sees it. ``broker`` is that broker's own id."""

    broker: int
    brokers: tuple[int, ...]
    partitions: tuple[PartitionLeader, ...]


@runtime_checkable
class QuotaCallback(Protocol):
    """What a class must offer. It is made with its options (text to text) as the only argument, once for each broker."""

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """The bucket of a request: those with equal tags share one limit. ``client_id`` is empty when the client sent none."""
        ...

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit of a bucket, in the unit of its quota key, finite and above 0. ``None`` is unlimited."""
        ...

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        """An entity of users and client ids is given a quota, or another one."""
        ...

    def remove_quota(self, quota_type: QuotaType, entity: Entity) -> None:
        """An entity loses its quota."""
        ...

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Whether limits changed otherwise than by the two calls above since this was last asked."""
        ...

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """The cluster's partitions and leaders, before the first request and when they change. True when limits may differ."""
        ...


METHODS: Final = tuple(name for name in vars(QuotaCallback) if not name.startswith("_"))
"""What a class is looked at for before it is used."""
MakeCallback = Callable[[], QuotaCallback]
"""A new instance, as a broker makes one when it starts."""

_Answer = TypeVar("_Answer")


class CallbackLimits:
    """One broker's callback for one quota key. Raises ``QuotaCallbackError`` wherever the class raises or errs."""

    def __init__(self, callback: QuotaCallback, quota_type: QuotaType) -> None:
        self._callback = callback
        self._type = quota_type
        self._limits: dict[BucketName, float | None] = {}

    def resolve(self, user: str, client_id: str) -> Resolved:
        """The bucket and its limit. No entity is named, since a callback computes as it likes."""
        callback, who = self._callback, type(self._callback).__qualname__
        principal = Principal(name=user)
        tags = call_callback(callback, "quota_metric_tags", lambda: callback.quota_metric_tags(self._type, principal, client_id))
        bucket = _bucket(tags, who)
        if bucket not in self._limits:
            limit = call_callback(callback, "quota_limit", lambda: callback.quota_limit(self._type, dict(tags)))
            self._limits[bucket] = _checked_limit(limit, bucket, who)
        return Resolved(bucket=bucket, computed=self._limits[bucket])


def callback_limits(
    make: MakeCallback, quotas: QuotaTable, metadata: Mapping[int, ClusterMetadata | None]
) -> dict[str, BrokerLimits]:
    """Return the limits by quota key. ``metadata``: by broker of which traffic is known, ``None`` without known partitions.

    Each instance gets the metadata, then every quota in the order of entities, then asked whether it wants its limits read
    again. Raises ``QuotaCallbackError``.
    """
    callbacks = {broker: initialise_callback(make(), quotas, known) for broker, known in sorted(metadata.items())}
    return {
        key: BrokerLimits({broker: CallbackLimits(callback, quota_type) for broker, callback in callbacks.items()})
        for key, quota_type in TYPE_OF_KEY.items()
    }


def initialise_callback(callback: QuotaCallback, quotas: QuotaTable, metadata: ClusterMetadata | None) -> QuotaCallback:
    """The same callback, after a broker's start with these quotas."""
    if metadata is not None:
        call_callback(callback, "update_cluster_metadata", lambda: callback.update_cluster_metadata(metadata))
    for entity in sorted(quotas, key=lambda entity: entity.sort_key):
        if not _OF_CLIENTS.issuperset(entity.types):
            continue
        for key, value in sorted(quotas[entity].items()):
            quota_type = TYPE_OF_KEY.get(key)
            if quota_type is not None:
                call_callback(callback, "update_quota", partial(callback.update_quota, quota_type, entity, value))
    for quota_type in QuotaType:
        call_callback(callback, "quota_reset_required", partial(callback.quota_reset_required, quota_type))
    return callback


def call_callback(callback: object, method: str, call: Callable[[], _Answer]) -> _Answer:
    """The answer of a method of a class that is not ours."""
    try:
        return call()
    except Exception as error:
        who, reason = type(callback).__qualname__, escaped(str(error))
        raise QuotaCallbackError(f"the quota callback {who} failed in {method}: {type(error).__name__}: {reason}") from error


def _bucket(tags: object, who: str) -> BucketName:
    if not isinstance(tags, Mapping) or not all(isinstance(k, str) and isinstance(v, str) for k, v in tags.items()):
        raise QuotaCallbackError(
            f"the quota callback {who}: quota_metric_tags must return a mapping of text to text, not {tags!r}"
        )
    # A tag that is empty is left out of the broker's metric names, too.
    other = tuple(sorted((name, value) for name, value in tags.items() if value and name not in (USER_TAG, CLIENT_ID_TAG)))
    return BucketName(user=tags.get(USER_TAG, ""), client_id=tags.get(CLIENT_ID_TAG, ""), other=other)


def _checked_limit(limit: object, bucket: BucketName, who: str) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit) or limit <= 0:
        tags = {USER_TAG: bucket.user, CLIENT_ID_TAG: bucket.client_id, **dict(bucket.other)}
        shown = {name: value for name, value in tags.items() if value}
        raise QuotaCallbackError(
            f"the quota callback {who}: quota_limit must return a finite number above 0, or None for unlimited, not {limit!r} "
            f"(for the tags {shown})"
        )
    return float(limit)


class DefaultQuotaCallback:
    """``options``: ``remember-kinds: true`` for brokers before 4.2, which keep in mind which kinds of quota they ever had."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._remembers = (options or {}).get("remember-kinds") == "true"
        self._quotas: dict[QuotaType, dict[tuple[LevelName, LevelName], float]] = {quota_type: {} for quota_type in QuotaType}
        self._kinds: dict[QuotaType, Counter[GroupedBy]] = {quota_type: Counter() for quota_type in QuotaType}

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """The user's tag, the client id's, or both."""
        kinds = [kind for kind, count in self._kinds[quota_type].items() if count]
        if len(kinds) > 1:
            kinds = [level.grouped_by for level in self.levels_for(quota_type, principal.name, client_id)]
        kind = kinds[0] if kinds else GroupedBy.CLIENT_ID
        return {
            USER_TAG: "" if kind is GroupedBy.CLIENT_ID else principal.name,
            CLIENT_ID_TAG: "" if kind is GroupedBy.USER else client_id,
        }

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """Looked up by the tags, the most specific entity first."""
        level = self.level_of_tags(quota_type, metric_tags)
        return None if level is None else self._quotas[quota_type].get(level.names_for(*_names(metric_tags)))

    def levels_for(self, quota_type: QuotaType, user: str, client_id: str) -> list[PrecedenceLevel]:
        """Return the levels with a quota for these names, the strongest first."""
        quotas = self._quotas[quota_type]
        return [level for level in CLIENT_PRECEDENCE if level.names_for(user, client_id) in quotas]

    def level_of_tags(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> PrecedenceLevel | None:
        """Return the level that limits a bucket, ``None`` without one."""
        user, client_id = _names(metric_tags)
        if not user and not client_id:
            return None
        kind = GroupedBy.CLIENT_ID if not user else GroupedBy.USER_AND_CLIENT_ID if client_id else GroupedBy.USER
        return next((level for level in self.levels_for(quota_type, user, client_id) if level.grouped_by is kind), None)

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        """Keep it."""
        pair = _pair(entity)
        self._kinds[quota_type][level_of_names(*pair).grouped_by] += pair not in self._quotas[quota_type]
        self._quotas[quota_type][pair] = value

    def remove_quota(self, quota_type: QuotaType, entity: Entity) -> None:
        """Forget it."""
        pair = _pair(entity)
        existed = self._quotas[quota_type].pop(pair, None) is not None
        # Brokers that remember kinds remember that of a quota that there never was, too.
        self._kinds[quota_type][level_of_names(*pair).grouped_by] += (not existed) if self._remembers else -existed

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Never: quotas change by the calls above alone."""
        del quota_type
        return False

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """Ignore the metadata, and return that no limit changed."""
        del cluster
        return False


def _names(metric_tags: Mapping[str, str]) -> tuple[str, str]:
    return metric_tags.get(USER_TAG, ""), metric_tags.get(CLIENT_ID_TAG, "")


def _pair(entity: Entity) -> _Pair:
    return entity.name(EntityType.USER.value), entity.name(EntityType.CLIENT_ID.value)


class GroupQuotaCallback(DefaultQuotaCallback):
    """Kafka's levels, with groups of the plugin between them, and limits in proportion to leaders."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(options)
        self._members: dict[QuotaType, set[Entity]] = {quota_type: set() for quota_type in QuotaType}
        self._limits: dict[QuotaType, dict[str, float]] = {quota_type: {} for quota_type in QuotaType}
        self._totals: dict[QuotaType, dict[Entity | str, dict[str | None, float]]] = {
            quota_type: defaultdict(dict) for quota_type in QuotaType
        }
        self._groups: dict[tuple[MemberKind, str], Counter[str]] = defaultdict(Counter)
        self._shares: _LeaderShares | None = None

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """The group's tag for a member that no quota names, otherwise those of Kafka's own levels."""
        group = self.group_of(quota_type, principal.name, client_id)
        return super().quota_metric_tags(quota_type, principal, client_id) if group is None else {GROUP_TAG: group}

    def group_of(self, quota_type: QuotaType, user: str, client_id: str) -> str | None:
        """The group whose limit applies. A quota that names the user (levels 1 to 3) decides before the user's group.

        A group of client-ids decides after levels 4 to 7. A client without a client-id is reached by no level that looks at it.
        """
        levels = [
            level.number
            for level in self.levels_for(quota_type, user, client_id)
            if client_id or level.grouped_by is GroupedBy.USER
        ]
        strongest = min(levels, default=_WEAKEST)
        group = self._group(MemberKind.USER, MemberKind.USER_PREFIX, user) if strongest > _NAMING_USER else None
        if group not in self._limits[quota_type] and client_id and strongest >= _WEAKEST:
            group = self._group(MemberKind.CLIENT_ID, MemberKind.CLIENT_ID_PREFIX, client_id)
        return group if group in self._limits[quota_type] else None

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit of a group or of an entity. In proportion to the leaders, where they are known and it has a total."""
        group = metric_tags.get(GROUP_TAG)
        if group is not None:
            return self._part(quota_type, group, self._limits[quota_type].get(group))
        level, limit = self.level_of_tags(quota_type, metric_tags), super().quota_limit(quota_type, metric_tags)
        winner = None if level is None else level.entity_for(*_names(metric_tags))
        return limit if winner is None else self._part(quota_type, winner, limit)

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        """Keep a quota, or what a reserved user's quota means."""
        if not is_reserved(entity):
            super().update_quota(quota_type, entity, value)
            return
        match stored_rule(entity):
            case GroupLimit(group=group):
                self._limits[quota_type][group] = value
            case GroupMember(group=group, kind=kind, name=name):
                # Stored with several keys, it lasts as long as one of them.
                self._groups[kind, name][group] += entity not in self._members[quota_type]
                self._members[quota_type].add(entity)
            case ProportionalTotal(subject=subject, topic=topic):
                self._totals[quota_type][subject][topic] = value

    def remove_quota(self, quota_type: QuotaType, entity: Entity) -> None:
        """Forget it."""
        if not is_reserved(entity):
            super().remove_quota(quota_type, entity)
            return
        match stored_rule(entity):
            case GroupLimit(group=group):
                self._limits[quota_type].pop(group, None)
            case GroupMember(group=group, kind=kind, name=name):
                self._groups[kind, name][group] -= entity in self._members[quota_type]
                self._members[quota_type].discard(entity)
            case ProportionalTotal(subject=subject, topic=topic):
                self._totals[quota_type][subject].pop(topic, None)

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """Count the leaders of this broker."""
        self._shares = _LeaderShares(cluster)
        return any(self._totals.values())

    def _group(self, whole: MemberKind, prefix: MemberKind, name: str) -> str | None:
        """A whole name before a prefix, a longer prefix before a shorter one, and of two groups the first by name."""
        keys = [(whole, name), *((prefix, name[:length]) for length in range(len(name), 0, -1))]
        by_key = (sorted(group for group, count in self._groups.get(key, {}).items() if count > 0) for key in keys)
        return next((groups[0] for groups in by_key if groups), None)

    def _part(self, quota_type: QuotaType, subject: Entity | str, stored: float | None) -> float | None:
        totals = self._totals[quota_type].get(subject)
        if not totals or self._shares is None or stored is None:
            return stored
        part = self._shares.part(min(totals.values()), totals)
        return stored if part is None else part


class _LeaderShares:
    """How many partitions a broker leads, and how many there are, by topic. Kafka's own topics count only by name."""

    def __init__(self, cluster: ClusterMetadata) -> None:
        self._led: Counter[str | None] = Counter()
        self._all: Counter[str | None] = Counter()
        for partition in cluster.partitions:
            for target in (partition.topic, *(() if partition.topic.startswith(_INTERNAL) else (None,))):
                self._all[target] += 1
                self._led[target] += partition.leader == cluster.broker

    def part(self, total: float, targets: Iterable[str | None]) -> float | None:
        """The total by this broker's leaders of the targets, or by one partition where it leads none.

        ``None``: the cluster has no partition of the targets.
        """
        chosen = list(targets)
        whole = sum(self._all[target] for target in chosen)
        return total * max(1, sum(self._led[target] for target in chosen)) / whole if whole else None


def metadata_of(spread: LeaderSpread, brokers: Iterable[int]) -> dict[int, ClusterMetadata]:
    """The cluster as each of these brokers sees it, by their ids."""
    partitions = tuple(
        PartitionLeader(topic=topic, partition=number, leader=leaders[number] if number < len(leaders) else None)
        for topic, (leaders, count) in sorted(spread.by_topic.items())
        for number in range(count)
    )
    known = tuple(sorted(brokers))
    return {broker: ClusterMetadata(broker=broker, brokers=known, partitions=partitions) for broker in known}
