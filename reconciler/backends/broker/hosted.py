"""Services that speak Kafka's protocol and keep quotas in their own way: which of them a cluster is, and what works there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import UnsupportedClusterError
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


_METADATA: Final = 3
_DESCRIBE_CLIENT_QUOTAS: Final = 48
_ALTER_CLIENT_QUOTAS: Final = 49
_BROKER_HEARTBEAT: Final = 63
_FIRST_RELEASE: Final = (2, 6)
"""Of Kafka with these requests (KIP-546)."""
_OF_A_BROKER: Final = "Pass the address of a broker: one of its advertised.listeners"
_IN_ZOOKEEPER: Final = "Before Kafka 2.6, quotas are in ZooKeeper. Pass --zookeeper HOST:PORT in place of --bootstrap-server"


def lacks_request(
    where: str, offered: Collection[int], *, release: Sequence[int], service: KafkaService | None = None
) -> UnsupportedClusterError:
    """The error for a server that does not offer what was to be sent.

    ``offered``: the numbers of the requests that it offers. ``release``: the Kafka release that has these, ``service`` the one
    that the server seems to belong to.
    """
    if _BROKER_HEARTBEAT in offered and _METADATA not in offered:
        return _error(f"{where} is the listener of a KRaft controller, which shows neither brokers nor quotas", _OF_A_BROKER)
    if _METADATA not in offered:
        return _error(f"{where} shows no brokers (Metadata), so it is not a Kafka broker", _OF_A_BROKER)
    like = f", and offers the requests of Kafka {'.'.join(map(str, release))}" if release else ""
    if _DESCRIBE_CLIENT_QUOTAS not in offered:
        text = f"{where} has no API for client quotas (DescribeClientQuotas), which Kafka has since 2.6{like}"
    elif _ALTER_CLIENT_QUOTAS not in offered:
        text = f"{where} shows client quotas without an API to change them (AlterClientQuotas){like}"
    else:
        text = f"{where} does not offer a request of a version that kafka-quotas sends{like}"
    if service is not None:
        return _error(text, service.advice)
    if release and tuple(release) < _FIRST_RELEASE:
        return _error(text, _IN_ZOOKEEPER)
    return _error(text, "A proxy or a service may answer in place of a broker. Pass the address of a broker, or ask who runs it")


def _error(seen: str, serves: str) -> UnsupportedClusterError:
    return UnsupportedClusterError(f"{seen}. {serves}", remedy=serves)
