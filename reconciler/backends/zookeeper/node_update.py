"""The update of a node that was read: its new text, or why nothing is written. No I/O.

Alterations that a KRaft broker refuses are refused here, and values that a node cannot have or a broker cannot read: ZooKeeper
checks nothing, and one bad node keeps brokers from starting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.backends.zookeeper.node_text import NodeText, UnreadableNodeError, parse_node
from reconciler.backends.zookeeper.nodes import UnwritableNameError, node_path
from reconciler.backends.zookeeper.values import is_readable, read_quotas, stored_text
from reconciler.model import (
    KNOWN_KEYS,
    Alteration,
    AlterationResult,
    Entity,
    EntityType,
    QuotaKey,
    ValueType,
    escaped,
    same_value,
)
from reconciler.resolution import INVALID_REQUEST, IpVerdict, ip_verdict, refusal

LONGEST_PATH: Final = 150_000
"""A transaction names a path up to five times, and ZooKeeper closes the connection on a request of more than 1 MiB."""

INVALID_UPDATE_VERSION: Final = 95
"""Kafka's error code that comes nearest to "others wrote it meanwhile"."""


def zookeeper_refusal(alteration: Alteration) -> str | None:
    """Why the alteration is not written; ``None`` when it can be."""
    if refused := refusal(alteration):
        return refused
    try:
        if len(node_path(alteration.entity)) > LONGEST_PATH:
            return f"the name is too long for ZooKeeper: as a path it has more than {LONGEST_PATH} characters"
    except UnwritableNameError as error:
        return str(error)
    sets = {key: value for key, value in alteration.ops.items() if value is not None}
    if sets and (refused := _address_refusal(alteration.entity)):
        return refused
    for key, value in sets.items():
        if QuotaKey(key).value_type is not ValueType.DOUBLE and not value.is_integer():
            return f"Configuration {key} must be a whole number: in ZooKeeper brokers keep its digits, and cannot read others"
    return None


def _address_refusal(entity: Entity) -> str | None:
    address = entity.name(EntityType.IP.value)
    if not isinstance(address, str):
        return None
    if ip_verdict(address) is not IpVerdict.LITERAL:
        return (
            f"{address} is not a literal address; nothing looks names up before ZooKeeper is written, and a broker that cannot "
            "resolve one does not start"
        )
    if "%" in address:
        return f"{address} has a zone: brokers would take the node's name for percent-encoded; give the address without it"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRead:
    """A node as it was read. ``version`` rises with each write; ``created`` distinguishes later nodes of the same path."""

    data: bytes | None
    version: int
    created: int
    has_children: bool


def update_node(alteration: Alteration, node: NodeRead | None) -> NodeText | AlterationResult:
    """What the node shall be, or the answer when nothing is to be written."""
    try:
        text = parse_node(node.data if node is not None else None)
    except UnreadableNodeError as error:
        return _refused(alteration, f"its node in ZooKeeper stays as it is: {error}")
    config, ops = text.values(), alteration.ops
    foreign = [key for key, value in ops.items() if value is None and key not in KNOWN_KEYS and key in config]
    if foreign:
        return _refused(alteration, f"{foreign[0]} is not a quota; this tool does not remove it")
    live = read_quotas(config, alteration.entity.types).quotas
    if all(_holds(config, live, key, value) for key, value in ops.items()):
        return AlterationResult(entity=alteration.entity)
    for key, value in (alteration.before or {}).items():
        if not same_value(live.get(key), value):
            said = f"{alteration.entity} {key} was {_text(value)} when planned and is {_text(live.get(key))} now"
            return AlterationResult(entity=alteration.entity, error_code=INVALID_UPDATE_VERSION, error=said, stale=True)
    texts = {key: None if value is None else stored_text(key, value) for key, value in ops.items()}
    intended = text.altered(texts)
    broken = [key for key, value in intended.values().items() if not is_readable(key, value)]
    if broken:
        return _refused(alteration, f"its node has {escaped(broken[0])}, which brokers cannot read; correct that by hand first")
    return intended


def _holds(config: Mapping[str, object], live: Mapping[str, float], key: str, value: float | None) -> bool:
    if value is None:
        return key not in config
    return same_value(live.get(key), value) and is_readable(key, config[key])


def _refused(alteration: Alteration, text: str) -> AlterationResult:
    return AlterationResult(entity=alteration.entity, error_code=INVALID_REQUEST, error=text)


def _text(value: float | None) -> str:
    return "not set" if value is None else f"{value:.17g}"
