"""Reads the answer to AlterClientQuotas straight into what became of each entity.

Layout (KIP-546): throttle time int32, entries: error code int16, error message, entity: (type, name).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from reconciler.backends.broker import wire
from reconciler.backends.broker.raw_exchange import RawAnswer
from reconciler.model import Entity

_THROTTLE_BYTES: Final = 4
_CODE: Final = struct.Struct(">h")


def read_alter_answer(answer: RawAnswer) -> Mapping[Entity, tuple[int, str | None]]:
    """By entity: error code (0 is success) and the broker's words. Raises ``MalformedAnswerError``."""
    body, encoding = answer.body, wire.encoding_of(answer.version)
    found: dict[Entity, tuple[int, str | None]] = {}
    with wire.reading():
        count, position = wire.length_of_list(body, _THROTTLE_BYTES, encoding)
        for _ in range(count):
            (code,) = _CODE.unpack_from(body, position)
            message, position = wire.nullable_text(body, position + _CODE.size, encoding)
            entity, position = wire.entity(body, position, encoding)
            position = encoding.skip_tags(body, position)
            found[entity] = code, message
        wire.require_end(body, encoding.skip_tags(body, position))
    return found
