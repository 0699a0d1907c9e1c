"""Services that speak Kafka's protocol and keep quotas in their own way: which of them a cluster is, and what works there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reconciler.model import Entity, EntityType, escaped
from reconciler.text import list_some

_REDPANDA_ID: Final = "redpanda."


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaService:
    """A service. ``hosts`` is a regular expression for the names of its servers, ``advice`` a sentence about quotas there."""

    name: str
    hosts: re.Pattern[str]
    advice: str


_REDPANDA: Final = KafkaService(
    name="Redpanda",
    hosts=re.compile(r"\.redpanda\.(?:com|cloud)$"),
    advice="Redpanda has byte rates and mutation rates of client-ids, since 26.1 also of users. It has no quotas of IP addresses "
    "and no request_percentage, and its prefixes of client-ids are left as they are",
)
_SERVICES: Final = (
    KafkaService(
        name="Confluent Cloud",
        hosts=re.compile(r"\.confluent\.cloud$"),
        advice="Confluent Cloud keeps quotas of service accounts in its own API (confluent kafka quota). "
        "Hence plan and apply do not work there. validate and backtest do",
    ),
    KafkaService(
        name="Amazon MSK Serverless",
        hosts=re.compile(r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com"),
        advice="Amazon MSK Serverless has limits of its own in place of client quotas. Hence plan and apply do not work "
        "there. validate and backtest do",
    ),
    KafkaService(
        name="Aiven",
        hosts=re.compile(r"\.aivencloud\.com$"),
        advice="Aiven sets client quotas through its own API (Terraform: aiven_kafka_quota). Its users may have no right to "
        "the cluster resource, and plan and apply need one. validate and backtest need none",
    ),
    _REDPANDA,
)


def service_of(hosts: Iterable[str], cluster_id: str | None = None) -> KafkaService | None:
    """The service by the names of servers or the cluster's id, ``None`` for what looks like Kafka itself."""
    if cluster_id is not None and cluster_id.startswith(_REDPANDA_ID):
        return _REDPANDA
    names = [host.lower().rstrip(".") for host in hosts]
    return next((service for service in _SERVICES if any(service.hosts.search(name) for name in names)), None)


def foreign_types_notes(entities: Iterable[Entity]) -> tuple[str, ...]:
    """A note about quotas of entity types that Kafka does not have, if there are any."""
    foreign = sorted({name for entity in entities if not entity.is_known for name in entity.types} - set(EntityType))
    if not foreign:
        return ()
    names = list_some([escaped(name) for name in foreign], 5)
    return (f"The cluster has quotas of types that Kafka does not have: {names}. They are left as they are.",)
