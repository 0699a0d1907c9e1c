"""The shuffle: whatever is sent in whatever pieces arrives whole, each group in one partition, in the order of keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.shuffle.block import GroupRanges, cut_into_blocks, merge_blocks, pack_columns, unpack_columns
from reconciler.traffic.shuffle.on_spark import split_work

BITS = 10
GROUPS = 12
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 2**BITS - 1), st.integers(0, 2**40)), max_size=60)
WEIGHTS = st.lists(st.integers(0, 50), min_size=GROUPS, max_size=GROUPS)


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=20), min_size=1, max_size=4))
def test_numbers_come_back_however_large(lists: list[list[int]]) -> None:
    shortest = min(map(len, lists))
    columns = [np.asarray(one[:shortest], dtype=np.int64) for one in lists]
    assert [column.tolist() for column in unpack_columns(pack_columns(columns))] == [column.tolist() for column in columns]


@given(WEIGHTS, st.integers(1, 20))
def test_every_group_is_in_one_partition_and_partitions_are_about_as_heavy_as_asked(weights: list[int], least: int) -> None:
    ranges = GroupRanges.of(weights, least)
    ends = ranges.ends.tolist()
    assert ends == sorted(set(ends))
    assert ends[-1] == GROUPS
    whole = [sum(weights[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
    assert sum(whole) == sum(weights)
    assert max(whole) < max(1, sum(weights) / least) + max(weights) + 1


def sent(batches: list[list[tuple[int, int, int]]], ranges: GroupRanges) -> pa.Table:
    found = []
    for rows in batches:
        if rows:
            groups, times, amounts = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
            found.append(cut_into_blocks([groups << BITS | times, amounts], ranges, BITS))
    return pa.Table.from_batches(found).sort_by([("partition", "ascending"), ("first", "ascending")]) if found else pa.table({})


@given(st.lists(ROWS, max_size=5), WEIGHTS, st.integers(1, 6), st.integers(1, 40))
def test_what_arrives_is_all_that_was_sent_in_order(
    batches: list[list[tuple[int, int, int]]], weights: list[int], least: int, most_held: int
) -> None:
    ranges = GroupRanges.of(weights, least)
    table = sent(batches, ranges)
    pieces = list(merge_blocks(table.to_batches(max_chunksize=3), most_held))
    keys = [key for piece in pieces for key in piece[0].tolist()]
    assert keys == sorted(keys)
    arrived = sorted(
        (key, amount) for piece in pieces for key, amount in zip(*(column.tolist() for column in piece), strict=True)
    )
    assert arrived == sorted((group << BITS | time, amount) for rows in batches for group, time, amount in rows)
    for number in range(len(ranges)) if len(table) else ():
        mine = table.filter(pa.compute.equal(table.column("partition"), number))
        here = {key >> BITS for block in mine.column("rows") for key in unpack_columns(block.as_buffer())[0].tolist()}
        assert all((ranges.ends[number - 1] if number else 0) <= group < ranges.ends[number] for group in here)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 8))
def test_shares_lose_nothing_and_none_is_much_heavier(weights: list[int], most: int) -> None:
    found = split_work(range(len(weights)), weights, most)
    assert [one for share in found for one in share] == list(range(len(weights)))
    assert len(found) <= most
    heaviest = max((sum(weights[one] for one in share) for share in found), default=0)
    assert heaviest <= sum(weights) / most + max(weights, default=0)
