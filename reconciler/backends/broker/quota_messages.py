"""Reads and writes the two quota messages (KIP-546) without going through message objects, which takes two to ten times as long.

DescribeClientQuotas, answer: throttle time int32, error code int16, error message, entries: entity: (type, name), values:
(key, float64). AlterClientQuotas, request: entries: entity: (type, name), ops: (key, value float64, remove bool); then validate
only bool. Its answer: throttle time int32, entries: error code int16, error message, entity: (type, name).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from reconciler.backends.broker import wire
from reconciler.backends.broker.wire import COMPACT, TWO_BYTES, Encoding
from reconciler.model import DEFAULT, Alteration, Entity, Quotas
from reconciler.resolution import LONGEST_STRING

_HEAD: Final = struct.Struct(">ih")
_FLOAT64: Final = struct.Struct(">d")

_THROTTLE_BYTES: Final = 4
_CODE: Final = struct.Struct(">h")
_ONE_BYTE: Final = tuple(bytes((byte,)) for byte in range(0x80))


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """The body of an answer as it came, and the version it is written in."""

    version: int
    body: bytes

    @property
    def throttle_time_ms(self) -> int:
        """How long the broker asks to wait; the library obeys. The first field of every answer to a quota request."""
        return int.from_bytes(self.body[:4], signed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAnswer:
    """What a broker has, or the error code (0 is success) and its message."""

    error_code: int
    error_message: str | None
    entities: Mapping[Entity, Quotas] = field(default_factory=dict)


def read_describe_answer(answer: RawAnswer) -> DescribeAnswer:
    """The answer without its header. Unknown types and keys are carried as they are. Raises ``MalformedAnswerError``."""
    body, encoding = answer.body, wire.encoding_of(answer.version)
    with wire.reading():
        _, code = _HEAD.unpack_from(body)
        message, position = wire.nullable_text(body, _HEAD.size, encoding)
        count, position = encoding.count(body, position)
        entities: dict[Entity, Quotas] = {}
        for _ in range(count):
            entity, position = wire.entity(body, position, encoding)
            entities[entity], position = _values(body, position, encoding)
            position = encoding.skip_tags(body, position)
        wire.require_end(body, encoding.skip_tags(body, position))
    return DescribeAnswer(error_code=code, error_message=message, entities=entities)


def _values(body: bytes, position: int, encoding: Encoding) -> tuple[Quotas, int]:
    """Lengths of one byte and no tags, as in nearly every entry, read at once; else one by one."""
    quotas: dict[str, float] = {}
    if encoding is not COMPACT or not 0 < body[position] < TWO_BYTES:
        return _values_one_by_one(body, position, encoding)
    at = position + 1
    for _ in range(body[position] - 1):
        if not 0 < (length := body[at]) < TWO_BYTES or body[(end := at + length) + 8]:
            return _values_one_by_one(body, position, encoding)
        quotas[wire.known_word(body[at + 1 : end])] = _FLOAT64.unpack_from(body, end)[0]
        at = end + 9
    return quotas, at


def _values_one_by_one(body: bytes, position: int, encoding: Encoding) -> tuple[Quotas, int]:
    quotas: dict[str, float] = {}
    count, position = wire.length_of_list(body, position, encoding)
    for _ in range(count):
        key, position = wire.word(body, position, encoding)
        quotas[key] = _FLOAT64.unpack_from(body, position)[0]
        position = encoding.skip_tags(body, position + 8)
    return quotas, position


def read_alter_answer(answer: RawAnswer) -> Mapping[Entity, tuple[int, str | None]]:
    """By entity: error code (0 is success) and the broker's message. Raises ``MalformedAnswerError``."""
    body, encoding = answer.body, wire.encoding_of(answer.version)
    codes: dict[Entity, tuple[int, str | None]] = {}
    with wire.reading():
        count, position = wire.length_of_list(body, _THROTTLE_BYTES, encoding)
        for _ in range(count):
            (code,) = _CODE.unpack_from(body, position)
            message, position = wire.nullable_text(body, position + _CODE.size, encoding)
            entity, position = wire.entity(body, position, encoding)
            position = encoding.skip_tags(body, position)
            codes[entity] = code, message
        wire.require_end(body, encoding.skip_tags(body, position))
    return codes


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteEncoding:
    """How one version is written."""

    text_length: Callable[[int], bytes]
    count: Callable[[int], bytes]
    null: bytes
    """In place of a text."""
    tags: bytes
    """What ends every structure: that it has no tagged fields, where the version has such."""
    op: struct.Struct
    """What follows an op's key: value, whether to remove it, tags."""


def write_alter_body(alterations: Sequence[Alteration], *, validate_only: bool, version: int) -> bytes:
    """The request without its header. Raises ``ValueError`` for text that does not fit: half a surrogate, or too long."""
    encoding = _WRITE_COMPACT if version else _WRITE_FIXED
    count, op, tags = encoding.count, encoding.op.pack, encoding.tags
    out = [count(len(alterations))]
    add = out.append
    for alteration in alterations:
        add(count(len(alteration.entity.parts)))
        for entity_type, name in alteration.entity.parts:
            add(_encode_word(entity_type, encoding.text_length))
            add(encoding.null if name is DEFAULT else _encode_text(name, encoding.text_length))
            add(tags)
        add(count(len(alteration.ops)))
        for key, value in alteration.ops.items():
            add(_encode_word(key, encoding.text_length))
            # The value of a removal counts for nothing; Kafka's own client sends 0.
            add(op(0.0 if value is None else value, value is None))
        add(tags)
    add(struct.pack(">?", validate_only))
    add(tags)
    return b"".join(out)


def _encode_text(text: str, length: Callable[[int], bytes]) -> bytes:
    raw = text.encode()
    if len(raw) > LONGEST_STRING:
        raise ValueError(f"a text is longer than {LONGEST_STRING} bytes")
    return length(len(raw)) + raw


_encode_word = lru_cache(maxsize=256)(_encode_text)
"""``_encode_text`` of one out of few that come again and again: types and keys."""


def _encode_length(length: int) -> bytes:
    """An unsigned varint of the length and one; 0 is null (KIP-482)."""
    rest = length + 1
    if rest < 0x80:
        return _ONE_BYTE[rest]
    written = bytearray()
    while rest >= 0x80:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*written, rest))


_WRITE_FIXED: Final = _WriteEncoding(
    text_length=struct.Struct(">h").pack, count=struct.Struct(">i").pack, null=b"\xff\xff", tags=b"", op=struct.Struct(">d?")
)
_WRITE_COMPACT: Final = _WriteEncoding(
    text_length=_encode_length, count=_encode_length, null=b"\x00", tags=b"\x00", op=struct.Struct(">d?x")
)
