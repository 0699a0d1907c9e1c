"""When a day that batches add to gets fewer parts. Pure.

Each batch writes a part of its day. A part is in a tier by its size, and each tier is eight times as large as the one below.
Eight parts of a tier become one, which is in a higher tier. So a total is written again once for each tier at most, and the work
of a whole day grows as n log n. Parts of the last tiers stay: one more merge would not make fewer files of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PARTS_A_TIER: Final = 8
_TIERS: Final = 7
"""Parts of the tiers from this one on stay as they are: they have two million totals and more."""


def choose_merged(rows: Sequence[int], added: int) -> frozenset[int]:
    """The places of the parts that a new part takes in. ``rows``: those of each part. ``added``: those of the new part, at most.

    Afterwards, each tier below the last ones has fewer than ``PARTS_A_TIER`` parts.
    """
    of_tier: dict[int, list[int]] = {}
    for place, size in enumerate(rows):
        of_tier.setdefault(tier_of(size), []).append(place)
    merged: set[int] = set()
    total = added
    while full := [
        tier for tier, places in of_tier.items() if tier < _TIERS and len(places) + (tier == tier_of(total)) >= PARTS_A_TIER
    ]:
        places = of_tier.pop(min(full))
        merged.update(places)
        total += sum(rows[place] for place in places)
    return frozenset(merged)


def count_mergeable(rows: Sequence[int]) -> int:
    """How many rows of these parts a new part takes in, at most."""
    return sum(size for size in rows if tier_of(size) < _TIERS)


def tier_of(rows: int) -> int:
    """0 for up to seven rows, 1 for up to 63, and so on."""
    return (max(rows, 1).bit_length() - 1) // (PARTS_A_TIER.bit_length() - 1)
