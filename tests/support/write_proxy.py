"""Stands between a client and a real broker, and meddles with the requests that write client quotas, and with their answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from tests.support.raw_quotas import RawEntity

ALTER = 49


class Last(bytes):
    """Bytes after which the connection is closed."""


OnFrame = Callable[[int, bytes], bytes]
"""Number of the write (from 1) and a frame; returns what goes on in its place."""


def unchanged(_number: int, frame: bytes) -> bytes:
    """Passes a frame on as it is."""
    return frame


class WriteProxy:
    """A handler for ``serving``. Everything but writes (validate-only is none) passes untouched.

    ``request`` gets requests without, ``answer`` answers with their length; ``validation`` is called before a validate-only
    request is passed on.
    """

    def __init__(
        self,
        port: int,
        *,
        request: OnFrame = unchanged,
        answer: OnFrame = unchanged,
        validation: Callable[[], None] = lambda: None,
    ) -> None:
        self._port = port
        self._validation = validation
        self._request = request
        self._answer = answer
        self._lock = threading.Lock()
        self.writes: list[frozenset[RawEntity]] = []
        """The entities of each write that a client sent, in order."""

    def lead_to(self, port: int) -> None:
        """Connections from now on go to another broker; those that are open stay where they are."""
        self._port = port

    def __call__(self, connection: socket.socket) -> None:
        expected: dict[int, int] = {}
        with socket.create_connection(("127.0.0.1", self._port)) as broker, connection.makefile("rb") as stream:
            answers = threading.Thread(target=self._pass_answers, args=(broker, connection, expected))
            answers.start()
            try:
                self._pass_requests(stream, broker, expected)
            finally:
                hang_up(broker, connection)
                answers.join()

    def _pass_requests(self, stream: BinaryIO, broker: socket.socket, expected: dict[int, int]) -> None:
        while (frame := read_frame(stream)) is not None:
            passed = frame[4:]
            request = decoded_alter(frame[4:])
            if request is not None and request.validate_only:
                self._validation()
            elif request is not None:
                with self._lock:
                    self.writes.append(entities_of(request))
                    number = len(self.writes)
                expected[correlation_id(frame)] = number
                passed = self._request(number, frame[4:])
            if passed:
                broker.sendall(struct.pack(">i", len(passed)) + passed)
            if isinstance(passed, Last):
                return

    def _pass_answers(self, broker: socket.socket, connection: socket.socket, expected: dict[int, int]) -> None:
        with contextlib.suppress(OSError), broker.makefile("rb") as stream:
            while (frame := read_frame(stream)) is not None:
                number = expected.pop(struct.unpack_from(">i", frame, 4)[0], None)
                passed = frame if number is None else self._answer(number, frame)
                connection.sendall(passed)
                if isinstance(passed, Last):
                    break
        hang_up(broker, connection)


class Gate:
    """Where something is held until the test says go; it knows when it has arrived."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._open = threading.Event()

    def hold(self) -> None:
        """Called by whoever is held."""
        self._arrived.set()
        assert self._open.wait(600), "the test never opened the gate"

    def await_arrival(self) -> None:
        """Returns once somebody is held."""
        assert self._arrived.wait(300), "nobody came to the gate"

    def open(self) -> None:
        """Lets it pass."""
        self._open.set()


def read_frame(stream: BinaryIO) -> bytes | None:
    """One message with its length, or ``None`` at the end."""
    size = stream.read(4)
    if len(size) < 4:
        return None
    body = stream.read(struct.unpack(">i", size)[0])
    return size + body


def correlation_id(frame: bytes) -> int:
    """Of a request with its length."""
    return int(struct.unpack_from(">i", frame, 8)[0])


def decoded_alter(request: bytes) -> Any:
    """The AlterClientQuotas request in these bytes, or ``None`` for any other."""
    from kafka.protocol.admin import AlterClientQuotasRequest

    api_key, version = struct.unpack_from(">hh", request)
    if api_key != ALTER:
        return None
    return AlterClientQuotasRequest.decode(request, version=version, header=True)


def reencoded(message: Any) -> bytes:
    """A request that was decoded and changed, as bytes again."""
    encoded: bytes = message.encode(version=message.header.request_api_version, header=True)
    return bytes(encoded)


def entities_of(request: Any) -> frozenset[RawEntity]:
    """What a write is about."""
    return frozenset(frozenset((p.entity_type, p.entity_name) for p in entry.entity) for entry in request.entries)


def hang_up(*ends: socket.socket) -> None:
    """Both directions, so that whoever waits wakes up."""
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
