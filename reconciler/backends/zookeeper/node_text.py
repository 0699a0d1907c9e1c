"""The JSON of a config node: ``{"version":1,"config":{KEY:"TEXT",...}}``, edited without touching anything else in it.

The nodes of users have credentials beside quotas. What is not altered keeps its bytes and its place; new keys go where a broker
would write them, so that a node with nothing else has exactly the text that a broker gives it.

A value is a whole number for rates in bytes and connections, else a double as Java prints it. Sources: Kafka's
``ZkAdminManager`` (what it writes and how DescribeClientQuotas reads it) and ``ConfigHandler`` (what a broker parses when it
applies a node: ``toLong`` and ``toInt`` where a whole number is declared); the specification of ``Double.toString`` as of JDK
19. Older JDKs print some values with one digit more than needed (JDK-4511638); the two texts are the same double.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn

from reconciler.model import KNOWN_KEYS, EntityType, QuotaKey, ValueType, legal_keys

_BLANKS: Final = " \t\n\r"
_EMPTY: Final = '{"version":1,"config":{}}'
_OURS: Final = frozenset({"version", "config"})
_LOWEST_PLAIN: Final = 1e-3
_LOWEST_SCIENTIFIC: Final = 1e7
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?", re.ASCII)
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf}
_JAVA_BLANKS: Final = "".join(map(chr, range(33)))

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_LARGEST: Final = {ValueType.LONG: 2**63 - 1, ValueType.INT: 2**31 - 1}
_SCRAM: Final = "SCRAM-"
_LEGAL: Final = {
    is_ip: frozenset(key.value for key in legal_keys((EntityType.IP.value if is_ip else EntityType.USER.value,)))
    for is_ip in (False, True)
}


class UnreadableNodeError(ValueError):
    """A node that is not the JSON of a config. The text quotes nothing of the node, which may have credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMember:
    """One member of the config object: its key, its value (text, if a broker wrote it), and its bytes."""

    key: str
    value: object
    raw: str
    """Everything between two commas, blanks included."""
    at: int
    """Where in ``raw`` the value begins."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeText:
    """A config node. ``head`` and ``tail`` are what stands around the members, braces included."""

    head: str
    members: tuple[NodeMember, ...]
    tail: str
    has_more: bool = False
    """Something beside version and config, so that the node states something even without members."""

    def values(self) -> dict[str, object]:
        """Key to value; a value that is not a ``str`` is one that no broker can read."""
        return {member.key: member.value for member in self.members}

    @property
    def is_empty(self) -> bool:
        """True when nothing would be lost with the node."""
        return not self.members and not self.has_more

    def altered(self, texts: Mapping[str, str | None]) -> NodeText:
        """With these keys set to a text, or removed. Keys and texts are plain ASCII without quotes or backslashes."""
        kept = [
            member if (text := texts.get(member.key, member.value)) == member.value else _with_value(member, str(text))
            for member in self.members
            if texts.get(member.key, "") is not None
        ]
        present = {member.key for member in kept}
        for key, text in texts.items():
            if text is not None and key not in present:
                raw = f'"{key}":"{text}"'
                new = NodeMember(key=key, value=text, raw=raw, at=len(key) + 3, end=len(raw))
                kept.insert(_place(kept, key), new)
        return NodeText(head=self.head, members=tuple(kept), tail=self.tail, has_more=self.has_more)

    def encoded(self) -> bytes:
        """The node's data."""
        return (self.head + ",".join(member.raw for member in self.members) + self.tail).encode()


def parse_node(data: bytes | None) -> NodeText:
    """Read a node's data; none at all is an empty config. Raises ``UnreadableNodeError``."""
    try:
        text = (data or b"").decode()
    except UnicodeDecodeError:
        raise UnreadableNodeError("the node's data are not UTF-8 text") from None
    if not text.strip(_BLANKS):
        text = _EMPTY
    try:
        return _parsed(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnreadableNodeError):
            raise
        raise UnreadableNodeError("the node's data are not JSON") from None


