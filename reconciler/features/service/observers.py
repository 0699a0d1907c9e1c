"""The log, the metrics and the health pages of a service, from the same outcomes of passes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from reconciler.features.service.log import Log
from reconciler.features.service.metrics import ServiceMetrics
from reconciler.features.service.pages import Health
from reconciler.features.service.passes import EntityCounts, PassOutcome, PassResult
from reconciler.logs import Datum
from reconciler.ports import Clock

_LEVELS: Final = {
    PassResult.IN_SYNC: logging.INFO,
    PassResult.APPLIED: logging.INFO,
    PassResult.DIFFERS: logging.WARNING,
    PassResult.REFUSED: logging.WARNING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """Where the loop reports."""

    log: Log
    metrics: ServiceMetrics
    health: Health
    clock: Clock

    def pass_ended(self, cluster: str, outcome: PassOutcome, *, failures: int) -> None:
        """Report a pass; ``failures``: passes without success in a row."""
        self.health.note(cluster, outcome)
        self.metrics.count(cluster, outcome, failures=failures, at=self.clock.now().timestamp())
        for detail in outcome.details:
            level = logging.WARNING if outcome.result.is_success else logging.ERROR
            self.log.write(level, "finding", detail, cluster=cluster)
        if outcome.again:
            text = "the very same values were written as in the write before: another writer undoes them. Find out which one"
            self.log.write(logging.WARNING, "repeated", text, cluster=cluster)
        fields: dict[str, Datum] = {
            "result": outcome.result.value,
            "reason": outcome.reason,
            "seconds": round(outcome.seconds, 3),
            "failures": failures,
            **_fields(outcome.counts),
            "written": outcome.written_by_status(),
        }
        message = f"{outcome.result.value}: {outcome.message or outcome.result.value}"
        self.log.write(_LEVELS.get(outcome.result, logging.ERROR), "pass", message, fields, cluster=cluster)

    def remove(self, cluster: str) -> None:
        """Forget a cluster that the service no longer follows."""
        self.health.remove(cluster)
        self.metrics.remove(cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassProgress:
    """The ``Progress`` of the passes over one cluster: each word is a sign of life."""

    health: Health
    cluster: str

    def step(self, message: str) -> None:
        """Note a sign of life."""
        del message
        self.health.beat_of(self.cluster)

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        """Note a sign of life."""
        del done, total, unit
        self.health.beat_of(self.cluster)


def _fields(counts: EntityCounts | None) -> dict[str, Datum]:
    if counts is None:
        return {}
    return {
        "drift": {drift.value: count for drift, count in counts.drift.items()},
        "planned": {action.value: count for action, count in counts.planned.items()},
        "guards": list(counts.tripped),
        "held_back": counts.held_back,
    }
