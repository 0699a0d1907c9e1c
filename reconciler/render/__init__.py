"""Plans, reports and findings as text and JSON: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.render.amounts import amount, rate
    from reconciler.render.annotations import findings_annotations, plan_annotations
    from reconciler.render.backtest_markdown import backtest_section
    from reconciler.render.backtest_page import backtest_html
    from reconciler.render.backtest_text import backtest_lines
    from reconciler.render.backtest_words import answer, next_step
    from reconciler.render.drift_findings import DRIFT_PREFIX
    from reconciler.render.drift_text import drift_lines
    from reconciler.render.every_cluster import failure_lines, joined
    from reconciler.render.explanations import explanation_lines, index_lines
    from reconciler.render.findings_text import findings_lines, validation_lines
    from reconciler.render.guard_findings import GUARD_PREFIX
    from reconciler.render.html import findings_html, plan_html
    from reconciler.render.markdown import BUDGET, NEXT, NEXT_MERGE, findings_markdown, plan_markdown
    from reconciler.render.markdown_lists import size
    from reconciler.render.markdown_marker import CommentState, marker_line, read_marker
    from reconciler.render.outputs import drift_outputs, findings_outputs, plan_outputs
    from reconciler.render.places import Places
    from reconciler.render.plan_text import plan_lines
    from reconciler.render.report_page import report_html
    from reconciler.render.resolve_diff_text import comparison_lines
    from reconciler.render.sarif import findings_to_sarif, plan_to_sarif
    from reconciler.render.sink import Sink
    from reconciler.render.sticky_comment import Content, Status, content_for, is_edited, read_content
    from reconciler.render.styled import Line, Style, line, plain, write

__all__ = [
    "BUDGET",
    "DRIFT_PREFIX",
    "GUARD_PREFIX",
    "NEXT",
    "NEXT_MERGE",
    "CommentState",
    "Content",
    "Line",
    "Places",
    "Sink",
    "Status",
    "Style",
    "amount",
    "answer",
    "backtest_html",
    "backtest_lines",
    "backtest_section",
    "comparison_lines",
    "content_for",
    "drift_lines",
    "drift_outputs",
    "explanation_lines",
    "failure_lines",
    "findings_annotations",
    "findings_html",
    "findings_lines",
    "findings_markdown",
    "findings_outputs",
    "findings_to_sarif",
    "index_lines",
    "is_edited",
    "joined",
    "line",
    "marker_line",
    "next_step",
    "plain",
    "plan_annotations",
    "plan_html",
    "plan_lines",
    "plan_markdown",
    "plan_outputs",
    "plan_to_sarif",
    "rate",
    "read_content",
    "read_marker",
    "report_html",
    "size",
    "validation_lines",
    "write",
]

__getattr__ = lazy_face(__name__)
