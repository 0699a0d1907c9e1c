"""Numbers for what is distinct, without sorting where a table is small enough."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Integers

_TABLE: Final = 16
"""A table may have so many places for each value."""
_EXACT: Final = float(2**53)
"""Doubles hold every whole number up to here."""


def numbered(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """The distinct ones of ``codes`` (0 to ``size`` - 1), rising, and for each code its place among them."""
    if size > _TABLE * len(codes):
        distinct, places = np.unique(codes, return_inverse=True)
        return distinct, np.asarray(places, dtype=np.int64)
    there = np.zeros(size, dtype=np.bool_)
    there[codes] = True
    distinct = np.flatnonzero(there)
    place = np.empty(size, dtype=np.int32)
    place[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, place[codes].astype(np.int64)


def summed(codes: Integers, size: int, amounts: Integers) -> tuple[Integers, Integers]:
    """The distinct ones of ``codes``, rising, and the sum of the amounts (0 or more) of each."""
    if not len(codes):
        return codes, amounts
    if size > _TABLE * len(codes) or float(amounts.max()) * len(amounts) >= _EXACT:
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        return ordered[first], np.add.reduceat(amounts[order], first)
    there = np.zeros(size, dtype=np.bool_)
    there[codes] = True
    distinct = np.flatnonzero(there)
    return distinct, np.bincount(codes, weights=amounts, minlength=size)[distinct].astype(np.int64)
