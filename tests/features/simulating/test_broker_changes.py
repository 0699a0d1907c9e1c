"""Brokers that are lost, and the leaders of partitions after it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import UsageError
from reconciler.features.simulating.broker_changes import moved_leaders, without_brokers
from reconciler.model import LeaderSpread

BROKERS = (1, 2, 3)
leaders = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=30).map(tuple)


def spread_of(**topics: tuple[int, ...]) -> LeaderSpread:
    counts = Counter(leader for each in topics.values() for leader in each)
    by_topic = {name: (each, len(each)) for name, each in topics.items()}
    return LeaderSpread(partitions=tuple(sorted(counts.items())), leaderless=1, by_topic=by_topic)


def test_a_lost_brokers_partitions_go_to_the_others_one_after_the_other() -> None:
    moved = moved_leaders(spread_of(orders=(1, 2, 3, 3, 3, 3)), without_brokers(BROKERS, {3}))
    assert moved.by_topic == {"orders": ((1, 2, 1, 2, 1, 2), 6)}
    assert (moved.partitions, moved.leaderless) == (((1, 3), (2, 3)), 1)


@given(orders=leaders, clicks=leaders)
def test_partitions_of_brokers_that_stay_keep_their_leaders(orders: tuple[int, ...], clicks: tuple[int, ...]) -> None:
    moved = moved_leaders(spread_of(orders=orders, clicks=clicks), without_brokers(BROKERS, {2}))
    for name, before in (("orders", orders), ("clicks", clicks)):
        after, count = moved.by_topic[name]
        assert count == len(after) == len(before)
        assert [a for b, a in zip(before, after, strict=True) if b != 2] == [b for b in before if b != 2]
        assert 2 not in after


def test_a_lost_brokers_traffic_goes_to_the_others() -> None:
    change = without_brokers((1, 2, 3), {3})
    assert (change.before, change.after, change.title) == ((1, 2, 3), (1, 2), "without broker 3")
    assert change.shares == {3: ((1, 0.5), (2, 0.5))}


@pytest.mark.parametrize(
    ("lost", "message"), [({5}, "the history has no such broker. Its brokers are 1, 2"), ({1, 2}, "names every broker")]
)
def test_a_broker_that_cannot_leave_is_refused(lost: set[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        without_brokers((1, 2), lost)
