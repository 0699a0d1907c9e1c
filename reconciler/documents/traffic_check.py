"""The checks of a producer's rows as a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.documents.codec import row
from reconciler.documents.document import Document
from reconciler.documents.values import VALUES
from reconciler.model import CheckState, ContractReport


def counts_of_states(report: ContractReport) -> Mapping[CheckState, int]:
    """How many checks have each state."""
    return {state: report.count(state) for state in CheckState}


TRAFFIC_CHECK: Final = Document(
    cls=ContractReport,
    name="traffic-check",
    title="kafka-quotas tool check-traffic",
    codec=VALUES.extended({ContractReport: row("source schema_version rows start end checks summary", summary=counts_of_states)}),
)
