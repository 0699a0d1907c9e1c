"""The two quota messages (KIP-546), read and written without message objects, which take two to ten times as long.

DescribeClientQuotas, answer: throttle time int32, error code int16, error message, entries: entity: (type, name), values:
(key, float64). AlterClientQuotas, request: entries: entity: (type, name), ops: (key, value float64, remove bool); then validate
only bool. Its answer: throttle time int32, entries: error code int16, error message, entity: (type, name).

Both are of version 1, which Kafka has since 2.8: compact lengths and tagged fields (KIP-482). Reading works on a whole body
and a position in it. What is cut short is noticed by whatever is read next, at the latest by ``require_end``, so nothing here
looks at the length before it takes a slice; no count is believed before its items are there.

kafka-python does the rest: versions, headers, sending. Its connections take anything that behaves as its own requests do.
"""

from __future__ import annotations

import contextlib
import logging
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeConfigsRequest,
)

from reconciler.errors import RequestRefusedError
from reconciler.model import DEFAULT, Alteration, Entity, EntityName, Quotas
from reconciler.ports import EntityFilter
from reconciler.resolution import INVALID_REQUEST, LONGEST_STRING, unsendable

_HEAD: Final = struct.Struct(">ih")
_FLOAT64: Final = struct.Struct(">d")

_THROTTLE_BYTES: Final = 4
_CODE: Final = struct.Struct(">h")
_ONE_BYTE: Final = tuple(bytes((byte,)) for byte in range(0x80))


NULL: Final = -1
"""The length of a null text or list."""
TWO_BYTES: Final = 0x80
"""From this on a compact length has more than one byte."""
_LONGEST_VARINT: Final = 5
_FRAME: Final = struct.Struct(">i")
BROKER, TOPIC = 4, 2
"""Types of resources in DescribeConfigs."""
_VERSION: Final = 1
_OP: Final = struct.Struct(">d?x")
"""What follows an op's key: value, whether to remove it, and that it has no tagged fields."""
_ZERO: Final = b"\x00"
"""In place of a text: null. At the end of a structure: no tagged fields."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """The body of an answer as it came."""

    body: bytes
    throttle_time_ms: int
    """The wait that the broker asks for, which the library obeys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAnswer:
    """What a broker has, or the error code (0 is success) and its message."""

    error_code: int
    error_message: str | None
    entities: Mapping[Entity, Quotas] = field(default_factory=dict)


def read_describe_answer(answer: RawAnswer) -> DescribeAnswer:
    """The answer without its header. Unknown types and keys are carried as they are. Raises ``MalformedAnswerError``."""
    body = answer.body
    with reading():
        _, code = _HEAD.unpack_from(body)
        message, position = nullable_text(body, _HEAD.size)
        count, position = _length(body, position)
        entities: dict[Entity, Quotas] = {}
        for _ in range(count):
            entity, position = read_entity(body, position)
            entities[entity], position = _values(body, position)
            position = _skip_tags(body, position)
        require_end(body, _skip_tags(body, position))
    return DescribeAnswer(error_code=code, error_message=message, entities=entities)


def _values(body: bytes, position: int) -> tuple[Quotas, int]:
    """Lengths of one byte and no tags, as in nearly every entry, read at once; else one by one."""
    quotas: dict[str, float] = {}
    if not 0 < body[position] < TWO_BYTES:
        return _values_one_by_one(body, position)
    at = position + 1
    for _ in range(body[position] - 1):
        if not 0 < (length := body[at]) < TWO_BYTES or body[(end := at + length) + 8]:
            return _values_one_by_one(body, position)
        quotas[known_word(body[at + 1 : end])] = _FLOAT64.unpack_from(body, end)[0]
        at = end + 9
    return quotas, at


def _values_one_by_one(body: bytes, position: int) -> tuple[Quotas, int]:
    quotas: dict[str, float] = {}
    count, position = length_of_list(body, position)
    for _ in range(count):
        key, position = read_word(body, position)
        quotas[key] = _FLOAT64.unpack_from(body, position)[0]
        position = _skip_tags(body, position + 8)
    return quotas, position


