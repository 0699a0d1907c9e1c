"""When the next pass begins: the interval with jitter, or a growing wait while something is wrong that may pass by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reconciler.service.outcome import PassOutcome, PassResult

_PASSING: Final = frozenset({"stale-plan", "locked"})
"""Refusals that mean that somebody else is writing now."""
_MOST_DOUBLINGS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds. ``jitter``: the share of an interval that chance adds, so that many services do not come at once.

    ``poll``: how often the files are looked at.
    """

    interval: float = 300.0
    jitter: float = 0.1
    poll: float = 5.0
    first_retry: float = 5.0
    longest_retry: float = 300.0


class Pacing:
    """Counts failures in a row and tells the wait after each pass."""

    def __init__(self, pace: Pace, *, chance: Callable[[], float] = random.random) -> None:
        self._pace = pace
        self._chance = chance
        self.failures = 0

    def after(self, outcome: PassOutcome) -> float:
        """Seconds until the next pass, if no file changes before."""
        self.failures = 0 if outcome.result.is_success else self.failures + 1
        if not _may_pass(outcome):
            return self._pace.interval * (1 + self._pace.jitter * self._chance())
        doubled = self._pace.first_retry * 2.0 ** min(self.failures - 1, _MOST_DOUBLINGS)
        return min(doubled, self._pace.longest_retry) * (1 + self._chance()) / 2


def _may_pass(outcome: PassOutcome) -> bool:
    if outcome.result in (PassResult.CLUSTER, PassResult.FAILED, PassResult.PARTIAL, PassResult.CHANGING):
        return True
    return outcome.result is PassResult.REFUSED and outcome.reason in _PASSING
