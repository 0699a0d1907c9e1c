"""The broker plugin in ``callback/`` as a quota callback of this package: Kafka's levels, groups, and limits by leaders.

Source: ``kafkaquotas.callback.TypeLimits``, ``GroupMembers`` and ``LeaderShares``. A test runs both on the same quotas.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reconciler.model import ClusterIdentity, Entity, LeaderSpread, Message, compose, display_name, flag_part, name_part
from reconciler.resolution.precedence import CLIENT_PRECEDENCE, GroupedBy, PrecedenceLevel
from reconciler.resolution.quota_callback import (
    CLIENT_ID_TAG,
    USER_TAG,
    ClusterMetadata,
    DefaultQuotaCallback,
    PartitionLeader,
    Principal,
    QuotaType,
)
from reconciler.resolution.reserved_users import (
    GroupLimit,
    GroupMember,
    MemberKind,
    ProportionalTotal,
    is_reserved,
    stored_rule,
)

GROUP_CALLBACK: Final = "kafkaquotas.callback.GroupQuotaCallback"
"""The value of ``client.quota.callback.class`` on brokers that have the plugin."""
GROUP_TAG: Final = "group"
_INTERNAL: Final = "__"
_NAMING_USERS: Final = CLIENT_PRECEDENCE[:3]
_BEFORE_CLIENT_IDS: Final = CLIENT_PRECEDENCE[3:7]


class GroupQuotaCallback:
    """``options``: those of ``DefaultQuotaCallback``."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._levels = DefaultQuotaCallback(options)
        self._quotas: dict[QuotaType, dict[Entity, float]] = {quota_type: {} for quota_type in QuotaType}
        self._limits: dict[QuotaType, dict[str, float]] = {quota_type: {} for quota_type in QuotaType}
        self._totals: dict[QuotaType, dict[Entity | str, dict[str | None, float]]] = {
            quota_type: defaultdict(dict) for quota_type in QuotaType
        }
        self._groups: dict[tuple[MemberKind, str], Counter[str]] = defaultdict(Counter)
        self._shares: _LeaderShares | None = None

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """The group's tag for a member that no quota names, otherwise those of Kafka's own levels."""
        group = self.group_of(quota_type, principal.name, client_id)
        if group is not None:
            return {GROUP_TAG: group}
        return self._levels.quota_metric_tags(quota_type, principal, client_id)

    def group_of(self, quota_type: QuotaType, user: str, client_id: str) -> str | None:
        """The group whose limit applies. A quota that names the user (levels 1 to 3) decides before the user's group.

        A group of client-ids decides after levels 4 to 7.
        """
        limits = self._limits[quota_type]
        if not limits or self._has_quota(quota_type, _NAMING_USERS, user, client_id):
            return None
        group = self._group(MemberKind.USER, MemberKind.USER_PREFIX, user)
        if group is not None and group in limits:
            return group
        if not client_id or self._has_quota(quota_type, _BEFORE_CLIENT_IDS, user, client_id):
            return None
        group = self._group(MemberKind.CLIENT_ID, MemberKind.CLIENT_ID_PREFIX, client_id)
        return group if group is not None and group in limits else None

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit of a group or of an entity. In proportion to the leaders, where they are known and it has a total."""
        group = metric_tags.get(GROUP_TAG)
        if group is not None:
            return self._part(quota_type, group, self._limits[quota_type].get(group))
        limit = self._levels.quota_limit(quota_type, metric_tags)
        if limit is None or not self._totals[quota_type]:
            return limit
        user, client_id = metric_tags.get(USER_TAG, ""), metric_tags.get(CLIENT_ID_TAG, "")
        grouped = GroupedBy.CLIENT_ID if not user else GroupedBy.USER_AND_CLIENT_ID if client_id else GroupedBy.USER
        levels = (level for level in CLIENT_PRECEDENCE if level.grouped_by is grouped)
        winner = next(entity for entity in _entities(levels, user, client_id) if entity in self._quotas[quota_type])
        return self._part(quota_type, winner, limit)

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        """Keep a quota, or what a reserved user's quota means."""
        if not is_reserved(entity):
            self._quotas[quota_type][entity] = value
            self._levels.update_quota(quota_type, entity, value)
            return
        match stored_rule(entity):
            case GroupLimit(group=group):
                self._limits[quota_type][group] = value
            case GroupMember(group=group, kind=kind, name=name):
                # Stored with several keys, it lasts as long as one of them.
                self._groups[kind, name][group] += entity not in self._quotas[quota_type]
                self._quotas[quota_type][entity] = value
            case ProportionalTotal(subject=subject, topic=topic):
                self._totals[quota_type][subject][topic] = value

    def remove_quota(self, quota_type: QuotaType, entity: Entity) -> None:
        """Forget it."""
        if not is_reserved(entity):
            self._quotas[quota_type].pop(entity, None)
            self._levels.remove_quota(quota_type, entity)
            return
        match stored_rule(entity):
            case GroupLimit(group=group):
                self._limits[quota_type].pop(group, None)
            case GroupMember(group=group, kind=kind, name=name):
                if self._quotas[quota_type].pop(entity, None) is not None:
                    self._groups[kind, name][group] -= 1
            case ProportionalTotal(subject=subject, topic=topic):
                self._totals[quota_type][subject].pop(topic, None)

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Never: quotas change by the calls above alone."""
        del quota_type
        return False

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """Count the leaders of this broker."""
        self._shares = _LeaderShares(cluster)
        return any(self._totals.values())

    def _has_quota(self, quota_type: QuotaType, levels: Iterable[PrecedenceLevel], user: str, client_id: str) -> bool:
        return any(entity in self._quotas[quota_type] for entity in _entities(levels, user, client_id))

    def _group(self, whole: MemberKind, prefix: MemberKind, name: str) -> str | None:
        """A whole name before a prefix, a longer prefix before a shorter one, and of two groups the first by name."""
        keys = [(whole, name), *((prefix, name[:length]) for length in range(len(name), 0, -1))]
        for key in keys:
            groups = sorted(group for group, count in self._groups.get(key, {}).items() if count > 0)
            if groups:
                return groups[0]
        return None

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


def _entities(levels: Iterable[PrecedenceLevel], user: str, client_id: str) -> Iterable[Entity]:
    """The entities of these levels for a client. A client without a client-id is reached by no level that looks at it."""
    for level in levels:
        entity = level.entity_for(user, client_id)
        if entity is not None and (client_id or level.grouped_by is GroupedBy.USER):
            yield entity


_SETTING: Final = flag_part("client.quota.callback.class")


def foreign_callback(cluster: ClusterIdentity) -> str | None:
    """The class of brokers whose limits are not known here. That of the groups' plugin is known."""
    callback = cluster.quota_callback
    return None if callback is None or callback == GROUP_CALLBACK else callback


def callback_notes(cluster: ClusterIdentity) -> Iterator[Message]:
    """What such a class means, in a sentence; nothing where the brokers have Kafka's own rules."""
    if (callback := foreign_callback(cluster)) is not None:
        yield compose(
            "The brokers resolve quotas with their own class {callback} ({setting}). A quota may limit other clients than it "
            "names, or none.",
            callback=name_part(display_name(callback)),
            setting=_SETTING,
        )