def read_alter_answer(answer: RawAnswer) -> Mapping[Entity, tuple[int, str | None]]:
    """Return, by entity, the error code (0 is success) and the broker's message. Raises ``MalformedAnswerError``."""
    body = answer.body
    codes: dict[Entity, tuple[int, str | None]] = {}
    with reading():
        count, position = length_of_list(body, _THROTTLE_BYTES)
        for _ in range(count):
            (code,) = _CODE.unpack_from(body, position)
            message, position = nullable_text(body, position + _CODE.size)
            entity, position = read_entity(body, position)
            position = _skip_tags(body, position)
            codes[entity] = code, message
        require_end(body, _skip_tags(body, position))
    return codes


def write_alter_body(alterations: Sequence[Alteration], *, validate_only: bool) -> bytes:
    """The request without its header. Raises ``ValueError`` for text that does not fit: half a surrogate, or too long."""
    count, op = _encode_length, _OP.pack
    out = [count(len(alterations))]
    add = out.append
    for alteration in alterations:
        add(count(len(alteration.entity.parts)))
        for entity_type, name in alteration.entity.parts:
            add(_encode_word(entity_type))
            add(_ZERO if name is DEFAULT else _encode_text(name))
            add(_ZERO)
        add(count(len(alteration.ops)))
        for key, value in alteration.ops.items():
            add(_encode_word(key))
            # The value of a removal counts for nothing; Kafka's own client sends 0.
            add(op(0.0 if value is None else value, value is None))
        add(_ZERO)
    add(struct.pack(">?x", validate_only))
    return b"".join(out)


def _encode_text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) > LONGEST_STRING:
        raise ValueError(f"a text is longer than {LONGEST_STRING} bytes")
    return _encode_length(len(raw)) + raw


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


class MalformedAnswerError(Exception):
    """A server's answer does not have the layout of its version. The text names the difference."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn errors of reading inside into ``MalformedAnswerError``."""
    try:
        yield
    except (IndexError, struct.error) as error:
        raise MalformedAnswerError("the bytes end too early") from error
    except UnicodeDecodeError as error:
        raise MalformedAnswerError("a text is not UTF-8") from error


def require_end(body: bytes, position: int) -> None:
    """Raise ``MalformedAnswerError`` unless the body ends at the position."""
    if position != len(body):
        raise MalformedAnswerError(
            "the bytes end too early" if position > len(body) else f"{len(body) - position} bytes are left over"
        )


def nullable_text(body: bytes, position: int) -> tuple[str | None, int]:
    """A text or ``None``."""
    length, position = _length(body, position)
    if length == NULL:
        return None, position
    return body[position : position + length].decode(), position + length


def read_word(body: bytes, position: int) -> tuple[str, int]:
    """A text out of few that come again and again: types and keys."""
    length, position = _length(body, position)
    if length == NULL:
        raise MalformedAnswerError("null stands where a text must be")
    return known_word(body[position : position + length]), position + length


def length_of_list(body: bytes, position: int) -> tuple[int, int]:
    """The length of a list that cannot be null."""
    length, position = _length(body, position)
    if length == NULL:
        raise MalformedAnswerError("null stands where a list must be")
    return length, position


def read_entity(body: bytes, position: int) -> tuple[Entity, int]:
    """An entity with all its parts; a null name is the default."""
    # One named part with lengths of one byte and no tags, as nearly every entity is: read at once.
    if body[position] == 2 and 0 < (length := body[position + 1]) < TWO_BYTES:
        end = position + 1 + length
        if 0 < (length := body[end]) < TWO_BYTES and body[after := end + length] == 0:
            name = body[end + 1 : after].decode()
            return Entity(parts=((known_word(body[position + 2 : end]), name),)), after + 1
    return _entity_by_parts(body, position)


def _entity_by_parts(body: bytes, position: int) -> tuple[Entity, int]:
    count, position = length_of_list(body, position)
    parts: list[tuple[str, EntityName]] = []
    for _ in range(count):
        entity_type, position = read_word(body, position)
        name, position = nullable_text(body, position)
        position = _skip_tags(body, position)
        parts.append((entity_type, DEFAULT if name is None else name))
    if not parts:
        raise MalformedAnswerError("an entity has no type and no name")
    if len(names := dict(parts)) < len(parts):
        raise MalformedAnswerError("an entity has one type twice")
    return Entity.of(names), position


@lru_cache(maxsize=256)
def known_word(raw: bytes) -> str:
    """The text of some bytes; the same object for the same text, so that a large state is not full of copies."""
    return raw.decode()


