"""What an alteration makes of a node that was read: its new text, or the answer when nothing is to be written. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.backends.zookeeper.node_text import NodeText, UnreadableNodeError, parse_node
from reconciler.backends.zookeeper.values import is_readable, read_quotas, stored_text
from reconciler.model import INVALID_REQUEST, KNOWN_KEYS, Alteration, AlterationResult, escaped, same_value

INVALID_UPDATE_VERSION: Final = 95
"""Kafka's error code that comes nearest to "others wrote it meanwhile"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRead:
    """A node as it was read. ``version`` rises with each write, ``created`` tells one node from a later one of the same path."""

    data: bytes | None
    version: int
    created: int
    has_children: bool


def intention(alteration: Alteration, node: NodeRead | None) -> NodeText | AlterationResult:
    """What the node shall be, or the answer when nothing is to be written."""
    try:
        text = parse_node(node.data if node is not None else None)
    except UnreadableNodeError as error:
        return _refused(alteration, f"its node in ZooKeeper stays as it is: {error}")
    config, ops = text.values(), alteration.ops
    foreign = [key for key, value in ops.items() if value is None and key not in KNOWN_KEYS and key in config]
    if foreign:
        return _refused(alteration, f"{foreign[0]} is no quota; this tool does not remove it")
    live = read_quotas(config, alteration.entity.types).quotas
    if all(_holds(config, live, key, value) for key, value in ops.items()):
        return AlterationResult(entity=alteration.entity)
    for key, value in (alteration.before or {}).items():
        if not same_value(live.get(key), value):
            said = f"{alteration.entity} {key} was {_words(value)} when planned and is {_words(live.get(key))} now"
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


def _words(value: float | None) -> str:
    return "not set" if value is None else f"{value:.17g}"
