"""Which groups travel together: ranges of group numbers of about as many rows each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Integers

ROWS_A_BIN: Final = 1_000_000
"""What one worker holds at a time, unless one group alone has more: few enough to be sorted without leaving its caches far."""
_MOST_BINS: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Bins:
    """``ends``: for each bin the first group after it, rising."""

    ends: Integers

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def of(cls, rows: Sequence[int], least: int) -> Bins:
        """``rows``: by group number how many are expected, 0 or more. ``least``: how many bins there should be at least."""
        if not len(rows):
            return cls(np.ones(1, dtype=np.int64))
        whole = sum(rows)
        share = max(1.0, whole / _MOST_BINS, min(ROWS_A_BIN, whole / max(1, least)))
        # A bin ends with the group that reaches the next multiple of a share.
        reached = (np.cumsum(rows) / share).astype(np.int64)
        ends = np.flatnonzero(np.diff(reached)) + 1
        return cls(np.unique(np.append(ends, len(rows))))

    def of_groups(self, groups: Integers) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
        """The bin of each."""
        table = np.repeat(np.arange(len(self.ends), dtype=np.uint16), np.diff(self.ends, prepend=0))
        return table[groups]
