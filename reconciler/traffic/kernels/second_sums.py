"""Verdicts from one-second sums: what is proven about the sampled rate without the single requests.

With ``Sk`` the sum of the last k whole seconds, 11 samples of one second, and whatever requests within the seconds, the largest
sampled rate at any request of a second lies within

    S11 / 12  <=  rate  <=  max(S13 / 11, S12 / 10)        for brokers from 3.8 on
    S10 / 11  <=  rate  <=  S12 / 10                       for older ones

So against a limit a second is certain (the lower bound is above it), clear (the upper bound is not) or possible; ``S11 / 10.5``
is the estimate between them.

3.8 and newer: everything later than 11 s before the second's last request is in live samples, and they span less than 12 s. What
is summed is later than the oldest live start, which is less than 12 s ago: in the thirteenth second back the window is above
11 s, and it is 10 s at least. Older: a sample is dropped when its start is 11 s old, so everything of the last 10 s is in live
samples, they span less than 11 s, and what is summed is later than 11 s ago.

Broker arithmetic is in doubles: a bound within rounding of the limit decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from reconciler.traffic.kernels.sampled_rate import Era
from reconciler.traffic.kernels.timeline import Doubles, Integers

SECOND_BITS: Final = 33
"""A key is the group's number, shifted by this, plus the second since 1970."""
REACH: Final = 12
"""How many seconds back a cell still counts."""
ROUNDING: Final = 1e-12

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Per cell, bytes (or whatever the amounts are) a second."""

    lower: Doubles
    expected: Doubles
    upper: Doubles

    def over(self, limit: Doubles) -> tuple[Flags, Flags, Flags]:
        """Where a second is certainly, probably and possibly over; each implies the next. NaN is unlimited."""
        certain = self.lower > limit * (1 + ROUNDING)
        possible = self.upper > limit * (1 - ROUNDING)
        return certain, (self.expected > limit) & possible, possible


def keys_of(groups: Integers, seconds: Integers) -> Integers:
    """Packed keys; in their order, groups lie together and each is in the order of time."""
    return (groups << SECOND_BITS) | seconds


def bounds(keys: Integers, amounts: Integers, era: Era = Era.OVERLAPPING) -> Bounds:
    """For cells in strictly rising order of their keys. Raises ``ValueError`` for another order, which would tear sums apart."""
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("cells must be in strictly rising order of group and second")
    lengths = (11, 12, 13) if era is Era.OVERLAPPING else (10, 11, 12)
    sums = _sums(keys, amounts, lengths)
    if era is Era.OVERLAPPING:
        s11, s12, s13 = sums
        return Bounds(lower=s11 / 12.0, expected=s11 / 10.5, upper=np.maximum(s13 / 11.0, s12 / 10.0))
    s10, s11, s12 = sums
    return Bounds(lower=s10 / 11.0, expected=s11 / 10.5, upper=s12 / 10.0)


def _sums(keys: Integers, amounts: Integers, lengths: Sequence[int]) -> tuple[Integers, ...]:
    """For each cell the amounts of the last so many seconds, its own included."""
    found = tuple(amounts.copy() for _ in lengths)
    for back in range(1, min(max(lengths), len(keys))):
        apart = keys[back:] - keys[:-back]
        if not np.any(apart < max(lengths)):
            break
        for total, length in zip(found, lengths, strict=True):
            total[back:] += np.where(apart < length, amounts[:-back], 0)
    return found
