"""The comment of a pull request, rewritten from plan to apply: heading and alert of the state, and the content of the plan.

Which forge the comment is on is not known here: text goes in, text comes out.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES
from reconciler.features.pull_requests.comment_verdict import CommentVerdict, StatusCheck
from reconciler.features.pull_requests.suggestions import SuggestionSource
from reconciler.model import MergedRequest, display_name, escaped
from reconciler.render import code, fold, prose, short_commit, short_digest, shorten, web_address
from reconciler.text import count_of, list_some

_START: Final = "<!-- kafka-quotas "
_MARKER_END: Final = " -->"


class CommentState(enum.StrEnum):
    """How far the change is that a posted comment speaks of."""

    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    OUTDATED = "outdated"
    PLAN_FAILED = "plan-failed"
    """No plan of the newest commit could be made."""
    NOT_CHANGED = "not-changed"
    """The newest commit does not change this cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the hidden first line of a comment states. Content that is not posted yet has no ``state``, nor what follows it."""

    cluster: str | None
    """``None``: the comment is about the whole repository."""
    digest: str | None = None
    """Of the plan."""
    verdict: CommentVerdict | None = None
    """``None`` where only the state is known."""
    state: CommentState | None = None
    commit: str | None = None
    checksum: str | None = None
    """Of what follows the marker, as it was posted; it differs once a person has edited the comment."""


_MARKER: Final = VALUES.row(Marker)


def marker_line(marker: Marker) -> str:
    """The line. No name can end the HTML comment, because ``<``, ``>`` and ``-`` are escaped inside."""
    content = json.dumps(_MARKER.write(marker), ensure_ascii=True)
    for character in "<>-":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return f"{_START}{content}{_MARKER_END}"


def read_marker(comment: str) -> Marker | None:
    """The marker of a comment, or ``None`` without one.

    Any user can paste a marker, so a search for one compares the comment's author too.
    """
    first = comment.partition("\n")[0].strip()
    if not (first.startswith(_START) and first.endswith(_MARKER_END)):
        return None
    try:
        marker: Marker = _MARKER.read(json.loads(first.removeprefix(_START).removesuffix(_MARKER_END)))
    except (ValueError, RecursionError):
        return None
    return marker


_BEGIN: Final = "<!-- kafka-quotas:content -->"
_END: Final = "<!-- kafka-quotas:end -->"
_TITLE: Final = "Kafka quotas"
_SHOWN: Final = 200
_LOGIN: Final = 40
_MOST_NAMED: Final = 5
_DETAIL: Final = 600
"""Characters of the detail that are shown: with them a comment has room beside ``plan_comment.BUDGET``."""


_WORDS: Final = {
    CommentState.APPLYING: ("⏳", "being applied", "NOTE", "`apply` is writing this plan", "The result will be shown here."),
    CommentState.APPLIED: (
        "✅",
        "applied",
        "TIP",
        "Applied",
        "To undo it, run `kafka-quotas revert REPORT` with the report of this run.",
    ),
    CommentState.FAILED: (
        "❌",
        "apply failed",
        "CAUTION",
        "**Failed**",
        "`kafka-quotas plan` shows what is left to do, and `kafka-quotas apply` does it.",
    ),
    CommentState.OUTDATED: ("⏸️", "outdated", "NOTE", "A newer commit was pushed", "The plan of that commit will be shown here."),
    CommentState.PLAN_FAILED: (
        "❌",
        "no plan",
        "CAUTION",
        "**No plan of this commit could be made**",
        "The log has the reason. A plan below is of an earlier commit.",
    ),
    CommentState.NOT_CHANGED: (
        "☑️",
        "not changed",
        "NOTE",
        "This commit does not change the cluster",
        "A plan below is of an earlier commit.",
    ),
}
"""Of each state but ``planned``: sign and title of the heading, kind of alert, and what stands before and after the detail."""
_WITHOUT_PLAN: Final = (CommentState.PLAN_FAILED, CommentState.NOT_CHANGED)
_LOST: Final = "**A user had edited this comment, so its plan was not kept.** `kafka-quotas plan` prints the plan."


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a comment has whatever its state: its marker, and the lines of the plan."""

    marker: Marker
    lines: tuple[str, ...] = ()
    empty: bool = False
    """The plan changes nothing and has no findings: no reason for a new comment."""
    check: StatusCheck | None = None
    """The status that goes with it. ``None`` for a comment that was read from the forge."""
    suggestions: SuggestionSource | None = None
    """What can be suggested on the changed lines. ``None``: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentStatus:
    """How far the change is. ``detail`` may quote strangers; a ``link`` that is not a plain web address is left out."""

    state: CommentState
    commit: str | None = None
    detail: str = ""
    link: str | None = None
    link_name: str = "Workflow run"
    request: MergedRequest | None = None
    """Who merged what apply wrote, and who approved it."""
    suggested: int = 0
    """How many suggestions stand on lines of the pull request."""


def comment_heading(marker: Marker, *, limit: int = _SHOWN) -> str:
    """``### ⛔ Kafka quotas for `prod-eu`: blocked``: one verdict, or the state once the change is on its way."""
    name = f" for {code(display_name(marker.cluster), limit=limit)}" if marker.cluster else ""
    if marker.state in _WORDS:
        sign, title, *_ = _WORDS[marker.state]
        return f"### {sign} {_TITLE}{name}: {title}"
    if marker.verdict is None:
        return f"### {_TITLE}{name}"
    return f"### {marker.verdict.sign} {_TITLE}{name}: {marker.verdict.value}"


