"""What a client got through, and how evenly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

_PULSE = 2.0
"""A second with more than this many seconds' worth of the limit is a pulse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Bytes a second, how many requests, how many pulses, and what share of the bytes went through in them."""

    rate: float
    requests: int
    pulses: int
    pulse_share: float

    @classmethod
    def of(cls, charges: Sequence[tuple[float, float]], *, limit: float, seconds: float) -> Shape:
        """From times (ms after the first) and bytes, in order; those after ``seconds`` are left out."""
        kept = [(at, amount) for at, amount in charges if at < seconds * 1000]
        by_second: dict[int, float] = defaultdict(float)
        for at, amount in kept:
            by_second[int(at // 1000)] += amount
        whole = sum(by_second.values())
        high = {second: amount for second, amount in by_second.items() if amount > _PULSE * limit}
        return cls(
            rate=whole / seconds,
            requests=len(kept),
            # Two seconds beside each other are one pulse.
            pulses=sum(second - 1 not in high for second in high),
            pulse_share=sum(high.values()) / whole if whole else 0.0,
        )
