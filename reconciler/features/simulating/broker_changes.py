"""Other brokers than today's, and the share of each broker's traffic that the others then get."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import LeaderSpread
from reconciler.text import count_of, list_some

_MOST_BROKERS: Final = 10_000
_SHOWN: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:
    """``shares``: by broker whose traffic does not stay, who gets which share of it.

    ``title``: words such as ``without broker 3``. ``stands_for``: the only broker in the shares where all brokers are alike.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    shares: Mapping[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    stands_for: int | None = None
    title: str = ""
    assumptions: tuple[str, ...] = ()


def same_brokers(brokers: Collection[int]) -> BrokerChange:
    """No broker comes or goes."""
    known = tuple(sorted(brokers))
    return BrokerChange(before=known, after=known)


def without_brokers(brokers: Collection[int], lost: Collection[int]) -> BrokerChange:
    """Move the traffic of lost brokers to the others in equal parts. Raises ``UsageError``."""
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


def _named(brokers: Sequence[int]) -> str:
    names = [str(broker) for broker in brokers]
    if len(names) == 1:
        return f"broker {names[0]}"
    if len(names) > _SHOWN:
        return f"brokers {list_some(names, _SHOWN)}"
    return f"brokers {', '.join(names[:-1])} and {names[-1]}"
