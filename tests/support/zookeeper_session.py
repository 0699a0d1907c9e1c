"""Our backend on a Kafka's tree in a bare ZooKeeper, and what can happen to its session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kazoo.client import KazooClient

from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.backends.zookeeper.settings import ZooKeeperSecurity, ZooKeeperSettings, parse_connection


@contextlib.contextmanager
def zookeeper_cluster(place: str, *, security: ZooKeeperSecurity | None = None, **seconds: float) -> Iterator[ZooKeeperCluster]:
    """Our backend, connected; ``session_seconds`` and its like for quick ends."""
    servers, chroot = parse_connection(place)
    settings = ZooKeeperSettings(servers=servers, chroot=chroot, security=security or ZooKeeperSecurity(), **seconds)
    opened = ZooKeeperCluster.open(settings)
    with contextlib.closing(opened):
        yield opened


def expire_session(cluster: ZooKeeperCluster, place: str) -> None:
    """End the cluster's session on the server, as when nothing was heard of it for too long."""
    session = cluster._client.client_id
    assert session is not None
    twin = KazooClient(hosts=place.partition("/")[0], client_id=session)
    twin.start()
    twin.stop()
    twin.close()
