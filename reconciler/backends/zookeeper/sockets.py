"""A thread handler for kazoo whose sockets record failures and read many answers at a time.

They record why a connection failed, they do TLS as everywhere else in this tool, and they are quick: kazoo asks the
system six times about each request whether it may read or write, and reads an answer in two pieces. Here answers are read many at
a time, and nothing is asked that a buffer knows.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

from reconciler.backends.security.tls import tls_context
from reconciler.backends.zookeeper.settings import ZooKeeperSettings
from reconciler.logs import log_event

_log: Final = logging.getLogger(__name__)

_CHUNK: Final = 64 * 1024
_ASK_S: Final = 1.0
_WRITE_S: Final = 10.0
"""How long the other side may take to make room for a request."""


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # the library has no types
    """Makes the connections of one client, and remembers what was wrong with them."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        super().__init__()
        tls = settings.security.tls
        self._context = tls_context(tls) if tls else None
        if self._context is not None:
            self._context.sslsocket_class = _TlsSocket
        self._answer_seconds = max(1.0, settings.connect_seconds / len(settings.servers))
        self._last: socket.socket | None = None
        self._is_given_up = False
        self._attempts: dict[str, int] = {}
        self._closed: dict[str, tuple[tuple[str, int], str | None]] = {}
        self.failures: dict[str, str] = {}
        """By server, what was wrong with the last attempt."""
        self.refused_tls: str | None = None
        self.shown: dict[str, bytes] = {}
        """By server, the certificate in DER that it showed."""

    @property
    def rounds(self) -> int:
        """How often every server was tried."""
        return min(self._attempts.values(), default=0)

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_kazoos: object
    ) -> socket.socket:
        """Connect. Raises ``OSError``, after which kazoo tries the next server."""
        server = f"{hostname or address[0]}:{address[1]}"
        with self._noting(server):
            if self._is_given_up:
                raise ConnectionAbortedError("given up")
            made = _connect_socket(address, min(timeout or self._answer_seconds, self._answer_seconds))
            if self._context is not None:
                wrapped = _wrap_tls(made, self._context, hostname or address[0])
                self.shown[server] = wrapped.getpeercert(binary_form=True) or b""
                made = wrapped
        self._last = made
        self._closed[server] = (address, hostname)
        # Until a session is there, what follows is the server's refusal to have one.
        other = "" if self._context else " (TLS, perhaps)"
        self.failures[server] = f"the server closes the connection, or speaks another protocol{other}"
        return made

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _others: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], Sequence[Any], list[Any]]:
        """Which of ``readers`` have something; ``writers`` wait for room when they send."""
        if not readers:
            return [], writers, []
        ready = [reader for reader in readers if isinstance(reader, _ZooKeeperSocket | _TlsSocket) and reader.pending() > 0]
        poll = select.poll()
        try:
            waiting = {reader.fileno(): reader for reader in readers if reader not in ready}
            for number in waiting:
                poll.register(number, select.POLLIN)
        except ValueError as error:
            raise ConnectionAbortedError("closed meanwhile") from error
        events = poll.poll(0 if ready else None if timeout is None else max(0.0, timeout * 1000))
        return [*ready, *(waiting[number] for number, _ in events)], [], []

    def create_socket_pair(self) -> tuple[_Bell, _Bell]:
        """What wakes the thread of the connection for each request: both ends in one."""
        bell = _Bell()
        return bell, bell

    def ask_those_that_closed(self) -> None:
        """Ask the servers that let no client in how they are, and put that in place of what they did."""
        for server, (address, hostname) in tuple(self._closed.items()):
            answer = b""
            with contextlib.suppress(OSError), self.create_connection(address, hostname, _ASK_S) as connection:
                connection.settimeout(_ASK_S)
                connection.sendall(b"srvr")
                while part := connection.recv(4096):
                    answer += part
            if b"read-only" in answer:
                self.failures[server] = "the server is read-only, because it has lost the majority of its ensemble"
            elif b"not currently serving" in answer:
                self.failures[server] = (
                    "the server serves no client now: it is starting, or has lost the majority of its ensemble"
                )

    def give_up(self) -> None:
        """Let a connection attempt end now."""
        self._is_given_up = True
        if self._last is not None:
            with contextlib.suppress(OSError):
                self._last.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _noting(self, server: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
            milliseconds = round((time.monotonic() - begun) * 1000, 1)
            log_event(
                _log, "connected", level=logging.INFO, address=server, tls=self._context is not None, milliseconds=milliseconds
            )
        except OSError as error:
            self.failures[server] = _error_text(error)
            log_event(_log, "no connection", level=logging.INFO, address=server, reason=self.failures[server])
            if isinstance(error, ssl.SSLCertVerificationError):
                self.refused_tls = f"the TLS handshake with {server} failed: {_error_text(error)}"
            raise
        finally:
            self._attempts[server] = self._attempts.get(server, 0) + 1


class _Bell:
    """A counter with a socket that is readable while it is not zero.

    kazoo has a pair of sockets, and sends a byte for each request. Without a connection they are never read, and after some 270
    every request waits for ever.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._reader, self._writer = socket.socketpair()

    def fileno(self) -> int:
        """For waiting."""
        return self._reader.fileno()

    def send(self, data: bytes) -> int:
        """Ring once."""
        with self._changed:
            self._count += 1
            if self._count == 1:
                self._writer.send(data)
                self._changed.notify()
        return len(data)

    def recv(self, _size: int) -> bytes:
        """Take one ring, or wait for it."""
        with self._changed:
            while self._count == 0:
                self._changed.wait()
            self._count -= 1
            if self._count == 0:
                self._reader.recv(1)
        return b"\0"

    def close(self) -> None:
        """Safe to call twice, as both ends are one."""
        self._reader.close()
        self._writer.close()


class _ZooKeeperSocket(socket.socket):
    _received = b""
    _taken = 0

    def pending(self) -> int:
        """How many bytes were received and not taken; kazoo looks at this before it waits."""
        return len(self._received) - self._taken

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Some bytes. They are received in larger pieces."""
        if self._taken == len(self._received):
            self._received, self._taken = super().recv(_CHUNK, flags), 0
        part = self._received[self._taken : self._taken + size]
        self._taken += len(part)
        return part

    def send(self, data: Any, flags: int = 0, /) -> int:
        """Send, waiting for room."""
        try:
            return super().send(data, flags)
        except BlockingIOError:
            _await_room(self)
            return super().send(data, flags)


class _TlsSocket(ssl.SSLSocket):
    _received = b""
    _taken = 0

    def pending(self) -> int:
        """As with plain sockets."""
        return len(self._received) - self._taken + super().pending()

    def recv(self, size: int = 1024, flags: int = 0) -> bytes:
        """As with plain sockets."""
        if self._taken == len(self._received):
            self._received, self._taken = super().recv(_CHUNK, flags), 0
        part = self._received[self._taken : self._taken + size]
        self._taken += len(part)
        return part

    def send(self, data: Any, flags: int = 0) -> int:
        """As with plain sockets."""
        try:
            return super().send(data, flags)
        except ssl.SSLWantWriteError:
            _await_room(self)
            return super().send(data, flags)


def _await_room(connection: socket.socket) -> None:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLOUT)
    if not poll.poll(_WRITE_S * 1000):
        raise TimeoutError("no room for a request")


def _connect_socket(address: tuple[str, int], timeout: float) -> socket.socket:
    connection = socket.create_connection(address, timeout)
    made = _ZooKeeperSocket(connection.family, connection.type, connection.proto, fileno=connection.detach())
    made.settimeout(timeout)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _wrap_tls(plain: socket.socket, context: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _error_text(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is refused: {error.verify_message} (zookeeper.ssl.truststore.location)"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or "no reason given"
        return f"TLS failed ({reason}). Perhaps this is not the TLS port, or the server wants a client certificate"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or type(error).__name__
