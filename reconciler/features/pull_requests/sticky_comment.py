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
from typing import Final, NamedTuple

from reconciler.features.pull_requests.comment_verdict import CommentVerdict, StatusCheck
from reconciler.features.pull_requests.suggestions import SuggestionSource
from reconciler.model import MergedRequest, display_name, escaped
from reconciler.render import NAME_LIMIT, code, fold, prose, short_commit, short_digest, shorten, size, web_address
from reconciler.text import count_of, list_some

_VERSION: Final = 1
_START: Final = "<!-- kafka-quotas:"
_MARKER_END: Final = " -->"


class CommentState(enum.StrEnum):
    """How far the change is that a posted comment speaks of."""

    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    APPLIED_IN_PART = "applied_in_part"
    """Changes of some owners were withheld, all others are written."""
    FAILED = "failed"
    OUTDATED = "outdated"
    PLAN_FAILED = "plan-failed"
    """No plan of the newest commit could be made."""
    NOT_CHANGED = "not-changed"
    """The newest commit does not change this cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the line states. ``kind`` is ``plan``, ``findings``, ``backtest`` or ``status``; only a plan has a digest.

    Content that is not posted yet has none of the fields from ``label`` on.
    """

    kind: str
    cluster: str | None
    digest: str | None
    empty: bool = False
    """The plan changes nothing and has no findings: no reason for a new comment."""
    verdict: str | None = None
    """A ``CommentVerdict``; ``None`` where only the state is known."""
    label: str = ""
    """Distinguishes comments about one cluster, e.g. of two repositories' folders."""
    state: CommentState | None = None
    commit: str | None = None
    checksum: str | None = None
    """Of what follows the marker, as it was posted; it differs once a person has edited the comment."""

    @property
    def address(self) -> tuple[str | None, str]:
        """The cluster (``None`` for the whole repository) and the label that identify one comment."""
        return self.cluster, self.label


def marker_line(marker: Marker) -> str:
    """The line. No name can end the HTML comment, because ``<``, ``>`` and ``-`` are escaped inside."""
    cluster = None if marker.cluster is None else shorten(marker.cluster, NAME_LIMIT)
    always = {"v": _VERSION, "kind": marker.kind, "cluster": cluster, "digest": marker.digest}
    posted = {
        "empty": marker.empty,
        "verdict": marker.verdict,
        "label": marker.label,
        "state": marker.state,
        "commit": marker.commit,
        "sum": marker.checksum,
    }
    content = json.dumps(always | {key: value for key, value in posted.items() if value}, ensure_ascii=True)
    for character in "<>-":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return f"{_START}{marker.kind} {content}{_MARKER_END}"


def read_marker(comment: str) -> Marker | None:
    """The marker of a comment, or ``None`` without one that this version understands.

    Any user can paste a marker, so a search for one compares the comment's author too.
    """
    first = comment.partition("\n")[0].strip()
    if not (first.startswith(_START) and first.endswith(_MARKER_END)):
        return None
    content = first.removeprefix(_START).removesuffix(_MARKER_END).partition(" ")[2]
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    optional = {"empty": False, "verdict": None, "label": "", "state": None, "commit": None, "sum": None}
    match optional | document if isinstance(document, dict) else None:
        case {
            "v": 1,
            "kind": str(kind),
            "cluster": str() | None as cluster,
            "digest": str() | None as digest,
            "empty": bool(empty),
            "verdict": str() | None as verdict,
            "label": str(label),
            "state": str() | None as state,
            "commit": str() | None as commit,
            "sum": str() | None as checksum,
        } if state is None or state in set(CommentState):
            return Marker(
                kind=kind,
                cluster=cluster,
                digest=digest,
                empty=empty,
                verdict=verdict,
                label=label,
                state=CommentState(state) if state else None,
                commit=commit,
                checksum=checksum,
            )
    return None


LIMIT: Final = 60_000
"""Bytes of a whole comment: more than ``plan_comment.BUDGET``, for all that is added here."""

_BEGIN: Final = "<!-- kafka-quotas:content -->"
_END: Final = "<!-- kafka-quotas:end -->"
_TITLE: Final = "Kafka quotas"
_SHOWN: Final = 200
_MOST_NAMED: Final = 5
_DETAIL: Final = (1500, 150)
"""Characters of the detail that are shown: fewer only where the content leaves no room for more."""


class _StateWords(NamedTuple):
    """How a state other than ``planned`` is shown; ``lead`` stands before the detail, ``more`` after it."""

    sign: str
    heading: str
    alert: str
    lead: str
    more: str


