"""Findings: one message with a stable id and a place, whatever produced it (schema, lint, broker, traffic), and their rules."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.entity import Entity, escaped


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A place in a file. ``line`` and ``column`` count from 1; ``file`` is the path as the user would type it.

    ``str(span)`` is for people: the path is escaped.
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{escaped(self.file)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. ``adjustable``: a repository may give it another severity, or switch it off."""

    id: str
    severity: Severity
    explanation: str
    adjustable: bool = False
