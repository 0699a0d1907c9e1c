"""Other brokers than today's, and the share of each broker's traffic that the others then get.

Leaders come from files of Kafka's reassignment tool. A share of traffic is a share of partitions: no file has the traffic of a
partition.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.errors import FileAccessError, UsageError
from reconciler.model import LeaderSpread, TrafficSpread, escaped
from reconciler.text import count_of, list_some

_MOST_BROKERS: Final = 10_000
_SHOWN: Final = 6


_BEGIN: Final = "{"
_MOST_BROKER: Final = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:
    """``shares``: by broker whose traffic does not stay, who gets which share of it.

    ``title``: words such as ``without broker 3``. ``stands_for``: the only broker in the shares where all brokers are alike.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    shares: Mapping[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    spread: TrafficSpread = TrafficSpread.NONE
    stands_for: int | None = None
    title: str = ""
    assumptions: tuple[str, ...] = ()


def same_brokers(brokers: Collection[int]) -> BrokerChange:
    """No broker comes or goes."""
    known = tuple(sorted(brokers))
    return BrokerChange(before=known, after=known)


def without_brokers(brokers: Collection[int], lost: Collection[int]) -> BrokerChange:
    """Some brokers are gone, and their traffic is on the others in equal parts. Raises ``UsageError``."""
    before = tuple(sorted(brokers))
    unknown = sorted(set(lost) - set(before))
    if unknown:
        names = ", ".join(map(str, before[:_SHOWN]))
        raise UsageError(f"--without-broker {unknown[0]}: the history has no such broker. Its brokers are {names}")
    after = tuple(broker for broker in before if broker not in lost)
    if not after:
        raise UsageError("--without-broker names every broker of the history. Leave one")
    gone, rest = sorted(lost), f"{_named(after)}"
    part = f"{100 / len(after):.3g} % each" if len(after) > 1 else "all of it"
    return BrokerChange(
        before=before,
        after=after,
        shares={broker: tuple((target, 1 / len(after)) for target in after) for broker in gone},
        spread=TrafficSpread.EVEN,
        title=f"without {_named(gone)}",
        assumptions=(
            f"each client's traffic of {_named(gone)} moves to {rest} in equal parts, {part}, second by second",
            "the history has no topics, so it is not known which leaders move where. A broker that gets more leaders gets more",
            "clients send what they sent, at the same times. What they send anew after the loss is not simulated",
        ),
    )


def with_broker_count(brokers: Collection[int], count: int) -> BrokerChange:
    """So many brokers, each with the same part of every client's traffic. Raises ``UsageError``."""
    before = tuple(sorted(brokers))
    if not 0 < count <= _MOST_BROKERS:
        raise UsageError(f"--brokers takes a number from 1 to {_MOST_BROKERS:,}, not {count}")
    if not before:
        raise UsageError("--brokers needs traffic of brokers, and the history has none")
    first_new = before[-1] + 1
    after = (*before[:count], *range(first_new, first_new + count - len(before)))
    title = f"with {count_of(count, 'broker')}"
    if count == len(before):
        return BrokerChange(before=before, after=after, title=title)
    return BrokerChange(
        before=before,
        after=after,
        shares=dict.fromkeys(before, ((before[0], 1 / count),)),
        spread=TrafficSpread.EVEN,
        stands_for=before[0],
        title=title,
        assumptions=(
            (
                f"every client's traffic is divided among {count_of(count, 'broker')} in equal parts, {100 / count:.3g} % each, "
                "as after a reassignment that gives each of them as many leaders. Kafka itself moves no partition to a new broker"
            ),
            f"all brokers are alike then, so broker {before[0]} stands for each of them",
        ),
    )


def with_leaders(brokers: Collection[int], leaders: LeaderChange, *, name: str) -> BrokerChange:
    """The traffic follows the leaders of partitions. ``name``: of their file."""
    before = tuple(sorted(brokers))
    rows = leaders.moved
    if rows is None:
        every = _shares(leaders.counts)
        shares = dict.fromkeys(before, every)
        how = (
            f"every client's traffic is divided by the {count_of(leaders.partitions, 'partition')} that each broker leads in the "
            f"{leaders.form} {name}. The file does not have the leaders of now, so it does not matter where traffic was recorded"
        )
    else:
        shares = {broker: _shares(targets) for broker, targets in rows.items() if broker in before and set(targets) != {broker}}
        how = f"the traffic of a broker follows its leaders in the {leaders.form} {name}, by the number of partitions"
    staying = {broker for broker in before if broker not in shares}
    return BrokerChange(
        before=before,
        after=tuple(sorted(staying | {target for row in shares.values() for target, _ in row} | set(leaders.counts))),
        shares=shares,
        spread=TrafficSpread.LEADERS,
        title=f"with the leaders of {name}",
        assumptions=(
            how,
            (
                "partitions count alike and stand for those that the file does not list, since the history has no topics. "
                "A broker with busier partitions gets more"
            ),
        ),
    )


def moved_leaders(spread: LeaderSpread, change: BrokerChange) -> LeaderSpread:
    """The leaders of partitions after a change: those of each broker go to others by its shares, one after the other."""
    if not change.shares:
        return spread
    targets = _Targets(change)
    by_topic = {
        topic: (tuple(targets.leader_after(leader) for leader in leaders), count)
        for topic, (leaders, count) in sorted(spread.by_topic.items())
    }
    if by_topic:
        counts = Counter(leader for leaders, _ in by_topic.values() for leader in leaders)
    else:
        counts = Counter(targets.leader_after(broker) for broker, led in spread.partitions for _ in range(led))
    return LeaderSpread(partitions=tuple(sorted(counts.items())), leaderless=spread.leaderless, by_topic=by_topic)


class _Targets:
    """Hands out the partitions of each broker, so that after each of them the parts are as near to the shares as can be."""

    def __init__(self, change: BrokerChange) -> None:
        alike = tuple((broker, 1 / len(change.after)) for broker in change.after)
        self._shares = change.shares if change.stands_for is None else dict.fromkeys(change.before, alike)
        # Where all brokers are alike, it does not matter from which of them a partition comes.
        self._alike = change.stands_for is not None
        self._given: dict[int, Counter[int]] = defaultdict(Counter)

    def leader_after(self, leader: int) -> int:
        row = self._shares.get(leader)
        if row is None:
            return leader
        given = self._given[0 if self._alike else leader]
        number = given.total() + 1
        target = max(row, key=lambda pair: (pair[1] * number - given[pair[0]], -pair[0]))[0]
        given[target] += 1
        return target


def _shares(counts: Mapping[int, int]) -> tuple[tuple[int, float], ...]:
    whole = sum(counts.values())
    return tuple((broker, count / whole) for broker, count in sorted(counts.items()) if count)


def _named(brokers: Sequence[int]) -> str:
    names = [str(broker) for broker in brokers]
    if len(names) == 1:
        return f"broker {names[0]}"
    if len(names) > _SHOWN:
        return f"brokers {list_some(names, _SHOWN)}"
    return f"brokers {', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """``counts``: how many partitions each broker leads then. ``moved``: by broker, how many of those that it leads now go where.

    ``moved`` is ``None`` where the leaders of now are not known. It includes partitions that stay.
    """

    counts: Mapping[int, int]
    moved: Mapping[int, Mapping[int, int]] | None = None
    form: str = ""
    """What the file is, for people."""

    @property
    def partitions(self) -> int:
        """All partitions that have a leader then."""
        return sum(self.counts.values())


def parse_leaders(text: str, *, name: str) -> LeaderChange:
    """The leaders of a file: ``kafka-reassign-partitions``' JSON, or its whole output with both assignments.

    Raises ``FileAccessError`` for anything else, a partition without replicas, and one that is there twice.
    """
    documents = list(_documents(text, name))
    if not documents:
        raise _refused(name, "the file has no JSON object")
    if len(documents) > 2 or not all("partitions" in document for document in documents):
        raise _refused(name, f"the file has {len(documents)} JSON objects, and one or two with 'partitions' are expected")
    *before, then = (_assignment(document, name) for document in documents)
    if not before:
        return LeaderChange(counts=Counter(then.values()), form="partition assignment")
    # A partition that is only in one of the two counts as staying where it is.
    moved: dict[int, Counter[int]] = defaultdict(Counter)
    for partition, leader in before[0].items():
        moved[leader][then.get(partition, leader)] += 1
    return LeaderChange(counts=Counter(then.values()), moved=moved, form="current and proposed partition assignment")


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
        if type(replicas[0]) is not int or not 0 <= replicas[0] < _MOST_BROKER:
            raise _refused(name, f"{replicas[0]!r} is not a broker's id")
        leaders[topic, partition] = replicas[0]
    return leaders


def _refused(name: str, why: str) -> FileAccessError:
    return FileAccessError(f"{escaped(name)} has no leaders of partitions: {escaped(why)}")
