"""Sends every request at its time, whatever became of the ones before: one thread, many connections.

A connection carries one request at a time and is not used while the broker does not read from it, so what is sent is read at
once. Without acknowledgement nobody tells how long that is: such a connection is used once.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import itertools
import selectors
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from benchmarks.fidelity.arrivals import Arrival
from benchmarks.fidelity.frames import login_frames, number_of, produce_error, throttle_of
from reconciler.features.sandbox.spec import Login

_LENGTH = struct.Struct(">i")
_DEADLINE_S = 30.0
_SPIN_S = 0.002
"""A poll wakes up late by up to a millisecond: the last moments before a request are waited for without sleeping."""
_BUFFER = 1 << 20
_MARGIN_S = 0.1
"""A broker unmutes a connection some milliseconds late."""
_LAST_ANSWERS_S = 20.0

Place = tuple[int, str]
"""A broker, counted from 0, and a user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of the requests: by number, when each was sent (seconds since 1970), its answer's throttle (ms)."""

    started: float
    at: Mapping[int, float]
    throttle_ms: Mapping[int, int]
    late_ms: tuple[float, ...]
    """By how much each was sent too late, in order of size."""
    opened_late: int
    """Connections that had to be opened in the middle of the run."""
    unanswered: int


@dataclass(slots=True, eq=False)
class _Connection:
    socket: socket.socket
    place: Place
    waits_for: Arrival | None = None
    received: bytearray = field(default_factory=bytearray)
    unsent: bytes = b""


class Connections:
    """Logged in and idle, until a run takes them."""

    def __init__(self, servers: Sequence[str], logins: Mapping[str, Login]) -> None:
        """``servers``: ``host:port`` of each broker's SASL listener."""
        self._servers = servers
        self._logins = logins
        self._idle: dict[Place, deque[_Connection]] = defaultdict(deque)
        self._all: list[_Connection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._all:
            one.socket.close()

    def open(self, counts: Mapping[Place, int]) -> None:
        for place, count in counts.items():
            while len(self._idle[place]) < count:
                self.give_back(self.connect(place))

    def take(self, place: Place) -> _Connection | None:
        # The one that is idle the longest: muted a little longer than expected, it has had the time.
        return self._idle[place].popleft() if self._idle[place] else None

    def give_back(self, connection: _Connection) -> None:
        self._idle[connection.place].append(connection)

    def ask(self, place: Place, frame: bytes) -> int:
        """The error of a produce request of one partition; waits for the answer."""
        connection = self.take(place) or self.connect(place)
        connection.socket.setblocking(True)  # noqa: FBT003 - the socket's own interface
        connection.socket.sendall(frame)
        answer = _framed(connection.socket)
        self.give_back(connection)
        return produce_error(answer)

    def connect(self, place: Place) -> _Connection:
        broker, user = place
        host, port = self._servers[broker].rsplit(":", 1)
        plain = socket.create_connection((host, int(port)), timeout=_DEADLINE_S)
        self._all.append(_Connection(plain, place))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        for frame in login_frames(user, self._logins[user].password):
            plain.sendall(frame)
            if any(_framed(plain)[4:6]):
                raise SystemExit(f"the broker does not let {user} in")
        plain.setblocking(False)  # noqa: FBT003 - the socket's own interface
        return self._all[-1]


def _framed(plain: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_read(plain, _LENGTH.size))
    return _read(plain, length)


def _read(plain: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = plain.recv(size - len(parts))
        if not part:
            raise ConnectionError("the broker closed a connection")
        parts += part
    return bytes(parts)


class OpenLoop:
    """One run over connections that are open already."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._selector = selectors.DefaultSelector()
        self._muted: list[tuple[float, int, _Connection]] = []
        self._tie = itertools.count()
        self._throttle_ms: dict[int, int] = {}
        self._at: dict[int, float] = {}
        self._late: list[float] = []
        self._in_flight = 0
        self._opened_late = 0

    def run(self, arrivals: Sequence[Arrival], frames: Sequence[bytes]) -> Sent:
        """``frames`` has the bytes of each arrival. Starts at the next whole second but one, and ends with the last answer."""
        with contextlib.closing(self._selector), _no_collector():
            started = float(int(time.time()) + 2)
            # Times are told by the wall clock once, then by one that never jumps.
            zero = time.monotonic() + (started - time.time())
            for arrival, frame in zip(arrivals, frames, strict=True):
                self._wait_until(zero + arrival.at_s)
                self._send(arrival, frame)
                now = time.monotonic()
                self._at[arrival.number] = started + now - zero
                self._late.append((now - zero - arrival.at_s) * 1000)
            deadline = time.monotonic() + _LAST_ANSWERS_S
            while self._in_flight and time.monotonic() < deadline:
                self._handle(0.05)
        return Sent(
            started=started, at=self._at, throttle_ms=self._throttle_ms, late_ms=tuple(sorted(self._late)),
            opened_late=self._opened_late, unanswered=self._in_flight,
        )  # fmt: skip

    def _wait_until(self, due: float) -> None:
        while (left := due - time.monotonic()) > 0:
            self._handle(left - _SPIN_S if left > _SPIN_S else 0)

    def _send(self, arrival: Arrival, frame: bytes) -> None:
        place = (arrival.broker, arrival.client.user)
        connection = self._connections.take(place)
        if connection is None:
            self._opened_late += 1
            connection = self._connections.connect(place)
        connection.waits_for = arrival
        connection.unsent = frame
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self._in_flight += 1
        self._go_on_sending(connection)

    def _go_on_sending(self, connection: _Connection) -> None:
        with contextlib.suppress(BlockingIOError):
            connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        if connection.unsent:
            self._selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            return
        arrival = connection.waits_for
        if arrival is not None and arrival.client.kind == "produce" and arrival.client.acks == 0:
            self._let_go(connection)
        else:
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)

    def _handle(self, timeout: float) -> None:
        for key, events in self._selector.select(timeout):
            if events & selectors.EVENT_WRITE:
                self._go_on_sending(key.data)
            if events & selectors.EVENT_READ:
                self._receive(key.data)
        now = time.monotonic()
        while self._muted and self._muted[0][0] <= now:
            self._connections.give_back(heapq.heappop(self._muted)[2])

    def _receive(self, connection: _Connection) -> None:
        try:
            part = connection.socket.recv(_BUFFER)
        except BlockingIOError:
            return
        if not part:
            raise ConnectionError(f"the broker closed a connection of {connection.place[1]}")
        connection.received += part
        if len(connection.received) < _LENGTH.size:
            return
        (length,) = _LENGTH.unpack_from(connection.received)
        if len(connection.received) < _LENGTH.size + length:
            return
        answer, connection.received = bytes(connection.received[_LENGTH.size :]), bytearray()
        self._note(connection, answer)

    def _note(self, connection: _Connection, answer: bytes) -> None:
        arrival = connection.waits_for
        if arrival is None or number_of(answer) != arrival.number:
            raise ConnectionError("an answer to no question")
        throttle_ms = throttle_of(answer, of_fetch=arrival.client.kind == "fetch")
        self._throttle_ms[arrival.number] = throttle_ms
        self._let_go(connection)
        pause = throttle_ms / 1000 + _MARGIN_S if throttle_ms > 0 else 0.0
        heapq.heappush(self._muted, (time.monotonic() + pause, next(self._tie), connection))

    def _let_go(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.waits_for = None
        self._in_flight -= 1


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """A collection takes longer than the milliseconds that matter here."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
