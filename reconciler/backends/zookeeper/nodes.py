"""Where the quotas of an entity are in ZooKeeper, below the chroot, and the notification that makes brokers look there.

Source: Kafka's ``ZkData`` and ``AdminZkClient`` (ip entities since 2.8; notifications of version 2 since 0.10.1).
"""

from __future__ import annotations

import json
from typing import Final

from reconciler.backends.zookeeper.names import address_node, node_name
from reconciler.model import Entity, EntityType

CONFIG: Final = "/config"
USERS: Final = f"{CONFIG}/users"
CLIENTS: Final = f"{CONFIG}/clients"
IPS: Final = f"{CONFIG}/ips"
NOTIFICATION: Final = f"{CONFIG}/changes/config_change_"
"""ZooKeeper adds ten digits, which rise."""


def node_path(entity: Entity) -> str:
    """The node of an entity of a shape that Kafka has. Raises ``UnwritableNameError``."""
    user, client, ip = (entity.name(kind.value) for kind in (EntityType.USER, EntityType.CLIENT_ID, EntityType.IP))
    if ip is not None:
        return f"{IPS}/{address_node(ip)}"
    if user is None:
        assert client is not None
        return f"{CLIENTS}/{node_name(client)}"
    path = f"{USERS}/{node_name(user)}"
    return path if client is None else f"{clients_of(path)}/{node_name(client)}"


def clients_of(user_path: str) -> str:
    """Where the client ids of one user are."""
    return f"{user_path}/clients"


def parents(path: str) -> tuple[str, ...]:
    """The nodes above that come and go with the entities, the upper one first: those of a user with a client id."""
    parts = path.split("/")
    return ("/".join(parts[:4]), "/".join(parts[:5])) if len(parts) > 4 else ()


def notification(path: str) -> bytes:
    """What a broker reads of a change: version 2, the path below ``/config``."""
    return json.dumps({"version": 2, "entity_path": path[len(CONFIG) + 1 :]}, separators=(",", ":")).encode()
