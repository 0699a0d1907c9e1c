"""Findings that a repository knows and keeps for now: a manifest lists them, each with a reason and a last day."""

from __future__ import annotations

from typing import Final

MANIFEST_KINDS: Final = (
    ("FindingsBaseline", "findings-baseline", "reconciler.features.findings_baseline.document:FINDINGS_BASELINE"),
)
BASELINE_CHECKS: Final = ("reconciler.features.findings_baseline.entries:baseline_findings",)
BASELINE_WRITERS: Final = ("reconciler.features.findings_baseline.entries:write_findings_baseline",)
