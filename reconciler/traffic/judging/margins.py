"""By how much a safe limit may exceed the highest sample of a metric: one table, by source and resolution.

A metric misses what happens between its samples, so the highest sample is below the highest rate. A factor is the highest rate
of a client, divided by the highest sample of it. It is an estimate and no proof: bursts that are shorter and rarer than those of
the measured traffic exceed it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import MetricSemantics


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionMargin:
    """``factor``: a safe limit, divided by the highest sample, of samples ``every_s`` seconds apart."""

    every_s: float
    factor: float


_AVERAGES: Final = (ResolutionMargin(every_s=15, factor=1.4),)
MARGINS: Final[Mapping[MetricSemantics, tuple[ResolutionMargin, ...]]] = {
    MetricSemantics.GAUGE: (
        ResolutionMargin(every_s=15, factor=1.2),
        ResolutionMargin(every_s=30, factor=1.9),
        ResolutionMargin(every_s=60, factor=3.5),
    ),
    MetricSemantics.DELTA: _AVERAGES,
    MetricSemantics.MEAN: _AVERAGES,
}
"""Rising in both. Gauges: the highest rate of the requests, divided by the highest sample, of a production cache, synthetic
traffic and a bursty disk; from 30 s on the worst of them. Averages of 15 s: of the cache. Averages of 60 s have no factor: their
highest value was 0.4 of the highest rate, and 3 to 7 % of the clients showed any sign of it."""
_JITTER: Final = 1.1
"""Samples up to so many times the longest interval apart have its factor: no clock is exact."""


def margin_factor(semantics: MetricSemantics, every_s: float) -> float | None:
    """For samples so far apart (0: not known), between two rows of the table in proportion; ``None``: no recommendation."""
    rows = MARGINS[semantics]
    if every_s <= 0 or every_s > rows[-1].every_s * _JITTER:
        return None
    for below, above in itertools.pairwise(rows):
        if below.every_s * _JITTER < every_s <= above.every_s:
            part = (every_s - below.every_s) / (above.every_s - below.every_s)
            return round(below.factor + part * (above.factor - below.factor), 2)
    return next((row.factor for row in rows if every_s <= row.every_s * _JITTER), None)
