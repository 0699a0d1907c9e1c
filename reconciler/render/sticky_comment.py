"""One comment that is rewritten while a change goes on its way: the body that a plan made, below a line that says how far it is.

Which forge the comment is on is not known here: text goes in, text comes out.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import display_name, escaped
from reconciler.render.markdown_text import NAME_LIMIT, code, fold, prose, shorten, size

_VERSION: Final = 1
_START: Final = "<!-- kafka-quotas:"
_MARKER_END: Final = " -->"


class CommentState(enum.StrEnum):
    """How far the change is that a posted comment speaks of."""

    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    OUTDATED = "outdated"


_STATES: Final = frozenset(state.value for state in CommentState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What the line says. ``kind`` is ``plan``, ``findings`` or ``status``; only a plan has a digest.

    A body that is not posted yet has none of the fields from ``label`` on.
    """

    kind: str
    cluster: str | None
    digest: str | None
    empty: bool = False
    """There is nothing to do and nothing to say: no reason for a new comment."""
    label: str = ""
    """Tells comments about one cluster from each other, e.g. of two repositories' folders."""
    state: CommentState | None = None
    commit: str | None = None
    checksum: str | None = None
    """Of what follows the marker, as it was posted; it differs once a person has edited the comment."""

    @property
    def address(self) -> tuple[str | None, str]:
        """What there is one comment for: a cluster (``None`` for the whole repository) and a label."""
        return self.cluster, self.label


