"""Findings: one message with a stable id, whoever produced it (schema, lint, broker, traffic)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.entity import Entity
from reconciler.model.source import Span


class Severity(enum.StrEnum):
    """How much a finding matters; ``rank`` orders them, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for error, 1 for warning, 2 for info."""
        return list(Severity).index(self)

    def at_least(self, other: Severity) -> bool:
        """True when this severity is as bad as ``other`` or worse."""
        return self.rank <= other.rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Another place that a finding is about, e.g. the first of two claims."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to say about the input. ``id`` is kebab-case and never changes its meaning."""

    id: str
    severity: Severity
    message: str
    span: Span | None = None
    related: tuple[Related, ...] = ()
    entity: Entity | None = None
    key: str | None = None


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorted by place (file, line, column), then severity and id: the same order in every rendering."""
    return tuple(sorted(findings, key=_order))


def _order(finding: Finding) -> tuple[str, int, int, int, str, str]:
    span = finding.span
    place = (span.file, span.line, span.column) if span else ("", 0, 0)
    return (*place, finding.severity.rank, finding.id, finding.message)
