"""Which broker leads how many partitions, from the files of Kafka's reassignment tool and of Cruise Control.

A share of traffic is a share of partitions: no file has the traffic of a partition.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.errors import FileAccessError
from reconciler.model import escaped

_BEGIN: Final = "{"
_MOST_BROKER: Final = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """``counts``: how many partitions each broker leads then. ``moved``: by broker, how many of those that it leads now go where.

    ``moved`` is ``None`` where the leaders of now are not known. It includes partitions that stay.
    """

    counts: Mapping[int, int]
    moved: Mapping[int, Mapping[int, int]] | None = None
    topics: int = 0
    form: str = ""
    """What the file is, for people."""

    @property
    def partitions(self) -> int:
        """All partitions that have a leader then."""
        return sum(self.counts.values())


@dataclass(slots=True)
class _Leaders:
    now: dict[tuple[str, int], int] = field(default_factory=dict)
    then: dict[tuple[str, int], int] = field(default_factory=dict)


def parse_leaders(text: str, *, name: str) -> LeaderChange:
    """The leaders of a file: ``kafka-reassign-partitions``' JSON, or its whole output with both assignments, or Cruise Control's.

    Raises ``FileAccessError`` for anything else, a partition without replicas, and one that is there twice.
    """
    documents = list(_documents(text, name))
    if not documents:
        raise _refused(name, "the file has no JSON object")
    if len(documents) == 1:
        (document,) = documents
        if "partitions" in document:
            leaders = _assignment(document, name)
            return LeaderChange(
                counts=Counter(leaders.values()), topics=len({topic for topic, _ in leaders}), form="partition assignment"
            )
        return _cruise_control(document, name)
    if len(documents) == 2 and all("partitions" in document for document in documents):
        both = _Leaders(now=_assignment(documents[0], name), then=_assignment(documents[1], name))
        return LeaderChange(
            counts=Counter(both.then.values()),
            moved=_moved(both),
            topics=len({topic for topic, _ in both.then}),
            form="current and proposed partition assignment",
        )
    raise _refused(name, f"the file has {len(documents)} JSON objects")


def _documents(text: str, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a text that has headings between them, as ``--generate`` prints them."""
    decoder, place = json.JSONDecoder(), text.find(_BEGIN)
    while place >= 0:
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
            raise _refused(name, f"the text is not JSON: {reason}") from None
        if isinstance(value, dict):
            yield value
        place = text.find(_BEGIN, place)


def _assignment(document: Mapping[str, Any], name: str) -> dict[tuple[str, int], int]:
    """The preferred leaders, the first of each partition's replicas, by topic and partition."""
    leaders: dict[tuple[str, int], int] = {}
    rows = document["partitions"]
    if not isinstance(rows, list) or not rows:
        raise _refused(name, "'partitions' is not a list of partitions")
    for row in rows:
        fields = row if isinstance(row, dict) else {}
        topic, partition, replicas = fields.get("topic"), fields.get("partition"), fields.get("replicas")
        if not isinstance(topic, str) or type(partition) is not int or not isinstance(replicas, list) or not replicas:
            raise _refused(name, "a partition lacks its 'topic', 'partition' or 'replicas'")
        if (topic, partition) in leaders:
            raise _refused(name, f"partition {topic}-{partition} is there twice")
        leaders[topic, partition] = _broker(replicas[0], name)
    return leaders


def _broker(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value < _MOST_BROKER:
        raise _refused(name, f"{value!r} is not a broker's id")
    return value


def _moved(leaders: _Leaders) -> dict[int, dict[int, int]]:
    """By broker that leads now. A partition that is only in one of the two counts as staying where it is."""
    moved: dict[int, Counter[int]] = defaultdict(Counter)
    for partition, now in leaders.now.items():
        moved[now][leaders.then.get(partition, now)] += 1
    return {broker: dict(targets) for broker, targets in moved.items()}


def _cruise_control(document: Mapping[str, Any], name: str) -> LeaderChange:
    """A proposal with the load of each broker, or the state of the cluster."""
    state = document.get("KafkaBrokerState")
    if isinstance(state, dict) and isinstance(state.get("LeaderCountByBrokerId"), dict):
        return LeaderChange(counts=_counts(state["LeaderCountByBrokerId"].items(), name), form="Cruise Control's cluster state")
    before, after = (_led(document.get(f"load{when}Optimization"), name) for when in ("Before", "After"))
    if before is None or after is None:
        raise _refused(
            name, "the file has neither 'partitions' nor the leaders of brokers. Save Cruise Control's JSON with verbose=true"
        )
    proposals = document.get("proposals")
    moved = _of_proposals(proposals, before, name) if isinstance(proposals, list) and proposals else None
    topics = {row["topicPartition"]["topic"] for row in proposals} if moved is not None and isinstance(proposals, list) else set()
    return LeaderChange(counts=after, moved=moved, topics=len(topics), form="Cruise Control's proposal")


def _led(load: object, name: str) -> dict[int, int] | None:
    rows = load.get("brokers") if isinstance(load, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and {"Broker", "Leaders"} <= row.keys() for row in rows):
        return None
    return _counts(((row["Broker"], row["Leaders"]) for row in rows), name)


def _counts(rows: Any, name: str) -> dict[int, int]:
    counts = {}
    for broker, count in rows:
        number = int(broker) if isinstance(broker, str) and broker.isascii() and broker.isdigit() else broker
        if type(count) is not int or count < 0:
            raise _refused(name, f"{count!r} is not a number of partitions")
        counts[_broker(number, name)] = count
    if not sum(counts.values()):
        raise _refused(name, "no broker leads a partition")
    return {broker: count for broker, count in counts.items() if count}


def _of_proposals(rows: list[Any], before: Mapping[int, int], name: str) -> dict[int, dict[int, int]]:
    moved: dict[int, Counter[int]] = defaultdict(Counter)
    for row in rows:
        fields = row if isinstance(row, dict) else {}
        place, replicas = fields.get("topicPartition"), fields.get("newReplicas")
        if (
            not isinstance(place, dict)
            or not isinstance(place.get("topic"), str)
            or not isinstance(replicas, list)
            or not replicas
        ):
            raise _refused(name, "a proposal lacks its 'topicPartition' or 'newReplicas'")
        old, new = _broker(fields.get("oldLeader"), name), _broker(replicas[0], name)
        if old != new:
            moved[old][new] += 1
    for broker in sorted(before.keys() | moved.keys()):
        count, leaves = before.get(broker, 0), sum(moved[broker].values())
        if leaves > count:
            raise _refused(name, f"broker {broker} leads {count} partitions, and the leaders of {leaves} move away")
        moved[broker][broker] += count - leaves
    return {broker: {target: n for target, n in targets.items() if n} for broker, targets in moved.items()}


def _refused(name: str, why: str) -> FileAccessError:
    return FileAccessError(f"{escaped(name)} has no leaders of partitions: {escaped(why)}")