def marker_line(marker: Marker) -> str:
    """The line. No name can end the HTML comment, because ``<``, ``>`` and ``-`` are escaped inside."""
    cluster = None if marker.cluster is None else shorten(marker.cluster, NAME_LIMIT)
    always = {"v": _VERSION, "kind": marker.kind, "cluster": cluster, "digest": marker.digest}
    posted = {
        "empty": marker.empty,
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
    match document:
        case {"v": 1, "kind": str(kind), "cluster": str() | None as cluster, "digest": str() | None as digest}:
            return _with_posted(Marker(kind=kind, cluster=cluster, digest=digest), document)
    return None


def _with_posted(marker: Marker, document: Mapping[str, object]) -> Marker | None:
    known = {"empty": False, "label": "", "state": None, "commit": None, "sum": None}
    match known | {key: document[key] for key in known if key in document}:
        case {
            "empty": bool(empty),
            "label": str(label),
            "state": str() | None as state,
            "commit": str() | None as commit,
            "sum": str() | None as checksum,
        } if state is None or state in _STATES:
            return Marker(
                kind=marker.kind,
                cluster=marker.cluster,
                digest=marker.digest,
                empty=empty,
                label=label,
                state=CommentState(state) if state else None,
                commit=commit,
                checksum=checksum,
            )
    return None


LIMIT: Final = 60_000
"""Bytes of a whole comment. A body takes ``markdown.BUDGET`` of them at most, which leaves room for all that is added here."""

_BEGIN: Final = "<!-- kafka-quotas:content -->"
_END: Final = "<!-- kafka-quotas:end -->"
_HEADING: Final = "### Kafka quotas"
_SHOWN: Final = 200
_DETAIL: Final = (1500, 150)
"""Characters of the detail that are shown: fewer only where the content leaves no room for more."""

_LINK: Final = re.compile(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9._/-]+")

_WORDS: Final = {
    CommentState.PLANNED: ("Planned", ""),
    CommentState.APPLYING: ("Being applied", "Next: wait; this comment will say how it ended."),
    CommentState.APPLIED: ("Applied", "Next: nothing; `kafka-quotas drift` tells whether somebody changes it by hand."),
    CommentState.FAILED: ("Failed", "Next: `kafka-quotas plan` shows what is left to do, and `kafka-quotas apply` does it."),
    CommentState.OUTDATED: ("Outdated", "Next: wait for the plan of the newest commit, or run `kafka-quotas plan` on it."),
}
_EDITED: Final = "**Somebody had edited this comment; it was written anew.**"
_LOST: Final = "**Somebody had edited this comment; what it said of the plan was not kept.** `kafka-quotas plan` prints it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a comment holds whatever its state: its marker, its heading, and the lines below."""

    marker: Marker
    heading: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentStatus:
    """What is said above the content. ``detail`` may quote strangers; a ``link`` that is no plain web address is left out."""

    state: CommentState
    commit: str | None = None
    detail: str = ""
    link: str | None = None


def content_for(cluster: str | None, label: str) -> Content:
    """The content of a comment that nothing is known of but what it is about."""
    name = f": {code(display_name(cluster), limit=_SHOWN)}" if cluster else ""
    marker = Marker(kind="status", cluster=cluster, digest=None, label=label)
    return Content(marker=marker, heading=f"{_HEADING}{name}")


def read_content(text: str) -> Content | None:
    """The content of a body that a plan or findings made, or of a posted comment; ``None`` for any other text."""
    marker = read_marker(text)
    lines = text.replace("\r\n", "\n").rstrip().split("\n")[1:]
    if marker is None or not lines or not lines[0].startswith(_HEADING):
        return None
    heading, *rest = lines
    if marker.state is None:
        return Content(marker=marker, heading=heading, lines=tuple(_trimmed(rest)))
    if _BEGIN not in rest or _END not in rest:
        return Content(marker=marker, heading=heading)
    last = len(rest) - 1 - rest[::-1].index(_END)
    return Content(marker=marker, heading=heading, lines=tuple(_trimmed(rest[rest.index(_BEGIN) + 1 : last])))


def is_edited(comment: str) -> bool:
    """Whether a posted comment is not what this tool posted. Told by a sum, which stops accidents, not forgers."""
    marker = read_marker(comment)
    if marker is not None and marker.state is None and marker.checksum is None:
        return False  # a body that was posted as it is, without this tool
    return marker is None or marker.checksum != checksum(comment.partition("\n")[2])


def render_sticky_comment(content: Content, status: CommentStatus, *, edited: bool = False) -> str:
    """The whole comment in this state. Raises ``ValueError`` when the content leaves no room within ``LIMIT`` bytes.

    ``edited``: the comment that this one takes the place of had been edited by a person.
    """
    for most in _DETAIL:
        whole = _whole(content, dataclasses.replace(status, detail=shorten(escaped(status.detail), most)), edited=edited)
        if size((whole,)) <= LIMIT:
            return whole
    msg = f"the comment would have {len(whole.encode())} bytes; {LIMIT} is the most"
    raise ValueError(msg)


def _whole(content: Content, status: CommentStatus, *, edited: bool) -> str:
    lines = (content.heading, "", *_status(content, status, edited=edited), *_held(content, status))
    body = "\n".join(lines).rstrip() + "\n"
    marker = dataclasses.replace(content.marker, state=status.state, commit=status.commit, checksum=checksum(body))
    return f"{marker_line(marker)}\n{body}"


def _status(content: Content, status: CommentStatus, *, edited: bool) -> Iterator[str]:
    word, next_step = _WORDS[status.state]
    if status.state is CommentState.PLANNED and content.marker.kind == "findings":
        word = "Cannot be planned"
    if status.state is CommentState.PLANNED and content.marker.kind == "backtest":
        word = "Backtested"
    commit = f" at commit {code(status.commit, limit=_SHOWN)}" if status.commit else ""
    log = f" ([log](<{status.link}>))" if status.link and _LINK.fullmatch(status.link) else ""
    detail = f": {prose(status.detail)}" if status.detail else ""
    yield from (f"**{word}**{commit}{log}{detail}".rstrip(".") + ".", "")
    if edited:
        yield from (_EDITED if content.lines else _LOST, "")
    if next_step:
        yield from (next_step, "")


def _held(content: Content, status: CommentStatus) -> Sequence[str]:
    """The content between two lines that tell where it is; folded once it is no longer what is to be read."""
    if not content.lines:
        return ()
    held = (_BEGIN, "", *content.lines, "", _END)
    return held if status.state is CommentState.PLANNED else fold("The plan", held)


def _trimmed(lines: Sequence[str]) -> Sequence[str]:
    full = [number for number, one in enumerate(lines) if one.strip()]
    return lines[full[0] : full[-1] + 1] if full else ()


def checksum(body: str) -> str:
    """Of what follows the marker; line ends and blanks at the end do not count, since forges change them."""
    return hashlib.sha256(body.replace("\r\n", "\n").rstrip().encode("utf-8", "surrogatepass")).hexdigest()[:32]
