"""What a server is that lacks a request for client quotas, by the requests that it offers, and what serves in its place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from reconciler.backends.broker.hosted import KafkaService
from reconciler.errors import UnsupportedClusterError

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
