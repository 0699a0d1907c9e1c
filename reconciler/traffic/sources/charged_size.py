"""The bytes that a broker charges for a produce or fetch request, rebuilt from its request log line, as Spark columns.

A log line has the sizes of record batches only. Produce is charged the request as received (header and body, without the
frame's length); fetch is charged 4 bytes and the response body. Source: Kafka's message definitions ``ProduceRequest`` and
``FetchResponse`` with the wire encodings of each version; versions 0 to 13 and 0 to 18. Column arguments have the shape that
``request_log`` reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

PRODUCE_FLEXIBLE_FROM: Final = 9
FETCH_FLEXIBLE_FROM: Final = 12
TOPIC_ID_FROM: Final = 13
"""The same number for both: the version whose topics are 16-byte ids."""

_UUID_BYTES: Final = 16


def produce_overhead(version: Column, client_id: Column, request: Column) -> Column:
    """Everything but record bytes: int64. ``request`` has ``transactionalId`` and ``topicData[].{name, partitionData}``."""
    flexible = version >= PRODUCE_FLEXIBLE_FROM
    header = F.when(flexible, F.lit(11)).otherwise(10) + _utf8_length(client_id)
    transaction = (
        F.when(flexible, _compact_string(request["transactionalId"]))
        .when(version >= 3, 2 + _utf8_length(request["transactionalId"]))
        .otherwise(0)
    )
    topics = request["topicData"]
    body = transaction + 6 + _array_prefix(topics, flexible=flexible) + F.when(flexible, 1).otherwise(0)

    def topic_size(topic: Column) -> Column:
        prefix = _array_prefix(topic["partitionData"], flexible=flexible) + F.when(flexible, 1).otherwise(0)
        return _topic_name(topic["name"], version, flexible) + prefix

    def partition_size(partition: Column) -> Column:
        return F.when(flexible, _uvarint(_size(partition["recordsSizeInBytes"]) + 1) + 5).otherwise(8)

    return (header + body + _sum(topics, "partitionData", topic_size, partition_size)).cast("long")


def produce_records(request: Column) -> Column:
    """Record bytes of all partitions: int64."""
    return _sum(request["topicData"], "partitionData", _nothing, lambda partition: _size(partition["recordsSizeInBytes"]))


def fetch_overhead(version: Column, response: Column) -> Column:
    """Everything but record bytes: int64. ``response`` has ``responses[].{topic, partitions}``."""
    flexible = version >= FETCH_FLEXIBLE_FROM
    topics = response["responses"]
    fixed = 4 + F.when(version >= 1, 4).otherwise(0) + F.when(version >= 7, 6).otherwise(0)
    body = fixed + _array_prefix(topics, flexible=flexible) + F.when(flexible, 1).otherwise(0)
    plain_partition = (
        18 + F.when(version >= 4, 8).otherwise(0) + F.when(version >= 5, 8).otherwise(0) + F.when(version >= 11, 4).otherwise(0)
    )

    def partition_size(partition: Column) -> Column:
        aborted = partition["abortedTransactions"]
        count = F.coalesce(F.array_size(aborted), F.lit(0))
        compact = 35 + _uvarint(count + F.when(aborted.isNull(), 0).otherwise(1)) + 17 * count
        compact += _uvarint(_size(partition["recordsSizeInBytes"]) + 1)
        return F.when(flexible, compact).otherwise(plain_partition + F.when(version >= 4, 4 + 16 * count).otherwise(0))

    def topic_size(topic: Column) -> Column:
        prefix = _array_prefix(topic["partitions"], flexible=flexible) + F.when(flexible, 1).otherwise(0)
        return _topic_name(topic["topic"], version, flexible) + prefix

    return (body + _sum(topics, "partitions", topic_size, partition_size)).cast("long")


def fetch_records(response: Column) -> Column:
    """Record bytes of all partitions: int64."""
    return _sum(response["responses"], "partitions", _nothing, lambda partition: _size(partition["recordsSizeInBytes"]))


def _topic_name(name: Column, version: Column, flexible: Column) -> Column:
    return (
        F.when(version >= TOPIC_ID_FROM, F.lit(_UUID_BYTES))
        .when(flexible, _compact_string(name))
        .otherwise(2 + _utf8_length(name))
    )


def _compact_string(text: Column) -> Column:
    length = _utf8_length(text)
    return F.when(text.isNull(), 1).otherwise(_uvarint(length + 1) + length)


def _utf8_length(text: Column) -> Column:
    return F.coalesce(F.octet_length(text), F.lit(0))


def _size(records: Column) -> Column:
    return F.coalesce(records, F.lit(0)).cast("long")


def _array_prefix(array: Column, *, flexible: Column) -> Column:
    return F.when(flexible, _uvarint(F.coalesce(F.array_size(array), F.lit(0)) + 1)).otherwise(4)


def _uvarint(value: Column) -> Column:
    """Bytes of an unsigned varint of a 32-bit value."""
    return F.when(value < 1 << 7, 1).when(value < 1 << 14, 2).when(value < 1 << 21, 3).when(value < 1 << 28, 4).otherwise(5)


def _nothing(_: Column) -> Column:
    return F.lit(0)


def _sum(topics: Column, inner: str, of_topic: Callable[[Column], Column], of_partition: Callable[[Column], Column]) -> Column:
    """Over all topics, and over the array ``inner`` of each; 0 of nothing."""
    zero = F.lit(0).cast("long")

    def topic_sum(topic: Column) -> Column:
        return of_topic(topic) + F.coalesce(_added(topic[inner], zero, of_partition), zero)

    first = F.get(topics, F.lit(0))
    # Nearly all requests are about one partition of one topic, and going through arrays costs more than their sums.
    only = (F.array_size(topics) == 1) & (F.array_size(first[inner]) == 1)
    alone = (of_topic(first) + of_partition(F.get(first[inner], F.lit(0)))).cast("long")
    return F.coalesce(F.when(only, alone).otherwise(_added(topics, zero, topic_sum)), zero)


def _added(array: Column, zero: Column, size: Callable[[Column], Column]) -> Column:
    return F.aggregate(array, zero, lambda so_far, item: so_far + size(item).cast("long"))
