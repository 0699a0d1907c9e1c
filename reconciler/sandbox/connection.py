"""Connections to the sandbox with kafka-python."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin import DescribeClientQuotasRequest

from reconciler.sandbox.spec import Login

# Without any handler, Python prints the library's warnings on stderr; whoever configures logging still gets them.
logging.getLogger("kafka").addHandler(logging.NullHandler())


def security(login: Login | None) -> dict[str, str]:
    """The client settings to connect as ``login``, or without any login."""
    if login is None:
        return {"security_protocol": "PLAINTEXT"}
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": login.name,
        "sasl_plain_password": login.password,
    }


@contextlib.contextmanager
def admin_client(bootstrap_servers: str, *, login: Login | None = None, timeout_s: float = 10.0) -> Iterator[KafkaAdminClient]:
    """An admin client that is closed whatever happens, also when it cannot connect. Raises kafka-python's errors."""
    nets: list[Any] = []

    def remembered(**config: Any) -> KafkaNetClient:
        nets.append(KafkaNetClient(**config))
        return nets[-1]

    milliseconds = int(timeout_s * 1000)
    try:
        client = KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","),
            bootstrap_timeout_ms=milliseconds,
            request_timeout_ms=milliseconds,
            kafka_client=remembered,
            **security(login),
        )
    except BaseException:
        # The constructor starts a thread before it connects, and gives nobody the means to end it.
        for net in nets:
            net.close()
            net._manager._net.stop()  # noqa: SLF001 - see above
        raise
    with contextlib.closing(client):
        yield client


def brokers_up(client: KafkaAdminClient) -> frozenset[int]:
    """The ids of the brokers that serve clients now."""
    described = client.describe_cluster()
    return frozenset(broker["broker_id"] for broker in described["brokers"] if not broker.get("is_fenced"))


def answers_quotas(client: KafkaAdminClient, node_id: int) -> bool:
    """Whether this broker answers a DescribeClientQuotas request without an error."""
    request = DescribeClientQuotasRequest(components=[], strict=True)
    manager = client._manager  # noqa: SLF001 - the only way the library has to send this request
    return bool(manager.run(manager.send, request, node_id).error_code == 0)
