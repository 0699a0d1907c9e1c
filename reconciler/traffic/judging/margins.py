"""By how much a safe limit may exceed the highest sample of a metric: one table, by source and resolution.

A metric misses what happens between its samples, so the highest sample is below the highest rate. A factor is the highest rate
of a client, divided by the highest sample of it. It is an estimate and no proof: bursts that are shorter and rarer than those of
the measured traffic exceed it. Source: ``benchmarks/traffic_sources``, published in ``docs/traffic-sources.md``.
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


_AVERAGES: Final = (ResolutionMargin(every_s=15, factor=2.8), ResolutionMargin(every_s=30, factor=5.3))
MARGINS: Final[Mapping[MetricSemantics, tuple[ResolutionMargin, ...]]] = {
    MetricSemantics.GAUGE: (
        ResolutionMargin(every_s=5, factor=1.3),
        ResolutionMargin(every_s=15, factor=1.9),
        ResolutionMargin(every_s=30, factor=2.9),
        ResolutionMargin(every_s=60, factor=3.3),
    ),
    MetricSemantics.DELTA: _AVERAGES,
    MetricSemantics.MEAN: _AVERAGES,
}
"""Rising in both. Safe in 99 % of runs, for the traffic that needs most. Gauges: of a day of history; an hour of gauges 15 s or
more apart has no factor that is of use for bursty clients. Averages: of an hour. Averages of 60 s have none: it would be 28."""
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
