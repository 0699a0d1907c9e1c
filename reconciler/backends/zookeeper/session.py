"""A connection to ZooKeeper: opened, or refused with a reason; kazoo keeps it up from then on.

kazoo would wait in silence until its time is up, whatever the reason. Its sockets are made here, so that what is wrong with them
is known, and so that TLS is as everywhere else in this tool.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from reconciler.backends.security.tls import tls_context
from reconciler.backends.zookeeper.login import LoginConnection
from reconciler.backends.zookeeper.settings import ZooKeeperSettings, connection_text
from reconciler.errors import AuthenticationError, UnreachableError, UnsupportedClusterError
from reconciler.model.entity import display_name

# kazoo logs requests, passwords and credentials in nodes among them.
_SILENT: Final = logging.getLogger("reconciler.silent.kazoo")
_SILENT.disabled = True
logging.getLogger("kazoo").addHandler(logging.NullHandler())
logging.getLogger("kazoo").setLevel(logging.WARNING)

_ROUNDS: Final = 5
"""How often every server is asked before it is said that none answers; together with the pauses, about two seconds."""
_POLL_S: Final = 0.01
_LOGIN_S: Final = 5.0


def open_client(settings: ZooKeeperSettings) -> KazooClient:
    """A connected client below the chroot; it may be connected to a read-only server. Close it with ``close_client``.

    Raises ``UnreachableError`` when no server answers in time or none speaks ZooKeeper's protocol, ``AuthenticationError`` when
    login or TLS fail, ``UnsupportedClusterError`` when there is no such chroot.
    """
    handler = _Handler(settings)
    client = KazooClient(
        hosts=connection_text(settings.servers, settings.chroot),
        timeout=settings.session_seconds,
        handler=handler,
        read_only=True,
        # For as long as the client is open: whoever asks something has a patience of his own.
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0, sleep_func=handler.sleep_func),
        logger=_SILENT,
    )
    connection = LoginConnection(
        client, login=settings.security.login, patience=_LOGIN_S, waiting=settings.request_seconds, logger=_SILENT
    )
    client._connection = connection  # noqa: SLF001 - kazoo has no other way to choose how to log in
    try:
        _resolve(settings)
        _await_session(client, connection, handler, settings)
        _require_chroot(client, connection, settings)
    except BaseException:
        handler.give_up()
        close_client(client)
        raise
    return client


def close_client(client: KazooClient) -> None:
    """End the session, its lock with it; safe to call twice."""
    client.stop()
    client.close()


def is_read_only(client: KazooClient) -> bool:
    """Whether the server that answers has lost the majority of its ensemble: what it has may be old, and it takes no writes."""
    return bool(client.client_state == KeeperState.CONNECTED_RO)


def _resolve(settings: ZooKeeperSettings) -> None:
    """Raise when no host is known at all; kazoo passes over those that are not."""
    failures: dict[str, str] = {}
    for host, port in settings.servers:
        try:
            socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError) as error:
            failures[f"{host}:{port}"] = (error.strerror if isinstance(error, OSError) else None) or "not a host name"
    if len(failures) == len(settings.servers):
        raise UnreachableError(_nobody(failures, settings))


def _await_session(client: KazooClient, connection: LoginConnection, handler: _Handler, settings: ZooKeeperSettings) -> None:
    deadline = time.monotonic() + settings.connect_seconds
    connected = client.start_async()
    while not connected.wait(_POLL_S):
        if handler.refused_tls is not None:
            raise AuthenticationError(handler.refused_tls)
        _require_not_refused(connection, settings)
        if handler.rounds >= _ROUNDS or time.monotonic() > deadline:
            handler.ask_those_that_closed()
            raise UnreachableError(_nobody(handler.failures, settings))


def _require_chroot(client: KazooClient, connection: LoginConnection, settings: ZooKeeperSettings) -> None:
    """The first request: a login that is refused shows here too, for it goes on after the connection counts as made."""
    try:
        there = client.exists_async("/").get(timeout=settings.request_seconds)
    except KazooTimeoutError:
        raise UnreachableError(f"{_where(settings)} took the connection, and does not answer") from None
    except KazooException as error:
        _require_not_refused(connection, settings)
        msg = f"{_where(settings)} ended the session at the first request ({type(error).__name__}); {_WANTS_LOGIN}"
        raise AuthenticationError(msg) from None
    if there is None:
        servers = connection_text(settings.servers, "")
        raise UnsupportedClusterError(
            f"ZooKeeper at {servers} has no node {settings.chroot}: no Kafka lives below this chroot, and none is made here; "
            "take what stands after the servers in the brokers' zookeeper.connect"
        )


_WANTS_LOGIN: Final = "perhaps it wants a login (zookeeper.sasl.jaas.config in the file of --command-config)"


def _require_not_refused(connection: LoginConnection, settings: ZooKeeperSettings) -> None:
    login = settings.security.login
    if connection.refusal is not None and login is not None:
        who = display_name(login.username)
        said = connection.refusal
        msg = f"{_where(settings)} refused the login of {who} with SASL DIGEST-MD5 (zookeeper.sasl.jaas.config): {said}"
        raise AuthenticationError(msg) from None
    if connection.refusal is not None:
        raise UnsupportedClusterError(f"{_where(settings)} cannot be used: {connection.refusal}") from None


def _where(settings: ZooKeeperSettings) -> str:
    return f"ZooKeeper at {connection_text(settings.servers, '')}"


def _nobody(failures: dict[str, str], settings: ZooKeeperSettings) -> str:
    said = "; ".join(f"{server}: {why}" for server, why in sorted(failures.items()))
    return f"{_where(settings)} cannot be reached" + (f": {said}" if said else f" within {settings.connect_seconds:.0f} s")


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # the library has no types
    """kazoo's threads, with sockets of our own making."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        super().__init__()
        tls = settings.security.tls
        self._tls = tls
        self._context = tls_context(tls) if tls else None
        self._patience = max(1.0, settings.connect_seconds / len(settings.servers))
        self._last: socket.socket | None = None
        self._is_given_up = False
        self.attempts: dict[str, int] = {}
        self._closed: dict[str, tuple[tuple[str, int], str | None]] = {}
        self.failures: dict[str, str] = {}
        """By server, what was wrong with the last attempt."""
        self.refused_tls: str | None = None

    @property
    def rounds(self) -> int:
        """How often every server was tried."""
        return min(self.attempts.values(), default=0)

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_kazoos: object
    ) -> socket.socket:
        """Connect. Raises ``OSError``, after which kazoo tries the next server."""
        server = f"{hostname or address[0]}:{address[1]}"
        with self._noting(server):
            if self._is_given_up:
                raise ConnectionAbortedError("given up")
            made = socket.create_connection(address, min(timeout or self._patience, self._patience))
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._context is not None:
                    made = self._context.wrap_socket(made, server_hostname=hostname or address[0])
            except BaseException:
                made.close()
                raise
        self._last = made
        # Until a session is there, what follows is the server's refusal to have one.
        self._closed[server] = (address, hostname)
        self.failures[server] = f"it closes the connection, or speaks another protocol{'' if self._tls else ' (TLS, perhaps)'}"
        return made

    def ask_those_that_closed(self) -> None:
        """Ask the servers that let nobody in how they are, and put that in place of what they did."""
        for server, (address, hostname) in tuple(self._closed.items()):
            said = b""
            with contextlib.suppress(OSError), self.create_connection(address, hostname, 1.0) as connection:
                connection.settimeout(1.0)
                connection.sendall(b"srvr")
                while part := connection.recv(4096):
                    said += part
            if b"read-only" in said:
                self.failures[server] = "it is read-only, because it has lost the majority of its ensemble"
            elif b"not currently serving" in said:
                self.failures[server] = "it serves nobody now: it is starting, or has lost the majority of its ensemble"

    def give_up(self) -> None:
        """Let a connection attempt end now."""
        self._is_given_up = True
        if self._last is not None:
            with contextlib.suppress(OSError):
                self._last.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _noting(self, server: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failures[server] = _words(error)
            if isinstance(error, ssl.SSLCertVerificationError):
                self.refused_tls = f"the TLS handshake with {server} failed: {_words(error)}"
            raise
        finally:
            self.attempts[server] = self.attempts.get(server, 0) + 1


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message} (zookeeper.ssl.truststore.location)"
    if isinstance(error, ssl.SSLError):
        return (
            f"TLS failed ({error.reason or 'no reason given'}); perhaps it is not the port for TLS, or wants a client certificate"
        )
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or type(error).__name__
