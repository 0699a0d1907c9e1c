"""Plans, reports and findings as text and JSON: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.render.apply_text import apply_report_lines, apply_sentence, apply_summary_view, failure_lines, join_parts
    from reconciler.render.backtest_sentences import answer, limit_text, member_name, peak_text, rule_sentences, who
    from reconciler.render.backtest_text import backtest_basis, backtest_view, rule_lines
    from reconciler.render.derived_findings import (
        DRIFT_PREFIX,
        GUARD_PREFIX,
        drift_outputs,
        findings_of_drift,
        findings_of_guards,
        findings_outputs,
        plan_outputs,
        span_of,
    )
    from reconciler.render.drift_text import drift_view
    from reconciler.render.effects_text import effects_lines
    from reconciler.render.findings_text import (
        counts_sentence,
        explanation_lines,
        findings_lines,
        findings_on_page,
        findings_view,
        index_lines,
        validation_lines,
    )
    from reconciler.render.html_page import html_text, view_html
    from reconciler.render.layout import (
        Block,
        Column,
        Figure,
        Fold,
        Line,
        Style,
        TextSegment,
        Tile,
        View,
        chip,
        commit_line,
        heading,
        labelled,
        line,
        note_line,
        table,
    )
    from reconciler.render.markdown import (
        NAME_LIMIT,
        RepoPaths,
        RepositoryLinks,
        blocks_markdown,
        code,
        fence,
        files_at,
        fold,
        in_cell,
        message_markdown,
        prose,
        rows_that_fit,
        short_commit,
        short_digest,
        shorten,
        size,
        view_markdown,
        web_address,
    )
    from reconciler.render.metric_sentences import has_only_metrics, over_text
    from reconciler.render.plan_text import (
        MANY_CHANGES,
        ChangeDirection,
        cluster_title,
        direction,
        effect_order,
        plan_view,
        read_words,
        undecided_words,
        value_sentences,
    )
    from reconciler.render.sink import Sink, WorkflowCommands
    from reconciler.render.state_text import state_as_text, state_table
    from reconciler.render.terminal import plain, progress_text, write

__getattr__ = lazy_face(__name__)
