"""The state of all clusters as a document: what the page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.documents import Document, is_failure, row
from reconciler.features.insight.headroom.document import LOADS
from reconciler.features.insight.report.overview import BudgetUse, ClusterOverview, EntityOverview, Overview
from reconciler.features.insight.runs import RunRecord
from reconciler.model import ClusterFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolVersion:
    """The program that made the report."""

    name: str = "kafka-quotas"
    """Its name."""
    version: str
    """Its version."""


def tool_of_report(overview: Overview) -> ToolVersion:
    """The program that made the report."""
    return ToolVersion(version=overview.version)


def audited_runs(overview: Overview) -> tuple[RunRecord, ...] | None:
    """Runs of the audit files, the latest first. ``None``: no audit file was given."""
    return overview.runs if overview.audited else None


REPORT: Final = Document(
    cls=Overview,
    name="report",
    title="kafka-quotas report",
    codec=LOADS.extended(
        {
            BudgetUse: row("owner key budget allocated free used entities"),
            ClusterFailure: row("errored skipped failure_reason message", errored=is_failure),
            ClusterOverview: row(
                "cluster *failure? observed prune complete baseline differs summary(declared live drift=counts) "
                "quota_callback=callback static_defaults entities budgets? loads notes findings",
                summary="Numbers of entities.",
            ),
            EntityOverview: row(
                "entity class=drift declared live baseline owner note source protected in_scope expiries? declared_as=units?"
            ),
            Overview: row("at tool source clusters runs runs_left_out notes", tool=tool_of_report, runs=audited_runs),
            RunRecord: row(
                "file started ended command cluster result failure_reason verified validate_only summary=counts accepted "
                "principal os_user source"
            ),
        }
    ),
)
