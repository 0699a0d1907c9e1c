"""A connection to ZooKeeper: opened, or refused with a reason, and many requests in flight over it.

kazoo keeps a connection up once it is open; before that it would wait in silence until its time is up, whatever the reason. So
its handler here does TLS as everywhere else in this tool, and records why connections fail. Its errors become those of this tool.
ZooKeeper answers requests in the order in which they were sent.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from reconciler.backends.security.tls import tls_context
from reconciler.backends.zookeeper.login import LoginConnection
from reconciler.backends.zookeeper.settings import ZooKeeperSettings, connection_text
from reconciler.errors import (
    AuthenticationError,
    AuthorizationError,
    BackendError,
    TlsFailedError,
    UnreachableError,
    UnsupportedClusterError,
)
from reconciler.logs import log_event, timed_event
from reconciler.model import display_name

CLIENT_ERRORS: Final = (KazooException, KazooTimeoutError)
"""Everything that kazoo raises about the server and the connection to it."""

_log: Final = logging.getLogger(__name__)
# kazoo logs requests, passwords and credentials in nodes among them. What happens is logged here, and in login and sockets.
_SILENT: Final = logging.getLogger("reconciler.silent.kazoo")
_SILENT.disabled = True
_ROUNDS: Final = 5
"""How often every server is asked before it is reported that none answers; together with the pauses, about two seconds."""
_POLL_S: Final = 0.01
_LOGIN_S: Final = 5.0
_WANTS_LOGIN: Final = "Perhaps it wants a login (zookeeper.sasl.jaas.config in the file of --command-config)"
Result = TypeVar("Result")
Asked = TypeVar("Asked")


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # the library has no types
    """Makes the connections of one client, and remembers what was wrong with them."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        super().__init__()
        tls = settings.security.tls
        self._context = tls_context(tls) if tls else None
        self._answer_seconds = max(1.0, settings.connect_seconds / len(settings.servers))
        self._last: socket.socket | None = None
        self._is_given_up = False
        self._attempts: dict[str, int] = {}
        self.failures: dict[str, str] = {}
        """By server, what was wrong with the last attempt."""
        self.refused_tls: str | None = None

    @property
    def rounds(self) -> int:
        """Return how often every server was tried."""
        return min(self._attempts.values(), default=0)

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_kazoos: object
    ) -> socket.socket:
        """Connect. Raises ``OSError``, after which kazoo tries the next server."""
        server = f"{hostname or address[0]}:{address[1]}"
        with self._noting(server):
            if self._is_given_up:
                raise ConnectionAbortedError("given up")
            made = socket.create_connection(address, min(timeout or self._answer_seconds, self._answer_seconds))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                made = _wrap_tls(made, self._context, hostname or address[0])
        self._last = made
        # Until a session is there, what follows is the server's refusal to have one.
        other = "" if self._context else " (TLS, perhaps)"
        self.failures[server] = (
            f"the server closes the connection (it starts, or its ensemble has no majority), or speaks another protocol{other}"
        )
        return made

    def select(self, readers: Sequence[Any], *others: Any) -> Any:
        """Select as kazoo does. A TLS socket with decrypted bytes is readable, too, which the system does not know."""
        ready = [reader for reader in readers if isinstance(reader, ssl.SSLSocket) and reader.pending() > 0]
        return (ready, [], []) if ready else super().select(readers, *others)

    def give_up(self) -> None:
        """Let a connection attempt end now."""
        self._is_given_up = True
        if self._last is not None:
            with contextlib.suppress(OSError):
                self._last.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _noting(self, server: str) -> Iterator[None]:
        try:
            with timed_event(_log, "connected", level=logging.INFO, address=server, tls=self._context is not None):
                yield
        except OSError as error:
            self.failures[server] = _error_text(error)
            log_event(_log, "no connection", level=logging.INFO, address=server, reason=self.failures[server])
            if isinstance(error, ssl.SSLCertVerificationError):
                self.refused_tls = f"the TLS handshake with {server} failed: {_error_text(error)}"
            raise
        finally:
            self._attempts[server] = self._attempts.get(server, 0) + 1


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


