"""Ready means that every node answers a real request."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from kafka.errors import KafkaError

from reconciler.sandbox.connection import admin_client, answers_quotas, brokers_up, cluster_id
from reconciler.sandbox.ports import LOOPBACK

_POLL_S: Final = 0.05
_ATTEMPT_S: Final = 2.0
"""Short, so that a broker that ended meanwhile is noticed soon."""


def wait_until_ready(
    cluster: Callable[[], str | None], ports: Mapping[int, int], *, deadline: float, check_alive: Callable[[], None]
) -> bool:
    """Waits until all nodes (id to plaintext port) are listed as up and answer DescribeClientQuotas; ``False`` at ``deadline``.

    It must be the cluster of the id that ``cluster`` tells, once it can, that answers: another server may have taken a port.
    ``deadline`` is on the monotonic clock. ``check_alive`` is called between the looks and may raise.
    """
    for port in ports.values():
        while not _accepts(port):
            check_alive()
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
    servers = ",".join(f"{LOOPBACK}:{port}" for port in ports.values())
    while time.monotonic() < deadline:
        check_alive()
        with contextlib.suppress(KafkaError), admin_client(servers, timeout_s=_ATTEMPT_S) as client:
            right = cluster_id(client) == cluster() and brokers_up(client) == ports.keys()
            if right and all(answers_quotas(client, node_id) for node_id in ports):
                return True
        time.sleep(_POLL_S)
    return False


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1.0).close()
    except OSError:
        return False
    return True
