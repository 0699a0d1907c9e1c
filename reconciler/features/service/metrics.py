"""The metrics of ``kafka-quotas run``, in a registry of their own.

Every label has a fixed set of values, all of them there from the start, so that rates work from the first scrape and nothing on a
cluster can make series grow. No name of a user, client or address is ever a label. Times are Unix seconds, durations seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.errors import MissingPackageError

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.metrics_core import Metric
except ImportError as missing:
    raise MissingPackageError("metrics need", "prometheus_client") from missing

_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelValues:
    """Every value that a label may have."""

    results: Iterable[str]
    drift_classes: Iterable[str]
    actions: Iterable[str]
    statuses: Iterable[str]
    guards: Iterable[str]
    broker_errors: Iterable[str]


class RunMetrics:
    """What Prometheus reads. One thread writes; any may read."""

    def __init__(self, values: LabelValues, *, version: str, applies: bool) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types here
        registry = self._registry = CollectorRegistry()
        build = Gauge("kafka_quotas_build_info", "Always 1, labelled with the version that runs.", ["version"], registry=registry)
        build.labels(version).set(1)
        mode = Gauge("kafka_quotas_run_applies", "1 when the service writes (--apply), 0 when it only looks.", registry=registry)
        mode.set(int(applies))
        self._success = Gauge(
            "kafka_quotas_last_success_timestamp_seconds",
            "When a pass last read manifests and cluster and left nothing undone that it had to do, 0 for never.",
            registry=registry,
        )
        self._last = Gauge(
            "kafka_quotas_last_pass_timestamp_seconds", "When the last pass ended, 0 before the first.", registry=registry
        )
        self._passes = Counter("kafka_quotas_passes", "Passes by how they ended.", ["result"], registry=registry)
        self._duration = Histogram(
            "kafka_quotas_pass_duration_seconds", "How long passes took.", buckets=_BUCKETS, registry=registry
        )
        self._failures = Gauge(
            "kafka_quotas_consecutive_failures", "Passes without success since the last one.", registry=registry
        )
        self._valid = Gauge(
            "kafka_quotas_manifests_valid", "1 when the manifests were last read without error.", registry=registry
        )
        self._drift = Gauge(
            "kafka_quotas_drift_entities", "Entities by class of drift, when last seen.", ["class"], registry=registry
        )
        self._planned = Gauge(
            "kafka_quotas_planned_changes", "Entities that a write would change, when last seen.", ["action"], registry=registry
        )
        self._held_back = Gauge(
            "kafka_quotas_prune_held_back_entities",
            "Entities that no manifest declares and that are left, because prune: confirm needs a person.",
            registry=registry,
        )
        self._tripped = Gauge(
            "kafka_quotas_guard_tripped", "1 while a guard is in the way of the plan last seen.", ["guard"], registry=registry
        )
        self._refusals = Counter("kafka_quotas_guard_refusals", "Writes that a guard stopped.", ["guard"], registry=registry)
        self._changes = Counter(
            "kafka_quotas_changes", "Entities written, by action and what became of it.", ["action", "status"], registry=registry
        )
        self._again = Counter(
            "kafka_quotas_repeated_writes",
            "Writes that did the same as the write before: another writer undoes them.",
            registry=registry,
        )
        self._errors = Counter(
            "kafka_quotas_broker_errors", "Passes that the cluster failed, by reason.", ["reason"], registry=registry
        )
        self._guards = frozenset(values.guards)
        self._start(values)

    def _start(self, values: LabelValues) -> None:
        for result in values.results:
            self._passes.labels(result)
        for drift in values.drift_classes:
            self._drift.labels(drift)
        for action in values.actions:
            self._planned.labels(action)
            for status in values.statuses:
                self._changes.labels(action, status)
        for guard in self._guards:
            self._tripped.labels(guard)
            self._refusals.labels(guard)
        for reason in values.broker_errors:
            self._errors.labels(reason)

    def count_pass(self, result: str, *, seconds: float, at: float, failures: int, valid: bool) -> None:
        """A pass ended at this time; ``failures`` is 0 after a success."""
        self._passes.labels(result).inc()
        self._duration.observe(seconds)
        self._last.set(at)
        self._failures.set(failures)
        self._valid.set(int(valid))
        if failures == 0:
            self._success.set(at)

    def set_counts(self, *, drift: Mapping[str, int], planned: Mapping[str, int], tripped: Iterable[str], held_back: int) -> None:
        """Set what a pass saw of manifests and cluster. It stands until the next pass that gets so far."""
        for name, count in drift.items():
            self._drift.labels(name).set(count)
        for name, count in planned.items():
            self._planned.labels(name).set(count)
        in_the_way = frozenset(tripped)
        for guard in self._guards:
            self._tripped.labels(guard).set(int(guard in in_the_way))
        self._held_back.set(held_back)

    def count_refusals(self, guards: Iterable[str]) -> None:
        """A write was refused by these."""
        for guard in guards:
            self._refusals.labels(guard).inc()

    def count_writes(self, counts: Mapping[tuple[str, str], int], *, again: bool) -> None:
        """Entities by action and status; ``again``: the same as the write before."""
        for (action, status), count in counts.items():
            self._changes.labels(action, status).inc(count)
        if again:
            self._again.inc()

    def count_broker_error(self, reason: str) -> None:
        """The cluster failed a pass."""
        self._errors.labels(reason).inc()

    def collect(self) -> Iterable[Metric]:
        """All families, as an exposition has them."""
        return self._registry.collect()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All of it, and its content type, as an ``Accept`` header prefers: OpenMetrics, or Prometheus' text format."""
        return _encoded(self._registry, accept)

    def names(self) -> frozenset[str]:
        """Every name of a sample, with its suffix, that is exposed."""
        return frozenset(sample.name for family in self._registry.collect() for sample in family.samples)


class MetricsOfClusters:
    """The metrics of a service for many clusters: those of each, with one more label, ``cluster``."""

    def __init__(self) -> None:
        self._clusters: dict[str, RunMetrics] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def add(self, cluster: str, metrics: RunMetrics) -> None:
        """One more cluster."""
        self._clusters = {**self._clusters, cluster: metrics}

    def remove(self, cluster: str) -> None:
        """A cluster that the service no longer follows; its series end."""
        self._clusters = {name: metrics for name, metrics in self._clusters.items() if name != cluster}

    def collect(self) -> Iterable[Metric]:
        """The families of all clusters, each family once."""
        families: dict[str, Metric] = {}
        for cluster, metrics in self._clusters.items():
            for family in metrics.collect():
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                merged.samples += [sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples]
        return families.values()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, as ``RunMetrics.exposition`` does."""
        return _encoded(self._registry, accept)


def _encoded(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
