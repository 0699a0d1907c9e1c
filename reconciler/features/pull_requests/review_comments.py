"""Keep the suggestions on the lines of a pull request true: one for each subject, updated and never repeated."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from reconciler.errors import ForgeError
from reconciler.features.pull_requests.forge import Forge, Request, ReviewComment
from reconciler.features.pull_requests.suggestions import Suggestion, SuggestionSource
from reconciler.render import fence

_START: Final = "<!-- kafka-quotas:suggestion "
_END: Final = " -->"
_DONE: Final = "This suggestion no longer applies."
_BAD_PLACE: Final = (400, 422)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionResult:
    """How many suggestions stand on lines now. ``problem``: why not all do."""

    count: int = 0
    problem: str | None = None


def keep_suggestions(
    forge: Forge, request: Request, source: SuggestionSource | None, *, about: tuple[str | None, str], author: str
) -> SuggestionResult:
    """Post, change and remove the suggestions by ``author`` about a cluster and label.

    A forge that refuses is a problem, not an error: the comment has the same values. One that users have answered is not removed,
    since their words belong to it.
    """
    count = 0
    try:
        diffs = forge.diffs(request) if source is not None else {}
        wanted = source.suggestions(diffs) if source is not None else []
        posted = [comment for comment in forge.review_comments(request) if (comment.author or "").casefold() == author.casefold()]
        known = {comment.body.partition("\n")[0].strip(): comment for comment in posted if comment.body.startswith(_START)}
        for suggestion in wanted:
            marker = _marker(suggestion, about)
            count += _keep(forge, request, suggestion, known.pop(marker, None), marker)
        for marker, comment in known.items():
            if _is_about(marker, about):
                _remove(forge, request, comment)
    except ForgeError as error:
        return SuggestionResult(count=count, problem=f"Suggestions were not all posted: {error}")
    return SuggestionResult(count=count)


def _keep(forge: Forge, request: Request, suggestion: Suggestion, posted: ReviewComment | None, marker: str) -> bool:
    """Whether the suggestion stands on its line now."""
    body, place = suggestion_body(suggestion, marker, forge.suggestion), suggestion.place
    if posted is not None:
        if (posted.path, posted.line) == (place.path, place.line):
            if posted.body.replace("\r\n", "\n").rstrip() != body.rstrip():
                forge.change_review(request, posted.id, body)
            return True
        _remove(forge, request, posted)
    try:
        forge.comment_line(request, place, body)
    except ForgeError as error:
        # A line that the forge does not show: it decides.
        if error.status in _BAD_PLACE:
            return False
        raise
    return True


def _remove(forge: Forge, request: Request, comment: ReviewComment) -> None:
    done = f"{comment.body.partition(chr(10))[0].strip()}\n{_DONE}\n"
    if not comment.answered:
        forge.change_review(request, comment.id, None)
    elif comment.body.replace("\r\n", "\n").rstrip() != done.rstrip():
        forge.change_review(request, comment.id, done)


def suggestion_body(suggestion: Suggestion, marker: str, language: str) -> str:
    """The comment: its marker, the reason, and the lines to commit."""
    lines = "\n".join(suggestion.edit.after)
    ticks = fence(lines)
    return f"{marker}\n{suggestion.words}\n\n{ticks}{language}\n{lines}\n{ticks}\n"


def _marker(suggestion: Suggestion, about: tuple[str | None, str]) -> str:
    """One line, of digests alone: a name cannot end it."""
    return f"{_START}{_digest(*about)} {_digest(suggestion.subject)}{_END}"


def _is_about(marker: str, about: tuple[str | None, str]) -> bool:
    return marker.startswith(f"{_START}{_digest(*about)} ") and marker.endswith(_END)


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
