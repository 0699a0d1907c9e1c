"""Real clients that make traffic on a sandbox: for the demo, for recordings to test with, and to see throttling happen.

Every run is bounded by its ``seconds`` and ends early when its ``stop`` event is set. The functions block; to run several
clients at once, give each a thread of its own (each call has its own connections).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, KafkaTimeoutError, TopicAlreadyExistsError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin import DescribeClientQuotasRequest
from kafka.protocol.metadata import MetadataRequest

from reconciler.errors import SandboxError
from reconciler.features.sandbox.spec import Login

_CLOSE_S: Final = 2.0
_CONNECT_MS: Final = 10_000
_BATCH_BYTES: Final = 128 * 1024
_IDLE_S: Final = 0.002
_LINGER_MS: Final = 10
RECORD_BYTES: Final = 32_768
"""Of each record that is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficReport:
    """What one client did, and how the broker held it back, as the client saw it.

    ``record_bytes`` counts record values the broker acknowledged (or delivered), without protocol overhead. The throttle
    time is the longest of the broker's answers during about the last minute, in milliseconds; 0 when no answer asked to wait.
    """

    client_id: str
    user: str | None
    records: int
    record_bytes: int
    wall_seconds: float
    throttle_ms_max: float

    @property
    def bytes_per_second(self) -> float:
        """Record bytes over the whole run."""
        return self.record_bytes / self.wall_seconds if self.wall_seconds else 0.0


def create_topic(bootstrap_servers: str, topic: str, *, partitions: int = 1, replicas: int = 1) -> None:
    """Create the topic; one that exists already is left as it is. Raises ``SandboxError``."""
    wanted = NewTopic(name=topic, num_partitions=partitions, replication_factor=replicas)
    with (
        _translated(f"create topic {topic}"),
        contextlib.suppress(TopicAlreadyExistsError),
        admin_client(bootstrap_servers) as client,
    ):
        client.create_topics([wanted])


def produce_steadily(
    bootstrap_servers: str,
    topic: str,
    *,
    client_id: str,
    bytes_per_second: float,
    seconds: float,
    login: Login | None = None,
    stop: threading.Event | None = None,
) -> TrafficReport:
    """One producer that sends records at ``bytes_per_second``, for ``seconds``.

    It has one request in flight and at most a second's worth of records unacknowledged; when the broker has it back it sends
    later, and does not catch up. The last records get two more seconds to be acknowledged. Raises ``SandboxError`` when it cannot
    connect.
    """
    stop = stop or threading.Event()
    with _translated(f"produce to {topic}"):
        producer = connect(
            KafkaProducer,
            bootstrap_servers=bootstrap_servers,
            login=login,
            client_id=client_id,
            acks=1,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
            batch_size=_BATCH_BYTES,
            bootstrap_timeout_ms=_CONNECT_MS,
            max_block_ms=_CONNECT_MS,
            linger_ms=_LINGER_MS,
        )
        try:
            # Connecting and looking up the topic takes its time, which is not part of the steady run.
            producer.partitions_for(topic)
            return _produce(producer, topic, client_id, login, bytes_per_second, seconds, stop)
        finally:
            _close_at_once(producer)


def consume_all(
    bootstrap_servers: str,
    topic: str,
    *,
    client_id: str,
    seconds: float,
    until_bytes: int | None = None,
    login: Login | None = None,
    stop: threading.Event | None = None,
) -> TrafficReport:
    """One consumer that reads the topic from its beginning and on, for ``seconds``, or until it has ``until_bytes``.

    What counts is the size of record values. Raises ``SandboxError`` when it cannot connect, or there is no such topic.
    """
    stop = stop or threading.Event()
    with _translated(f"consume {topic}"):
        consumer = connect(
            KafkaConsumer,
            bootstrap_servers=bootstrap_servers,
            login=login,
            client_id=client_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            # The library computes checksums in Python, at 6 MiB/s; these records need none.
            check_crcs=False,
            bootstrap_timeout_ms=_CONNECT_MS,
        )
        try:
            partitions = consumer.partitions_for_topic(topic)
            if not partitions:
                raise SandboxError(f"cannot consume {topic}: there is no such topic")
            consumer.assign([TopicPartition(topic, number) for number in sorted(partitions)])
            return _consume(consumer, client_id, login, seconds, until_bytes, stop)
        finally:
            consumer.close(timeout_ms=int(_CLOSE_S * 1000))


def _close_at_once(producer: KafkaProducer) -> None:
    """Gives up what is not acknowledged; the library's own ``close`` first waits for it, and when that fails closes nothing."""
    sender = producer._sender  # noqa: SLF001 - the only way to tell the library to give up
    sender.force_close()
    sender.join(_CLOSE_S)
    with contextlib.suppress(KafkaTimeoutError):
        producer.close(timeout=0)


@dataclass(slots=True)
class _Acknowledged:
    """Counts of answers, which the producer's own thread raises."""

    records: int = 0
    failed: int = 0


