"""Text with meaning instead of colours: lines of styled segments and tables, laid out and coloured at the very end."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NewType, TypeAlias

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, however wide. Where it is wrapped, every row but the first begins with ``hang`` blanks."""

    segments: tuple[TextSegment, ...]
    hang: int = 0

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(segment.text for segment in self.segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. ``least``: the fewest cells to which it may shrink by wrapping; ``None``: it never wraps."""

    title: str
    least: int | None = None
    to_the_right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one cell for each column; a row that is a ``Line`` goes across. A column without any text is left out.

    On a terminal too narrow for the columns, each row becomes a block: its first cell, and below it a line for each other.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Line, ...] | Line, ...]
    indent: int = 2
    titled: bool = True


Block: TypeAlias = Line | Table

_OF_PART: Final = {PartKind.ENTITY: Style.STRONG, PartKind.FLAG: Style.STRONG}


def message_segments(text: str) -> tuple[tuple[str, Style], ...]:
    """The parts of a message for ``line``: entities and flags stand out."""
    return tuple((part.text, _OF_PART.get(part.kind, Style.PLAIN)) for part in parts_of(text))


def line(*parts: str | tuple[str, Style], hang: int | None = None) -> Line:
    """Build a line: plain strings, or pairs of text and style. No text can end the line or move a cursor.

    ``hang`` is two more than the blanks that the line begins with, unless it is given.
    """
    segments = tuple(_segment(p, Style.PLAIN) if isinstance(p, str) else _segment(*p) for p in parts)
    if hang is None:
        first = segments[0].text if segments else ""
        hang = len(first) - len(first.lstrip(" ")) + 2
    return Line(segments=segments, hang=hang)


def labelled(label: str, style: Style, *parts: str | tuple[str, Style]) -> Line:
    """A line that begins with a label; where it is wrapped, the other rows begin below the text after the label."""
    return line((label, style), *parts, hang=len(label))


def table(
    columns: Iterable[Column],
    rows: Iterable[Iterable[Line | str | tuple[str, Style]] | Line],
    *,
    indent: int = 2,
    titled: bool = True,
) -> Table:
    """Build a table: a cell is a line, a plain string, or a pair of text and style."""
    return Table(
        columns=tuple(columns),
        rows=tuple(row if isinstance(row, Line) else tuple(_cell(cell) for cell in row) for row in rows),
        indent=indent,
        titled=titled,
    )


def _cell(given: Line | str | tuple[str, Style]) -> Line:
    return given if isinstance(given, Line) else line(given, hang=0)


def _segment(text: str, style: Style) -> TextSegment:
    return TextSegment(text=Shown(escaped(text[:])), style=style)
