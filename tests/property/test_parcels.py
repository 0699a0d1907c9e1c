"""Parcels: whatever is sent in whatever pieces arrives whole, each group at one place, in the order of keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.parcels.bins import ROWS_A_BIN, Bins
from reconciler.traffic.parcels.merging import merged
from reconciler.traffic.parcels.parcel import packed, parcels, unpacked
from reconciler.traffic.parcels.workers import shares

BITS = 10
GROUPS = 12
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 2**BITS - 1), st.integers(0, 2**40)), max_size=60)
WEIGHTS = st.lists(st.integers(0, 50), min_size=GROUPS, max_size=GROUPS)


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=20), min_size=1, max_size=4))
def test_numbers_come_back_however_large(lists: list[list[int]]) -> None:
    shortest = min(map(len, lists))
    columns = [np.asarray(one[:shortest], dtype=np.int64) for one in lists]
    assert [column.tolist() for column in unpacked(packed(columns))] == [column.tolist() for column in columns]


@given(WEIGHTS, st.integers(1, 20))
def test_every_group_is_in_one_bin_and_bins_are_about_as_heavy_as_asked(weights: list[int], least: int) -> None:
    bins = Bins.of(weights, least)
    ends = bins.ends.tolist()
    assert ends == sorted(set(ends))
    assert ends[-1] == GROUPS
    whole = [sum(weights[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
    assert sum(whole) == sum(weights)
    assert max(whole) < max(1, sum(weights) / least) + max(weights) + 1


def test_large_histories_have_more_bins_than_workers() -> None:
    assert len(Bins.of([ROWS_A_BIN] * 5, 2)) == 5
    assert len(Bins.of([], 2)) == 1
    assert len(Bins.of([0, 0], 2)) == 1


def sent(batches: list[list[tuple[int, int, int]]], bins: Bins) -> pa.Table:
    found = []
    for rows in batches:
        if rows:
            groups, times, amounts = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
            found.append(parcels([groups << BITS | times, amounts], bins, BITS))
    return pa.Table.from_batches(found).sort_by([("bin", "ascending"), ("first", "ascending")]) if found else pa.table({})


@given(st.lists(ROWS, max_size=5), WEIGHTS, st.integers(1, 6), st.integers(1, 40))
def test_what_arrives_is_all_that_was_sent_in_order(
    batches: list[list[tuple[int, int, int]]], weights: list[int], least: int, most_held: int
) -> None:
    bins = Bins.of(weights, least)
    table = sent(batches, bins)
    pieces = list(merged(table.to_batches(max_chunksize=3), most_held))
    keys = [key for piece in pieces for key in piece[0].tolist()]
    assert keys == sorted(keys)
    arrived = sorted(
        (key, amount) for piece in pieces for key, amount in zip(*(column.tolist() for column in piece), strict=True)
    )
    assert arrived == sorted((group << BITS | time, amount) for rows in batches for group, time, amount in rows)
    for number in range(len(bins)) if len(table) else ():
        mine = table.filter(pa.compute.equal(table.column("bin"), number))
        here = {key >> BITS for parcel in mine.column("rows") for key in unpacked(parcel.as_buffer())[0].tolist()}
        assert all((bins.ends[number - 1] if number else 0) <= group < bins.ends[number] for group in here)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 8))
def test_shares_lose_nothing_and_none_is_much_heavier(weights: list[int], most: int) -> None:
    found = shares(range(len(weights)), weights, most)
    assert [one for share in found for one in share] == list(range(len(weights)))
    assert len(found) <= most
    heaviest = max((sum(weights[one] for one in share) for share in found), default=0)
    assert heaviest <= sum(weights) / most + max(weights, default=0)
