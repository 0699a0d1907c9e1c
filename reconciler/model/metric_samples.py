"""Evidence of metrics: meanings of rows, samples of a quota group, and numbers of judged and unjudged changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GAUGE: Final = "gauge"
"""The semantics of a row that is a broker's own sampled rate at a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSamples:
    """What metrics show of a quota group on one broker: rates that the broker itself compares with the limit, in its unit."""

    samples: int
    """Moments at which the rate was sampled."""
    highest: float
    """The highest sample."""
    every_s: float
    """The usual time between two samples. 0: not known."""
    window_s: float
    """What a sample looks back on: the samples of the broker's sensor."""
    over: int | None = None
    """Samples above the proposed limit. ``None`` without a limit."""
    over_before: int | None = None
    """Samples above the earlier limit. ``None``: not known."""
    share_low: float = 0.0
    """The least share of all moments above the limit, of the 95 % interval."""
    share_high: float = 1.0
    throttled_then: int = 0
    """Samples of times when a quota throttled these clients: their rates show what that limit let through."""
    factor: float | None = None
    """What a recommendation multiplies the highest sample by. ``None``: samples are too far apart for one."""

    @property
    def moments(self) -> float:
        """Return the share of all moments that gauges show, from 0 to 1."""
        return min(1.0, self.window_s / self.every_s) if self.every_s else 0.0

    @property
    def censored_share(self) -> float:
        """Return the share of the samples that were taken while a quota throttled the clients, from 0 to 1."""
        return self.throttled_then / self.samples if self.samples else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Rows of one meaning. ``semantics``: ``event``, ``second`` (a per-second total) or ``gauge``."""

    semantics: str
    """Event: a request. second: a per-second total. gauge: a broker's own sampled rate at a moment."""
    rows: int
    """Rows of this meaning."""
    series: int
    """Distinct (broker, kind, user, client id)."""
    every_s: float = 0.0
    """The usual time between the samples of a gauge. 0: not known."""
    throttled_then: int = 0
    """Rows of times when a quota throttled the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuotas:
    """How many quotas change, and of how many the history shows the effect."""

    changed: int
    """Quotas that change."""
    judged: int
    """Those whose effect the history shows."""
    without_traffic: int
    """Those that limit no recorded traffic. Of the rest that is not judged, the history shows too little."""

    @property
    def too_little(self) -> int:
        """Changed quotas with recorded traffic that is inconclusive."""
        return self.changed - self.judged - self.without_traffic
