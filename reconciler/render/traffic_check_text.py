"""The checks of a producer's rows for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import CheckState, ContractCheck, ContractReport, display_name
from reconciler.render.layout import Block, Column, Line, Style, line, table
from reconciler.text import count_of

_STYLES: Final = {
    CheckState.PASSED: Style.GOOD,
    CheckState.WARN: Style.WARN,
    CheckState.FAIL: Style.BAD,
    CheckState.SKIPPED: Style.FAINT,
}


def contract_lines(report: ContractReport) -> tuple[Block, ...]:
    """The whole report, the answer last."""
    return tuple(_lines(report))


def _lines(report: ContractReport) -> Iterator[Block]:
    time = ""
    if report.start is not None and report.end is not None:
        time = f", {report.start:%Y-%m-%d %H:%M:%S} to {report.end:%Y-%m-%d %H:%M:%S} UTC"
    name = display_name(report.source)
    yield line(("Rows of ", Style.STRONG), (name, Style.STRONG), f", canonical traffic schema {report.schema_version}")
    yield line(f"  {count_of(report.rows, 'row')}{time}")
    yield line()
    columns = (Column(title="result"), Column(title="check"), Column(title="finding", least=20))
    yield table(columns, (row for check in report.checks for row in _rows(check)))
    yield line()
    yield line((_sentence(report), Style.STRONG))


def _rows(check: ContractCheck) -> Iterator[tuple[Line | str | tuple[str, Style], ...]]:
    yield (check.state.value, _STYLES[check.state]), check.id, line(check.message, hang=0)
    if check.example is not None and check.state in (CheckState.WARN, CheckState.FAIL):
        yield "", "", line(("for example ", Style.FAINT), display_name(check.example), hang=0)


def _sentence(report: ContractReport) -> str:
    failed, warned = report.count(CheckState.FAIL), report.count(CheckState.WARN)
    if failed:
        return f"{count_of(failed, 'check')} of {len(report.checks)} failed, with {count_of(warned, 'warning')}."
    if warned:
        return f"No check failed, with {count_of(warned, 'warning')}."
    return f"All {len(report.checks)} checks passed."
