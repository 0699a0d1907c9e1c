"""The metrics and the log lines of ``kafka-quotas run``, from the same outcomes of passes.

The metrics are the same ones for each cluster, which is their label ``cluster``. Every other label has a fixed set of values, all
of them there from the first pass, so that rates work from the first scrape and no entity of a cluster can make series grow. No
name of a user, client or address is ever a label. Times are Unix seconds.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import reconciler
from reconciler.errors import MissingPackageError
from reconciler.features.service.log import Log
from reconciler.features.service.passes import EntityCounts, PassOutcome, PassResult
from reconciler.logs import Datum
from reconciler.model import Action, ChangeStatus, DriftClass
from reconciler.policy import GUARDS
from reconciler.ports import Clock

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics
except ImportError as missing:
    raise MissingPackageError("metrics need", "prometheus_client") from missing

_PREFIX: Final = "kafka_quotas_"
_LEVELS: Final = {
    PassResult.IN_SYNC: logging.INFO,
    PassResult.APPLIED: logging.INFO,
    PassResult.DIFFERS: logging.WARNING,
    PassResult.REFUSED: logging.WARNING,
}

_Kind = TypeVar("_Kind", Gauge, Counter)


class ServiceMetrics:
    """The metrics of all clusters. One thread writes, and any may read ``registry``."""

    def __init__(self, *, applies: bool) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types here
        self.registry = CollectorRegistry()
        self._is_writing = applies
        self._all: list[tuple[Gauge | Counter, Sequence[Iterable[str]]]] = []
        self._guards: dict[str, set[str]] = {}
        statuses = [status for status in ChangeStatus if status is not ChangeStatus.NOT_ATTEMPTED]
        add = self._add
        self._build = add(Gauge, "build_info", "Always 1, labelled with the version that runs.", version=[reconciler.__version__])
        self._applies = add(Gauge, "run_applies", "1 when the service writes (--apply), 0 when it only looks.")
        self._success = add(
            Gauge,
            "last_success_timestamp_seconds",
            "When a pass last read manifests and cluster and left nothing undone that it had to do, 0 for never.",
        )
        self._passes = add(Counter, "passes", "Passes by how they ended.", result=PassResult)
        self._failures = add(Gauge, "consecutive_failures", "Passes without success since the last one.")
        self._valid = add(Gauge, "manifests_valid", "1 when the manifests were last read without error.")
        self._drift = add(Gauge, "drift_entities", "Entities by class of drift, when last seen.", **{"class": DriftClass})
        self._planned = add(Gauge, "planned_changes", "Entities that a write would change, when last seen.", action=Action)
        self._tripped = add(Gauge, "guard_tripped", "1 while a guard is in the way of the plan last seen.", guard=GUARDS)
        self._changes = add(
            Counter, "changes", "Entities written, by action and what became of it.", action=Action, status=statuses
        )
        self._again = add(Counter, "repeated_writes", "Writes that did the same as the write before: another writer undoes them.")

    def _add(self, kind: type[_Kind], name: str, text: str, **labels: Iterable[str]) -> _Kind:
        metric = kind(f"{_PREFIX}{name}", text, ["cluster", *labels], registry=self.registry)
        self._all.append((metric, tuple(labels.values())))
        return metric

    def count(self, cluster: str, outcome: PassOutcome, *, failures: int, at: float) -> None:
        """Count a pass over a cluster that ended at this time; ``failures``: passes without success in a row."""
        if cluster not in self._guards:
            self._begin(cluster)
        self._passes.labels(cluster, outcome.result).inc()
        self._failures.labels(cluster).set(failures)
        self._valid.labels(cluster).set(int(outcome.result not in (PassResult.INVALID, PassResult.VANISHED)))
        if not failures:
            self._success.labels(cluster).set(at)
        if outcome.counts is not None:
            self._set(cluster, outcome.counts)
        for (action, status), number in outcome.written.items():
            self._changes.labels(cluster, action, status).inc(number)
        self._again.labels(cluster).inc(int(outcome.again))

    def _begin(self, cluster: str) -> None:
        self._guards[cluster] = set(GUARDS)
        for metric, labels in self._all:
            for values in itertools.product(*labels):
                metric.labels(cluster, *values)
        self._build.labels(cluster, reconciler.__version__).set(1)
        self._applies.labels(cluster).set(int(self._is_writing))

    def _set(self, cluster: str, counts: EntityCounts) -> None:
        """Set what a pass saw of manifests and cluster. It stands until the next pass that gets so far."""
        for drift, number in counts.drift.items():
            self._drift.labels(cluster, drift).set(number)
        for action, number in counts.planned.items():
            self._planned.labels(cluster, action).set(number)
        # Policies are known only once one of them trips.
        self._guards[cluster] |= set(counts.tripped)
        for guard in self._guards[cluster]:
            self._tripped.labels(cluster, guard).set(int(guard in counts.tripped))

    def remove(self, cluster: str) -> None:
        """End the series of a cluster that the service no longer follows."""
        if self._guards.pop(cluster, None) is not None:
            for metric, _ in self._all:
                metric.remove_by_labels({"cluster": cluster})


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """Where the loop reports."""

    log: Log
    metrics: ServiceMetrics
    clock: Clock

    def pass_ended(self, cluster: str, outcome: PassOutcome, *, failures: int) -> None:
        """Report a pass; ``failures``: passes without success in a row."""
        self.metrics.count(cluster, outcome, failures=failures, at=self.clock.now().timestamp())
        for detail in outcome.details:
            level = logging.WARNING if outcome.result.is_success else logging.ERROR
            self.log.write(level, "finding", detail, cluster=cluster)
        if outcome.again:
            text = "the very same values were written as in the write before: another writer undoes them. Find out which one"
            self.log.write(logging.WARNING, "repeated", text, cluster=cluster)
        written = {
            status.value: sum(count for (_, each), count in outcome.written.items() if each is status)
            for _, status in outcome.written
        }
        fields: dict[str, Datum] = {
            "result": outcome.result.value,
            "reason": outcome.reason,
            "seconds": round(outcome.seconds, 3),
            "failures": failures,
            "written": written,
        }
        if outcome.counts is not None:
            fields["drift"] = {drift.value: count for drift, count in outcome.counts.drift.items()}
            fields["planned"] = {action.value: count for action, count in outcome.counts.planned.items()}
            fields["guards"] = list(outcome.counts.tripped)
        message = f"{outcome.result.value}: {outcome.message or outcome.result.value}"
        self.log.write(_LEVELS.get(outcome.result, logging.ERROR), "pass", message, fields, cluster=cluster)
