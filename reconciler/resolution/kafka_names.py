"""How Kafka reads names: which ip names are literal addresses, and names as ZooKeeper and metrics have them.

A broker takes an ip name without DNS when Java's ``InetAddress.getByName`` reads it as a literal address. Java is more liberal
than most: ``1`` and ``1.2`` are IPv4 addresses, leading zeros are decimal, brackets may stand around IPv6. What depends on the
Java release or on the machine (octal and hexadecimal forms, named zones, zones on mapped addresses) counts as a matter for the
broker. Checked against Java 17.

The percent-encoding is that of Kafka's ``Sanitizer`` (``URLEncoder`` in UTF-8, then ``*`` and ``+`` encoded too). Over the wire
and in KRaft names are never encoded.

Entities are read as clients: a default stands for any name that no quota names. A client id that is empty or absent is a client
that sends none. A user that is absent is any that no quota names: every connection has a user, if only ``ANONYMOUS``.
"""

from __future__ import annotations

import enum
import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from reconciler.model import DEFAULT, OTHER, ClientName, Entity, EntityName, EntityType, Known, KnownAddress, KnownClient
from reconciler.text import near_miss, shown

LONGEST_STRING: Final = 32767
"""UTF-8 bytes that a string may have in a request; a broker closes the connection on a longer one."""
_DECIMAL: Final = re.compile(r"[0-9]+")
_HEX_GROUP: Final = re.compile(r"0*[0-9a-fA-F]{1,4}")
_NUMERIC_ZONE: Final = re.compile(r"[0-9]{1,9}")
_FIRST: Final = frozenset("0123456789abcdefABCDEF:")
_MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"
_MAPPED: Final = re.compile(r"(0*:)*:?0*ffff:", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]*")
_JMX_PLAIN: Final = re.compile(r"[A-Za-z0-9_\-%. \t]*")
_JMX_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "*": "\\*", "?": "\\?", "\n": "\\n"})
_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value
_IP: Final = EntityType.IP.value
_TYPES: Final = frozenset({_USER, _CLIENT_ID, _IP})


class IpVerdict(enum.Enum):
    """What can be known of a name without a broker."""

    LITERAL = "literal"
    """Every broker takes it."""
    INVALID = "invalid"
    """Every broker refuses it."""
    ASK_BROKER = "ask-broker"
    """A host name, or a form that only the controller can judge."""


def ip_verdict(name: str) -> IpVerdict:
    """Return how Kafka reads the name of an ip entity: a literal address, a name for brokers to resolve, or ``INVALID``."""
    if not name:
        return IpVerdict.INVALID
    bracketed = name.startswith("[")
    if bracketed:
        if len(name) < 3 or not name.endswith("]"):
            return IpVerdict.INVALID
        name = name[1:-1]
    if not name.isascii():
        return IpVerdict.ASK_BROKER
    if name[0] not in _FIRST:
        return IpVerdict.INVALID if bracketed else IpVerdict.ASK_BROKER
    if _is_ipv4(name):
        return IpVerdict.INVALID if bracketed else IpVerdict.LITERAL
    return _ipv6_verdict(name)


def address_of(name: str) -> bytes | None:
    """The 4 or 16 bytes that a literal stands for in a broker; ``None`` for text that is not a ``LITERAL``.

    As in Java, an IPv4 address mapped into IPv6 is that IPv4 address, and a zone makes no difference.
    """
    if ip_verdict(name) is not IpVerdict.LITERAL:
        return None
    text = name[1:-1] if name.startswith("[") else name
    if _is_ipv4(text):
        return _ipv4_bytes(text)
    head, _, tail = text.partition("%")[0].partition("::")
    left, right = (b"".join(_group_bytes(group) for group in _groups(part)) for part in (head, tail))
    packed = left + bytes(16 - len(left) - len(right)) + right
    return packed[12:] if packed[:12] == _MAPPED_PREFIX else packed


def _ipv4_bytes(text: str) -> bytes:
    *first, last = (int(part) for part in text.split("."))
    return bytes(first) + last.to_bytes(4 - len(first), "big")


def _group_bytes(group: str) -> bytes:
    return _ipv4_bytes(group) if "." in group else int(group, 16).to_bytes(2, "big")


def _ipv6_verdict(name: str) -> IpVerdict:
    if ":" not in name:
        return IpVerdict.ASK_BROKER
    address, percent, zone = name.partition("%")
    if not _is_ipv6(address) or (percent and not zone):
        return IpVerdict.INVALID
    if percent and (not _NUMERIC_ZONE.fullmatch(zone) or _MAPPED.match(address)):
        return IpVerdict.ASK_BROKER
    return IpVerdict.LITERAL


def _is_ipv4(text: str) -> bool:
    """One to four decimal numbers; the last one fills the bytes that are left."""
    parts = text.split(".")
    if len(text) > 15 or len(parts) > 4 or not all(_DECIMAL.fullmatch(part) for part in parts):
        return False
    return all(int(part) < 256 for part in parts[:-1]) and int(parts[-1]) < 256 ** (5 - len(parts))


def _is_ipv6(text: str) -> bool:
    head, gap, tail = text.partition("::")
    if gap and (tail.startswith(":") or "::" in tail):
        return False
    groups = [*_groups(head), *_groups(tail)]
    size = len(groups)
    # An IPv4 address may stand for the last two groups, and only at the very end.
    if groups and "." in groups[-1] and not text.endswith("::"):
        last = groups.pop()
        size += 1
        if last.count(".") != 3 or not _is_ipv4(last):
            return False
    if not all(_HEX_GROUP.fullmatch(group) for group in groups):
        return False
    return size < 8 if gap else size == 8


def _groups(text: str) -> list[str]:
    return text.split(":") if text else []


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
    packed = address_of(name)
    if packed is None:
        return None
    if len(packed) == 4:
        return ".".join(map(str, packed))
    return ":".join(f"{int.from_bytes(packed[at : at + 2], 'big'):x}" for at in range(0, 16, 2))


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
    if address is not DEFAULT and ip_verdict(address) is IpVerdict.INVALID:
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
