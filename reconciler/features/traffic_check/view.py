"""The checks of a producer's rows for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.features.traffic_check.checks import CheckState, ContractReport
from reconciler.model import display_name
from reconciler.render import Block, Column, Style, line, table
from reconciler.text import count_of

_STYLES: Final = {
    CheckState.PASSED: Style.GOOD,
    CheckState.WARN: Style.WARN,
    CheckState.FAIL: Style.BAD,
    CheckState.SKIPPED: Style.FAINT,
}


def contract_lines(report: ContractReport) -> Iterator[Block]:
    """The whole report, the answer last."""
    name = display_name(report.source)
    time = ""
    if report.start is not None and report.end is not None:
        time = f", {report.start:%Y-%m-%d %H:%M:%S} to {report.end:%Y-%m-%d %H:%M:%S} UTC"
    yield line(("Rows of ", Style.STRONG), (name, Style.STRONG), f", canonical traffic schema {report.schema_version}")
    yield line(f"  {count_of(report.rows, 'row')}{time}")
    yield line()
    cells = []
    for check in report.checks:
        cells.append(((check.state.value, _STYLES[check.state]), check.id, line(check.message, hang=0)))
        if check.example is not None and check.state in (CheckState.WARN, CheckState.FAIL):
            cells.append((("", Style.FAINT), "", line(("for example ", Style.FAINT), display_name(check.example), hang=0)))
    yield table((Column(title="result"), Column(title="check"), Column(title="finding", least=20)), cells)
    yield line()
    failed, warned = report.count(CheckState.FAIL), count_of(report.count(CheckState.WARN), "warning")
    if failed:
        answer = f"{count_of(failed, 'check')} of {len(report.checks)} failed, with {warned}."
    elif report.count(CheckState.WARN):
        answer = f"No check failed, with {warned}."
    else:
        answer = f"All {len(report.checks)} checks passed."
    yield line((answer, Style.STRONG))
