"""Quota values as brokers keep them in ZooKeeper: whole numbers for rates in bytes and connections, else Java's doubles.

Sources: Kafka's ``ZkAdminManager`` (what it writes and how DescribeClientQuotas reads it) and ``ConfigHandler`` (what a broker
parses when it applies a node: ``toLong`` and ``toInt`` where a whole number is declared); the specification of
``Double.toString`` as of JDK 19. Older JDKs print some values with one digit more than needed (JDK-4511638); the two texts are
the same double.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from reconciler.model import KNOWN_KEYS, EntityType, QuotaKey, ValueType, legal_keys

_LOWEST_PLAIN: Final = 1e-3
_LOWEST_SCIENTIFIC: Final = 1e7
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?", re.ASCII)
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf}
_BLANKS: Final = "".join(map(chr, range(33)))

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_LARGEST: Final = {ValueType.LONG: 2**63 - 1, ValueType.INT: 2**31 - 1}
_SCRAM: Final = "SCRAM-"
_LEGAL: Final = {
    is_ip: frozenset(key.value for key in legal_keys((EntityType.IP.value if is_ip else EntityType.USER.value,)))
    for is_ip in (False, True)
}


def java_text(value: float) -> str:
    """``12.5``, ``1.0E-5``, ``NaN``, ``Infinity``."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    size = abs(value)
    if math.isinf(size):
        return f"{sign}Infinity"
    if size == 0:
        return f"{sign}0.0"
    digits, exponent = _decimal(size)
    if _LOWEST_PLAIN <= size < _LOWEST_SCIENTIFIC:
        return sign + _plain_notation(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def parse_java(text: str) -> float | None:
    """What ``Double.parseDouble`` makes of a text; ``None`` where it throws."""
    text = text.strip(_BLANKS)
    bare = text.removeprefix("-")
    if bare in _NOT_FINITE:
        return math.copysign(_NOT_FINITE[bare], -1.0 if bare != text else 1.0)
    if text.removeprefix("+") in _NOT_FINITE:
        return _NOT_FINITE[text[1:]]
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if found := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    return None


def _decimal(size: float) -> tuple[str, int]:
    """The digits to print, without zeros at the end, and the power of ten of the first one."""
    number = Decimal(repr(size)).normalize()
    if len(number.as_tuple().digits) == 1:
        # Java prints two digits at least, so it takes the closest of two: 4.9E-324, where one digit would be 5E-324.
        closer = Decimal(f"{size:.1e}")
        number = closer.normalize() if float(closer) == size else number
    return "".join(map(str, number.as_tuple().digits)), number.adjusted()


def _plain_notation(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"


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
            unreadable.append(f"{key} is not {'a number' if value is None else 'a whole number in the range of its type'}")
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
