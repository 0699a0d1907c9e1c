"""Clients that choose the partition of each batch: one that sends at a fixed pace, and one as fast as brokers answer."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import cycle
from typing import Final

from kafka.admin import NewTopic

from reconciler.features.sandbox.clients import admin_client
from tests.support.wire_client import ClosedError, RefusedError, WireClient, record_batch

_RETRY_S: Final = 0.1


def create_placed_topic(servers: str, topic: str, replicas: dict[int, list[int]]) -> None:
    """A topic whose partitions have these replicas. The first of each leads."""
    with admin_client(servers) as client:
        client.create_topics([NewTopic(name=topic, replica_assignments=replicas)])


class SteadySender(threading.Thread):
    """A batch of ``size`` bytes to each partition every ``every_s``, also while a broker is lost. It sends until ``stop``.

    ``servers_of``: the server that leads each partition now, as ``host:port``. Only after an error it is called again.
    """

    def __init__(
        self, servers_of: Callable[[], Mapping[int, str]], client_id: str, topic: str, *, size: int, every_s: float
    ) -> None:
        super().__init__(name=client_id, daemon=True)
        self._servers_of, self._client_id, self._topic = servers_of, client_id, topic
        self._size, self._every_s = size, every_s
        self._stop_asked = threading.Event()
        self._leaders: Mapping[int, str] = {}
        self._clients: dict[str, WireClient] = {}
        self.rounds = 0
        """Rounds over all partitions so far."""

    def run(self) -> None:
        batch = record_batch(self._size)
        self._leaders = self._servers_of()
        partitions = sorted(self._leaders)
        due = time.monotonic()
        with contextlib.ExitStack() as stack:
            while not self._stop_asked.wait(max(0.0, due - time.monotonic())):
                for partition in partitions:
                    while not self._send(partition, batch, stack) and not self._stop_asked.wait(_RETRY_S):
                        self._leaders = self._servers_of()
                self.rounds += 1
                due += self._every_s

    def stop(self) -> None:
        """End it and wait."""
        self._stop_asked.set()
        self.join()

    def _send(self, partition: int, batch: bytes, stack: contextlib.ExitStack) -> bool:
        """Whether the leader appended the batch."""
        server = self._leaders.get(partition)
        if server is None:
            return False
        try:
            if server not in self._clients:
                self._clients[server] = stack.enter_context(WireClient(server, None, self._client_id))
            self._clients[server].produce(self._topic, batch, partition=partition)
        except (OSError, ClosedError):
            self._clients.pop(server, None)
            return False
        except RefusedError:
            return False
        return True


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