def translated_error(error: Exception) -> BackendError:
    """Return kazoo's error of a request that changes nothing, as one of ours."""
    if isinstance(error, NoAuthError):
        msg = "ZooKeeper does not let this client read the quotas: its ACLs want the identity of the brokers"
        return AuthorizationError(msg)
    if isinstance(error, AuthFailedError):
        return AuthenticationError("ZooKeeper refused the login")
    if isinstance(error, KazooTimeoutError):
        return UnreachableError("ZooKeeper does not answer in time")
    name = type(error).__name__
    lost = name in {
        "ConnectionLoss",
        "SessionExpiredError",
        "ConnectionClosedError",
        "OperationTimeoutError",
        "SessionMovedError",
    }
    if lost:
        return UnreachableError(f"the connection to ZooKeeper was lost ({name})")
    return UnsupportedClusterError(f"ZooKeeper answers with an error that it should not: {name}")


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise ``BackendError`` children for what kazoo raises inside."""
    try:
        yield
    except CLIENT_ERRORS as error:
        raise translated_error(error) from error


def open_client(settings: ZooKeeperSettings) -> KazooClient:
    """A connected client below the chroot; it may be connected to a read-only server. Close it with ``close_client``.

    Raises ``UnreachableError`` when no server answers in time or none speaks ZooKeeper's protocol, ``AuthenticationError`` when
    login or TLS fail, ``UnsupportedClusterError`` when there is no such chroot.
    """
    handler = Handler(settings)
    client = KazooClient(
        hosts=connection_text(settings.servers, settings.chroot),
        timeout=settings.session_seconds,
        handler=handler,
        read_only=True,
        auth_data=None if settings.security.digest is None else [("digest", settings.security.digest)],
        # For as long as the client is open: each request has a deadline of its own.
        command_retry=KazooRetry(max_tries=1, sleep_func=handler.sleep_func),
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0, sleep_func=handler.sleep_func),
        logger=_SILENT,
    )
    connection = LoginConnection(
        client, login=settings.security.login, answer_seconds=_LOGIN_S, waiting=settings.request_seconds, logger=_SILENT
    )
    client.add_listener(lambda state: log_event(_log, "session state changed", level=logging.INFO, state=str(state)))
    client._connection = connection  # noqa: SLF001 - kazoo has no other way to choose how to log in
    try:
        log_event(
            _log,
            "opening a session",
            servers=connection_text(settings.servers, settings.chroot),
            login=None if settings.security.login is None else settings.security.login.mechanism,
            tls=settings.security.tls is not None,
        )
        begun = time.monotonic()
        _resolve(settings)
        _await_session(client, connection, handler, settings)
        _require_chroot(client, connection, settings)
        milliseconds = round((time.monotonic() - begun) * 1000, 1)
        log_event(_log, "session opened", level=logging.INFO, milliseconds=milliseconds, read_only=is_read_only(client))
    except BaseException:
        handler.give_up()  # also where a server lets no client in, but keeps the connection
        close_client(client)
        raise
    return client


def close_client(client: KazooClient) -> None:
    """End the session, its lock with it; safe to call twice."""
    if isinstance(client.handler, Handler) and not client.connected:
        client.handler.give_up()
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
        raise UnreachableError(_unreachable(failures, settings))


def _await_session(client: KazooClient, connection: LoginConnection, handler: Handler, settings: ZooKeeperSettings) -> None:
    deadline = time.monotonic() + settings.connect_seconds
    connected = client.start_async()
    while not connected.wait(_POLL_S):
        if handler.refused_tls is not None:
            raise TlsFailedError(handler.refused_tls)
        _require_not_refused(connection, settings)
        if handler.rounds >= _ROUNDS or time.monotonic() > deadline:
            raise UnreachableError(_unreachable(handler.failures, settings))


def _require_chroot(client: KazooClient, connection: LoginConnection, settings: ZooKeeperSettings) -> None:
    """The first request: a login that is refused shows here too, for it goes on after the connection counts as made."""
    try:
        chroot = client.exists_async("/").get(timeout=settings.request_seconds)
    except KazooTimeoutError:
        raise UnreachableError(f"{_where(settings)} took the connection, and does not answer") from None
    except KazooException as error:
        _require_not_refused(connection, settings)
        msg = f"{_where(settings)} ended the session at the first request ({type(error).__name__}). {_WANTS_LOGIN}"
        raise AuthenticationError(msg) from None
    if chroot is None:
        servers = connection_text(settings.servers, "")
        raise UnsupportedClusterError(
            f"ZooKeeper at {servers} has no node {settings.chroot}: no Kafka uses this chroot, and kafka-quotas does not create "
            "one. Take what stands after the servers in the brokers' zookeeper.connect"
        )


def _require_not_refused(connection: LoginConnection, settings: ZooKeeperSettings) -> None:
    login = settings.security.login
    if connection.refusal is not None and login is not None:
        principal = settings.security.principal
        who = "" if principal is None else f" of {display_name(principal)}"
        refusal = connection.refusal
        msg = f"{_where(settings)} refused the login{who} with SASL {login.mechanism} (zookeeper.sasl.jaas.config): {refusal}"
        raise AuthenticationError(msg) from None
    if connection.refusal is not None:
        raise UnsupportedClusterError(f"{_where(settings)} cannot be used: {connection.refusal}") from None


def _where(settings: ZooKeeperSettings) -> str:
    return f"ZooKeeper at {connection_text(settings.servers, '')}"


def _unreachable(failures: dict[str, str], settings: ZooKeeperSettings) -> str:
    reasons = "; ".join(f"{server}: {why}" for server, why in sorted(failures.items()))
    return f"{_where(settings)} cannot be reached" + (f": {reasons}" if reasons else f" within {settings.connect_seconds:.0f} s")


class Pending(Protocol):
    """A request that is on its way: kazoo's ``IAsyncResult``, as far as it is used here."""

    def get(self, *, timeout: float) -> Any:
        """Return the answer. Raises the error of kazoo that the server answers, or its timeout."""
        ...


