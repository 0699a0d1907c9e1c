"""A ZooKeeper's nodes through bare kazoo, without the product's code: an independent witness of what is stored."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

ENTITIES = ("/config/users", "/config/clients", "/config/ips")


@contextlib.contextmanager
def zookeeper_client(connection: str, **options: object) -> Iterator[KazooClient]:
    """A connected client, below the chroot of the connection string."""
    client = KazooClient(hosts=connection, timeout=10.0, handler=SequentialThreadingHandler(), **options)
    client.start(timeout=30.0)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def nodes_below(client: KazooClient, root: str) -> dict[str, bytes]:
    """Path to content of every node below ``root``, parents first; empty when there is no such node."""
    found: dict[str, bytes] = {}
    level = [f"{root}/{child}" for child in sorted(client.get_children(root))] if client.exists(root) else []
    while level:
        asked = [(path, client.get_async(path), client.get_children_async(path)) for path in level]
        level = []
        for path, content, children in asked:
            found[path] = content.get(timeout=30)[0]
            level += [f"{path}/{child}" for child in sorted(children.get(timeout=30))]
    return found


def notify(client: KazooClient, path: str) -> None:
    """Tell the brokers that the configuration in ``path`` (``/config/...``) changed."""
    body = json.dumps({"version": 2, "entity_path": path.removeprefix("/config/")})
    client.create("/config/changes/config_change_", body.encode(), sequence=True, makepath=True)


def remove_all(client: KazooClient) -> None:
    """Every entity's node, its quotas in the brokers too, and what notifications there are."""
    for root in ENTITIES:
        paths = list(nodes_below(client, root))
        for path in reversed(paths):
            client.delete(path)
        for path in paths:
            if not path.endswith("/clients"):
                notify(client, path)
