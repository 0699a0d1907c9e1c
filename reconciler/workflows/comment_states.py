"""What an apply report means for the comment of its pull request: applied or not, and why, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import read_apply_summary
from reconciler.errors import FileAccessError
from reconciler.model import ApplyResult, ChangeStatus
from reconciler.render import CommentState


def state_of_report(text: str, *, name: str) -> tuple[CommentState, str]:
    """``applied`` or ``failed``, and what happened; also for the report of a run that ended before it had a plan.

    Raises ``FileAccessError`` for text that is not an apply report, and for the report of a run that was not to write.
    """
    report = read_apply_summary(text, name=name)
    if report.validate_only:
        raise FileAccessError(f"{name} is the report of a run with --validate-only, which applies nothing: give another one")
    if report.result is ApplyResult.NOTHING_TO_DO:
        return CommentState.APPLIED, "there was nothing to do"
    if report.result is ApplyResult.DONE:
        read_back = "every broker shows it" if report.verified else "not read back"
        return CommentState.APPLIED, f"wrote {_entities(report.counts[ChangeStatus.APPLIED])}, {read_back}"
    reasons = ": ".join(text.strip().rstrip(".") for text in (report.failure_reason, report.message) if text)
    return CommentState.FAILED, f"{_written(report.result, report.counts)}{f'; {reasons}' if reasons else ''}"


def _written(result: ApplyResult, counts: Mapping[ChangeStatus, int]) -> str:
    if result is not ApplyResult.PARTIAL:
        return "nothing was written"
    words = {
        ChangeStatus.APPLIED: "written",
        ChangeStatus.FAILED: "failed",
        ChangeStatus.UNKNOWN: "not known",
        ChangeStatus.NOT_ATTEMPTED: "not attempted",
    }
    said = ", ".join(f"{_entities(counts[status])} {word}" for status, word in words.items() if counts[status])
    return f"not complete: {said}" if said else "not complete"


def _entities(count: int) -> str:
    return f"{count} entity" if count == 1 else f"{count} entities"
