"""Sending requests with kafka-python: connections, their failures, and deadlines.

kafka-python's admin client has no quota calls, starts a thread that cannot be ended when its constructor fails, tries a dead
server again until its deadline, and logs passwords at debug level. Its connection manager has none of this and takes any request;
it is undocumented, so everything that leans on it is in this one module.

A name or a tunnel can lead to another cluster from one connection to the next. The first answer about brokers settles which
cluster this is, and each later connection has to state the same id before a request is sent on it.
"""

from __future__ import annotations

import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import kafka.errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from reconciler.backends.broker.connections import PROXY_URL, LoginStoppedError, TlsSockets, login_settings
from reconciler.backends.broker.error_messages import (
    REFUSED_CERTIFICATE,
    connection_advice,
    describe_error,
    is_tls_failure,
    lacks_request,
    service_of,
)
from reconciler.backends.broker.quota_messages import RawAnswer
from reconciler.backends.broker.settings import ConnectionSettings, refused_certificate, server_text
from reconciler.errors import (
    AuthenticationError,
    BackendError,
    OtherClusterError,
    TlsFailedError,
    UnreachableError,
    UnsupportedClusterError,
)
from reconciler.logs import Datum, log_event
from reconciler.model import escaped

_log: Final = logging.getLogger(__name__)

_LOGS_OF_BYTES: Final = ("kafka.net.connection", "kafka.protocol.parser")
"""The library's loggers that print what it sends at DEBUG: passwords, and whole requests."""

_MOST_BYTES: Final = 256 * 1024 * 1024
"""The longest answer taken; 100,000 entities are 9 MB. Below what ``HTTP`` or a TLS alert would be, read as a length."""

_PAUSE_SECONDS: Final = 0.02
_STOP_MS: Final = 2000


class AnswerLostError(Exception):
    """The request was sent and no usable answer came; the text gives the reason. The caller decides what follows from that."""


