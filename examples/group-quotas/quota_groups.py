"""A quota callback in which users share quotas by group: ``payments_api`` and ``payments_batch`` are of the group ``payments``.

The group's quotas are those of the *user* ``payments_``, set like any other; those of the user ``_`` hold for groups that have
none. Users without the separator, and all client ids, have no limit. It stands for a Java class of the same rule that the brokers
have as ``client.quota.callback.class``.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.features.callbacks.callback import ClusterMetadata, Principal, QuotaType
from reconciler.model.entity import Entity


class GroupQuotas:
    """Options: ``separator`` (``_``)."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._separator = options.get("separator", "_")
        self._quotas: dict[tuple[QuotaType, str], float] = {}

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """One tag, ``group``; a user of none has a bucket of their own."""
        group, separator, _ = principal.name.partition(self._separator)
        return {"group": group} if separator else {"user": principal.name}

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The group's own quota, else that of groups which have none."""
        if "group" not in metric_tags:
            return None
        own = self._quotas.get((quota_type, metric_tags["group"]))
        return own if own is not None else self._quotas.get((quota_type, ""))

    def update_quota(self, quota_type: QuotaType, entity: Entity, value: float) -> None:
        """Kept when the entity is a user whose name ends with the separator."""
        group = self._group(entity)
        if group is not None:
            self._quotas[quota_type, group] = value

    def remove_quota(self, quota_type: QuotaType, entity: Entity) -> None:
        """Forgotten."""
        group = self._group(entity)
        if group is not None:
            self._quotas.pop((quota_type, group), None)

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Never: quotas change by the calls above alone."""
        return False

    def update_cluster_metadata(self, cluster: ClusterMetadata) -> bool:
        """Of no weight."""
        return False

    def _group(self, entity: Entity) -> str | None:
        name = entity.name("user")
        if entity.types != ("user",) or not isinstance(name, str) or not name.endswith(self._separator):
            return None
        return name.removesuffix(self._separator)