Task: TypeAlias = Generator[Pending, Any, Result]
"""Work on one entity: it yields requests, is sent their answers, has their errors thrown in, and returns what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``window``: how many are in flight at most. ``answer_seconds``: how long to wait for one answer.

    kazoo sends itself a byte for each request, and reads none without a connection: after some 270 it would wait for ever.
    """

    window: int = 128
    answer_seconds: float = 30.0

    def run(self, tasks: Iterable[Task[Result]]) -> list[Result]:
        """Run all of them, begun in their order; the results are in that order too.

        What a task does not catch ends the whole: no further one is begun, and what was sent is not waited for.
        """
        results: dict[int, Result] = {}
        waiting: deque[tuple[int, Task[Result], Pending]] = deque()
        for number, task in enumerate(tasks):
            while len(waiting) >= self.window:
                self._advance(waiting, results)
            try:
                waiting.append((number, task, next(task)))
            except StopIteration as done:
                results[number] = done.value
        while waiting:
            self._advance(waiting, results)
        return [results[number] for number in sorted(results)]

    def ask(self, ask: Callable[[Asked], Pending], about: Iterable[Asked]) -> Iterator[tuple[Asked, Any]]:
        """One request about each; pairs with the answers, in order, ``None`` for a node that is not there."""
        waiting: deque[tuple[Asked, Pending]] = deque()
        for subject in about:
            if len(waiting) >= self.window:
                yield self._answer(*waiting.popleft())
            waiting.append((subject, ask(subject)))
        while waiting:
            yield self._answer(*waiting.popleft())

    def _answer(self, asked: Asked, pending: Pending) -> tuple[Asked, Any]:
        try:
            return asked, pending.get(timeout=self.answer_seconds)
        except NoNodeError:
            return asked, None

    def _advance(self, waiting: deque[tuple[int, Task[Result], Pending]], results: dict[int, Result]) -> None:
        number, task, pending = waiting.popleft()
        try:
            try:
                answer = pending.get(timeout=self.answer_seconds)
            except CLIENT_ERRORS as error:
                following = task.throw(error)
            else:
                following = task.send(answer)
        except StopIteration as done:
            results[number] = done.value
        else:
            waiting.append((number, task, following))
