"""An incident as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.insight.why.incident import AskedTimes, IncidentGroup, IncidentReport, IncidentStep
from reconciler.model import Advice, BucketVerdict, Entity, Member, PeakRate, RowLimits, SecondsOver


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
            Advice: row("would_pass=safe recommended"),
            AskedTimes: row("at since until"),
            BucketVerdict: row("bucket=name key broker verdict reason *limits *over *peak *advice"),
            IncidentGroup: row("*row since until cause=is_cause first last seconds_over members origin"),
            IncidentReport: row(
                "client cluster asked answer incident=span assumed recorded groups limits evidence missing steps",
                limits=limits_of_client,
            ),
            PeakRate: row("peak=rate peak_bound=bound"),
            RowLimits: row("entity limit=after"),
            SecondsOver: row("active_seconds=active"),
            IncidentStep: row("title command file line text"),
            Member: row("user client_id share share_of_excess requests"),
        }
    ),
)
