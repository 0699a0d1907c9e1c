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

from collections.abc import Iterator
from typing import Final

from reconciler.traffic.sources.log_documents import AnsweredTopic, AskedTopic, TopicsAnswer, TopicsRequest
from reconciler.traffic.sources.statuses import CHARGED

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37
MUTATING: Final = frozenset((CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS))
_STRICT_FROM: Final = {CREATE_TOPICS: 6, DELETE_TOPICS: 5, CREATE_PARTITIONS: 3}

UNKNOWN_PARTITIONS: Final = "unknown-partitions"
REFUSED_MUTATION: Final = "refused-mutation"
"""The quotas of then refused a topic: it would have been charged under others."""
FAILED_MUTATION: Final = "failed-mutation"
VALIDATE_ONLY: Final = "validate-only"
_REQUEST_TIMED_OUT: Final = 7
_THROTTLING_QUOTA_EXCEEDED: Final = 89


def mutations(api: int, request: TopicsRequest | None, answer: TopicsAnswer | None, *, kraft: bool) -> Iterator[tuple[str, int]]:
    """The status and the partitions of each topic, in the order of the request."""
    request, answer = request or TopicsRequest(), answer or TopicsAnswer()
    asked = request.topics or [AskedTopic(name=name) for name in request.topic_names or ()]
    answers = answer.topics or answer.results or answer.responses or []
    named: dict[tuple[str | None, str | None], AnsweredTopic] = {}
    for one in answers:
        named.setdefault((one.name, None), one)
        named.setdefault((None, one.topic_id), one)
    for topic in asked:
        its = named.get((topic.name, None) if topic.name is not None else (None, topic.topic_id))
        partitions = _partitions(api, topic, its)
        free = bool(request.validate_only) and not kraft
        yield _status(its.error_code if its else None, partitions, free=free), partitions or 0


def _status(code: int | None, partitions: int | None, *, free: bool) -> str:
    if code == _THROTTLING_QUOTA_EXCEEDED:
        return REFUSED_MUTATION
    if code not in (None, 0, _REQUEST_TIMED_OUT):
        return FAILED_MUTATION
    if free:
        return VALIDATE_ONLY
    return UNKNOWN_PARTITIONS if partitions is None else CHARGED


def is_strict(api: int, version: int) -> bool:
    """Whether the controller refuses topics of this version of the request when the quota is used up."""
    return version >= _STRICT_FROM[api]


def _partitions(api: int, topic: AskedTopic, answer: AnsweredTopic | None) -> int | None:
    if topic.assignments:
        return len(topic.assignments)
    if api != CREATE_TOPICS:
        return None
    return _positive(topic.num_partitions) or _positive(answer.num_partitions if answer else None)


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None
