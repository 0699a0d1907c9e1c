"""The nodes that a Kafka of 3.9 makes in ZooKeeper, without a Kafka: enough to be taken for one, and quick to make wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kazoo.client import KazooClient
from kazoo.security import ACL

BROKER = {
    "version": 5,
    "host": "127.0.0.1",
    "port": 9092,
    "endpoints": ["PLAINTEXT://127.0.0.1:9092"],
    "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    "jmx_port": -1,
    "features": {},
    "timestamp": "1760000000000",
}
CONTROLLER = {"version": 2, "brokerid": 1, "timestamp": "1760000000000", "kraftControllerEpoch": -1}
MIGRATION = {
    "version": 0,
    "kraft_metadata_offset": 17,
    "kraft_controller_id": 3000,
    "kraft_metadata_epoch": 3,
    "kraft_controller_epoch": 4,
}
FOLDERS = ("/config/changes", "/config/users", "/config/clients", "/config/ips", "/config/topics", "/brokers/ids")


def make_kafka(client: KazooClient, root: str = "", *, acl: Sequence[ACL] | None = None) -> None:
    """The tree below ``root``; ``acl`` for what Kafka's users live in."""
    for folder in FOLDERS:
        client.ensure_path(root + folder)
    client.create(f"{root}/brokers/ids/1", json.dumps(BROKER).encode())
    client.create(f"{root}/controller", json.dumps(CONTROLLER).encode())
    client.create(f"{root}/controller_epoch", b"1")
    client.create(f"{root}/cluster/id", b'{"version":"1","id":"4L6g3nShT-eMCtK--X86sw"}', makepath=True)
    if acl is not None:
        client.set_acls(f"{root}/config/users", list(acl))


def everything(client: KazooClient) -> dict[str, tuple[bytes, int]]:
    """Path to content and version of every node but ZooKeeper's own."""
    found: dict[str, tuple[bytes, int]] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        data, stat = client.get(path)
        found[path] = (data, stat.version)
        waiting += [f"{path.rstrip('/')}/{child}" for child in client.get_children(path) if f"{path}{child}" != "/zookeeper"]
    return found