def read_content(comment: str) -> Content | None:
    """The content of a posted comment; ``None`` for any other text. That of an edited one is not kept.

    A checksum shows edits, which stops accidents, not forgers.
    """
    marker = read_marker(comment)
    if marker is None:
        return None
    _, _, body = comment.replace("\r\n", "\n").partition("\n")
    if marker.checksum != _checksum(body):
        return Content(marker=Marker(cluster=marker.cluster), lines=(_LOST,))
    lines = body.split("\n")
    if _BEGIN not in lines or _END not in lines:
        return Content(marker=marker)
    last = len(lines) - 1 - lines[::-1].index(_END)
    return Content(marker=marker, lines=trimmed(lines[lines.index(_BEGIN) + 1 : last]))


def render_sticky_comment(content: Content, status: CommentStatus) -> str:
    """The whole comment in this state."""
    marker = dataclasses.replace(content.marker, state=status.state, commit=status.commit)
    lines = (comment_heading(marker), "", *_status(status), *_kept(content, status), *_foot(marker, status))
    body = "\n".join(lines).rstrip() + "\n"
    return f"{marker_line(dataclasses.replace(marker, checksum=_checksum(body)))}\n{body}"


def _status(status: CommentStatus) -> Iterator[str]:
    if status.state not in _WORDS:
        return
    _, _, alert, lead, more = _WORDS[status.state]
    detail = prose(shorten(escaped(status.detail), _DETAIL), begins_line=False).rstrip(".")
    yield from (f"> [!{alert}]", f"> {lead}{f': {detail}' if detail else ''}. {more}")
    if status.request is not None and (who := approval_text(status.request)):
        yield f">\n> {who}"
    yield ""


def approval_text(request: MergedRequest) -> str:
    """Return who merged and approved, in code spans, which notify no account. Empty where the forge did not state it."""
    merged = f"Merged by {code(request.merged_by, limit=_LOGIN)}" if request.merged_by else ""
    names = list_some([code(name, limit=_LOGIN) for name in request.approvers], _MOST_NAMED)
    approved = f"approved by {names}" if names else "the forge has no approval of it" if merged else ""
    return ", ".join(part for part in (merged, approved) if part) + "." if merged or approved else ""


def _kept(content: Content, status: CommentStatus) -> Sequence[str]:
    """The content between two lines that mark where it is; folded once the state is what is to be read."""
    if not content.lines:
        return ()
    kept = (_BEGIN, "", *content.lines, "", _END)
    if status.state is CommentState.PLANNED:
        return (*kept, "")
    return fold("The plan of an earlier commit" if status.state in _WITHOUT_PLAN else "The plan", kept)


def _foot(marker: Marker, status: CommentStatus) -> Iterator[str]:
    link = web_address(status.link)
    parts = [f"[{status.link_name}]({link})"] if link else []
    parts += [f"commit {code(short_commit(status.commit), limit=_SHOWN)}"] if status.commit else []
    parts += [f"digest {code(short_digest(marker.digest), limit=_SHOWN)}"] if marker.digest else []
    parts += [count_of(status.suggested, "suggestion") + " on changed lines"] if status.suggested else []
    yield " · ".join(parts)


def trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines without the empty ones around them."""
    full = [number for number, text_line in enumerate(lines) if text_line.strip()]
    return tuple(lines[full[0] : full[-1] + 1]) if full else ()


def _checksum(body: str) -> str:
    """Return the checksum of what follows the marker, without line ends and trailing blanks, which forges change."""
    return hashlib.sha256(body.replace("\r\n", "\n").rstrip().encode("utf-8", "surrogatepass")).hexdigest()[:32]
