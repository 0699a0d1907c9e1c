"""A Kafka client reduced to what quotas see: one connection, a user, a client id, one request at a time.

It waits for nothing: what a broker asks to wait is returned, and the next connection is not held back. The client id may be empty
or absent, which client libraries do not offer.
"""

from __future__ import annotations

import io
import os
import socket
import struct
import time
from types import TracebackType
from typing import Any, Self

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.record import MemoryRecordsBuilder

from reconciler.features.sandbox.spec import Login
from tests.support.polling import wait_until

_DEADLINE_S = 30.0
_FRAME = struct.Struct(">i")


def record_batch(value_bytes: int) -> bytes:
    """One batch with one record of so many random bytes, of now: a broker deletes old records half a minute after its start."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=value_bytes + 1000)
    builder.append(timestamp=round(time.time() * 1000), key=None, value=os.urandom(value_bytes))
    builder.close()
    return bytes(builder.buffer())


class ClosedError(Exception):
    """The broker hung up."""


class RefusedError(Exception):
    """The broker did not append a batch, for example because another broker leads the partition."""


class WireClient:
    """A connection of ``login`` to ``server`` (``host:port``); every request is sent with ``client_id``.

    ``login``: ``None`` for a listener without one.
    """

    def __init__(self, server: str, login: Login | None, client_id: str | None, *, source: str = "") -> None:
        """``source``: the address to connect from. Raises ``ClosedError`` or ``ConnectionError`` when the broker hangs up."""
        host, port = server.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_DEADLINE_S, source_address=(source, 0))
        self._client_id = client_id
        self._sent = 0
        try:
            if login is not None:
                self._log_in(login)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def send(self, request: Any) -> None:
        """Send a request, whose answer is left unread."""
        self._sent += 1
        request.with_header(correlation_id=self._sent, client_id=self._client_id)
        frame = request.encode(framed=True, header=True)
        self._socket.sendall(frame)
        self.last_size = len(frame) - _FRAME.size
        """Header and body of the last request: what a broker charges for produce."""

    def ask(self, request: Any) -> Any:
        """The answer to one request."""
        self.send(request)
        body = io.BytesIO(self._read(_FRAME.unpack(self._read(_FRAME.size))[0]))
        kind = request.header.get_response_class()
        assert kind.parse_header(body).correlation_id == self._sent
        return kind.decode(body)

    def _log_in(self, login: Login) -> None:
        assert self.ask(SaslHandshakeRequest[1](mechanism="PLAIN")).error_code == 0
        token = f"\0{login.name}\0{login.password}".encode()
        answer = self.ask(SaslAuthenticateRequest[1](auth_bytes=token))
        assert answer.error_code == 0, answer

    def produce(self, topic: str, batch: bytes, *, partition: int = 0) -> tuple[int, int]:
        """Appends a batch to a partition: the bytes charged, and the throttle time in milliseconds."""
        row = ProduceRequest.TopicProduceData
        rows = [row.PartitionProduceData(index=partition, records=batch)]
        request = ProduceRequest[9](
            transactional_id=None, acks=1, timeout_ms=10_000, topic_data=[row(name=topic, partition_data=rows)]
        )
        answer = self.ask(request)
        (written,) = answer.responses[0].partition_responses
        if written.error_code != 0:
            raise RefusedError(str(written))
        return self.last_size, answer.throttle_time_ms

    def seed(self, topic: str, batch: bytes) -> None:
        """Appends a batch to a topic that may have no leader yet, since it was just created."""

        def sent() -> bool:
            try:
                return self.produce(topic, batch)[0] > 0
            except RefusedError as error:
                if "error_code=6," not in str(error):
                    raise
                return False

        wait_until(sent)

    def fetch(self, topic: str) -> int:
        """Reads partition 0 from its beginning, at most one batch: the throttle time in milliseconds."""
        return int(self._fetch(topic).throttle_time_ms)

    def fetch_records(self, topic: str) -> tuple[int, int]:
        """The same, with the bytes of records in the answer first."""
        answer = self._fetch(topic)
        rows = [partition.records for row in answer.responses for partition in row.partitions]
        return sum(len(records or b"") for records in rows), int(answer.throttle_time_ms)

    def try_to_create(self, partitions: int) -> int:
        """Asks whether a topic could be created, which Kafka charges as creating it: the throttle time in milliseconds.

        Version 5 of the request is charged whole and throttled at once; newer ones are only refused the next time.
        """
        topic = CreateTopicsRequest.CreatableTopic(
            name="never-made", num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        answer = self.ask(CreateTopicsRequest[5](topics=[topic], timeout_ms=10_000, validate_only=True))
        assert [topic.error_code for topic in answer.topics] == [0], answer
        return int(answer.throttle_time_ms)

    def _fetch(self, topic: str) -> Any:
        row = FetchRequest.FetchTopic
        partition = row.FetchPartition(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=0,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1,
        )
        request = FetchRequest[12](
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[row(topic=topic, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
        )
        answer = self.ask(request)
        assert answer.error_code == 0, answer
        return answer

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ClosedError("the broker closed the connection")
            parts += part
        return bytes(parts)
