"""The state of a traffic source as a document."""

from __future__ import annotations

from typing import Final

from reconciler.documents import VALUES, Document, FindingCounts, row
from reconciler.features.insight.doctor.traffic_health import TrafficHealth


def counts_of_findings(health: TrafficHealth) -> FindingCounts:
    """Number of findings by severity."""
    return FindingCounts.of(health.findings)


TRAFFIC_HEALTH: Final = Document(
    cls=TrafficHealth,
    name="doctor",
    title="kafka-quotas traffic source",
    codec=VALUES.extended(
        {
            FindingCounts: row("error warning info"),
            TrafficHealth: row(
                "source form since until layouts brokers unattributed findings repairs notes summary", summary=counts_of_findings
            ),
        }
    ),
)