def _length(body: bytes, position: int) -> tuple[int, int]:
    """A length, which is ``NULL`` for what is not there."""
    if (byte := body[position]) < TWO_BYTES:
        return byte - 1, position + 1
    length, position = _varint(body, position)
    return length - 1, position


def _varint(body: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        byte = body[position + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < TWO_BYTES:
            return value, position + place + 1
    raise MalformedAnswerError("a length has more than five bytes")


def _skip_tags(body: bytes, position: int) -> int:
    if body[position] == 0:
        return position + 1
    count, position = _varint(body, position)
    for _ in range(count):
        _, position = _varint(body, position)
        size, position = _varint(body, position)
        position += size
    return position


_Component = DescribeClientQuotasRequest.ComponentData


class RawRequest:
    """A request of a kind that kafka-python knows, with this body.

    ``kind`` is the library's request class, ``answer`` its response class. What is public here is what its connections use.
    """

    def __init__(self, kind: Any, answer: Any, body: bytes) -> None:
        self._message = kind()
        self._answer = answer
        self._body = body
        self.name: str = kind.name
        self.API_KEY: int = kind.API_KEY
        self.API_VERSION: int | None = None
        self.min_version = self.max_version = _VERSION
        self._min_version = self._max_version = None
        self.header: RawRequest | None = None
        self.correlation_id = 0

    def with_header(self, *, correlation_id: int, client_id: str) -> None:
        """Take what the library states of a request before it encodes it."""
        self._message.API_VERSION = self.API_VERSION
        self._message.with_header(correlation_id=correlation_id, client_id=client_id)
        self.correlation_id, self.header = correlation_id, self

    def encode(self, **_: Any) -> bytes:
        """Length, header and body."""
        header = self._message.encode_header(flexible=True)
        return b"".join((_FRAME.pack(len(header) + len(self._body)), header, self._body))

    def expect_response(self) -> bool:
        """Every quota request has an answer."""
        return True

    def get_response_class(self) -> RawRequest:
        """Return what reads the answer. The library asks the header, which it keeps of a request that was sent."""
        return self

    def parse_header(self, data: Any) -> Any:
        """Read the header of the answer."""
        return self._answer[_VERSION].parse_header(data)

    def decode(self, data: Any) -> RawAnswer:
        """Read the rest of the answer, in which the wait comes first."""
        body = bytes(data.read())
        wait = int.from_bytes(body[:_THROTTLE_BYTES], signed=True)
        return RawAnswer(body=body, throttle_time_ms=wait)


def describe_request(entity_filter: EntityFilter) -> RawRequest:
    """A DescribeClientQuotas request; ``read_describe_answer`` reads its answer."""
    components = [_Component(entity_type=c.entity_type, match_type=int(c.kind), match=c.name) for c in entity_filter.components]
    message = DescribeClientQuotasRequest(components=components, strict=entity_filter.strict)
    return RawRequest(DescribeClientQuotasRequest, DescribeClientQuotasResponse, bytes(message.encode(version=_VERSION)))


def settings_request(kind: int, names: Iterable[str], keys: Sequence[str]) -> Any:
    """A DescribeConfigs request for some settings. Only a broker itself answers about its own."""
    resources = [
        DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
        for name in names
    ]
    return DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)


def alter_request(alterations: Sequence[Alteration], *, validate_only: bool) -> RawRequest:
    """An AlterClientQuotas request; ``read_alter_answer`` reads its answer.

    Raises ``ValueError`` for an entity twice or without ops, where Kafka would do half of it, and ``RequestRefusedError`` for
    text that does not fit into a request.
    """
    if len({alteration.entity for alteration in alterations}) < len(alterations):
        twice = next(entity for entity, times in Counter(a.entity for a in alterations).items() if times > 1)
        raise ValueError(f"{twice} is altered twice in one request")
    if without := next((alteration for alteration in alterations if not alteration.ops), None):
        raise ValueError(f"the alteration of {without.entity} has no ops")

    try:
        body = write_alter_body(alterations, validate_only=validate_only)
    except ValueError:
        for alteration in alterations:
            if reason := unsendable(alteration):
                raise RequestRefusedError(f"{alteration.entity} cannot be sent: {reason}", error_code=INVALID_REQUEST) from None
        raise
    return RawRequest(AlterClientQuotasRequest, AlterClientQuotasResponse, body)
