"""How Kafka reads names: which ip names are literal addresses, and names as ZooKeeper and metrics have them.

A broker takes an ip name without DNS when Java's ``InetAddress.getByName`` reads it as a literal address. Java is more liberal
than most: ``1.2`` is an IPv4 address, and brackets may stand around IPv6. What Python does not read as an address, and any zone,
counts as a matter for the broker, like a host name.

The percent-encoding is that of Kafka's ``Sanitizer`` (``URLEncoder`` in UTF-8, then ``*`` and ``+`` encoded too). Over the wire
and in KRaft names are never encoded.

Entities are read as clients: a default stands for any name that no quota names. A client id that is empty or absent is a client
that sends none. A user that is absent is any that no quota names: every connection has a user, if only ``ANONYMOUS``.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from reconciler.model import DEFAULT, OTHER, ClientName, Entity, EntityName, EntityType, Known, KnownAddress, KnownClient
from reconciler.text import near_miss, shown

LONGEST_STRING: Final = 32767
"""UTF-8 bytes that a string may have in a request; a broker closes the connection on a longer one."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]*")
_JMX_PLAIN: Final = re.compile(r"[A-Za-z0-9_\-%. \t]*")
_JMX_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "*": "\\*", "?": "\\?", "\n": "\\n"})
_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value
_IP: Final = EntityType.IP.value
_TYPES: Final = frozenset({_USER, _CLIENT_ID, _IP})


def literal_address(name: str) -> IPv4Address | IPv6Address | None:
    """The address of a literal that every broker reads as Python does. ``None`` for a name that only brokers can judge.

    As in Java, an IPv4 address mapped into IPv6 is that IPv4 address.
    """
    try:
        address = None if "%" in name else ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def sanitize_name(name: str) -> str:
    """``alice@EXAMPLE`` as ``alice%40EXAMPLE``. Raises ``UnicodeEncodeError`` for half a surrogate pair."""
    return name if _PLAIN.fullmatch(name) else quote(name, safe="").replace("~", "%7E")


def unsanitize_name(text: str) -> str | None:
    """The one name that ``sanitize_name`` makes this text of; ``None`` when there is none."""
    if _PLAIN.fullmatch(text):
        return text
    try:
        name = unquote_to_bytes(text).decode()
        return name if sanitize_name(name) == text else None
    except UnicodeError:
        return None


def host_address(name: str) -> str | None:
    """A literal address as Java's ``getHostAddress`` writes it, ``0:0:0:0:0:0:0:1`` for ``::1``; ``None`` for other names."""
    address = literal_address(name)
    if address is None or address.version == 4:
        return None if address is None else str(address)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def quote_client_id(client_id: str) -> str:
    """The client-id of a tag of an MBean: as it is, or as Java's ``ObjectName.quote`` writes it. It is never percent-encoded.

    Source: Kafka's ``Sanitizer.jmxSanitize``.
    """
    return client_id if _JMX_PLAIN.fullmatch(client_id) else f'"{client_id.translate(_JMX_ESCAPES)}"'


def client_of(entity: Entity) -> Known:
    """The client, or class of clients. Raises ``ValueError`` for what no connection can be; the text states why."""
    address: EntityName | None = None
    user: ClientName = OTHER
    client_id: ClientName = ""
    for entity_type, name in entity.parts:
        if name == "" and entity_type != _CLIENT_ID:
            raise ValueError(f"the name of the {shown(entity_type)} is empty")
        if entity_type == _USER:
            user = OTHER if name is DEFAULT else name
        elif entity_type == _CLIENT_ID:
            client_id = OTHER if name is DEFAULT else name
        elif entity_type == _IP:
            address = name
        else:
            near = near_miss(entity_type, _TYPES)
            raise ValueError(f"{shown(entity_type)} is not an entity type. The types are user, client-id, ip{near}")
        if name is not DEFAULT and (not name.isascii() or len(name) > LONGEST_STRING):
            _require_sendable(entity_type, name)
    if address is None:
        return KnownClient(user=user, client_id=client_id)
    if len(entity.parts) > 1:
        raise ValueError("an ip cannot be combined with a user or a client-id: Kafka has no such entities")
    if address is not DEFAULT and literal_address(address) is None and not set(address).isdisjoint("/:"):
        raise ValueError(f"{shown(address)} is neither an address nor a host name")
    return KnownAddress(ip=OTHER if address is DEFAULT else address)


def entity_of(client: Known) -> Entity:
    """An entity that asks for this client: the way back."""
    if isinstance(client, KnownAddress):
        return Entity.of({_IP: _name(client.ip)})
    return Entity.of({_USER: _name(client.user), _CLIENT_ID: _name(client.client_id)})


def _name(name: ClientName) -> EntityName:
    return DEFAULT if name is OTHER else name


def _require_sendable(entity_type: str, name: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the name of the {entity_type} is not Unicode text (it has half a surrogate pair)") from None
    if size > LONGEST_STRING:
        raise ValueError(f"the name of the {entity_type} has {size} bytes. Kafka's protocol allows {LONGEST_STRING}")
