"""What CI adds: the formats that are lists of findings, for tools that annotate lines."""

from __future__ import annotations

from typing import Final

FINDING_LISTS: Final = (
    ("github", "reconciler.features.ci.reports:render_annotations"),
    ("sarif", "reconciler.features.ci.reports:render_sarif"),
    ("code-quality", "reconciler.features.ci.reports:render_code_quality"),
    ("junit", "reconciler.features.ci.reports:render_junit"),
)
