"""Reads the answer to DescribeClientQuotas straight into entities and quotas: half the time of going through message objects.

Layout (KIP-546): throttle time int32, error code int16, error message, entries: entity: (type, name), values: (key, float64).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.backends.broker import wire
from reconciler.backends.broker.raw_exchange import RawAnswer
from reconciler.backends.broker.wire import COMPACT, TWO_BYTES, Encoding
from reconciler.model import Entity, Quotas

_HEAD: Final = struct.Struct(">ih")
_FLOAT64: Final = struct.Struct(">d")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAnswer:
    """What a broker has, or the error code (0 is success) and its words for why it does not say."""

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
