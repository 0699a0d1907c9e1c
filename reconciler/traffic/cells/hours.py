"""In which hours a file has lines: one bit an hour, so that counting them costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from reconciler.traffic.kernels.timeline import Integers

_HOUR_US: Final = 3_600_000_000
_BITS: Final = 64


def hour_bit() -> Column:
    """The bit of a line's hour, of 64 that come round again; null for a line without a time."""
    return F.expr(f"shiftleft(1L, cast(pmod(floor(ts_us / {_HOUR_US}), {_BITS}) as int))")


def bits_of(ts_us: Integers) -> int:
    """The same bits of some moments, together, as a signed number."""
    bits = sum(1 << int(hour) for hour in np.unique(ts_us // _HOUR_US % _BITS).tolist())
    return bits - (1 << _BITS) if bits >> _BITS - 1 else bits


def hours_of(lines: Sequence[Row]) -> tuple[int, ...]:
    """The hours since 1970 of rows with ``start_us``, ``end_us`` and ``hour_bits``; none when they are too many to tell."""
    timed = [row for row in lines if row.start_us is not None and row.hour_bits is not None]
    if not timed:
        return ()
    first = min(row.start_us for row in timed) // _HOUR_US
    last = max(row.end_us for row in timed) // _HOUR_US
    if last - first >= _BITS:
        return ()
    bits = 0
    for row in timed:
        bits |= row.hour_bits
    return tuple(hour for hour in range(first, last + 1) if bits >> hour % _BITS & 1)
