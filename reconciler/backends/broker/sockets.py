"""Sockets for kafka-python, with corrections of two of its faults.

The library leaves the socket of a failed connection to the garbage collector; here it is closed. When an answer and the end of
the connection arrive together, the library drops the answer, such as the refusal of a login that brokers send right before they
close. Here the end shows only after the answer was read.
"""

from __future__ import annotations

import ssl
from socket import socket as Socket  # noqa: N812 - a method below must have the name socket
from typing import Any, Final

from kafka.net.inet import KafkaNetSocket

from reconciler.backends.broker.settings import server_text
from reconciler.backends.security.tls import Tls, tls_context

PROXY_URL: Final = "kafka-quotas-direct://"
"""A proxy setting that picks ``ClosingSocket``: the library's own way of choosing the class of its sockets. No proxy is used."""

_CHUNK: Final = 256 * 1024
"""Bytes read at a time; the library asks for 4 KiB, and takes what it gets."""


class _EndAfterData:
    """Decides when the end of a connection may be shown: not in the same round of reading as data before it."""

    def __init__(self) -> None:
        self._data_before = False

    def __call__(self, read: Any, flags: int) -> bytes:
        data: bytes = b""
        try:
            data = read(_CHUNK, flags)
        except ConnectionError:
            if not self._data_before:
                raise
        if not data and self._data_before:
            self._data_before = False
            # The library ends its round here, and comes back at once, for the socket is still readable.
            raise BlockingIOError
        self._data_before = bool(data)
        return data


class _BrokerSocket(Socket):
    def recv(self, _size: int, flags: int = 0, /) -> bytes:
        return self._end(super().recv, flags)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._end = _EndAfterData()


class ClosingSocket(KafkaNetSocket):  # type: ignore[misc]  # the library has no types here
    """A direct connection."""

    SCHEMES = ("kafka-quotas-direct",)

    def __init__(self, proxy_url: str | None = None) -> None:
        super().__init__(proxy_url)
        self._last: Socket | None = None

    def socket(self, *arguments: Any) -> Socket:
        """Make a socket, and remember it until it is connected."""
        self._last = _BrokerSocket(*arguments)
        return self._last

    async def connect(self, *arguments: Any, **options: Any) -> Socket:
        """Connect, or close the socket."""
        try:
            connected: Socket = await super().connect(*arguments, **options)
        except BaseException:
            if self._last is not None:
                self._last.close()
            raise
        return connected


class TlsSockets:
    """Makes TLS sockets of one context and can close all of them, also those that never finished a handshake.

    ``shown``: by address, the certificate in DER of each server that finished one.
    """

    def __init__(self, tls: Tls) -> None:
        made: list[ssl.SSLSocket] = []
        shown: dict[str, bytes] = {}

        class Remembered(ssl.SSLSocket):
            def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of the base class
                if self not in made:
                    made.append(self)
                    self._end = _EndAfterData()
                super().do_handshake(block)
                certificate = self.getpeercert(binary_form=True)
                if certificate is not None:
                    host, port = self.getpeername()[:2]
                    shown[server_text(self.server_hostname or host, port)] = certificate

            def recv(self, _size: int = 0, flags: int = 0) -> bytes:
                return self._end(super().recv, flags)

        self._made = made
        self.shown = shown
        self.context = tls_context(tls)
        self.context.sslsocket_class = Remembered

    def close(self) -> None:
        """Close them; safe to call twice."""
        for made in self._made:
            made.close()
