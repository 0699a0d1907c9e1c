"""A request whose body is written, and whose answer is read, by us; kafka-python does the rest: versions, headers, sending.

kafka-python's connections take anything that behaves as its own requests do. Reading and writing quotas through its message
objects costs more than everything else that happens to them here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_FRAME: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """The body of an answer as it came, and the version it is written in."""

    version: int
    body: bytes

    @property
    def throttle_time_ms(self) -> int:
        """How long the broker asks to wait; the library obeys. The first field of every answer to a quota request."""
        return int.from_bytes(self.body[:4], signed=True)


class RawRequest:
    """A request of a kind that kafka-python knows, with the body that ``body`` gives for the version that is agreed on.

    ``kind`` is the library's request class, ``answer`` its response class. What is public here is what its connections use.
    """

    def __init__(self, kind: Any, answer: Any, body: Callable[[int], bytes]) -> None:
        self._message = kind()
        self._answer = answer
        self._body = body
        self.name: str = kind.name
        self.API_KEY: int = kind.API_KEY
        self.API_VERSION: int | None = None
        self.min_version: int = kind.min_version
        self.max_version: int = kind.max_version
        self._min_version = self._max_version = None
        self.header: _Header | None = None

    def with_header(self, *, correlation_id: int, client_id: str) -> None:
        """What the library says of a request before it encodes it."""
        self._message.API_VERSION = self.API_VERSION
        self._message.with_header(correlation_id=correlation_id, client_id=client_id)
        self.header = _Header(correlation_id, self._answer, self.API_VERSION or 0)

    def encode(self, **_: Any) -> bytes:
        """Length, header and body."""
        version = self.API_VERSION or 0
        header = self._message.encode_header(flexible=self._message.flexible_version_q(version))
        body = self._body(version)
        return b"".join((_FRAME.pack(len(header) + len(body)), header, body))

    def expect_response(self) -> bool:
        """Every quota request has an answer."""
        return True


class _Header:
    """What the library keeps of a request that was sent, and asks how to read the answer."""

    def __init__(self, correlation_id: int, answer: Any, version: int) -> None:
        self.correlation_id = correlation_id
        self._answer = answer
        self._version = version

    def get_response_class(self) -> _Header:
        return self

    def parse_header(self, data: Any) -> Any:
        return self._answer[self._version].parse_header(data)

    def decode(self, data: Any) -> RawAnswer:
        return RawAnswer(version=self._version, body=bytes(data.read()))
