"""Laws of shards: groups that share a client, directly or through others, are judged together; equal names have one number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.verdict_tables.blocks import Shards, ids_of_names

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
