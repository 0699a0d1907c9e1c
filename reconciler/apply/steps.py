"""Lowering a limit in steps: the values on the way, none of them lower than the one before divided by the factor.

A lower limit counts at once against what was sent within the last window: a client at its old rate is held back for up to
``(rate / limit - 1) x window`` in one go (Kafka's ``QuotaUtils``). In steps each hold is short, and clients can follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.model import KNOWN_KEYS, KeyChange, QuotaKey, ValueType

WINDOW_SECONDS: Final = 11.0
"""The longest window of a rate with Kafka's default settings; after it, nothing of the old rate counts any more."""

_BINARY_UNITS: Final = (1024.0**4, 1024.0**3, 1024.0**2, 1024.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDown:
    """How reductions go down. ``factor``: above 1, the most that one step divides by; ``wait_seconds``: between two steps."""

    factor: float
    wait_seconds: float = WINDOW_SECONDS


def way_down(key: KeyChange, factor: float) -> tuple[float, ...]:
    """The values to write one after the other, the planned one last; a single one for whatever is no large reduction.

    The values between are round where that costs little, whole for integer keys, and fall strictly. No step divides by more
    than ``factor``, except that one unit is always taken where whole numbers leave no smaller step.
    """
    after = key.after
    if after is None:
        return ()
    return (*_between(key, after, factor), after)


def is_stepped(key: KeyChange, factor: float) -> bool:
    """True when the key falls by more than the factor, from a limit to a lower one."""
    before, after = key.before, key.after
    if before is None or after is None or key.key not in KNOWN_KEYS:
        return False
    return math.isfinite(before) and 0 < after < before / factor


def _between(key: KeyChange, after: float, factor: float) -> Iterator[float]:
    if key.before is None or not is_stepped(key, factor):
        return
    kind = QuotaKey(key.key)
    now = key.before
    while now / factor > after:
        now = _next(now, now / factor, kind)
        if now <= after:
            return
        yield now


def _next(now: float, lowest: float, kind: QuotaKey) -> float:
    """The value after ``now``, from ``lowest`` up: a round one if it keeps at least half of the step."""
    whole = kind.value_type is not ValueType.DOUBLE
    smallest = float(math.ceil(lowest)) if whole else lowest
    if smallest >= now:
        return now - 1 if whole else math.nextafter(now, 0.0)
    rounded = _round_up(lowest, binary=kind.is_bytes and now % 1024 == 0)
    if whole:
        rounded = float(math.ceil(rounded))
    return rounded if smallest <= rounded <= (smallest + now) / 2 else smallest


def _round_up(value: float, *, binary: bool) -> float:
    unit = next((u for u in _BINARY_UNITS if value >= u), None) if binary else None
    if unit is not None:
        count = value / unit
        quantum = 0.125 if count < 10 else 1.0 if count < 100 else 8.0
        return math.ceil(count / quantum) * quantum * unit
    digits = 1 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return rounded if rounded >= value else round(rounded + 10.0**-digits, digits)
