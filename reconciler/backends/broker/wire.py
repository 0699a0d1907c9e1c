"""The two encodings of Kafka's messages: fixed lengths, and compact ones with tagged fields (KIP-482).

Reading works on a whole body and a position in it. What is cut short is noticed by whatever is read next, at the latest by
``require_end``, so nothing here looks at the length before it takes a slice; no count is believed before its items are there.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from reconciler.model import DEFAULT, Entity, EntityName

NULL: Final = -1
"""The length of a null text or list."""

TWO_BYTES: Final = 0x80
"""From this on a compact length has more than one byte."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_LONGEST_VARINT: Final = 5


class MalformedAnswerError(Exception):
    """A server's answer does not have the layout of its version. The text names the difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one version of a message is read; each function takes the body and a position, and gives the next position.

    ``text_length`` and ``count`` give ``NULL`` too. ``skip_tags`` passes over what may follow a structure.
    """

    text_length: Callable[[bytes, int], tuple[int, int]]
    count: Callable[[bytes, int], tuple[int, int]]
    skip_tags: Callable[[bytes, int], int]


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Whatever goes wrong while reading inside is a ``MalformedAnswerError``."""
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


def nullable_text(body: bytes, position: int, encoding: Encoding) -> tuple[str | None, int]:
    """A text or ``None``."""
    length, position = encoding.text_length(body, position)
    if length == NULL:
        return None, position
    return body[position : position + length].decode(), position + length


def word(body: bytes, position: int, encoding: Encoding) -> tuple[str, int]:
    """A text out of few that come again and again: types and keys."""
    length, position = encoding.text_length(body, position)
    if length == NULL:
        raise MalformedAnswerError("null stands where a text must be")
    return known_word(body[position : position + length]), position + length


def length_of_list(body: bytes, position: int, encoding: Encoding) -> tuple[int, int]:
    """The length of a list that cannot be null."""
    length, position = encoding.count(body, position)
    if length == NULL:
        raise MalformedAnswerError("null stands where a list must be")
    return length, position


def entity(body: bytes, position: int, encoding: Encoding) -> tuple[Entity, int]:
    """An entity with all its parts; a null name is the default."""
    # One named part with lengths of one byte and no tags, as nearly every entity is: read at once.
    if encoding is COMPACT and body[position] == 2 and 0 < (length := body[position + 1]) < TWO_BYTES:
        end = position + 1 + length
        if 0 < (length := body[end]) < TWO_BYTES and body[after := end + length] == 0:
            name = body[end + 1 : after].decode()
            return Entity(parts=((known_word(body[position + 2 : end]), name),)), after + 1
    return _entity_by_parts(body, position, encoding)


def _entity_by_parts(body: bytes, position: int, encoding: Encoding) -> tuple[Entity, int]:
    count, position = length_of_list(body, position, encoding)
    parts: list[tuple[str, EntityName]] = []
    for _ in range(count):
        entity_type, position = word(body, position, encoding)
        name, position = nullable_text(body, position, encoding)
        position = encoding.skip_tags(body, position)
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


def _int16_length(body: bytes, position: int) -> tuple[int, int]:
    return _checked(_INT16.unpack_from(body, position)[0]), position + 2


def _int32_length(body: bytes, position: int) -> tuple[int, int]:
    return _checked(_INT32.unpack_from(body, position)[0]), position + 4


def _compact_length(body: bytes, position: int) -> tuple[int, int]:
    length, position = _varint(body, position)
    return length - 1, position


def _checked(length: int) -> int:
    if length < NULL:
        raise MalformedAnswerError("a length is negative")
    return length


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


FIXED: Final = Encoding(text_length=_int16_length, count=_int32_length, skip_tags=lambda _, position: position)
"""Version 0 of both quota messages (Kafka 2.6 and 2.7)."""

COMPACT: Final = Encoding(text_length=_compact_length, count=_compact_length, skip_tags=_skip_tags)
"""Version 1 of both (Kafka 2.8 and newer)."""


def encoding_of(version: int) -> Encoding:
    """The encoding of a version of a quota message."""
    return COMPACT if version else FIXED
