"""Keep the suggestions on the lines of a pull request true: one for each subject, updated and never repeated."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from reconciler.errors import ForgeError
from reconciler.features.pull_requests.forge import Comment, Forge, Request
from reconciler.features.pull_requests.suggestions import Suggestion, SuggestionSource
from reconciler.render import fence

_START: Final = "<!-- kafka-quotas:suggestion "
_BAD_PLACE: Final = (400, 422)


def keep_suggestions(
    forge: Forge, request: Request, source: SuggestionSource | None, *, cluster: str | None, author: str
) -> tuple[int, str | None]:
    """Post, change and remove the suggestions by ``author`` about a cluster.

    Returns how many stand on lines now, and why not all do: a forge that refuses is not an error, since the comment has the
    same values.
    """
    count = 0
    try:
        diffs = forge.diffs(request) if source is not None else {}
        wanted = source.suggestions(diffs) if source is not None else []
        posted = [comment for comment in forge.review_comments(request) if (comment.author or "").casefold() == author.casefold()]
        own = f"{_START}{_digest(cluster)} "
        known = {comment.body.partition("\n")[0].strip(): comment for comment in posted if comment.body.startswith(own)}
        for suggestion in wanted:
            marker = f"{own}{_digest(suggestion.subject)} -->"
            count += _keep(forge, request, suggestion, known.pop(marker, None), marker)
        for comment in known.values():
            forge.change_comment(request, comment, None)
    except ForgeError as error:
        return count, f"Suggestions were not all posted: {error}"
    return count, None


def _keep(forge: Forge, request: Request, suggestion: Suggestion, posted: Comment | None, marker: str) -> bool:
    """Whether the suggestion stands on its line now."""
    body, place = suggestion_body(suggestion, marker, forge.suggestion), suggestion.place
    if posted is not None:
        if (posted.path, posted.line) == (place.path, place.line):
            if posted.body.replace("\r\n", "\n").rstrip() != body.rstrip():
                forge.change_comment(request, posted, body)
            return True
        forge.change_comment(request, posted, None)
    try:
        forge.comment_line(request, place, body)
    except ForgeError as error:
        # A line that the forge does not show: it decides.
        if error.status in _BAD_PLACE:
            return False
        raise
    return True


def suggestion_body(suggestion: Suggestion, marker: str, language: str) -> str:
    """The comment: its marker, the reason, and the lines to commit."""
    lines = "\n".join(suggestion.lines)
    ticks = fence(lines)
    return f"{marker}\n{suggestion.words}\n\n{ticks}{language}\n{lines}\n{ticks}\n"


def _digest(part: str | None) -> str:
    """A part of a marker: a name in it could end the line."""
    return hashlib.sha256(json.dumps(part).encode()).hexdigest()[:16]
