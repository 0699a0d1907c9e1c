"""Text with meaning instead of colours: lines of styled segments, plain text or coloured at the very end."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NewType, TextIO, TypeAlias

from reconciler.model import PartKind, escaped, parts_of


class Style(enum.StrEnum):
    """What a piece of text means; the values are parameters of ANSI's SGR sequence (ECMA-48, 8.3.117)."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    CREATE = "32"
    UPDATE = "33"
    DELETE = "31"
    BAD = "1;31"
    WARN = "1;33"
    GOOD = "1;32"


Shown = NewType("Shown", str)
"""Text of which every character prints: ``line`` escapes the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSegment:
    """A run of text of one style."""

    text: Shown
    style: Style = Style.PLAIN


Line: TypeAlias = tuple[TextSegment, ...]


_OF_PART: Final = {PartKind.ENTITY: Style.STRONG, PartKind.FLAG: Style.STRONG}


def message_segments(text: str) -> tuple[tuple[str, Style], ...]:
    """The parts of a message for ``line``: entities and flags stand out."""
    return tuple((part.text, _OF_PART.get(part.kind, Style.PLAIN)) for part in parts_of(text))


def line(*parts: str | tuple[str, Style]) -> Line:
    """Build a line: plain strings, or pairs of text and style. No text can end the line or move a cursor."""
    return tuple(_segment(p, Style.PLAIN) if isinstance(p, str) else _segment(*p) for p in parts)


def _segment(text: str, style: Style) -> TextSegment:
    return TextSegment(text=Shown(escaped(text[:])), style=style)


def plain(lines: Iterable[Line]) -> str:
    """The text without any style; every line ends in a newline."""
    return "".join("".join(segment.text for segment in one) + "\n" for one in lines)


def write(lines: Sequence[Line], stream: TextIO, *, color: bool) -> None:
    """Write lines to a stream, coloured or not; the caller has looked at ``NO_COLOR`` and at the terminal."""
    shown = _coloured if color else plain
    stream.write(shown(lines))


def _coloured(lines: Iterable[Line]) -> str:
    return "".join("".join(_painted(segment) for segment in one) + "\n" for one in lines)


def _painted(segment: TextSegment) -> str:
    code = segment.style.value
    return f"\x1b[{code}m{segment.text}\x1b[0m" if code and segment.text else segment.text
