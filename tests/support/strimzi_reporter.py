"""A real broker whose metrics Strimzi's metrics-reporter serves: its ``metric.reporters`` plugin, on a free port of loopback."""

from __future__ import annotations

import dataclasses
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.features.sandbox.cluster import running, runtime_for
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.jars import Artifact, JarSet, available_fetchers, ensure_jars
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from reconciler.java import find_java

_VERSION: Final = "0.1.0"
_REPORTER: Final = Artifact(
    group="io.strimzi",
    name="metrics-reporter",
    version=_VERSION,
    sha256="9ead963ab849b7abea867bc9ad75e5d2e32cd1961b4eebfad54a78a59828bdce",
)
_PROMETHEUS: Final = {
    "config": "bebc63e8ee46f9e29bbe932cc52bf22c90030dfd169084c5c480c4a3237c7c85",
    "core": "d7ecab83b2bf05e89766d85da3194f16740c083040f558d57556245e34a5cd16",
    "exporter-common": "55772fd6f54d0ec2cb274aa3c27cce1756944ddd4f659c55ac2bf13b6b31ff36",
    "exporter-httpserver": "208924b7c5ff9f1c617b02afc2dde4a4971f3542d48b239d01882f1167d4ef94",
    "exposition-formats": "85e1ac415ee9d3773dc15c34c31581ee9edbfc438004710b04f3d38bdd3a0e9d",
    "instrumentation-jvm": "d1540efe9415b9bb1b2367746840403b72ffdcdbe5dc0a1f90e5bcb2af82c427",
    "model": "4568169f3ada9150b7cc52bea7eaeb33ab7dd9186d29af6d0d355b7024205e9d",
    "shaded-protobuf": "80adfaba48d698d6a4fa64867d5989c7277f1e3d76b02c14283c04a4bb634c6c",
    "tracer-common": "66e16b7b020bd024045b663f9454a53166fc719c5208dd2ad090cdfe8ee6185b",
    "tracer-initializer": "712d26203ef2a6d20744790a0a5ae18ce80030c150916a76d43594a6f879c4d2",
    "tracer-otel": "5620c5e0f4ff4b4c567f8240758c65deff5db374dd3d060b0c984bd6918747f9",
    "tracer-otel-agent": "8f58aabf0858f501cc5a1d8877a8f957168e0e764b9a02236e334479e1fae9d4",
}
_SETTINGS: Final = "prometheus.metrics.reporter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingBroker:
    """A running ``sandbox`` of one broker, and the ``port`` on which the reporter serves its metrics."""

    sandbox: Sandbox
    port: int

    def page(self) -> str:
        """The metrics now."""
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/metrics", timeout=30) as answer:
            text: str = answer.read().decode("utf-8")
        return text


def reporter_jars() -> tuple[Path, ...]:
    """The reporter and what it needs beside Kafka; fetched once, beside Kafka's jars, as those are."""
    prometheus = (
        Artifact(group="io.prometheus", name=f"prometheus-metrics-{name}", version="1.3.1", sha256=sha256)
        for name, sha256 in _PROMETHEUS.items()
    )
    wanted = JarSet(
        kafka_version="(no Kafka: Strimzi's metrics-reporter)",
        key=f"strimzi-metrics-reporter-{_VERSION}",
        artifacts=(_REPORTER, *prometheus),
    )
    return tuple(ensure_jars(wanted, fetchers=lambda: available_fetchers(find_java())))


@contextmanager
def reporting_broker(spec: SandboxSpec) -> Iterator[ReportingBroker]:
    """A broker of ``spec`` with the reporter inside. When the block ends, it has ended."""
    (port,) = free_ports(1)
    settings = {
        "metric.reporters": "io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter",
        f"{_SETTINGS}.listener": f"http://{LOOPBACK}:{port}",
        f"{_SETTINGS}.allowlist": "kafka_server.*",
    }
    # The last class path of a command line is the one that counts.
    classes = ":".join(map(str, (*runtime_for(spec.kafka_version).jars, *reporter_jars())))
    options = ("-cp", classes)
    with running(
        dataclasses.replace(spec, properties={**spec.properties, **settings}, java_options=(*spec.java_options, *options))
    ) as sandbox:
        yield ReportingBroker(sandbox=sandbox, port=port)
