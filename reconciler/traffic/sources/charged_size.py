"""The bytes that a broker charges for a produce or fetch request, rebuilt from its request log line.

A log line has the sizes of record batches only. Produce is charged the request as received (header and body, without the
frame's length); fetch is charged 4 bytes and the response body. Source: Kafka's message definitions ``ProduceRequest`` and
``FetchResponse`` with the wire encodings of each version; versions 0 to 13 and 0 to 18.
"""

from __future__ import annotations

from typing import Final

from reconciler.traffic.sources.log_documents import FetchAnswer, FetchedPartition, FetchedTopic, ProducedTopic, ProduceRequest

PRODUCE_FLEXIBLE_FROM: Final = 9
FETCH_FLEXIBLE_FROM: Final = 12
TOPIC_ID_FROM: Final = 13
"""The same number for both: the version whose topics are 16-byte ids."""

_UUID_BYTES: Final = 16
_DIVERGING_EPOCH: Final = 15
_CURRENT_LEADER: Final = 11
_SNAPSHOT_ID: Final = 15
"""Tagged fields of a fetched partition: tag, length, content (int32 and int64, twice int32, int64 and int32) and its own tags."""


def produce_overhead(version: int, client_id: str, request: ProduceRequest) -> int:
    """Everything but record bytes."""
    flexible = version >= PRODUCE_FLEXIBLE_FROM
    size = (11 if flexible else 10) + _utf8_length(client_id) + 6 + _array_prefix(len(request.topic_data), flexible=flexible)
    if flexible:
        size += _compact_string(request.transactional_id) + 1
    elif version >= 3:
        size += 2 + _utf8_length(request.transactional_id)
    for topic in request.topic_data:
        size += _topic_name(topic.name, version, flexible=flexible)
        size += _produced_partitions(topic, flexible=flexible)
    return size


def _produced_partitions(topic: ProducedTopic, *, flexible: bool) -> int:
    partitions = topic.partition_data or ()
    if not flexible:
        return 4 + 8 * len(partitions)
    sizes = sum(_uvarint((partition.records_size_in_bytes or 0) + 1) + 5 for partition in partitions)
    return sizes + _uvarint(len(partitions) + 1) + 1


def produce_records(request: ProduceRequest) -> int:
    """Record bytes of all partitions."""
    return sum(partition.records_size_in_bytes or 0 for topic in request.topic_data for partition in topic.partition_data or ())


def fetch_overhead(version: int, answer: FetchAnswer) -> int:
    """Everything but record bytes."""
    flexible = version >= FETCH_FLEXIBLE_FROM
    size = 4 + (4 if version >= 1 else 0) + (6 if version >= 7 else 0) + (1 if flexible else 0)
    size += _array_prefix(len(answer.responses), flexible=flexible)
    for topic in answer.responses:
        size += _topic_name(topic.topic, version, flexible=flexible)
        size += _fetched_partitions(topic, version)
    return size


def _fetched_partitions(topic: FetchedTopic, version: int) -> int:
    partitions = topic.fetched
    if version >= FETCH_FLEXIBLE_FROM:
        return sum(map(_flexible_partition, partitions)) + _uvarint(len(partitions) + 1) + 1
    fixed = 18 + (8 if version >= 4 else 0) + (8 if version >= 5 else 0) + (4 if version >= 11 else 0)
    if version < 4:
        return 4 + fixed * len(partitions)
    return 4 + sum(fixed + 4 + 16 * len(partition.aborted_transactions or ()) for partition in partitions)


def _flexible_partition(partition: FetchedPartition) -> int:
    aborted = partition.aborted_transactions
    size = 35 + (1 if aborted is None else _uvarint(len(aborted) + 1) + 17 * len(aborted)) + _uvarint(partition.size + 1)
    if partition.diverging_epoch is not None:
        size += _DIVERGING_EPOCH
    if partition.current_leader is not None:
        size += _CURRENT_LEADER
    if partition.snapshot_id is not None:
        size += _SNAPSHOT_ID
    return size


def fetch_records(answer: FetchAnswer) -> int:
    """Record bytes of all partitions."""
    return sum(partition.size for topic in answer.responses for partition in topic.fetched)


def _topic_name(name: str | None, version: int, *, flexible: bool) -> int:
    if version >= TOPIC_ID_FROM:
        return _UUID_BYTES
    return _compact_string(name) if flexible else 2 + _utf8_length(name)


def _compact_string(text: str | None) -> int:
    if text is None:
        return 1
    length = _utf8_length(text)
    return _uvarint(length + 1) + length


def _utf8_length(text: str | None) -> int:
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _array_prefix(length: int, *, flexible: bool) -> int:
    return _uvarint(length + 1) if flexible else 4


def _uvarint(value: int) -> int:
    """Bytes of an unsigned varint of a 32-bit value."""
    return 1 if value < 1 << 7 else (value.bit_length() + 6) // 7
