"""Connections to the sandbox with kafka-python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin import DescribeClientQuotasRequest
from kafka.protocol.metadata import MetadataRequest

from reconciler.features.sandbox.spec import Login

Client = TypeVar("Client")


def connect(kind: Callable[..., Client], *, bootstrap_servers: str, login: Login | None, **settings: Any) -> Client:
    """One of kafka-python's clients, connected; what its constructor left open is closed when it fails. Raises its errors."""
    nets: list[Any] = []

    def remembered(**config: Any) -> KafkaNetClient:
        nets.append(KafkaNetClient(**config))
        return nets[-1]

    try:
        return kind(bootstrap_servers=bootstrap_servers.split(","), kafka_client=remembered, **_security(login), **settings)
    except BaseException:
        # The constructors start a thread before they connect, and when that fails give nobody the means to end it.
        for net in nets:
            net.close()
            net._manager._net.stop()  # noqa: SLF001 - see above
            net._manager._net.close()  # noqa: SLF001 - see above
        raise


@contextlib.contextmanager
def admin_client(bootstrap_servers: str, *, login: Login | None = None, timeout_s: float = 10.0) -> Iterator[KafkaAdminClient]:
    """An admin client for the length of the block. Raises kafka-python's errors."""
    milliseconds = int(timeout_s * 1000)
    client = connect(
        KafkaAdminClient,
        bootstrap_servers=bootstrap_servers,
        login=login,
        bootstrap_timeout_ms=milliseconds,
        request_timeout_ms=milliseconds,
    )
    with contextlib.closing(client):
        yield client


def _security(login: Login | None) -> dict[str, str]:
    """The client settings to connect as ``login``, or without any login."""
    if login is None:
        return {"security_protocol": "PLAINTEXT"}
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": login.name,
        "sasl_plain_password": login.password,
    }


def cluster_id(client: KafkaAdminClient) -> str:
    """Which cluster answers."""
    return str(_metadata(client).cluster_id)


def brokers_up(client: KafkaAdminClient) -> frozenset[int]:
    """The ids of the brokers that serve clients now."""
    return frozenset(broker.node_id for broker in _metadata(client).brokers)


def answers_quotas(client: KafkaAdminClient, node_id: int) -> bool:
    """Whether this broker answers a DescribeClientQuotas request without an error."""
    request = DescribeClientQuotasRequest(components=[], strict=True)
    manager = client._manager  # noqa: SLF001 - the only way the library has to send this request
    return bool(manager.run(manager.send, request, node_id).error_code == 0)


def _metadata(client: KafkaAdminClient) -> Any:
    """The library's ``describe_cluster`` stumbles over the answer of brokers before 3.7."""
    request = MetadataRequest(
        topics=[],  # none of them
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    manager = client._manager  # noqa: SLF001 - as above
    return manager.run(manager.send, request)
