"""Partitions: ranges of group numbers with about as many rows each, so that every group is whole in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Integers

ROWS_A_PARTITION: Final = 1_000_000
"""Rows that one worker has in memory at a time, unless one group alone has more: sorting them stays close to its caches."""
_MOST_PARTITIONS: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class GroupRanges:
    """``ends``: for each partition the first group number after it, rising (int64)."""

    ends: Integers

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def of(cls, rows: Sequence[int], least: int) -> GroupRanges:
        """``rows``: the expected rows of each group, by its number, 0 or more. ``least``: the smallest number of partitions."""
        if not len(rows):
            return cls(np.ones(1, dtype=np.int64))
        whole = sum(rows)
        share = max(1.0, whole / _MOST_PARTITIONS, min(ROWS_A_PARTITION, whole / max(1, least)))
        # A partition ends with the group that reaches the next multiple of a share.
        reached = (np.cumsum(rows) / share).astype(np.int64)
        ends = np.flatnonzero(np.diff(reached)) + 1
        return cls(np.unique(np.append(ends, len(rows))))

    def partition_of(self, groups: Integers) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
        """The partition of each group number."""
        table = np.repeat(np.arange(len(self.ends), dtype=np.uint16), np.diff(self.ends, prepend=0))
        return table[groups]
