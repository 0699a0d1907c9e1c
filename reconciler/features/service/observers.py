"""Metrics, log and health page, from the same outcomes of passes."""

from __future__ import annotations

import logging
from typing import Final

from reconciler.features.service.endpoint import Health
from reconciler.features.service.log import Log
from reconciler.features.service.metrics import LabelValues, RunMetrics
from reconciler.features.service.passes import EntityCounts, PassOutcome, PassResult
from reconciler.logs import Datum
from reconciler.model import Action, ChangeStatus, DriftClass
from reconciler.policy import GUARDS
from reconciler.ports import Clock

_BROKER_ERRORS: Final = (
    "authentication",
    "authorization",
    "cluster",
    "outcome-unknown",
    "refused-by-cluster",
    "unreachable",
    "unsupported",
    "wrong-cluster",
)
_GUARD_REASONS: Final = frozenset({"guard", "frozen"})
_LEVELS: Final = {
    PassResult.IN_SYNC: logging.INFO,
    PassResult.APPLIED: logging.INFO,
    PassResult.DIFFERS: logging.WARNING,
    PassResult.REFUSED: logging.WARNING,
    PassResult.CHANGING: logging.WARNING,
}


def metric_labels() -> LabelValues:
    """Every value that the labels of the metrics may have."""
    return LabelValues(
        results=[result.value for result in PassResult],
        drift_classes=[drift.value for drift in DriftClass],
        actions=[action.value for action in Action],
        statuses=[status.value for status in ChangeStatus if status is not ChangeStatus.NOT_ATTEMPTED],
        guards=list(GUARDS),
        broker_errors=_BROKER_ERRORS,
    )


class Observers:
    """The observer of the loop."""

    def __init__(self, metrics: RunMetrics, log: Log, health: Health, *, clock: Clock) -> None:
        self._metrics = metrics
        self.log = log
        self._health = health
        self.clock = clock

    def beat(self) -> None:
        """The loop is alive."""
        self._health.beat()

    def step(self, message: str) -> None:
        """A pass goes on; as a ``Progress``. Only that it does something is noted."""
        del message
        self._health.beat()

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        """Note a sign of life, as ``step`` does."""
        del done, total, unit
        self._health.beat()

    def pass_ended(self, outcome: PassOutcome, *, failures: int) -> None:
        """A pass ended."""
        self._health.note_pass(outcome)
        self._count(outcome, failures)
        for detail in outcome.details:
            self.log.write(logging.WARNING if outcome.result.is_success else logging.ERROR, "finding", detail)
        if outcome.again:
            text = "the very same values were written as in the write before: another writer undoes them. Find out which one"
            self.log.write(logging.WARNING, "repeated", text)
        message = outcome.message or outcome.result.value
        fields: dict[str, Datum] = {
            "result": outcome.result.value,
            "reason": outcome.reason,
            "seconds": round(outcome.seconds, 3),
            "failures": failures,
            **_fields(outcome.counts),
            "written": outcome.written_by_status(),
        }
        self.log.write(_LEVELS.get(outcome.result, logging.ERROR), "pass", f"{outcome.result.value}: {message}", fields)

    def _count(self, outcome: PassOutcome, failures: int) -> None:
        self._metrics.count_pass(
            outcome.result.value,
            seconds=outcome.seconds,
            at=self.clock.now().timestamp(),
            failures=failures,
            valid=outcome.result.manifests_are_good,
        )
        if outcome.counts is not None:
            self._metrics.set_counts(
                drift={drift.value: count for drift, count in outcome.counts.drift.items()},
                planned={action.value: count for action, count in outcome.counts.planned.items()},
                tripped=outcome.counts.tripped,
                held_back=outcome.counts.held_back,
            )
            if outcome.result is PassResult.REFUSED and outcome.reason in _GUARD_REASONS:
                self._metrics.count_refusals(outcome.counts.tripped)
        if outcome.result is PassResult.CLUSTER:
            self._metrics.count_broker_error(outcome.reason or "cluster")
        self._metrics.count_writes(
            {(action.value, status.value): count for (action, status), count in outcome.written.items()}, again=outcome.again
        )


def _fields(counts: EntityCounts | None) -> dict[str, Datum]:
    if counts is None:
        return {}
    return {
        "drift": {drift.value: count for drift, count in counts.drift.items()},
        "planned": {action.value: count for action, count in counts.planned.items()},
        "guards": list(counts.tripped),
        "held_back": counts.held_back,
    }
