"""One comment that is rewritten while a change goes on its way: the body that a plan made, below a line that says how far it is.

Which forge the comment is on is not known here: text goes in, text comes out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import display_name, escaped
from reconciler.render.escape_markdown import code, prose, shortened
from reconciler.render.markdown_lists import folded, size
from reconciler.render.markdown_marker import CommentState, Marker, marker_line, read_marker

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
class Status:
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


def sticky_comment(content: Content, status: Status, *, edited: bool = False) -> str:
    """The whole comment in this state. Raises ``ValueError`` when the content leaves no room within ``LIMIT`` bytes.

    ``edited``: the comment that this one takes the place of had been changed by somebody.
    """
    for most in _DETAIL:
        whole = _whole(content, dataclasses.replace(status, detail=shortened(escaped(status.detail), most)), edited=edited)
        if size((whole,)) <= LIMIT:
            return whole
    msg = f"the comment would have {len(whole.encode())} bytes; {LIMIT} is the most"
    raise ValueError(msg)


def _whole(content: Content, status: Status, *, edited: bool) -> str:
    lines = (content.heading, "", *_status(content, status, edited=edited), *_held(content, status))
    body = "\n".join(lines).rstrip() + "\n"
    marker = dataclasses.replace(content.marker, state=status.state, commit=status.commit, checksum=checksum(body))
    return f"{marker_line(marker)}\n{body}"


def _status(content: Content, status: Status, *, edited: bool) -> Iterator[str]:
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


def _held(content: Content, status: Status) -> Sequence[str]:
    """The content between two lines that tell where it is; folded once it is no longer what is to be read."""
    if not content.lines:
        return ()
    held = (_BEGIN, "", *content.lines, "", _END)
    return held if status.state is CommentState.PLANNED else folded("The plan", held)


def _trimmed(lines: Sequence[str]) -> Sequence[str]:
    full = [number for number, one in enumerate(lines) if one.strip()]
    return lines[full[0] : full[-1] + 1] if full else ()


def checksum(body: str) -> str:
    """Of what follows the marker; line ends and blanks at the end do not count, since forges change them."""
    return hashlib.sha256(body.replace("\r\n", "\n").rstrip().encode("utf-8", "surrogatepass")).hexdigest()[:32]
