"""Laws of shards: groups that share a client, directly or through others, are judged together; equal names have one number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.judging.sharding import NO_NODE, LargeReplays, Shards, ids_of_names, replay_keys
from reconciler.traffic.shards.replays import choose_large

NODES = st.integers(-(2**63) + 1, 2**63 - 1)
LINKS = st.lists(st.tuples(NODES, NODES), max_size=30)
NAMES = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))


@given(LINKS, st.integers(1, 50), st.lists(NODES, max_size=10))
def test_linked_groups_are_in_one_shard_and_every_group_is_in_one(
    links: list[tuple[int, int]], count: int, others: list[int]
) -> None:
    shards = Shards.of(links, count)
    after, before = (np.asarray([link[side] for link in links], dtype=np.int64) for side in (0, 1))

    assert (shards.numbers(after) == shards.numbers(before)).all()
    numbers = shards.numbers(np.asarray(others, dtype=np.int64))
    assert ((numbers >= 0) & (numbers < count)).all()
    assert (Shards.of(links[::-1], count).numbers(after) == shards.numbers(after)).all()


@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=20))
def test_rows_have_one_number_exactly_when_their_names_are_equal(rows: list[tuple[str | None, str | None]]) -> None:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]

    numbers = ids_of_names(*columns).tolist()

    assert len(set(numbers)) == len(set(rows))
    assert dict(zip(rows, numbers, strict=True)) == {
        row: ids_of_names(*(pa.array([name], pa.string()) for name in row)).tolist()[0] for row in rows
    }


CLIENTS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=30)
"""The group after the change, the one before (0: none), and the broker."""


@given(CLIENTS)
def test_a_replay_has_the_clients_of_one_group_on_one_broker_and_none_is_left_out(clients: list[tuple[int, int, int]]) -> None:
    after, before, brokers = (np.asarray(column, dtype=np.int64) for column in zip(*clients, strict=True))
    nodes = np.stack((after, np.where(before == 0, NO_NODE, before)), axis=1)
    links = [(one, other or one) for one, other, _ in clients if one != other]

    keys = replay_keys(nodes, brokers, Shards.of(links, 3))

    replays: dict[int, set[tuple[int, int, int]]] = {}
    for side, groups in enumerate((after, before)):
        for key, group, broker in zip(keys[:, side].tolist(), groups.tolist(), brokers.tolist(), strict=True):
            if key != NO_NODE:
                replays.setdefault(key, set()).add((side, group, broker))
    assert all(len(members) == 1 for members in replays.values())
    assert NO_NODE not in keys[:, 0]
    for group in set(before.tolist()) - {0}:
        # The replay after the change is that before it, too, where no client joins or leaves.
        same = set(np.flatnonzero(after == group)) == set(np.flatnonzero(before == group))
        assert ((keys[before == group, 1] == NO_NODE) == same).all()


def test_groups_of_a_crowded_shard_are_large_and_those_of_others_stay() -> None:
    rows = {"key": [9, 4, 7, 1], "shard": [0, 1, 0, 2], "broker": [1, 1, 2, 1], "lines": [60, 100, 50, 101]}

    large = choose_large(pa.table(rows), room=100)

    assert (large.keys.tolist(), large.shards.tolist(), large.brokers.tolist()) == ([1, 7, 9], [2, 0, 0], [1, 2, 1])
    keys = np.asarray([[1, NO_NODE], [1, 5], [5, 1], [9, 7]])
    assert large.cover(keys).tolist() == [True, False, False, True]
    assert not LargeReplays.none().cover(keys).any()
