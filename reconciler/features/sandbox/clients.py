"""Real clients that make traffic on a sandbox: for the demo, for recordings to test with, and to see throttling happen.

Every run is bounded by its ``seconds`` and ends early when its ``stop`` event is set. The functions block; to run several
clients at once, give each a thread of its own (each call has its own connections).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, KafkaTimeoutError, TopicAlreadyExistsError

from reconciler.errors import SandboxError
from reconciler.features.sandbox.spec import Login

_CLOSE_S: Final = 2.0
_CONNECT_MS: Final = 10_000
_IDLE_S: Final = 0.002
RECORD_BYTES: Final = 32_768
"""Of each record that is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficReport:
    """What one client did, and how the broker held it back, as the client saw it.

    ``record_bytes`` counts record values the broker acknowledged (or delivered), without protocol overhead. The throttle
    time is the longest of the broker's answers during about the last minute, in milliseconds; 0 when no answer asked to wait.
    """

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
    with _translated(f"produce to {topic}"):
        producer = KafkaProducer(
            **_connection(bootstrap_servers, login),
            client_id=client_id,
            acks=1,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
            batch_size=128 * 1024,
            max_block_ms=_CONNECT_MS,
            linger_ms=10,
        )
        try:
            # Connecting and looking up the topic takes its time, which is not part of the steady run.
            producer.partitions_for(topic)
            return _produce(producer, topic, bytes_per_second, seconds, stop or threading.Event())
        finally:
            # The library's own ``close`` first waits for what is not acknowledged, and when that fails closes nothing.
            sender = producer._sender  # noqa: SLF001 - the only way to tell the library to give up
            sender.force_close()
            sender.join(_CLOSE_S)
            with contextlib.suppress(KafkaTimeoutError):
                producer.close(timeout=0)


def _produce(producer: Any, topic: str, bytes_per_second: float, seconds: float, stop: threading.Event) -> TrafficReport:
    value = os.urandom(RECORD_BYTES)
    acknowledged: list[Any] = []
    failed: list[BaseException] = []
    most_waiting = max(int(bytes_per_second / RECORD_BYTES), 1)
    sent = 0
    started = time.monotonic()
    due = started
    while not stop.is_set() and (now := time.monotonic()) < started + seconds:
        if now < due or sent - len(acknowledged) - len(failed) >= most_waiting:
            stop.wait(min(max(due - now, _IDLE_S), 0.05))
            continue
        producer.send(topic, value).add_callback(acknowledged.append).add_errback(failed.append)
        sent += 1
        due = max(due, now - 0.1) + RECORD_BYTES / bytes_per_second
    deadline = time.monotonic() + (0.0 if stop.is_set() else _CLOSE_S)
    while len(acknowledged) + len(failed) < sent and time.monotonic() < deadline:
        stop.wait(_IDLE_S)
    return _report(len(acknowledged), len(acknowledged) * RECORD_BYTES, started, producer.metrics())


def consume_all(
    bootstrap_servers: str,
    topic: str,
    *,
    client_id: str,
    seconds: float,
    until_bytes: float = float("inf"),
    login: Login | None = None,
    stop: threading.Event | None = None,
) -> TrafficReport:
    """One consumer that reads the topic from its beginning and on, for ``seconds``, or until it has ``until_bytes``.

    What counts is the size of record values. Raises ``SandboxError`` when it cannot connect, or there is no such topic.
    """
    stop = stop or threading.Event()
    with _translated(f"consume {topic}"):
        consumer = KafkaConsumer(
            **_connection(bootstrap_servers, login),
            client_id=client_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            # The library computes checksums in Python, at 6 MiB/s; these records need none.
            check_crcs=False,
        )
        try:
            partitions = consumer.partitions_for_topic(topic)
            if not partitions:
                raise SandboxError(f"cannot consume {topic}: there is no such topic")
            consumer.assign([TopicPartition(topic, number) for number in sorted(partitions)])
            records = record_bytes = 0
            started = time.monotonic()
            while not stop.is_set() and (left := started + seconds - time.monotonic()) > 0 and record_bytes < until_bytes:
                for batch in consumer.poll(timeout_ms=int(min(left, 0.2) * 1000)).values():
                    records += len(batch)
                    record_bytes += sum(len(record.value or b"") for record in batch)
            return _report(records, record_bytes, started, consumer.metrics())
        finally:
            consumer.close(timeout_ms=int(_CLOSE_S * 1000))


def _report(records: int, record_bytes: int, started: float, metrics: Mapping[str, Mapping[str, float]]) -> TrafficReport:
    throttles = [group["throttle-time-max"] for group in metrics.values() if "throttle-time-max" in group]
    return TrafficReport(
        records=records,
        record_bytes=record_bytes,
        wall_seconds=time.monotonic() - started,
        throttle_ms_max=max([0.0, *throttles]),
    )


@contextlib.contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise SandboxError(f"cannot {doing}: {error}") from error


@contextlib.contextmanager
def admin_client(bootstrap_servers: str, *, login: Login | None = None) -> Iterator[KafkaAdminClient]:
    """An admin client for the length of the block. Raises kafka-python's errors."""
    with contextlib.closing(KafkaAdminClient(**_connection(bootstrap_servers, login))) as client:
        yield client


def _connection(bootstrap_servers: str, login: Login | None) -> dict[str, Any]:
    """The client settings to connect as ``login``, or without any login."""
    settings = {"bootstrap_servers": bootstrap_servers.split(","), "bootstrap_timeout_ms": _CONNECT_MS}
    if login is None:
        return settings
    return settings | {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": login.name,
        "sasl_plain_password": login.password,
    }