class Transport:
    """Connections to one cluster. A thread of the library moves the bytes; ``close`` ends it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        for name in _LOGS_OF_BYTES:
            logging.getLogger(name).addFilter(_drop_bytes)
        self._settings = settings
        self._tls = TlsSockets(settings.security.tls) if settings.security.tls is not None else None
        sasl = settings.security.sasl
        self._net = NetworkSelector(client_id=settings.client_id)
        self._manager = KafkaConnectionManager(
            self._net,
            **{
                "bootstrap_servers": [server_text(host, port) for host, port in settings.servers],
                "client_id": settings.client_id,
                "client_software_name": "kafka-quotas",
                "request_timeout_ms": int(settings.request_seconds * 1000),
                "receive_message_max_bytes": _MOST_BYTES,
                "reconnect_backoff_max_ms": 1000,
                "proxy_url": PROXY_URL,
                "ssl_context": self._tls.context if self._tls is not None else None,
                "security_protocol": settings.security.protocol,
                **({} if sasl is None else login_settings(sasl, host=settings.servers[0][0])),
            },
        )
        self._home: Any = None
        self.release: tuple[int, ...] | None = None
        """The Kafka release that the library infers from the API versions, e.g. ``(4, 3)``."""
        self._cluster_id: str | None = None
        self._is_identified = False
        self._identified: weakref.WeakSet[Any] = weakref.WeakSet()
        """The connections that stated the cluster's id."""
        self._closed = False

    def open(self) -> None:
        """Connect to the first server that answers; on failure everything is given back.

        Raises ``UnreachableError`` (naming every server and why), ``AuthenticationError`` or ``UnsupportedClusterError``.
        """
        self._net.start()
        try:
            self._home = self._first_that_answers()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections and the thread; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(kafka_errors.KafkaError, RuntimeError, OSError):
            self._net.stop(timeout_ms=_STOP_MS)
            self._manager.close()
            self._net.close()
        if self._tls is not None:
            self._tls.close()

    def request(self, message: Any, *, broker: int | None = None) -> Any:
        """Send one request to a broker (the one connected to, when ``None``) and return its answer, a kafka-python message.

        Raises ``AnswerLostError`` once it was sent, ``BackendError`` children before that.
        """
        node = self._home if broker is None else broker
        with self._translated(node):
            return self._manager.run(self._ask, node, message, self._settings.request_seconds)

    def request_each(self, brokers: Sequence[int], message: Callable[[], Any]) -> dict[int, Any | AnswerLostError | BackendError]:
        """Send a request to each of these brokers, all at once; for each its answer, or the error that ``request`` would raise.

        It takes as long as the slowest: one that is down, or hangs, delays no other.
        """
        outcomes = self._manager.run(self._exchange_each, brokers, message)
        answers: dict[int, Any | AnswerLostError | BackendError] = {}
        for broker, outcome in outcomes.items():
            try:
                with self._translated(broker):
                    if isinstance(outcome, Exception):
                        raise outcome
                    answers[broker] = outcome
            except (AnswerLostError, BackendError) as error:
                answers[broker] = error
        return answers

    def metadata(self) -> Any:
        """The cluster's id and live brokers, as the connected broker sees them now. Raises ``BackendError``."""
        with self._translated(self._home):
            return self._manager.run(self._greet, self._home, self._settings.request_seconds)

    def topics_metadata(self) -> Any:
        """All topics with their partitions that the principal may describe. Raises ``BackendError``."""
        return self.request(_metadata_request(None))

    def move_home(self, error: Exception) -> None:
        """Make the first server that answers the one that is asked by default, after this error of the one that was.

        One that was silent until the deadline comes last, or every request would wait for it again. Raises ``BackendError``.
        """
        hangs = isinstance(error.__cause__, kafka_errors.KafkaTimeoutError | kafka_errors.RequestTimedOutError)
        log_event(_log, "looking for another broker", level=logging.INFO, broker=self._home, hangs=hangs, reason=str(error))
        self._home = self._first_that_answers(last=self._home if hangs else None)

    @property
    def cluster_id(self) -> str | None:
        """The id in the first answer about brokers, ``None`` before it; every connection has to state the same."""
        return self._cluster_id

    def offers(self, api_key: int) -> bool:
        """Whether the connected broker has a request of this number."""
        versions = self._manager.broker_version_data
        return versions is not None and api_key in versions.api_versions

    def _first_that_answers(self, *, last: Any = None) -> Any:
        reasons: list[str] = []
        advice: str | None = None
        unsupported: UnsupportedClusterError | None = None
        cluster = self._manager.cluster
        known: dict[str, Any] = {}
        for server in (*cluster.bootstrap_brokers(), *cluster.brokers()):
            known.setdefault(server_text(server.host, server.port), server.node_id)
        for where, node in sorted(known.items(), key=lambda candidate: candidate[1] == last):
            log_event(_log, "asking a server for the brokers", address=where, security=self._settings.security.protocol)
            try:
                with self._translated(node):
                    self._manager.run(self._greet, node, self._settings.connect_seconds)
            except UnsupportedClusterError as error:
                unsupported = error
                reasons.append(f"{where}: {error}")
                # Else the library takes the next server for one of the same kind.
                self._manager.broker_version_data = None
            except (AnswerLostError, NoConnectionError) as error:
                cause = error.__cause__
                if isinstance(error, AnswerLostError) and cause is not None and is_tls_failure(cause):
                    # With TLS 1.3 a client learns only after its handshake that its certificate was not accepted.
                    raise TlsFailedError(f"TLS with {where} failed: {self._tls_reason(cause)}") from error
                reasons.append(f"{where}: {error.reason if isinstance(error, NoConnectionError) else error}")
                advice = connection_advice(cause, self._settings.security.protocol)
            else:
                self.release = self._manager.broker_version
                version = ".".join(str(number) for number in self.release or ())
                log_event(_log, "using broker", level=logging.INFO, address=where, broker=node, kafka_version=version)
                return node
            log_event(
                _log, "server cannot be used", level=logging.INFO, address=where, reason=reasons[-1].removeprefix(f"{where}: ")
            )
        if unsupported is not None:
            raise unsupported
        text = f"no Kafka broker can be reached ({'; '.join(reasons)})"
        raise UnreachableError(text if advice is None else f"{text}. {advice}", remedy=advice)

    async def _greet(self, node: Any, seconds: float) -> Any:
        """Ask for the brokers: a request that a listener which wants a login refuses to those who did not log in."""
        connection = await self._connection(node)
        answer = await self._ask(node, _metadata_request([]), seconds, connection)
        if not answer.brokers:
            raise AnswerLostError("the broker knows no live broker")
        self._identify(connection, node, answer)
        self._manager.cluster.update_metadata(answer)
        return answer

    async def _ask(self, node: Any, message: Any, seconds: float, connection: Any = None) -> Any:
        connection = connection or await self._connection(node)
        begun = time.monotonic()
        try:
            answer = await connection.send_request(message, request_timeout_ms=int(seconds * 1000))
        except kafka_errors.IncompatibleBrokerVersion:
            raise
        except kafka_errors.KafkaError as error:
            if _log.isEnabledFor(logging.DEBUG):
                self._log_exchange("no answer from broker", node, message, begun, reason=describe_error(error))
            raise AnswerLostError(describe_error(error)) from error
        if _log.isEnabledFor(logging.DEBUG):
            self._log_exchange("broker answered", node, message, begun, answer=answer)
        return answer

    def _identify(self, connection: Any, node: Any, answer: Any) -> None:
        """Take the cluster's id from the first answer about brokers; ``OtherClusterError`` for another id in a later one."""
        if self._is_identified and answer.cluster_id != self._cluster_id:
            connection.close()
            expected, actual = (escaped(cluster_id or "unknown") for cluster_id in (self._cluster_id, answer.cluster_id))
            log_event(
                _log, "another cluster answers", level=logging.WARNING, address=self._name(node), expected=expected, actual=actual
            )
            msg = (
                f"{self._name(node)} answers as cluster {actual}, and this command began with cluster {expected}. The command "
                "sends nothing more. Check where the address leads (DNS name, tunnel, load balancer), and plan again"
            )
            raise OtherClusterError(msg)
        self._cluster_id, self._is_identified = answer.cluster_id, True
        self._identified.add(connection)

    def _log_exchange(
        self, event: str, node: Any, message: Any, begun: float, *, answer: Any = None, reason: str | None = None
    ) -> None:
        """One request and what became of it. ``begun``: seconds of the monotonic clock when it was sent."""
        data: dict[str, Datum] = {
            "api": message.name.removesuffix("Request"),
            "api_version": message.API_VERSION,
            "correlation_id": message.header.correlation_id if message.header is not None else None,
            "broker": node,
            "address": self._name(node),
            "milliseconds": round((time.monotonic() - begun) * 1000, 1),
        }
        if isinstance(answer, RawAnswer):
            data["bytes"] = len(answer.body)
        if throttled := getattr(answer, "throttle_time_ms", 0):
            data["throttle_milliseconds"] = throttled
        if reason is not None:
            data["reason"] = reason
        log_event(_log, event, level=logging.DEBUG, **data)

    async def _exchange_each(self, brokers: Sequence[int], message: Callable[[], Any]) -> dict[int, Any]:
        """Answers, or errors as values. All of them begin before the first is waited for."""
        seconds = self._settings.request_seconds
        begun = {broker: self._manager.call_soon(self._ask, broker, message(), seconds) for broker in brokers}
        outcomes: dict[int, Any] = {}
        for broker, future in begun.items():
            try:
                outcomes[broker] = await future
            except (AnswerLostError, OtherClusterError, kafka_errors.KafkaError) as error:
                outcomes[broker] = error
        return outcomes

    async def _connection(self, node: Any) -> Any:
        """A connection that has finished its handshakes, leads to this cluster, and may send now."""
        manager, net = self._manager, self._net
        if wait := manager.connection_delay(node):
            await net.sleep(wait)
        timeout_ms = int(self._settings.connect_seconds * 1000)
        begun = time.monotonic()
        connection = manager.get_connection(node, timeout_ms=timeout_ms, refresh_metadata_on_err=False)
        is_new = not connection.init_future.is_done
        try:
            await manager.wait_for(connection.init_future, timeout_ms)
        except kafka_errors.KafkaError as error:
            connection.close(error)
            log_event(
                _log, "no connection", level=logging.INFO, broker=node, address=self._name(node), reason=describe_error(error)
            )
            raise
        if is_new:
            milliseconds = round((time.monotonic() - begun) * 1000, 1)
            log_event(_log, "connected", level=logging.INFO, broker=node, address=self._name(node), milliseconds=milliseconds)
        await self._unpaused(connection, node)
        if self._is_identified and connection not in self._identified:
            answer = await connection.send_request(_metadata_request([]), request_timeout_ms=timeout_ms)
            self._identify(connection, node, answer)
            await self._unpaused(connection, node)
        return connection

    async def _unpaused(self, connection: Any, node: Any) -> None:
        """Wait while the broker throttles us: a quota applies to this client, too."""
        paused = time.monotonic()
        for turn in range(int(self._settings.request_seconds / _PAUSE_SECONDS)):
            if not (connection.paused and connection.connected):
                if turn:
                    milliseconds = round((time.monotonic() - paused) * 1000, 1)
                    log_event(_log, "waited while throttled", level=logging.INFO, broker=node, milliseconds=milliseconds)
                break
            await self._net.sleep(_PAUSE_SECONDS)
        if not connection.connected:
            raise kafka_errors.KafkaConnectionError("closed")

    @contextlib.contextmanager
    def _translated(self, node: Any) -> Iterator[None]:
        """The library's errors from before a request was sent, as ours."""
        try:
            yield
        except LoginStoppedError as error:
            raise error.reason() from error
        except (
            kafka_errors.SaslAuthenticationFailedError,
            kafka_errors.UnsupportedSaslMechanismError,
            kafka_errors.IllegalSaslStateError,
        ) as error:
            raise AuthenticationError(f"{self._name(node)} refused the login: {describe_error(error)}") from error
        except kafka_errors.IncompatibleBrokerVersion as error:
            versions = self._manager.broker_version_data
            offered = {} if versions is None else versions.api_versions
            service = service_of(dict(self._settings.servers), self.cluster_id)
            raise lacks_request(self._name(node), offered, release=self._manager.broker_version or (), service=service) from error
        except kafka_errors.UnknownBrokerIdError as error:
            raise UnreachableError(f"the cluster has no broker {node}") from error
        except kafka_errors.KafkaError as error:
            if is_tls_failure(error):
                raise TlsFailedError(f"TLS with {self._name(node)} failed: {self._tls_reason(error)}") from error
            raise NoConnectionError(describe_error(error), where=self._name(node)) from error

    def _tls_reason(self, error: BaseException) -> str:
        security = self._settings.security
        text, advice = describe_error(error), connection_advice(error, security.protocol)
        if text == REFUSED_CERTIFICATE:
            return refused_certificate(security.tls)
        return text if advice is None else f"{text}. {advice}"

    def _name(self, node: Any) -> str:
        server = self._manager.cluster.broker_metadata(node)
        return server_text(server.host, server.port) if server is not None else f"broker {node}"


class NoConnectionError(UnreachableError):
    """No connection to one server, so nothing was sent to it; ``reason`` in a few words."""

    def __init__(self, reason: str, *, where: str) -> None:
        super().__init__(f"{where} cannot be reached: {reason}")
        self.reason = reason


def _metadata_request(topics: list[str] | None) -> Any:
    """Ask for these topics; ``None``: all."""
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _drop_bytes(record: logging.LogRecord) -> bool:
    """A filter of loggers: whatever level the process chose, what is sent and received is not printed."""
    return record.levelno >= logging.INFO
