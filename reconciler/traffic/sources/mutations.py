"""Partitions that a request creates or deletes, topic by topic, as the controller charges them.

CreateTopics says how many partitions each topic gets; ``-1`` is the broker's default, which answers from version 5 on give.
CreatePartitions says how many a topic shall have in the end, so only one that assigns the new partitions tells how many they are.
DeleteTopics never says. Those topics get the status ``UNKNOWN_PARTITIONS``.

A topic whose answer is an error was not charged, but for a timeout, which comes after the work. One that the quota refused
(error 89) gets ``REFUSED_MUTATION``. A validation without creation is charged by a KRaft controller and free in ZooKeeper mode;
it counts when the line shows KRaft: a request passed on to the controller, or a broker of 4.0 or newer.

In KRaft the same request is logged by the broker that took it and by the controller that did it: see ``CONTROLLER``.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37
MUTATING: Final = (CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS)
_STRICT_FROM: Final = {CREATE_TOPICS: 6, DELETE_TOPICS: 5, CREATE_PARTITIONS: 3}

UNKNOWN_PARTITIONS: Final = "unknown-partitions"
REFUSED_MUTATION: Final = "refused-mutation"
"""The quotas of then refused a topic: it would have been charged under others."""
FAILED_MUTATION: Final = "failed-mutation"
VALIDATE_ONLY: Final = "validate-only"
_REQUEST_TIMED_OUT: Final = 7
_THROTTLING_QUOTA_EXCEEDED: Final = 89

_ASKED: Final = (
    "array<struct<name: string, topicId: string, numPartitions: bigint, assignments: array<struct<partitionIndex: int>>>>"
)
_ANSWERED: Final = "array<struct<name: string, topicId: string, errorCode: int, numPartitions: bigint>>"
REQUEST: Final = f"struct<topics: {_ASKED}, topicNames: array<string>, validateOnly: boolean>"
RESPONSE: Final = f"struct<topics: {_ANSWERED}, results: {_ANSWERED}, responses: {_ANSWERED}>"
"""Schemas for ``from_json``: of all three requests and their answers, whose list of topics has three names."""
ENTRY: Final = "struct<status: string, partitions: bigint, part: int>"


def mutations(api: Column, request: Column, response: Column, *, kraft: Column, charged: str) -> Column:
    """An array of ``ENTRY``, one a topic in the order of the request. ``charged``: the status of what counts."""
    answers = F.coalesce(response["topics"], response["results"], response["responses"])
    blank = F.transform(
        request["topicNames"],
        lambda name: F.struct(
            name.alias("name"),
            F.lit(None).cast("string").alias("topicId"),
            F.lit(None).cast("bigint").alias("numPartitions"),
            F.lit(None).cast("array<struct<partitionIndex: int>>").alias("assignments"),
        ),
    )
    asked = F.when(F.array_size(request["topics"]) > 0, request["topics"]).otherwise(F.coalesce(blank, request["topics"]))
    free = F.coalesce(request["validateOnly"], F.lit(False)) & ~kraft

    def entry(topic: Column, position: Column) -> Column:
        mine = F.filter(
            answers,
            lambda one: F.when(topic["name"].isNotNull(), one["name"] == topic["name"]).otherwise(
                one["topicId"] == topic["topicId"]
            ),
        )
        answer = F.try_element_at(mine, F.lit(1))
        partitions = _partitions(api, topic, answer)
        code = answer["errorCode"]
        status = (
            F.when(code == _THROTTLING_QUOTA_EXCEEDED, F.lit(REFUSED_MUTATION))
            .when(~code.isin(0, _REQUEST_TIMED_OUT), F.lit(FAILED_MUTATION))
            .when(free, F.lit(VALIDATE_ONLY))
            .when(partitions.isNull(), F.lit(UNKNOWN_PARTITIONS))
            .otherwise(F.lit(charged))
        )
        return F.struct(
            status.alias("status"), F.coalesce(partitions, F.lit(0)).cast("bigint").alias("partitions"), position.alias("part")
        )

    return F.transform(asked, entry)


def is_strict(api: Column, version: Column) -> Column:
    """Whether the controller refuses topics of this version of the request when the quota is used up."""
    strict = F.lit(False)
    for key, first in _STRICT_FROM.items():
        strict |= (api == key) & (version >= first)
    return strict


def _partitions(api: Column, topic: Column, answer: Column) -> Column:
    assigned = F.array_size(topic["assignments"])
    default = F.when(answer["numPartitions"] > 0, answer["numPartitions"])
    created = F.when(topic["numPartitions"] > 0, topic["numPartitions"]).otherwise(default)
    return F.when(assigned > 0, assigned.cast("bigint")).when(api == CREATE_TOPICS, created)
