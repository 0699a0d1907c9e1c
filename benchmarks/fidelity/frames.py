"""Requests as bytes, and the few fields of answers that matter here.

Produce version 9 and fetch version 12 (Kafka's message definitions), which all brokers from 2.8 to 4.x know.
"""

from __future__ import annotations

import functools
import os
import struct
import time
from typing import Any

from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.record import MemoryRecordsBuilder

_INT32 = struct.Struct(">i")
_BATCH_HEADER = 61 + 16
"""What a batch with one record has beside its value, about."""
_FETCH_THROTTLE_AT = 5
"""After the correlation id and the header's tagged fields."""


def login_frames(user: str, password: str) -> tuple[bytes, bytes]:
    """The two requests of SASL/PLAIN."""
    token = f"\0{user}\0{password}".encode()
    return (
        framed(SaslHandshakeRequest[1](mechanism="PLAIN"), 1, "login"),
        framed(SaslAuthenticateRequest[1](auth_bytes=token), 2, "login"),
    )


def framed(request: Any, number: int, client_id: str) -> bytes:
    request.with_header(correlation_id=number, client_id=client_id)
    return bytes(request.encode(framed=True, header=True))


@functools.cache
def batch(size: int) -> bytes:
    """A batch of one record, of about so many bytes."""
    value = os.urandom(max(size - _BATCH_HEADER, 1))
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=size + 1000)
    builder.append(timestamp=int(time.time() * 1000), key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


def produce(topic: str, partition: int, records: bytes, *, number: int, client_id: str, acks: int) -> bytes:
    row = ProduceRequest.TopicProduceData
    data = row(name=topic, partition_data=[row.PartitionProduceData(index=partition, records=records)])
    request = ProduceRequest[9](transactional_id=None, acks=acks, timeout_ms=30_000, topic_data=[data])
    return framed(request, number, client_id)


def fetch(topic: str, partition: int, size: int, *, number: int, client_id: str) -> bytes:
    """Asks for just so many record bytes from the beginning, which the topic must have; a broker cuts the last batch."""
    row = FetchRequest.FetchTopic
    wanted = row.FetchPartition(
        partition=partition, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1, log_start_offset=-1,
        partition_max_bytes=size,
    )  # fmt: skip
    request = FetchRequest[12](
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=2**31 - 1, isolation_level=0, session_id=0, session_epoch=-1,
        topics=[row(topic=topic, partitions=[wanted])], forgotten_topics_data=[], rack_id="",
    )  # fmt: skip
    return framed(request, number, client_id)


def throttle_of(answer: bytes, *, of_fetch: bool) -> int:
    """Milliseconds, from an answer without its length: a produce answer ends with them and one byte of tagged fields."""
    at = _FETCH_THROTTLE_AT if of_fetch else len(answer) - _INT32.size - 1
    return int(_INT32.unpack_from(answer, at)[0])


def number_of(answer: bytes) -> int:
    """The correlation id."""
    return int(_INT32.unpack_from(answer)[0])


def produce_error(answer: bytes) -> int:
    """The error code of the only partition: after the header, one topic, its name, and the partition's number."""
    name = answer[6] - 1
    return int.from_bytes(answer[7 + name + 1 + 4 : 7 + name + 1 + 6], signed=True)
