"""Requests as columns, in an order that nothing but their content decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Doubles, Integers

TIME_BITS: Final = 42
"""A key is the group's number, shifted by this, plus the charge time in ms since 1970."""
_TIME: Final = (1 << TIME_BITS) - 1
ORDER_BITS: Final = 46
MICRO_BITS: Final = 10
"""Of an order, the highest bits: the microseconds within the ms."""
_RUN_BITS: Final = 63 - ORDER_BITS


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests. ``order``, 0 to 2^46, decides between requests of one key; ``rows`` are numbers that the caller knows them by."""

    keys: Integers
    order: Integers
    records: Integers
    overhead: Integers
    rows: Integers

    def __len__(self) -> int:
        return len(self.keys)

    def then(self, other: Batch) -> Batch:
        """Both, one after the other."""
        return Batch(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in self.__slots__))

    def part(self, chosen: slice | Integers) -> Batch:
        """Some of them."""
        return Batch(*(getattr(self, n)[chosen] for n in self.__slots__))

    def in_order(self) -> Batch:
        """The same, with requests of one key in their order. Keys must be rising."""
        again = self.keys[1:] == self.keys[:-1]
        if not again.any():
            return self
        # Only those that share a key, numbered by it, need sorting, as one number.
        shared = np.append(again, False)
        shared[1:] |= again
        places = np.flatnonzero(shared)
        run = np.cumsum(np.append(False, ~again)[places])
        order = np.arange(len(self))
        if run[-1] >= 1 << _RUN_BITS:
            order[places] = places[np.lexsort((self.order[places], run))]
        else:
            order[places] = places[np.argsort(run << ORDER_BITS | self.order[places], kind="stable")]
        return self.part(order)

    @classmethod
    def empty(cls) -> Batch:
        """None."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in range(5)))


def pack(groups: Integers, times_ms: Integers) -> Integers:
    """Keys of requests."""
    return (groups << TIME_BITS) | times_ms


def group_of(keys: Integers) -> Integers:
    """The groups of keys."""
    return np.asarray(keys >> TIME_BITS, dtype=np.int64)


def time_of(keys: Integers) -> Integers:
    """The times of keys, ms since 1970."""
    return np.asarray(keys & _TIME, dtype=np.int64)


def first_places(values: Integers | Doubles) -> Integers:
    """Where a new value begins, in an array that is not empty and in which equal values lie together."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.flatnonzero(np.diff(values)) + 1))
