"""Whether the service is alive, and whether what it tells is recent."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.formats import Json
from reconciler.ports import Clock
from reconciler.service.outcome import PassOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLimits:
    """Seconds. ``silent``: how long the loop may do one thing; ``stale``: how old the last look at the cluster may be."""

    silent: float = 1_200.0
    stale: float = 1_000.0


class Health:
    """Written by the loop, read by the endpoint; each value is replaced as a whole, so no lock is needed."""

    def __init__(self, limits: HealthLimits, *, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._beat = clock.monotonic()
        self._looked: float | None = None
        self._result: str | None = None

    def beat(self) -> None:
        """The loop is alive."""
        self._beat = self._clock.monotonic()

    def passed(self, outcome: PassOutcome) -> None:
        """A pass ended; it looked at manifests and cluster when there is something seen."""
        self.beat()
        self._result = outcome.result.value
        if outcome.seen is not None:
            self._looked = self._clock.monotonic()

    def alive(self) -> tuple[bool, dict[str, Json]]:
        """False when the loop has been silent for too long."""
        silent = self._clock.monotonic() - self._beat
        alive = silent <= self._limits.silent
        return alive, {"status": "alive" if alive else "stuck", "seconds_since_last_sign": round(silent, 1)}

    def ready(self) -> tuple[bool, dict[str, Json]]:
        """True when manifests and cluster were both read not too long ago."""
        if self._looked is None:
            return False, {"status": "not ready", "why": "manifests and cluster were not read yet", "last_pass": self._result}
        age = self._clock.monotonic() - self._looked
        ready = age <= self._limits.stale
        document: dict[str, Json] = {"status": "ready" if ready else "not ready", "last_pass": self._result}
        return ready, {**document, "seconds_since_last_look": round(age, 1)}
