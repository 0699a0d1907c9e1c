"""Quota values as brokers keep them in ZooKeeper: whole numbers for rates in bytes and connections, else Java's doubles.

Source: Kafka's ``ZkAdminManager`` (what it writes and how DescribeClientQuotas reads it) and ``ConfigHandler`` (what a broker
parses when it applies a node: ``toLong`` and ``toInt`` where a whole number is declared).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from reconciler.backends.zookeeper.java_double import java_text, parse_java
from reconciler.model import KNOWN_KEYS, EntityType, QuotaKey, ValueType, legal_keys

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_LARGEST: Final = {ValueType.LONG: 2**63 - 1, ValueType.INT: 2**31 - 1}
_SCRAM: Final = "SCRAM-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuotas:
    """What a config says: the quotas, and (in words, without a value) what in it no broker can read."""

    quotas: dict[str, float]
    unreadable: tuple[str, ...] = ()


def stored_text(key: str, value: float) -> str:
    """The text for a value that ``rules.zookeeper_refusal`` lets pass."""
    kind = QuotaKey(key).value_type
    return java_text(value) if kind is ValueType.DOUBLE else str(min(int(value), _LARGEST[kind]))


def read_quotas(config: dict[str, object], types: tuple[str, ...]) -> ReadQuotas:
    """The quotas of a node of an entity with these types; keys that are none are only checked for being text.

    Credentials are never looked into. Unknown keys with a number count, so that they are shown. A legal key that brokers cannot
    apply is reported, and has the number that DescribeClientQuotas would show, if there is one.
    """
    quotas: dict[str, float] = {}
    unreadable: list[str] = []
    legal = _LEGAL[types == (EntityType.IP.value,)]
    for key, text in config.items():
        if not isinstance(text, str):
            unreadable.append(f"{key} is not written as a string")
            continue
        if key.startswith(_SCRAM) or (key in KNOWN_KEYS and key not in legal):
            continue
        value = parse_java(text)
        if value is not None:
            quotas[key] = value
        if key in legal and (value is None or not _is_applicable(key, text)):
            unreadable.append(f"{key} is not {'a number' if value is None else 'a whole number that its type holds'}")
    return ReadQuotas(quotas=quotas, unreadable=tuple(unreadable))


def is_readable(key: str, text: object) -> bool:
    """True when brokers can apply this text for a quota key, or when it is the text of another key."""
    return isinstance(text, str) and (key not in KNOWN_KEYS or (parse_java(text) is not None and _is_applicable(key, text)))


def _is_applicable(key: str, text: str) -> bool:
    kind = QuotaKey(key).value_type
    if kind is ValueType.DOUBLE:
        return True
    largest = _LARGEST[kind]
    return _WHOLE.fullmatch(text) is not None and -largest - 1 <= int(text) <= largest


_LEGAL: Final = {
    is_ip: frozenset(key.value for key in legal_keys((EntityType.IP.value if is_ip else EntityType.USER.value,)))
    for is_ip in (False, True)
}
