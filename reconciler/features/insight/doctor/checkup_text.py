"""The checks of ``doctor`` for a terminal: one line for each, with its remedy below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.features.insight.doctor.checks import CheckStatus, Checkup
from reconciler.model import display_name
from reconciler.render import Block, Style, line
from reconciler.text import count_of

_STYLES: Final = {
    CheckStatus.PASSED: Style.GOOD,
    CheckStatus.WARN: Style.WARN,
    CheckStatus.FAIL: Style.BAD,
    CheckStatus.SKIP: Style.FAINT,
}
_ID_COLUMNS: Final = 14


def checkup_lines(checkup: Checkup) -> tuple[Block, ...]:
    """The checks as lines, failures and all: support reads them from top to bottom."""
    return tuple(_lines(checkup))


def _lines(checkup: Checkup) -> Iterator[Block]:
    of = "" if checkup.cluster is None else f" of {display_name(checkup.cluster)}"
    yield line((f"Checkup{of}", Style.STRONG), f", kafka-quotas {checkup.version}")
    yield line()
    for check in checkup.checks:
        hang = 6 + _ID_COLUMNS + 1
        yield line(
            (f"{check.status.value:<6}", _STYLES[check.status]), f"{check.id:<{_ID_COLUMNS}} ", str(check.message), hang=hang
        )
        if check.remedy is not None:
            yield line(" " * hang, ("Remedy: ", Style.STRONG), check.remedy, hang=hang)
    yield line()
    yield line((_sentence(checkup), Style.STRONG))


def _sentence(checkup: Checkup) -> str:
    counts = checkup.counts
    if not counts[CheckStatus.FAIL] and not counts[CheckStatus.WARN]:
        return f"{count_of(counts[CheckStatus.PASSED], 'check')} passed, {counts[CheckStatus.SKIP]} skipped."
    failed, warned = count_of(counts[CheckStatus.FAIL], "check"), count_of(counts[CheckStatus.WARN], "warning")
    return f"{failed} failed, {warned}, {counts[CheckStatus.PASSED]} passed, {counts[CheckStatus.SKIP]} skipped."
