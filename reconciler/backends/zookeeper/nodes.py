"""The nodes of quotas in ZooKeeper, below the chroot: their paths, names and ACLs, and the notification that makes brokers look.

Source: Kafka's ``ZkData`` and ``AdminZkClient`` (ip entities since 2.8; notifications of version 2 since 0.10.1).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import NoNodeError

from reconciler.errors import AuthorizationError
from reconciler.model import DEFAULT, Entity, EntityName, EntityType, display_name
from reconciler.resolution import IpVerdict, ip_verdict, sanitize_name, unsanitize_name

if TYPE_CHECKING:
    from kazoo.client import KazooClient


DEFAULT_NODE: Final = "<default>"
"""The node of the default entity. The name ``<default>`` itself is encoded, so the two never meet."""

_NO_ELEMENTS: Final = ("", ".", "..")
"""What ZooKeeper refuses between two slashes; Kafka does not encode dots."""

BROKER_IDS: Final = "/brokers/ids"
CONFIG: Final = "/config"
USERS: Final = f"{CONFIG}/users"
CLIENTS: Final = f"{CONFIG}/clients"
IPS: Final = f"{CONFIG}/ips"
NOTIFICATION: Final = f"{CONFIG}/changes/config_change_"
"""ZooKeeper adds ten digits, which rise."""
_DEPTH: Final = CONFIG.count("/") + 2
_HIDDEN: Final = ":x"
"""What ZooKeeper shows in place of a digest to a client that may not administer the node."""


class UnwritableNameError(ValueError):
    """A name that no ZooKeeper node can have; the text states why."""


def node_name(name: EntityName) -> str:
    """The node of a user or a client id. Raises ``UnwritableNameError``."""
    if name is DEFAULT:
        return DEFAULT_NODE
    if name in _NO_ELEMENTS:
        raise UnwritableNameError(f"ZooKeeper cannot store a node for the name {display_name(name)}")
    try:
        return sanitize_name(name)
    except UnicodeEncodeError:
        raise UnwritableNameError("the name is not Unicode text (it has half a surrogate pair)") from None


def name_of_node(node: str) -> EntityName | None:
    """The name behind a node; ``None`` for a node without an owner, because ``node_name`` gives it for no name."""
    return DEFAULT if node == DEFAULT_NODE else unsanitize_name(node)


def address_node(address: EntityName) -> str:
    """The node of an ip entity: its name as it is. Raises ``UnwritableNameError``."""
    if address is DEFAULT:
        return DEFAULT_NODE
    plain = address.isascii() and address.isprintable() and not set(address) & set('/"\\')
    if address in (*_NO_ELEMENTS, DEFAULT_NODE) or not plain:
        raise UnwritableNameError(f"ZooKeeper cannot store a node for the address {display_name(address)}")
    return address


def address_of_node(node: str) -> EntityName | None:
    """The name of an ip entity; ``None`` for a node that brokers cannot resolve, or not decode, which some do."""
    if node == DEFAULT_NODE:
        return DEFAULT
    return None if "%" in node or ip_verdict(node) is IpVerdict.INVALID else node


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


class Acls:
    """The ACLs of Kafka's folders of config nodes, each asked for once.

    Kafka gives a folder and everything in it the same ACL (``zookeeper.set.acl``), so that of the folder is that of all siblings,
    of those too that are not there yet.
    """

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._of: dict[str, Sequence[Any] | None] = {}

    def acl_for(self, path: str) -> Sequence[Any] | None:
        """The ACL for a node to be made; ``None`` when its folder, and with it the whole kind of entity, is not there.

        Raises ``AuthorizationError`` when the ACL is not shown whole, and kazoo's errors.
        """
        folder = "/".join(path.split("/")[:_DEPTH])
        if folder not in self._of:
            try:
                acl = self._client.get_acls(folder)[0]
            except NoNodeError:
                return None
            _require_whole(folder, acl)
            self._of[folder] = acl
        return self._of[folder]


def _require_whole(folder: str, acl: Sequence[Any]) -> None:
    hidden = [entry for entry in acl if entry.id.scheme == "digest" and entry.id.id.endswith(_HIDDEN)]
    if hidden:
        msg = (
            f"ZooKeeper does not show this client the whole ACL of {folder}, so new nodes could not have the same. Log in as "
            "a user who may administer it, most often as the brokers do"
        )
        raise AuthorizationError(msg, operation="admin")