def _parsed(text: str) -> NodeText:
    start = _skip(text, 0)
    if text[start : start + 1] != "{":
        raise UnreadableNodeError("the node's data are not a JSON object")
    top, end = _members(text, start)
    if _skip(text, end) != len(text):
        raise UnreadableNodeError("the node's data are more than one JSON object")
    config = next((member for member in top if member.key == "config"), None)
    has_more = any(member.key not in _OURS for member in top)
    if config is None:
        head = text[: end - 1] + (',"config":{' if top else '"config":{')
        return NodeText(head=head, members=(), tail="}" + text[end - 1 :], has_more=has_more)
    if not isinstance(config.value, dict):
        raise UnreadableNodeError("the node's config is not a JSON object")
    raw = config.raw[config.at : config.end]
    at = start + 1 + sum(len(member.raw) + 1 for member in top[: top.index(config)]) + config.at
    members, _ = _members(raw, 0)
    return NodeText(head=text[: at + 1], members=members, tail=text[at + len(raw) - 1 :], has_more=has_more)


def _members(text: str, start: int) -> tuple[tuple[NodeMember, ...], int]:
    """The members of the object that begins at ``start``, and where it ends."""
    members = tuple(_each_member(text, start))
    end = start + 1 + sum(len(member.raw) + 1 for member in members)
    keys = {member.key for member in members}
    if len(keys) != len(members):
        raise UnreadableNodeError("an object in its JSON has the same key twice")
    if not members:
        end = _skip(text, start + 1) + 1
    return members, end


def _each_member(text: str, start: int) -> Iterator[NodeMember]:
    begin = start + 1
    if text[_skip(text, begin) : _skip(text, begin) + 1] == "}":
        return
    while True:
        key, at = _DECODER.raw_decode(text, _skip(text, begin))
        at = _expect(text, _skip(text, at), ":")
        value_at = _skip(text, at)
        value, value_end = _DECODER.raw_decode(text, value_at)
        end = _skip(text, value_end)
        closed = text[end : end + 1] == "}"
        if not isinstance(key, str) or not (closed or _expect(text, end, ",")):
            raise ValueError
        yield NodeMember(key=key, value=value, raw=text[begin:end], at=value_at - begin, end=value_end - begin)
        if closed:
            return
        begin = end + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _expect(text: str, at: int, char: str) -> int:
    if text[at : at + 1] != char:
        raise ValueError
    return at + 1


def _no_constant(_name: str) -> NoReturn:
    raise ValueError


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def _with_value(member: NodeMember, text: str) -> NodeMember:
    raw = f'{member.raw[: member.at]}"{text}"{member.raw[member.end :]}'
    return NodeMember(key=member.key, value=text, raw=raw, at=member.at, end=member.at + len(text) + 2)


def _place(members: Sequence[NodeMember], key: str) -> int:
    """Before the first member that a broker would write later."""
    slot = _slot(key)
    return next((index for index, member in enumerate(members) if _slot(member.key) > slot), len(members))


def _slot(key: str) -> int:
    """Where Java's hash table of a few entries (16 slots) has a key; brokers write a config in that order."""
    units = key.encode("utf-16-be", "surrogatepass")
    spread = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        spread = (31 * spread + (high << 8 | low)) & 0xFFFFFFFF
    return (spread ^ spread >> 16) & 0xF


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
    text = text.strip(_JAVA_BLANKS)
    bare = text.removeprefix("-")
    if bare in _NOT_FINITE:
        return math.copysign(_NOT_FINITE[bare], -1.0 if bare != text else 1.0)
    if text.removeprefix("+") in _NOT_FINITE:
        return _NOT_FINITE[text[1:]]
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if match := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(match[1])
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
    """What a config states: the quotas, and (in words, without a value) what in it no broker can read."""

    quotas: dict[str, float]
    unreadable: tuple[str, ...] = ()


def stored_text(key: str, value: float) -> str:
    """The text for a value that ``rules.zookeeper_refusal`` lets pass."""
    kind = QuotaKey(key).value_type
    return java_text(value) if kind is ValueType.DOUBLE else str(min(int(value), _LARGEST[kind]))


def read_quotas(config: dict[str, object], types: tuple[str, ...]) -> ReadQuotas:
    """The quotas of a node of an entity with these types; other keys are only checked for being text.

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