def _produce(
    producer: Any, topic: str, client_id: str, login: Login | None, bytes_per_second: float, seconds: float, stop: threading.Event
) -> TrafficReport:
    value = os.urandom(RECORD_BYTES)
    done = _Acknowledged()
    most_waiting = max(int(bytes_per_second / RECORD_BYTES), 1)
    sent = 0
    started = time.monotonic()
    due = started
    while not stop.is_set() and (now := time.monotonic()) < started + seconds:
        if now < due or sent - done.records - done.failed >= most_waiting:
            stop.wait(min(max(due - now, _IDLE_S), 0.05))
            continue
        future = producer.send(topic, value)
        future.add_callback(lambda _metadata: setattr(done, "records", done.records + 1))
        future.add_errback(lambda _error: setattr(done, "failed", done.failed + 1))
        sent += 1
        due = max(due, now - 0.1) + RECORD_BYTES / bytes_per_second
    deadline = time.monotonic() + (0.0 if stop.is_set() else _CLOSE_S)
    while done.records + done.failed < sent and time.monotonic() < deadline:
        stop.wait(_IDLE_S)
    return _report(client_id, login, done.records, done.records * RECORD_BYTES, time.monotonic() - started, producer.metrics())


def _consume(
    consumer: Any, client_id: str, login: Login | None, seconds: float, until_bytes: int | None, stop: threading.Event
) -> TrafficReport:
    records = record_bytes = 0
    started = time.monotonic()
    while not stop.is_set() and (left := started + seconds - time.monotonic()) > 0:
        if until_bytes is not None and record_bytes >= until_bytes:
            break
        for batch in consumer.poll(timeout_ms=int(min(left, 0.2) * 1000)).values():
            records += len(batch)
            record_bytes += sum(len(record.value or b"") for record in batch)
    return _report(client_id, login, records, record_bytes, time.monotonic() - started, consumer.metrics())


def _report(
    client_id: str, login: Login | None, records: int, record_bytes: int, wall: float, metrics: Mapping[str, Mapping[str, float]]
) -> TrafficReport:
    seen = {name: value for group in metrics.values() for name, value in group.items() if name.startswith("throttle-time")}
    return TrafficReport(
        client_id=client_id,
        user=login.name if login else None,
        records=records,
        record_bytes=record_bytes,
        wall_seconds=wall,
        throttle_ms_max=max(seen.get("throttle-time-max", 0.0), 0.0),
    )


@contextlib.contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise SandboxError(f"cannot {doing}: {error}") from error


Client = TypeVar("Client")


def connect(kind: Callable[..., Client], *, bootstrap_servers: str, login: Login | None, **settings: Any) -> Client:
    """One of kafka-python's clients, connected; what its constructor left open is closed when it fails. Raises its errors."""
    nets: list[Any] = []

    def remembered(**config: Any) -> KafkaNetClient:
        nets.append(KafkaNetClient(**config))
        return nets[-1]

    try:
        return kind(bootstrap_servers=bootstrap_servers.split(","), kafka_client=remembered, **_security(login), **settings)
    except BaseException:
        # The constructors start a thread before they connect, and when that fails give nobody the means to end it.
        for net in nets:
            net.close()
            net._manager._net.stop()  # noqa: SLF001 - see above
            net._manager._net.close()  # noqa: SLF001 - see above
        raise


@contextlib.contextmanager
def admin_client(bootstrap_servers: str, *, login: Login | None = None, timeout_s: float = 10.0) -> Iterator[KafkaAdminClient]:
    """An admin client for the length of the block. Raises kafka-python's errors."""
    milliseconds = int(timeout_s * 1000)
    client = connect(
        KafkaAdminClient,
        bootstrap_servers=bootstrap_servers,
        login=login,
        bootstrap_timeout_ms=milliseconds,
        request_timeout_ms=milliseconds,
    )
    with contextlib.closing(client):
        yield client


def _security(login: Login | None) -> dict[str, str]:
    """The client settings to connect as ``login``, or without any login."""
    if login is None:
        return {"security_protocol": "PLAINTEXT"}
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": login.name,
        "sasl_plain_password": login.password,
    }


def cluster_id(client: KafkaAdminClient) -> str:
    """Return the id of the cluster that answers."""
    return str(_metadata(client).cluster_id)


def brokers_up(client: KafkaAdminClient) -> frozenset[int]:
    """The ids of the brokers that serve clients now."""
    return frozenset(broker.node_id for broker in _metadata(client).brokers)


def answers_quotas(client: KafkaAdminClient, node_id: int) -> bool:
    """Whether this broker answers a DescribeClientQuotas request without an error."""
    request = DescribeClientQuotasRequest(components=[], strict=True)
    manager = client._manager  # noqa: SLF001 - the only way the library has to send this request
    return bool(manager.run(manager.send, request, node_id).error_code == 0)


def _metadata(client: KafkaAdminClient) -> Any:
    """The library's ``describe_cluster`` stumbles over the answer of brokers before 3.7."""
    request = MetadataRequest(
        topics=[],  # none of them
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    manager = client._manager  # noqa: SLF001 - as above
    return manager.run(manager.send, request)
