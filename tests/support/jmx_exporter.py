"""Real brokers whose metrics a real jmx_exporter serves: its Java agent, in the broker, on a free port of loopback."""

from __future__ import annotations

import dataclasses
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec

_AGENT: Final = Artifact(
    group="io.prometheus.jmx",
    name="jmx_prometheus_javaagent",
    version="1.0.1",
    sha256="7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1",
)

NO_RULES: Final = """\
includeObjectNames:
- "kafka.server:type=Produce,*"
- "kafka.server:type=Fetch,*"
- "kafka.server:type=Request,*"
- "kafka.server:type=ControllerMutation,*"
- "kafka.server:type=socket-server-metrics,*"
rules:
- pattern: ".*"
"""
"""The exporter's own names, as on MSK, of MBeans that have to do with quotas: all MBeans take a busy machine seconds to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCluster:
    """A running ``sandbox``, and by broker the ``ports`` on which its metrics are served."""

    sandbox: Sandbox
    ports: Mapping[int, int]

    def url(self, broker: int = 1) -> str:
        """Where a broker's metrics are."""
        return f"http://{LOOPBACK}:{self.ports[broker]}/metrics"

    def page(self, broker: int = 1) -> str:
        """A broker's metrics now."""
        with urllib.request.urlopen(self.url(broker), timeout=30) as answer:
            text: str = answer.read().decode("utf-8")
        return text

    def lines(self, part: str, broker: int = 1) -> list[str]:
        """The samples (no comments) of a broker's page with ``part`` in them."""
        return [line for line in self.page(broker).splitlines() if part in line and not line.startswith("#")]


def agent() -> Path:
    """The agent's jar; fetched once, beside Kafka's jars, as those are."""
    wanted = JarSet(name="jmx_exporter", key=f"jmx-exporter-{_AGENT.version}", artifacts=(_AGENT,))
    (jar,) = ensure_jars(wanted)
    return jar


@contextmanager
def exported_cluster(folder: Path, rules: str = NO_RULES, spec: SandboxSpec | None = None) -> Iterator[ExportedCluster]:
    """Brokers of ``spec`` with the exporter inside; ``rules`` is the YAML of its configuration, kept in ``folder``.

    When the block ends, the brokers have ended, and with them the exporters.
    """
    spec = spec or SandboxSpec()
    config = folder / "jmx_exporter.yaml"
    config.write_text(rules, "utf-8")
    ports = dict(zip(range(1, spec.nodes + 1), free_ports(spec.nodes), strict=True))
    options = {node: (f"-javaagent:{agent()}={LOOPBACK}:{port}:{config}",) for node, port in ports.items()}
    with running(dataclasses.replace(spec, node_java_options=options)) as sandbox:
        yield ExportedCluster(sandbox=sandbox, ports=ports)
