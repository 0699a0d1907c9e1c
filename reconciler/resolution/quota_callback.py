"""The protocol of a quota callback: a broker's own rule of who shares which limit, in place of the eight levels.

Source: Kafka's ``ClientQuotaCallback`` (KIP-257), method by method, with Python's spelling and this package's values: entities
as ``Entity``, where a default has no name but the marker ``DEFAULT``, and raw user names where Kafka percent-encodes them. A
broker has one instance for all quota types. Connection quotas (``ip``) never pass through it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from reconciler.model import Entity, QuotaKey


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
    """One partition; ``leader`` is a broker's id, ``None`` when it has none."""

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
        """The limit of a bucket, in the unit of its quota key, finite and above 0; ``None`` is unlimited."""
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
        """The cluster's partitions and leaders, before the first request and when they change; true when limits may differ."""
        ...


METHODS: Final = (
    "quota_metric_tags", "quota_limit", "update_quota", "remove_quota", "quota_reset_required", "update_cluster_metadata",
)  # fmt: skip
"""What a class is looked at for before it is used."""