_WORDS: Final = {
    CommentState.APPLYING: _StateWords(
        "⏳", "being applied", "NOTE", "`apply` is writing this plan", "The result will be shown here."
    ),
    CommentState.APPLIED: _StateWords(
        "✅", "applied", "TIP", "Applied", "To undo it, run `kafka-quotas revert REPORT` with the report of this run."
    ),
    CommentState.APPLIED_IN_PART: _StateWords(
        "⚠️", "applied in part", "WARNING", "Applied in part", "`kafka-quotas plan` shows what is withheld, and why."
    ),
    CommentState.FAILED: _StateWords(
        "❌",
        "apply failed",
        "CAUTION",
        "**Failed**",
        "`kafka-quotas plan` shows what is left to do, and `kafka-quotas apply` does it.",
    ),
    CommentState.OUTDATED: _StateWords(
        "⏸️", "outdated", "NOTE", "A newer commit was pushed", "The plan of that commit will be shown here."
    ),
    CommentState.PLAN_FAILED: _StateWords(
        "❌",
        "no plan",
        "CAUTION",
        "**No plan of this commit could be made**",
        "The log has the reason. A plan below is of an earlier commit.",
    ),
    CommentState.NOT_CHANGED: _StateWords(
        "☑️", "not changed", "NOTE", "This commit does not change the cluster", "A plan below is of an earlier commit."
    ),
}
_WITHOUT_PLAN: Final = (CommentState.PLAN_FAILED, CommentState.NOT_CHANGED)
_EDITED: Final = "**A user had edited this comment. It was written anew.**"
_LOST: Final = "**A user had edited this comment, so its plan was not kept.** `kafka-quotas plan` prints the plan."


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a comment has whatever its state: its marker, and the lines of the plan."""

    marker: Marker
    lines: tuple[str, ...] = ()
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
        words = _WORDS[marker.state]
        return f"### {words.sign} {_TITLE}{name}: {words.heading}"
    if marker.verdict is None or marker.verdict not in set(CommentVerdict):
        return f"### {_TITLE}{name}"
    verdict = CommentVerdict(marker.verdict)
    return f"### {verdict.sign} {_TITLE}{name}: {verdict.value}"


def content_for(cluster: str | None, label: str) -> Content:
    """The content of a comment that only names its subject, without a plan."""
    return Content(marker=Marker(kind="status", cluster=cluster, digest=None, label=label))


def read_content(text: str) -> Content | None:
    """The content of a posted comment; ``None`` for any other text."""
    marker = read_marker(text)
    lines = text.replace("\r\n", "\n").rstrip().split("\n")[1:]
    if marker is None or not lines or not (lines[0].startswith("### ") and _TITLE in lines[0]):
        return None
    rest = lines[1:]
    if _BEGIN not in rest or _END not in rest:
        return Content(marker=marker)
    last = len(rest) - 1 - rest[::-1].index(_END)
    return Content(marker=marker, lines=trimmed(rest[rest.index(_BEGIN) + 1 : last]))


def is_edited(comment: str) -> bool:
    """Whether a posted comment is not what this tool posted. A checksum shows it, which stops accidents, not forgers."""
    marker = read_marker(comment)
    return marker is None or marker.checksum != checksum(comment.partition("\n")[2])


def render_sticky_comment(content: Content, status: CommentStatus, *, edited: bool = False) -> str:
    """The whole comment in this state. Raises ``ValueError`` when the content leaves no room within ``LIMIT`` bytes.

    ``edited``: the comment that this one takes the place of had been edited by a person.
    """
    for most in _DETAIL:
        whole = _whole(content, dataclasses.replace(status, detail=shorten(escaped(status.detail), most)), edited=edited)
        if size((whole,)) <= LIMIT:
            return whole
    msg = f"the comment would have {len(whole.encode())} bytes, and {LIMIT} is the most"
    raise ValueError(msg)


def _whole(content: Content, status: CommentStatus, *, edited: bool) -> str:
    marker = dataclasses.replace(content.marker, state=status.state, commit=status.commit)
    lines = (
        comment_heading(marker),
        "",
        *_status(content, status, edited=edited),
        *_kept(content, status),
        *_foot(marker, status),
    )
    body = "\n".join(lines).rstrip() + "\n"
    return f"{marker_line(dataclasses.replace(marker, checksum=checksum(body)))}\n{body}"


def _status(content: Content, status: CommentStatus, *, edited: bool) -> Iterator[str]:
    if edited:
        yield from (_EDITED if content.lines else _LOST, "")
    words = _WORDS.get(status.state)
    if words is None:
        return
    detail = f": {prose(status.detail, begins_line=False).rstrip('.')}" if status.detail else ""
    yield from (f"> [!{words.alert}]", f"> {words.lead}{detail}. {words.more}")
    if status.request is not None and (who := approval_text(status.request)):
        yield f">\n> {who}"
    yield ""


def approval_text(request: MergedRequest) -> str:
    """Return who merged and approved, in code spans, which notify no account. Empty where the forge did not state it."""
    merged = f"Merged by {code(request.merged_by, limit=_SHOWN)}" if request.merged_by else ""
    names = list_some([code(name, limit=_SHOWN) for name in request.approvers], _MOST_NAMED)
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


def checksum(body: str) -> str:
    """Return the checksum of what follows the marker, without line ends and trailing blanks, which forges change."""
    return hashlib.sha256(body.replace("\r\n", "\n").rstrip().encode("utf-8", "surrogatepass")).hexdigest()[:32]
