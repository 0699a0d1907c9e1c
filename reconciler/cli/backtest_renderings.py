"""Which formats a backtest's report can be printed in, and how each is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import output
from reconciler.cli.arguments import OutputArguments

if TYPE_CHECKING:
    from reconciler.model import BacktestReport

FORMATS: Final = ("text", "json", "markdown", "html", "github", "sarif", "summary", "code-quality", "junit")
_OF_FINDINGS: Final = frozenset({"github", "sarif", "code-quality", "junit"})


def backtest_as(name: str, report: BacktestReport) -> str:
    """A report in one of ``FORMATS``; the text is without colour."""
    if name in _OF_FINDINGS:
        from reconciler.cli.renderings import findings_as
        from reconciler.render import answer

        # Readers of a list of findings get the answer as its first finding.
        return findings_as(name, (answer(report), *report.findings), suite="kafka-quotas backtest")
    match name:
        case "json":
            from reconciler.documents import backtest_to_json
            from reconciler.formats import document_text

            return document_text(backtest_to_json(report))
        case "markdown":
            from reconciler.render import render_backtest_markdown

            return render_backtest_markdown(report)
        case "summary":
            from reconciler.cli.renderings import SUMMARY_BUDGET
            from reconciler.render import render_backtest_markdown

            return render_backtest_markdown(report, budget=SUMMARY_BUDGET)
        case "html":
            from reconciler.render import backtest_html

            return backtest_html(report)
    from reconciler.render import backtest_lines, plain

    return plain(backtest_lines(report))


def print_backtest(args: OutputArguments, report: BacktestReport, files: Sequence[tuple[str, Path]]) -> None:
    """Write a report to the files of ``--out``, then print it as ``--format`` says. Raises as ``output.print_plan``."""
    from reconciler.documents import backtest_to_json
    from reconciler.files import write_whole
    from reconciler.render import backtest_lines

    for name, path in files:
        write_whole(path, [backtest_as(name, report)])
    output.print_result(
        args,
        document=lambda: backtest_to_json(report),
        lines=lambda: backtest_lines(report),
        other=lambda name: backtest_as(name, report),
    )
