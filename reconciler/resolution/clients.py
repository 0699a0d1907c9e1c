"""Entities read as clients: one client, or a whole class of clients.

A default stands for any name that no quota names. A client id that is empty or absent is a client that sends none. A user that is
absent is any that no quota names: every connection has a user, if only ``ANONYMOUS``.
"""

from __future__ import annotations

from typing import Final

from reconciler.model import DEFAULT, OTHER, ClientName, Entity, EntityName, EntityType, Known, KnownAddress, KnownClient
from reconciler.resolution.broker_rules import LONGEST_STRING
from reconciler.resolution.kafka_names import IpVerdict, ip_verdict
from reconciler.text import near_miss, shown

_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value
_IP: Final = EntityType.IP.value
_TYPES: Final = frozenset({_USER, _CLIENT_ID, _IP})


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
            raise ValueError(_unknown_type(entity_type))
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


def _unknown_type(entity_type: str) -> str:
    near = near_miss(entity_type, _TYPES)
    return f"{shown(entity_type)} is not an entity type. The types are user, client-id, ip{near}"


def _require_sendable(entity_type: str, name: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"the name of the {entity_type} is not Unicode text (it has half a surrogate pair)") from None
    if size > LONGEST_STRING:
        raise ValueError(f"the name of the {entity_type} has {size} bytes. Kafka's protocol allows {LONGEST_STRING}")
