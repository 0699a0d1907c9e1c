"""Findings for CI systems: annotations, SARIF and Code Quality."""

from __future__ import annotations

from typing import Final

FINDING_LISTS: Final = (
    ("github", "reconciler.features.ci.reports:render_annotations"),
    ("sarif", "reconciler.features.ci.reports:render_sarif"),
    ("code-quality", "reconciler.features.ci.reports:render_code_quality"),
)
