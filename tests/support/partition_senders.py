"""Producers that choose the partition of each record: one that sends at a fixed pace, and one as fast as brokers answer."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle

from kafka import KafkaProducer
from kafka.admin import NewTopic

from reconciler.sandbox.clients import _close_at_once
from reconciler.sandbox.connection import admin_client
from tests.support.wire_client import WireClient, record_batch


def create_placed_topic(servers: str, topic: str, replicas: dict[int, list[int]]) -> None:
    """A topic whose partitions have these replicas. The first of each leads."""
    with admin_client(servers, timeout_s=60) as client:
        client.create_topics([NewTopic(name=topic, replica_assignments=replicas)])


class SteadySender(threading.Thread):
    """A record of ``size`` bytes to each partition every ``every_s``, also while a broker is lost. It sends until ``stop``."""

    def __init__(self, servers: str, client_id: str, topic: str, partitions: Sequence[int], *, size: int, every_s: float) -> None:
        super().__init__(name=client_id, daemon=True)
        self._servers, self._client_id, self._topic, self._partitions = servers, client_id, topic, partitions
        self._size, self._every_s = size, every_s
        self._stop_asked = threading.Event()
        self.rounds = 0
        """Rounds over all partitions so far."""

    def run(self) -> None:
        with _producer(self._servers, self._client_id) as producer:
            due = time.monotonic()
            while not self._stop_asked.wait(max(0.0, due - time.monotonic())):
                for partition in self._partitions:
                    producer.send(self._topic, bytes(self._size), partition=partition)
                self.rounds += 1
                due += self._every_s

    def stop(self) -> None:
        """End it and wait."""
        self._stop_asked.set()
        self.join()


class FastSender(threading.Thread):
    """Batches in turn to each partition, the next one when the broker has answered and its throttle is over."""

    def __init__(self, leaders: Mapping[int, str], client_id: str, topic: str, *, size: int) -> None:
        """``leaders``: by partition the server that leads it, as ``host:port``."""
        super().__init__(name=client_id, daemon=True)
        self._leaders, self._client_id, self._topic, self._size = leaders, client_id, topic, size
        self._stop_asked = threading.Event()

    def run(self) -> None:
        batch = record_batch(self._size)
        with contextlib.ExitStack() as stack:
            clients = {
                server: stack.enter_context(WireClient(server, None, self._client_id)) for server in set(self._leaders.values())
            }
            for partition, server in cycle(self._leaders.items()):
                if self._stop_asked.is_set():
                    return
                # A broker reads nothing from a connection that it throttles.
                clients[server].produce(self._topic, batch, partition=partition)

    def stop(self) -> None:
        """End it and wait."""
        self._stop_asked.set()
        self.join()


@contextlib.contextmanager
def sending(senders: Iterable[SteadySender | FastSender]) -> Iterator[None]:
    """All of them send meanwhile."""
    started = list(senders)
    for sender in started:
        sender.start()
    try:
        yield
    finally:
        for sender in started:
            sender.stop()
        # kafka-python leaves the sockets of a killed broker open.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@contextlib.contextmanager
def _producer(servers: str, client_id: str) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(
        bootstrap_servers=servers, client_id=client_id, acks=1, linger_ms=0, enable_idempotence=False, batch_size=0,
        metadata_max_age_ms=1000, request_timeout_ms=30_000, delivery_timeout_ms=60_000,
    )  # fmt: skip
    try:
        yield producer
    finally:
        _close_at_once(producer)
