"""What an apply report means for the comment of its pull request: applied or not, and why, in one sentence."""

from __future__ import annotations

import json

from reconciler.errors import FileAccessError
from reconciler.model import ApplyResult, ChangeStatus
from reconciler.planning import Place
from reconciler.render import CommentState


def state_of_report(text: str, *, name: str) -> tuple[CommentState, str]:
    """``applied`` or ``failed``, and what happened; also for the report of a run that ended before it had a plan.

    Raises ``FileAccessError`` for what is no apply report, and for one of a run that was not to write.
    """
    try:
        return _state(Place("the document", json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise FileAccessError(f"{name} is not a report that a comment can tell of: {error}") from error


def _state(report: Place) -> tuple[CommentState, str]:
    if report["validate_only"].flag():
        raise ValueError("it is of a run with --validate-only, which applies nothing")
    result = report["result"].one_of(ApplyResult)
    counts = {status: report["summary"][status.value].count(0) for status in ChangeStatus}
    if result is ApplyResult.NOTHING_TO_DO:
        return CommentState.APPLIED, "there was nothing to do"
    if result is ApplyResult.DONE:
        read_back = "every broker shows it" if report["verified"].flag() else "not read back"
        return CommentState.APPLIED, f"wrote {_entities(counts[ChangeStatus.APPLIED])}, {read_back}"
    words = [report[key].optional(Place.text) for key in ("failure_reason", "message")]
    said = ": ".join(one.strip().rstrip(".") for one in words if one)
    return CommentState.FAILED, f"{_written(result, counts)}{f'; {said}' if said else ''}"


def _written(result: ApplyResult, counts: dict[ChangeStatus, int]) -> str:
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
