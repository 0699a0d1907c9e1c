"""Findings as the JSON document of ``schemas/findings.v1.schema.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.formats import FORMAT_VERSION, Json, finding_to_json, severity_counts
from reconciler.model import Finding


def findings_to_json(findings: Sequence[Finding], counts: Mapping[str, int] | None = None) -> dict[str, Json]:
    """The document; ``counts`` (files, clusters, entities) join the summary when they are known."""
    return {
        "format_version": FORMAT_VERSION,
        "findings": [finding_to_json(finding) for finding in findings],
        "summary": {**severity_counts(findings), **(counts or {})},
    }
