"""Servers on loopback that are not the Kafka one hopes for: silent, hanging up, talking something else, cutting, or scripted."""

from __future__ import annotations

import atexit
import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


@contextlib.contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[int]:
    """Runs ``handle`` for each connection in a thread of its own; gives the port. All ends with the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            handle(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_sockets.append(connection)
                threads.append(threading.Thread(target=one, args=(connection,)))
                threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()
        for connection in open_sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


_KEPT: Final[list[socket.socket]] = []


def _close_kept() -> None:
    for kept in _KEPT:
        kept.close()


def refusing_port() -> int:
    """A port that refuses connections: bound until this process ends, so that no server can take it, and never listening."""
    if not _KEPT:
        atexit.register(_close_kept)
    _KEPT.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    _KEPT[-1].bind(("127.0.0.1", 0))
    return int(_KEPT[-1].getsockname()[1])


def silent(connection: socket.socket) -> None:
    """Reads for ever and says nothing."""
    while connection.recv(4096):
        pass


def hangs_up(connection: socket.socket) -> None:
    """Closes at once."""
    connection.shutdown(socket.SHUT_RDWR)


def speaks_http(connection: socket.socket) -> None:
    """Answers as web servers answer what is not HTTP."""
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    silent(connection)


def speaks_http_and_hangs_up(connection: socket.socket) -> None:
    """The same, and closes before the client can have read it."""
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.shutdown(socket.SHUT_RDWR)


def speaks_tls_alerts(connection: socket.socket) -> None:
    """Answers as TLS servers answer plaintext: a fatal alert."""
    connection.recv(4096)
    connection.sendall(bytes([0x15, 3, 3, 0, 2, 2, 0x32]))
    silent(connection)


class Relay:
    """Passes bytes to the server of ``port``; once ``cut_answers`` is set, answers are swallowed and connections closed.

    ``lead_to`` breaks all connections, and later ones lead to another server.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[socket.socket] = []
        self.cut_answers = False

    def lead_to(self, port: int) -> None:
        self._port = port
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def __call__(self, connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as server, selectors.DefaultSelector() as selector:
            self._open.append(connection)
            selector.register(connection, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, connection)
            while True:
                for key, _ in selector.select():
                    source: Any = key.fileobj
                    data = source.recv(65536)
                    if not data or (source is server and self.cut_answers):
                        return
                    key.data.sendall(data)


class ScriptedBroker:
    """Speaks Kafka just well enough: API key to a function that makes a kafka-python response; ``None`` hangs up."""

    def __init__(self, answers: Mapping[int, Callable[[int], Any]]) -> None:
        self._answers = answers
        self.asked: list[int] = []

    def __call__(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while size := stream.read(4):
                request = stream.read(struct.unpack(">i", size)[0])
                api_key, version, correlation_id = struct.unpack_from(">hhi", request)
                self.asked.append(api_key)
                response = self._answers[api_key](version)
                if response is None:
                    return
                response.API_VERSION = version
                response.with_header(correlation_id=correlation_id)
                connection.sendall(response.encode(header=True, framed=True))
