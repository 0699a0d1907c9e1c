"""The metrics of ``kafka-quotas run``: the same ones for each cluster, which is their label ``cluster``.

Every other label has a fixed set of values, all of them there from the start, so that rates work from the first scrape and no
entity of a cluster can make series grow. No name of a user, client or address is ever a label. Times are Unix seconds, durations
seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

import reconciler
from reconciler.errors import MissingPackageError
from reconciler.features.service.passes import EntityCounts, PassOutcome, PassResult
from reconciler.model import Action, ChangeStatus, DriftClass
from reconciler.policy import GUARDS

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.metrics_core import Metric
except ImportError as missing:
    raise MissingPackageError("metrics need", "prometheus_client") from missing

_PREFIX: Final = "kafka_quotas_"
_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
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


_Kind = TypeVar("_Kind", Gauge, Counter, Histogram)


class ClusterMetrics:
    """The metrics of one cluster, in a registry of their own. One thread writes; any may read."""

    def __init__(self, *, applies: bool) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types here
        self.registry = CollectorRegistry()
        statuses = [status for status in ChangeStatus if status is not ChangeStatus.NOT_ATTEMPTED]
        add = self._add
        build = add(Gauge, "build_info", "Always 1, labelled with the version that runs.", version=[reconciler.__version__])
        build.labels(reconciler.__version__).set(1)
        add(Gauge, "run_applies", "1 when the service writes (--apply), 0 when it only looks.").set(int(applies))
        self._success = add(
            Gauge,
            "last_success_timestamp_seconds",
            "When a pass last read manifests and cluster and left nothing undone that it had to do, 0 for never.",
        )
        self._last = add(Gauge, "last_pass_timestamp_seconds", "When the last pass ended, 0 before the first.")
        self._passes = add(Counter, "passes", "Passes by how they ended.", result=PassResult)
        self._duration = add(partial(Histogram, buckets=_BUCKETS), "pass_duration_seconds", "How long passes took.")
        self._failures = add(Gauge, "consecutive_failures", "Passes without success since the last one.")
        self._valid = add(Gauge, "manifests_valid", "1 when the manifests were last read without error.")
        self._drift = add(Gauge, "drift_entities", "Entities by class of drift, when last seen.", **{"class": DriftClass})
        self._planned = add(Gauge, "planned_changes", "Entities that a write would change, when last seen.", action=Action)
        self._held_back = add(
            Gauge,
            "prune_held_back_entities",
            "Entities that no manifest declares and that are left, because prune: confirm needs a person.",
        )
        self._tripped = add(Gauge, "guard_tripped", "1 while a guard is in the way of the plan last seen.", guard=GUARDS)
        self._refusals = add(Counter, "guard_refusals", "Writes that a guard stopped.", guard=GUARDS)
        self._changes = add(
            Counter, "changes", "Entities written, by action and what became of it.", action=Action, status=statuses
        )
        self._again = add(Counter, "repeated_writes", "Writes that did the same as the write before: another writer undoes them.")
        self._errors = add(Counter, "broker_errors", "Passes that the cluster failed, by reason.", reason=_BROKER_ERRORS)
        self._guards = frozenset(GUARDS)

    def _add(self, kind: Callable[..., _Kind], name: str, text: str, **labels: Iterable[str]) -> _Kind:
        metric = kind(f"{_PREFIX}{name}", text, list(labels), registry=self.registry)
        for values in itertools.product(*labels.values()) if labels else ():
            metric.labels(*values)
        return metric

    def count(self, outcome: PassOutcome, *, failures: int, at: float) -> None:
        """Count a pass that ended at this time; ``failures``: passes without success in a row."""
        counts = outcome.counts
        self._passes.labels(outcome.result).inc()
        self._duration.observe(outcome.seconds)
        self._last.set(at)
        self._failures.set(failures)
        self._valid.set(int(outcome.result.manifests_are_good))
        if not failures:
            self._success.set(at)
        if counts is not None:
            self._set(counts)
            refused = outcome.result is PassResult.REFUSED and outcome.reason in _GUARD_REASONS
            for guard in counts.tripped if refused else ():
                self._refusals.labels(guard).inc()
        if outcome.result is PassResult.CLUSTER:
            self._errors.labels(outcome.reason or "cluster").inc()
        for (action, status), number in outcome.written.items():
            self._changes.labels(action, status).inc(number)
        self._again.inc(int(outcome.again))

    def _set(self, counts: EntityCounts) -> None:
        """Set what a pass saw of manifests and cluster. It stands until the next pass that gets so far."""
        for drift, number in counts.drift.items():
            self._drift.labels(drift).set(number)
        for action, number in counts.planned.items():
            self._planned.labels(action).set(number)
        # Policies are known only once one of them trips.
        self._guards |= set(counts.tripped)
        for guard in self._guards:
            self._tripped.labels(guard).set(int(guard in counts.tripped))
        self._held_back.set(counts.held_back)


class ServiceMetrics:
    """The metrics of all clusters of a service."""

    def __init__(self, *, applies: bool) -> None:
        self._applies = applies
        self._clusters: dict[str, ClusterMetrics] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def count(self, cluster: str, outcome: PassOutcome, *, failures: int, at: float) -> None:
        """Count a pass over a cluster, which is then among the series."""
        if cluster not in self._clusters:
            self._clusters = {**self._clusters, cluster: ClusterMetrics(applies=self._applies)}
        self._clusters[cluster].count(outcome, failures=failures, at=at)

    def remove(self, cluster: str) -> None:
        """End the series of a cluster that the service no longer follows."""
        self._clusters = {name: metrics for name, metrics in self._clusters.items() if name != cluster}

    def collect(self) -> Iterable[Metric]:
        """Return the families of all clusters, each family once, as ``prometheus_client`` asks for them."""
        families: dict[str, Metric] = {}
        for cluster, metrics in self._clusters.items():
            for family in metrics.registry.collect():
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                merged.samples += [sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples]
        return families.values()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, as an ``Accept`` header prefers: OpenMetrics, or Prometheus' text format."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type
