"""Findings as JSON objects, the same in every document that carries them."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.formats.canonical import Json, entity_to_json
from reconciler.model import Finding, Severity, Span


def finding_to_json(finding: Finding) -> dict[str, Json]:
    """``{id, severity, message, file, line, column, related, entity?, key?}``; the place is null when there is none."""
    document: dict[str, Json] = {"id": finding.id, "severity": finding.severity.value, "message": finding.message}
    document |= span_to_json(finding.span)
    document["related"] = [{**span_to_json(r.span), "message": r.message} for r in finding.related]
    if finding.entity is not None:
        document["entity"] = entity_to_json(finding.entity)
    if finding.key is not None:
        document["key"] = finding.key
    return document


def span_to_json(span: Span | None) -> dict[str, Json]:
    """``{file, line, column}``, all null for no place."""
    if span is None:
        return {"file": None, "line": None, "column": None}
    return {"file": span.file, "line": span.line, "column": span.column}


def severity_counts(findings: Sequence[Finding]) -> dict[str, Json]:
    """``{error: 1, warning: 0, info: 2}``."""
    return {severity.value: sum(1 for f in findings if f.severity is severity) for severity in Severity}
