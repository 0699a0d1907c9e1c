"""Kafka's own quota callback in terms of its protocol: precedence levels by tags, as in a broker without its own class.

Source: ``DefaultQuotaCallback`` in Kafka's ``ClientQuotaManager``. ``Resolver`` gives the same buckets and limits with
their reasons; this one is what a user's class may build on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from reconciler.model import Entity, EntityName, EntityType
from reconciler.resolution.precedence import CLIENT_PRECEDENCE, GroupedBy, LevelName, level_of_names
from reconciler.resolution.quota_callback import CLIENT_ID_TAG, USER_TAG, ClusterMetadata, Principal, QuotaType

_Pair: TypeAlias = tuple[EntityName | None, EntityName | None]


class DefaultQuotaCallback:
    """``options``: ``remember-kinds: true`` for brokers before 4.2, which keep in mind which kinds of quota they ever had."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._remembers = (options or {}).get("remember-kinds") == "true"
        self._quotas: dict[QuotaType, dict[tuple[LevelName, LevelName], float]] = {quota_type: {} for quota_type in QuotaType}
        self._kinds: dict[QuotaType, Counter[GroupedBy]] = {quota_type: Counter() for quota_type in QuotaType}

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """The user's tag, the client id's, or both."""
        user = principal.name
        tags = {
            GroupedBy.USER: _tags(user, ""),
            GroupedBy.CLIENT_ID: _tags("", client_id),
            GroupedBy.USER_AND_CLIENT_ID: _tags(user, client_id),
        }
        kinds = [kind for kind, count in self._kinds[quota_type].items() if count]
        if len(kinds) <= 1:
            return tags[next(iter(kinds), GroupedBy.CLIENT_ID)]
        quotas = self._quotas[quota_type]
        used = (level.grouped_by for level in CLIENT_PRECEDENCE if level.names_for(user, client_id) in quotas)
        return tags[next(used, GroupedBy.CLIENT_ID)]

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """Looked up by the tags, the most specific entity first."""
        user, client = metric_tags.get(USER_TAG, ""), metric_tags.get(CLIENT_ID_TAG, "")
        if not user and not client:
            return None
        kind = GroupedBy.CLIENT_ID if not user else GroupedBy.USER if not client else GroupedBy.USER_AND_CLIENT_ID
        quotas = self._quotas[quota_type]
        looked_up = (level.names_for(user, client) for level in CLIENT_PRECEDENCE if level.grouped_by is kind)
        return next((quotas[names] for names in looked_up if names in quotas), None)

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        """Keep it."""
        pair = _pair(entity)
        if pair not in self._quotas[quota_type]:
            self._kinds[quota_type][_kind(pair)] += 1
        self._quotas[quota_type][pair] = value

    def remove_quota(self, quota_type: QuotaType, entity: Entity) -> None:
        """Forget it."""
        pair = _pair(entity)
        if self._quotas[quota_type].pop(pair, None) is not None and not self._remembers:
            self._kinds[quota_type][_kind(pair)] -= 1

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Never: quotas change by the calls above alone."""
        del quota_type
        return False

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """Of no weight."""
        del cluster
        return False


def _tags(user: str, client_id: str) -> Mapping[str, str]:
    return {USER_TAG: user, CLIENT_ID_TAG: client_id}


def _pair(entity: Entity) -> _Pair:
    return entity.name(EntityType.USER.value), entity.name(EntityType.CLIENT_ID.value)


def _kind(pair: _Pair) -> GroupedBy:
    return level_of_names(*pair).grouped_by
