"""The checks of ``doctor``, and the state of a traffic source, as documents."""

from __future__ import annotations

from typing import Final

from reconciler.documents import VALUES, Document, FindingCounts, row
from reconciler.features.insight.doctor.checks import Checkup
from reconciler.features.insight.doctor.traffic_health import TrafficHealth

CHECKUP: Final = Document(
    cls=Checkup,
    name="checkup",
    title="kafka-quotas doctor",
    codec=VALUES.extended({Checkup: row("version cluster checks summary=counts")}),
)


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
