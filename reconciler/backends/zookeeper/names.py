"""Names of entities as ZooKeeper nodes, and back."""

from __future__ import annotations

from typing import Final

from reconciler.model import DEFAULT, EntityName, IpVerdict, display_name, ip_verdict, sanitized, unsanitized

DEFAULT_NODE: Final = "<default>"
"""The node of the default entity. The name ``<default>`` itself is encoded, so the two never meet."""

_NO_ELEMENTS: Final = ("", ".", "..")
"""What ZooKeeper refuses between two slashes; Kafka does not encode dots."""


class UnwritableNameError(ValueError):
    """A name that no ZooKeeper node can have; the text says why."""


def node_name(name: EntityName) -> str:
    """The node of a user or a client id. Raises ``UnwritableNameError``."""
    if name is DEFAULT:
        return DEFAULT_NODE
    if name in _NO_ELEMENTS:
        raise UnwritableNameError(f"ZooKeeper cannot hold a node for the name {display_name(name)}")
    try:
        return sanitized(name)
    except UnicodeEncodeError:
        raise UnwritableNameError("the name is not Unicode text (it has half a surrogate pair)") from None


def name_of_node(node: str) -> EntityName | None:
    """The name behind a node; ``None`` for a node that is nobody's, because ``node_name`` gives it for no name."""
    return DEFAULT if node == DEFAULT_NODE else unsanitized(node)


def address_node(address: EntityName) -> str:
    """The node of an ip entity: its name as it is. Raises ``UnwritableNameError``."""
    if address is DEFAULT:
        return DEFAULT_NODE
    plain = address.isascii() and address.isprintable() and not set(address) & set('/"\\')
    if address in (*_NO_ELEMENTS, DEFAULT_NODE) or not plain:
        raise UnwritableNameError(f"ZooKeeper cannot hold a node for the address {display_name(address)}")
    return address


def address_of_node(node: str) -> EntityName | None:
    """The name of an ip entity; ``None`` for a node that brokers cannot resolve, or not decode, which some do."""
    if node == DEFAULT_NODE:
        return DEFAULT
    return None if "%" in node or ip_verdict(node) is IpVerdict.INVALID else node
