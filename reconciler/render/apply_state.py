"""How a run of apply ended, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.documents import ApplySummary
from reconciler.errors import FileAccessError
from reconciler.model import ApplyResult, ChangeStatus, display_name
from reconciler.render.sticky_comment import CommentState
from reconciler.text import count_of, duration, list_some

_MOST_OWNERS: Final = 5


def state_of_report(report: ApplySummary, *, name: str) -> tuple[CommentState, str]:
    """``applied``, ``applied_in_part`` or ``failed``, and what happened; also of a run that ended before it had a plan.

    Raises ``FileAccessError`` for the report of a run that was not to write.
    """
    if report.validate_only:
        raise FileAccessError(f"{name} is the report of a run with --validate-only, which applies nothing: give another one")
    if report.result is ApplyResult.NOTHING_TO_DO and not report.withheld:
        return CommentState.APPLIED, "the cluster needed no change"
    if report.result is ApplyResult.DONE:
        count = report.counts[ChangeStatus.APPLIED]
        took = f" in {duration(report.seconds)}" if report.seconds is not None else ""
        written = f"{_entities(count)} written{took}, {_read_back(report, count)}"
        if report.withheld:
            return CommentState.APPLIED_IN_PART, f"{written}; {_withheld(report)}"
        return CommentState.APPLIED, written
    reasons = ": ".join(text.strip().rstrip(".") for text in (report.failure_reason, report.message) if text)
    return CommentState.FAILED, f"{_written(report.result, report.counts)}{f'; {reasons}' if reasons else ''}"


def _withheld(report: ApplySummary) -> str:
    owners = [
        f"{display_name(withheld.owner) if withheld.owner is not None else 'no owner'} ({_entities(len(withheld.entities))})"
        for withheld in report.withheld
    ]
    return f"withheld for {list_some(owners, _MOST_OWNERS)}"


def _read_back(report: ApplySummary, count: int) -> str:
    if not report.verified:
        return "not read back"
    if report.brokers is not None:
        return f"verified on {count_of(report.brokers, 'broker')}"
    return f"and every broker shows {'it' if count == 1 else 'them'}"


def _written(result: ApplyResult, counts: Mapping[ChangeStatus, int]) -> str:
    if result is not ApplyResult.PARTIAL:
        return "nothing was written"
    words = {
        ChangeStatus.APPLIED: "written",
        ChangeStatus.FAILED: "failed",
        ChangeStatus.UNKNOWN: "not known",
        ChangeStatus.NOT_ATTEMPTED: "not attempted",
    }
    counted = ", ".join(f"{_entities(counts[status])} {word}" for status, word in words.items() if counts[status])
    return f"not complete: {counted}" if counted else "not complete"


def _entities(count: int) -> str:
    return count_of(count, "entity", "entities")
