"""Strangers' text inside Markdown, and lists that keep to a number of bytes.

A code span is the one place where neither Markdown nor GitHub (mentions, issue and commit references, emoji names, bare links,
formulas) reads anything into text, and it can have every printable character. Source of the rules: the GitHub Flavored Markdown
specification 0.29, sections 4.10 (tables) and 6.3 (code spans). Of lists, whole rows are dropped, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import MessagePart, PartKind, Span, escaped, parts_of

NAME_LIMIT: Final = 2000
"""Characters of one name that are shown; a name of 255 bytes always fits, escaped or not."""

_PLAIN_WORD: Final = re.compile(
    r"\(|\(?(?:[A-Za-z]+(?:['-][A-Za-z]+)*|(?:[a-z]\.)+|[0-9]{1,6}(?:\.[0-9]{1,6})?|[0-9]{1,3}(?:,[0-9]{3})+|(?:[KMGT]i)?B/s|->|%"
    r"|(?:connections|partitions)/s|\.{3}|[0-9]{1,4}-[0-9]{1,4}"
    r"|[\N{RIGHTWARDS ARROW}\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}]"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)\)?[.,;:!?]{0,3}",
    re.ASCII,
)
"""Words that mean nothing to Markdown or GitHub. ``GH-1``, ``a@b``, ``www.x`` and long numbers (commits) are not among them."""

_AMOUNT: Final = re.compile(
    r"[0-9.,]{1,30} (?:[KMGT]?i?B/s|%|partitions/s|connections/s)(?: \([0-9.,]{1,30} B/s\))?|not set|unlimited", re.ASCII
)
"""Amounts as ``text.amount`` writes them; any other text that claims to be one is prose."""

_PUNCTUATION: Final = ".,;:)"
"""What follows a name rather than ends it; outside the code it means nothing to Markdown either."""
_LIST_MARK: Final = re.compile(r"[0-9]+[.)].*", re.DOTALL)

_MESSAGE_LIMITS: Final = 8


def code(text: str, *, limit: int = NAME_LIMIT) -> str:
    """Any text as a code span on one line: what does not print is escaped visibly, what is too long loses its middle."""
    return _span(shorten(escaped(text), limit))


def prose(text: str, *, limit: int = NAME_LIMIT, begins_line: bool = True) -> str:
    """Sentences that may quote strangers, on one line: plain words stay words, all else becomes code of ``limit`` characters."""
    parts: list[str] = []
    quoted: list[str] = []
    one_line = escaped(" ".join(text.splitlines())).strip()
    for word in shorten(one_line, _MESSAGE_LIMITS * limit).split(" "):
        begins_list = begins_line and not parts and _LIST_MARK.fullmatch(word)
        if begins_list or not _PLAIN_WORD.fullmatch(word):
            quoted.append(word)
            continue
        parts += _flushed(quoted, limit)
        parts.append(word)
    parts += _flushed(quoted, limit)
    return " ".join(parts)


def message_markdown(
    text: str, *, limit: int = NAME_LIMIT, begins_line: bool = True, place: Callable[[Span], str] | None = None
) -> str:
    """A message on one line: names, keys and flags as code, amounts that do not break. A plain string as ``prose``.

    ``place``: makes the Markdown of a place in a file, e.g. a link.
    """
    parts = parts_of(text)
    if len(parts) == 1 and parts[0].kind is PartKind.TEXT:
        return prose(text, limit=limit, begins_line=begins_line)
    whole = (part_markdown(part, begins=begins_line and not at, limit=limit, place=place) for at, part in enumerate(parts))
    return "".join(whole).strip()


def part_markdown(part: MessagePart, *, begins: bool, limit: int = NAME_LIMIT, place: Callable[[Span], str] | None = None) -> str:
    """One part of a message. ``begins``: it is the first of its line."""
    if part.span is not None and place is not None:
        return place(part.span)
    if part.kind not in (PartKind.TEXT, PartKind.AMOUNT):
        return code(part.text, limit=limit)
    if part.kind is PartKind.AMOUNT:
        return _unbroken(part.text) if _AMOUNT.fullmatch(part.text) else prose(part.text, limit=limit, begins_line=begins)
    before = " " if part.text[:1].isspace() and not begins else ""
    after = " " if part.text[-1:].isspace() and part.text.strip() else ""
    return f"{before}{prose(part.text, limit=limit, begins_line=begins)}{after}"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def in_cell(markdown: str) -> str:
    """What ``code`` or ``prose`` made, for a cell of a table: a pipe in it no longer ends the cell, even after a backslash."""
    return markdown.replace("|", r"\|")


def shorten(text: str, limit: int) -> str:
    """Text without its middle when it is longer than ``limit``, with its length."""
    if len(text) <= limit:
        return text
    return f"{text[: limit * 3 // 4]}…{text[-(limit // 4) :]} ({len(text)} characters)"


def fence(text: str) -> str:
    """A fence for a code block that no line of ``text`` can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _flushed(words: list[str], limit: int) -> list[str]:
    text = " ".join(words).strip()
    words.clear()
    name = text.rstrip(_PUNCTUATION)
    bracket = "(" if name.startswith("(") and ")" not in name and len(name) > 1 else ""
    return [bracket + _span(shorten(name.removeprefix(bracket), limit)) + text[len(name) :]] if text else []


def _span(text: str) -> str:
    """The shortest run of backticks that does not occur inside: parsers look no further than runs of 80."""
    if not text.strip():
        return ""
    runs = {len(run) for run in re.findall("`+", text)}
    ticks = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of Markdown, and how many rows had no room in it."""

    lines: tuple[str, ...] = ()
    left_out: int = 0


def size(lines: Iterable[str]) -> int:
    """Bytes of these lines in UTF-8, their line ends included."""
    return sum(len(line.encode()) + 1 for line in lines)


def rows_that_fit(rows: Iterable[str], room: int) -> list[str]:
    """The first rows that fit together into ``room`` bytes."""
    kept = []
    for row in rows:
        room -= size((row,))
        if room < 0:
            break
        kept.append(row)
    return kept


def fold(title: str, lines: Sequence[str], *, opened: bool = False) -> tuple[str, ...]:
    """Lines behind a title that opens them. ``title`` is HTML."""
    return ("<details open>" if opened else "<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", "")
