"""Which parts of a day a batch takes in: few parts stay, and a total is written again a few times at most."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.seconds.day_parts import PARTS_A_TIER, choose_merged, count_mergeable, tier_of

LARGE_TIER = 7
BATCHES = st.lists(st.integers(1, 3_000_000) | st.integers(1, 50), min_size=1, max_size=200)


def add(parts: list[int], batch: int, *, distinct: float = 1.0) -> tuple[list[int], int]:
    """The parts after a batch, and how many rows were written. ``distinct``: the part of them that a merge leaves."""
    merged = choose_merged(parts, batch)
    total = batch + sum(parts[place] for place in merged)
    size = max(1, round(total * distinct))
    return [*(rows for place, rows in enumerate(parts) if place not in merged), size], size


@given(BATCHES, st.sampled_from([1.0, 0.3]))
def test_few_parts_are_in_a_tier_whatever_comes(batches: list[int], distinct: float) -> None:
    parts: list[int] = []
    for batch in batches:
        parts, _ = add(parts, batch, distinct=distinct)
        tiers = Counter(tier_of(rows) for rows in parts)
        assert all(count <= PARTS_A_TIER for tier, count in tiers.items() if tier < LARGE_TIER)


@given(BATCHES)
def test_a_total_is_written_once_for_each_tier_at_most(batches: list[int]) -> None:
    parts: list[int] = []
    written = 0
    for batch in batches:
        parts, rows = add(parts, batch)
        written += rows
    assert sum(parts) == sum(batches)
    assert written <= sum(batches) * (LARGE_TIER + 1)


@given(st.lists(st.integers(1, 20_000_000), max_size=60), st.integers(1, 20_000_000))
def test_no_more_rows_are_merged_than_there_is_room_for(parts: list[int], batch: int) -> None:
    merged = choose_merged(parts, batch)
    assert sum(parts[place] for place in merged) <= count_mergeable(parts)
    assert all(tier_of(parts[place]) < LARGE_TIER for place in merged)


def test_equal_batches_count_like_an_odometer() -> None:
    parts: list[int] = []
    counts = []
    for _ in range(64):
        parts, _ = add(parts, 8)
        counts.append(len(parts))
    assert (counts[:9], counts[62], parts) == ([1, 2, 3, 4, 5, 6, 7, 1, 2], 14, [512])
