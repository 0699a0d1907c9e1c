"""The nodes of quotas in ZooKeeper, below the chroot: paths, names, ACLs, JSON, and the notification that makes brokers look.

A config node is ``{"version":1,"config":{KEY:"TEXT",...}}``. The nodes of users have credentials beside quotas, which are kept. A
value is a whole number for rates in bytes and connections, else a double in a form that Java parses. Sources: Kafka's ``ZkData``
and ``AdminZkClient`` (ip entities since 2.8; notifications of version 2 since 0.10.1), ``ZkAdminManager`` (what it writes and how
DescribeClientQuotas reads it) and ``ConfigHandler`` (what a broker parses when it applies a node: ``toLong`` and ``toInt`` where
a whole number is declared).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import NoNodeError

from reconciler.errors import AuthorizationError
from reconciler.model import DEFAULT, KNOWN_KEYS, Entity, EntityName, EntityType, QuotaKey, ValueType, display_name, legal_keys
from reconciler.resolution import sanitize_name, unsanitize_name

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

_JAVA_BLANKS: Final = "".join(map(chr, range(33)))
_NUMBER: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)", re.ASCII)
_JAVA_NAMES: Final = {"nan": "NaN", "inf": "Infinity"}
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_LARGEST: Final = {ValueType.LONG: 2**63 - 1, ValueType.INT: 2**31 - 1}
_LEGAL: Final = {
    is_ip: frozenset(key.value for key in legal_keys((EntityType.IP.value if is_ip else EntityType.USER.value,)))
    for is_ip in (False, True)
}


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
    """The name of an ip entity; ``None`` for a node that some brokers decode, and then cannot resolve."""
    if node == DEFAULT_NODE:
        return DEFAULT
    return None if "%" in node else node


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
    """Return the folder of one user's client-ids."""
    return f"{user_path}/clients"


def parents(path: str) -> tuple[str, ...]:
    """The nodes above that come and go with the entities, the upper one first: those of a user with a client id."""
    parts = path.split("/")
    return ("/".join(parts[:4]), "/".join(parts[:5])) if len(parts) > 4 else ()


def notification(path: str) -> bytes:
    """Return the bytes that brokers read of a change: version 2, the path below ``/config``."""
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
        raise AuthorizationError(msg)


class UnreadableNodeError(ValueError):
    """A node that is not the JSON of a config. The text quotes nothing of the node, which may have credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeText:
    """A config node. ``document`` is all of it; ``config`` is the object of that name in it."""

    document: Mapping[str, object]
    config: Mapping[str, object]
    """Key to value; a value that is not a ``str`` is one that no broker can read."""

    @property
    def is_empty(self) -> bool:
        """True when nothing would be lost with the node."""
        return not self.config and self.document.keys() <= {"version", "config"}

    def altered(self, texts: Mapping[str, str | None]) -> NodeText:
        """Return a copy with these keys set to a text, or (``None``) removed."""
        config = {key: value for key, value in {**self.config, **texts}.items() if texts.get(key, "") is not None}
        return NodeText(document={**self.document, "config": config}, config=config)

    def encoded(self) -> bytes:
        """The node's data."""
        return json.dumps(self.document, separators=(",", ":"), allow_nan=False).encode()


def parse_node(data: bytes | None) -> NodeText:
    """Read a node's data; none at all is an empty config. Raises ``UnreadableNodeError``."""
    try:
        text = (data or b"").decode().strip(" \t\n\r") or '{"version":1,"config":{}}'
        document = json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    except UnreadableNodeError:
        raise
    except (ValueError, RecursionError):
        raise UnreadableNodeError("the node's data are not JSON") from None
    config = document.get("config", {}) if isinstance(document, dict) else None
    if not isinstance(config, dict):
        raise UnreadableNodeError("the node's data are not a JSON object with an object config")
    return NodeText(document=document, config=config)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise UnreadableNodeError("an object in its JSON has the same key twice")
    return members


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError
    return value


def parse_java(text: str) -> float | None:
    """The number of a text that ``Double.parseDouble`` takes; ``None`` for others, and for hexadecimal ones and type suffixes."""
    text = text.strip(_JAVA_BLANKS)
    return float(text) if _NUMBER.fullmatch(text) else None


def stored_text(key: str, value: float) -> str:
    """The text for a value that ``zookeeper_refusal`` lets pass."""
    kind = QuotaKey(key).value_type
    return _JAVA_NAMES.get(repr(value), repr(value)) if kind is ValueType.DOUBLE else str(min(int(value), _LARGEST[kind]))


def read_quotas(config: Mapping[str, object], types: tuple[str, ...]) -> tuple[dict[str, float], tuple[str, ...]]:
    """The quotas of a config of an entity with these types; and, in words without a value, what in it no broker can read.

    Other keys are only checked for being text. Credentials are never looked into. Unknown keys with a number
    count, so that they are shown. A legal key that brokers cannot apply is reported, and has the number that DescribeClientQuotas
    would show, if there is one.
    """
    quotas: dict[str, float] = {}
    unreadable: list[str] = []
    legal = _LEGAL[types == (EntityType.IP.value,)]
    for key, text in config.items():
        if not isinstance(text, str):
            unreadable.append(f"{key} is not written as a string")
            continue
        if key.startswith("SCRAM-") or (key in KNOWN_KEYS and key not in legal):
            continue
        value = parse_java(text)
        if value is not None:
            quotas[key] = value
        if key in legal and (value is None or not _is_applicable(key, text)):
            unreadable.append(f"{key} is not {'a number' if value is None else 'a whole number in the range of its type'}")
    return quotas, tuple(unreadable)


def is_readable(key: str, text: object) -> bool:
    """True when brokers can apply this text for a quota key, or when it is the text of another key."""
    return isinstance(text, str) and (key not in KNOWN_KEYS or (parse_java(text) is not None and _is_applicable(key, text)))


def _is_applicable(key: str, text: str) -> bool:
    kind = QuotaKey(key).value_type
    if kind is ValueType.DOUBLE:
        return True
    largest = _LARGEST[kind]
    return _WHOLE.fullmatch(text) is not None and -largest - 1 <= int(text) <= largest
