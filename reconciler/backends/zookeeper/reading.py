"""All quotas below ``/config``, many requests in flight: every node once, client ids only of users that have some."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reconciler.backends.zookeeper.node_text import UnreadableNodeError, parse_node, read_quotas
from reconciler.backends.zookeeper.nodes import CLIENTS, IPS, USERS, address_of_node, clients_of, name_of_node
from reconciler.backends.zookeeper.session import Pipeline
from reconciler.model import Entity, EntityName, EntityType, Quotas, UnreadableNode

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_USER: Final = EntityType.USER.value
_CLIENT: Final = EntityType.CLIENT_ID.value
_IP: Final = EntityType.IP.value

_FOLDERS: Final = {_USER: USERS, _CLIENT: CLIENTS, _IP: IPS}
ALL_KINDS: Final = tuple(_FOLDERS)

_UNREACHED: Final = "brokers never look for its name, so it applies to no client"
_NO_ADDRESS: Final = "the node's name is not an address that brokers can resolve. A broker that starts may fail on it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNodes:
    """What was read. Entities without a quota are not here: a node may have credentials only, or nothing at all."""

    entities: dict[Entity, Quotas] = field(default_factory=dict)
    unreadable: list[UnreadableNode] = field(default_factory=list)


class _Place(NamedTuple):
    """One node to read: its path and name, what its last part names, and the parts of the entity above it."""

    path: str
    node: str
    kind: str
    above: tuple[tuple[str, EntityName], ...] = ()
    is_unreached: bool = False
    """It is below a user that no broker looks for."""


class NodeReader:
    """Reads quotas over one connection. Every method raises kazoo's errors."""

    def __init__(self, client: KazooClient, pipeline: Pipeline) -> None:
        self._client = client
        self._pipeline = pipeline

    def read(self, *, kinds: Iterable[str] = ALL_KINDS, users: Iterable[str] | None = None) -> ReadNodes:
        """What the nodes of these kinds state (``user``: with the client ids of users); of ``users`` only these nodes."""
        read_nodes = ReadNodes()
        folders = {_FOLDERS[kind]: kind for kind in kinds}
        nodes = dict(self._pipeline.ask(self._client.get_children_async, folders))
        if users is not None:
            nodes[USERS] = list(users)
        tops = (_Place(f"{folder}/{node}", node, kind) for folder, kind in folders.items() for node in nodes[folder] or ())
        parents = [top for top, children in self._read_into(read_nodes, tops) if children and top.kind == _USER]
        for _ in self._read_into(read_nodes, self._clients_of(parents)):
            pass
        return read_nodes

    def _clients_of(self, users: Iterable[_Place]) -> Iterator[_Place]:
        get_children = self._client.get_children_async
        for user, nodes in self._pipeline.ask(lambda user: get_children(clients_of(user.path)), users):
            name = name_of_node(user.node)
            above = ((_USER, name),) if name is not None else ()
            for node in nodes or ():
                yield _Place(f"{clients_of(user.path)}/{node}", node, _CLIENT, above, name is None)

    def _read_into(self, read_nodes: ReadNodes, places: Iterable[_Place]) -> Iterator[tuple[_Place, int]]:
        """Take over what the nodes state; yields each that is there with its number of children."""
        get = self._client.get_async
        for place, answer in self._pipeline.ask(lambda place: get(place.path), places):
            if answer is not None:
                data, stat = answer
                _take(read_nodes, place, data)
                yield place, stat.numChildren


def _take(read_nodes: ReadNodes, place: _Place, data: bytes | None) -> None:
    if not data:
        return
    name = address_of_node(place.node) if place.kind == _IP else name_of_node(place.node)
    if name is None or place.is_unreached:
        reason = _NO_ADDRESS if place.kind == _IP else _UNREACHED
        read_nodes.unreadable.append(UnreadableNode(path=place.path, reason=reason))
        return
    entity = Entity(parts=(*place.above, (place.kind, name)))
    try:
        read = read_quotas(_config_of(data), entity.types)
    except UnreadableNodeError as error:
        read_nodes.unreadable.append(UnreadableNode(path=place.path, reason=str(error), entity=entity))
        return
    if read.quotas:
        read_nodes.entities[entity] = read.quotas
    if read.unreadable:
        read_nodes.unreadable.append(UnreadableNode(path=place.path, reason="; ".join(read.unreadable), entity=entity))


def _config_of(data: bytes) -> dict[str, Any]:
    """The config of a node; where it is not plain, the slow parser decides, as it does before writing."""
    try:
        config = json.loads(data)["config"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return parse_node(data).values()
    return config if isinstance(config, dict) else parse_node(data).values()
