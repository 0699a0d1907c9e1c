"""An incident as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.insight.why.incident import IncidentGroup, IncidentReport, IncidentStep
from reconciler.model import Entity, Member


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLimit:
    """A limit of a client whose traffic is not known."""

    value: float
    """The limit, in the unit of its key."""
    source: Entity
    """The entity that sets it."""


def limits_of_client(report: IncidentReport) -> Mapping[str, IncidentLimit]:
    """By key what limited the client, where its traffic is not known."""
    return {key: IncidentLimit(value=value, source=entity) for key, (value, entity) in report.limits.items()}


INCIDENT: Final = Document(
    cls=IncidentReport,
    name="why",
    title="kafka-quotas why",
    codec=VALUES.extended(
        {
            IncidentGroup: row(
                "bucket=name key broker entity limit since until verdict cause=is_cause first last seconds_over active_seconds "
                "peak peak_bound would_pass recommended reason members origin"
            ),
            IncidentReport: row(
                "client cluster asked(at since until) answer begin end begins_earlier goes_on other_incidents seconds_over "
                "assumed recorded groups limits evidence missing steps",
                asked="The moment or the time that was asked about.",
                limits=limits_of_client,
            ),
            IncidentStep: row("title command file line text"),
            Member: row("user client_id share share_of_excess requests"),
        }
    ),
)
