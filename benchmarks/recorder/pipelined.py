"""Many small produce requests at a steady rate from one process: an encoded request is sent again and again.

Requests leave on time, whether or not earlier ones are answered, so a latency counts from the moment at which a request was due.
A broker that is too slow for the rate fills the sockets, and latencies grow.
"""

from __future__ import annotations

import argparse
import io
import json
import select
import socket
import struct
import time
from collections import deque

import numpy as np
from kafka.protocol.producer import ProduceRequest

from tests.support.wire_client import record_batch

_FRAME = struct.Struct(">i")
_TICK_S = 0.0005
_WARM = 0.25
"""The first part of the time does not count."""


class Connection:
    """One client: its encoded request, the size of its answers, and when its unanswered requests were due."""

    def __init__(self, server: str, topic: str, client_id: str) -> None:
        host, port = server.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        row = ProduceRequest.TopicProduceData
        data = row(name=topic, partition_data=[row.PartitionProduceData(index=0, records=record_batch(100))])
        request = ProduceRequest[9](transactional_id=None, acks=1, timeout_ms=10_000, topic_data=[data])
        request.with_header(correlation_id=1, client_id=client_id)
        self._frame = request.encode(framed=True, header=True)
        self._answer_bytes = self._first_answer(request)
        self._received = 0
        self.due: deque[float] = deque()

    def _first_answer(self, request: ProduceRequest) -> int:
        self.socket.sendall(self._frame)
        size = _FRAME.unpack(self.socket.recv(_FRAME.size, socket.MSG_WAITALL))[0]
        body = io.BytesIO(self.socket.recv(size, socket.MSG_WAITALL))
        kind = request.header.get_response_class()
        kind.parse_header(body)
        (written,) = kind.decode(body).responses[0].partition_responses
        assert written.error_code == 0, written
        return int(size) + _FRAME.size

    def send(self, due: list[float]) -> None:
        """One request for each of these moments."""
        if not due:
            return
        self.due.extend(due)
        self.socket.sendall(self._frame * len(due))

    def answered(self) -> list[float]:
        """When the requests that are answered now were due."""
        self._received += len(self.socket.recv(1 << 20))
        count, self._received = divmod(self._received, self._answer_bytes)
        return [self.due.popleft() for _ in range(count)]


def run(server: str, topic: str, clients: int, rate: float, seconds: float) -> dict[str, float]:
    """So many requests a second from all clients together."""
    connections = [Connection(server, topic, f"load-{number}") for number in range(clients)]
    by_number = {connection.socket.fileno(): connection for connection in connections}
    poll = select.epoll()
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    start = time.perf_counter()
    total, sent, answered = int(rate * seconds), 0, 0
    latencies: list[float] = []
    while answered < total:
        due = min(total, int((time.perf_counter() - start) * rate))
        for place, connection in enumerate(connections):
            # Request n is of client n modulo clients.
            first = sent + (place - sent) % clients
            moments = [start + number / rate for number in range(first, due, clients)]
            connection.send(moments)
        sent = max(sent, due)
        for number, _ in poll.poll(_TICK_S):
            moments = by_number[number].answered()
            now = time.perf_counter()
            answered += len(moments)
            latencies += [now - at for at in moments if at - start > _WARM * seconds]
    wall = time.perf_counter() - start
    for connection in connections:
        connection.socket.close()
    p50, p99 = np.percentile(latencies, (50, 99)) * 1000
    return {"requests": total, "seconds": wall, "p50_ms": float(p50), "p99_ms": float(p99)}


def main() -> None:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("topic")
    parser.add_argument("clients", type=int)
    parser.add_argument("rate", type=float)
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    print(json.dumps(run(args.server, args.topic, args.clients, args.rate, args.seconds)))


if __name__ == "__main__":
    main()
