"""Findings and explanations as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from reconciler.documents.codec import row
from reconciler.documents.document import VALUES, Document
from reconciler.model import Count, Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCounts:
    """How many findings there are, and what was looked at where that is known."""

    error: Count
    """Number of findings of severity error."""
    warning: Count
    """Number of new findings of severity warning."""
    info: Count
    """Number of new findings of severity info."""
    as_before: Count = 0
    """Number of findings that the base of the change, or the baseline of the repository, has, too."""
    files: Count | None = None
    """Number of files that were read."""
    clusters: Count | None = None
    """Number of clusters that the manifests declare."""
    entities: Count | None = None
    """Number of entities that the manifests declare."""

    @classmethod
    def of(cls, findings: Sequence[Finding], counts: Mapping[str, int] | None = None) -> Self:
        """``counts``: of files, clusters and entities."""
        new = [finding.severity for finding in findings if not finding.as_before]
        of_severity = {each.value: new.count(each) for each in Severity}
        return cls(**of_severity, as_before=len(findings) - len(new), **(counts or {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingList:
    """Findings of one command about manifests."""

    cluster: str | None = None
    """The name of the cluster that these are for. Only with --all-clusters."""
    findings: tuple[Finding, ...]
    """The findings by file, line and column."""
    summary: FindingCounts
    """Counts."""

    @classmethod
    def of(cls, findings: Sequence[Finding], counts: Mapping[str, int] | None = None, *, cluster: str | None = None) -> Self:
        """Make the document, and count its findings. ``counts``: of files, clusters and entities."""
        return cls(cluster=cluster, findings=tuple(findings), summary=FindingCounts.of(findings, counts))


FINDINGS: Final = Document(
    cls=FindingList,
    name="findings",
    title="kafka-quotas findings",
    codec=VALUES.extended(
        {
            FindingCounts: row("error warning info as_before? files? clusters? entities?"),
            FindingList: row("cluster? findings summary"),
        }
    ),
    called="a list of findings written by 'validate --format json'",
)
