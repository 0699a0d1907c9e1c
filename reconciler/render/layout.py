"""A result for people, built once: styled lines, tables and headings, which three writers turn into text, Markdown and a page.

Nothing here escapes for a form of output. A segment keeps what it is (a name, an amount, a place), and each writer escapes it
in its own way.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NewType, TypeAlias

from reconciler.model import Entity, ManifestCommit, Message, MessagePart, PartKind, Span, escaped, name_part


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

    @property
    def page_class(self) -> str:
        """The class of a page; empty where the style is nothing there."""
        return _PAGE_CLASSES.get(self, "")


_PAGE_CLASSES: Final = {
    Style.BAD: "bad",
    Style.DELETE: "bad",
    Style.WARN: "warn",
    Style.UPDATE: "warn",
    Style.GOOD: "good",
    Style.CREATE: "good",
    Style.FAINT: "faint",
}


Shown = NewType("Shown", str)
"""Text of which every character prints: ``line`` escapes the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSegment:
    """A run of text of one style. ``kind``, ``value`` and ``span`` are those of a part of a message.

    ``chip``: a short state. ``place``: what the text is a link to on a page.
    """

    text: Shown
    style: Style = Style.PLAIN
    kind: PartKind = PartKind.TEXT
    value: float | None = None
    span: Span | None = None
    chip: bool = False
    place: str | None = None

    @property
    def part(self) -> MessagePart:
        """The same without its style."""
        return MessagePart(kind=self.kind, text=self.text, value=self.value, span=self.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, however wide. Where it is wrapped, every row but the first begins with ``hang`` blanks.

    ``pages``: what Markdown and pages show in place of ``segments``, where that differs. A terminal prints no row for a line that
    is for pages alone. ``whole``: it is never wrapped, so that it can be copied.
    """

    segments: tuple[TextSegment, ...]
    hang: int = 0
    pages: tuple[TextSegment, ...] | None = None
    whole: bool = False

    @property
    def text(self) -> str:
        """The line of a terminal without its styles."""
        return "".join(segment.text for segment in self.segments)

    @property
    def on_pages(self) -> tuple[TextSegment, ...]:
        """The segments that Markdown and pages show."""
        return self.segments if self.pages is None else self.pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. ``least``: the fewest cells to which it may shrink by wrapping; ``None``: it never wraps.

    ``across``: a terminal writes the cell as a line above the rows that share it. These columns come first. On a page, ``heads``
    comes first, rows are filtered by ``chosen``, and stand in the order of the values of ``sorts``.
    """

    title: str
    least: int | None = None
    to_the_right: bool = False
    across: bool = False
    heads: bool = False
    chosen: bool = False
    sorts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one cell for each column; a row that is a ``Line`` belongs to the row above it. A column without text is left out.

    On a terminal too narrow for the columns, each row becomes a line that wraps.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Line, ...] | Line, ...]
    indent: int = 2
    titled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The begin of a section. A terminal prints ``line``, if it has text; ``title`` and ``count`` head Markdown and pages.

    ``first``: Markdown and pages show the section before all others.
    """

    title: str
    line: Line
    count: int | None = None
    first: bool = False

    @property
    def place(self) -> str:
        """The name for links to the section: of the words before a colon."""
        return re.sub("[^a-z0-9]+", "-", self.title.partition(":")[0].lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledWords:
    """Words behind labels, one below the other; those without words are left out."""

    rows: tuple[tuple[str, Line], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a page and Markdown show at a click on the title; a terminal prints all. ``place``: what a link names."""

    title: Line
    blocks: tuple[Block, ...]
    opened: bool = False
    place: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What only a page shows; ``html`` makes it."""

    html: Callable[[], Iterator[str]]


Block: TypeAlias = "Line | Table | Heading | LabelledWords | Fold | Figure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number at the top of a page. ``style``: ``bad``, ``warn``, ``good`` or ``faint``; ``place``: the section it leads to."""

    number: int
    words: str
    style: str
    place: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A result for people: what it is of, the sections, and the answer, which is last in a terminal and first elsewhere.

    ``lead`` follows the answer of a page, ``about`` are facts below it, ``tiles`` its numbers, which ``tiles_title`` explains.
    """

    kind: str
    cluster: str | None
    title: Line
    answer: Line
    blocks: tuple[Block, ...]
    foot: Line | None = None
    lead: str = ""
    about: tuple[Line, ...] = ()
    tiles: tuple[Tile, ...] = ()
    tiles_title: str = ""

    @property
    def lines(self) -> tuple[Block, ...]:
        """The whole for a terminal, from top to bottom."""
        return (self.title, *self.blocks, self.answer, *(() if self.foot is None else (self.foot,)))


Words: TypeAlias = str | Entity | Span | MessagePart | TextSegment
"""What a line is built from. The parts of a message stay apart: entities and flags stand out."""


def line(
    *parts: Words | tuple[Words, Style], hang: int | None = None, pages: Iterable[Words | tuple[Words, Style]] | None = None
) -> Line:
    """Build a line of words, or pairs of words and style. No text can end the line or move a cursor.

    ``hang`` is two more than the blanks that the line begins with, unless it is given.
    """
    segments = tuple(segment for part in parts for segment in _segments(part))
    if hang is None:
        first = segments[0].text if segments else ""
        hang = len(first) - len(first.lstrip(" ")) + 2
    shown = None if pages is None else tuple(segment for part in pages for segment in _segments(part))
    return Line(segments=segments, hang=hang, pages=shown)


def labelled(label: str, style: Style, *parts: Words | tuple[Words, Style]) -> Line:
    """A line that begins with a label; where it is wrapped, the other rows begin below the text after the label."""
    return line((label, style), *parts, hang=len(label))


def chip(text: str, style: Style, *, value: float | None = None) -> TextSegment:
    """A short state, such as a verdict or a severity. ``value``: what a page sorts by."""
    return TextSegment(text=Shown(escaped(text)), style=style, chip=True, value=value)


def linked_name(text: str, place: str | None) -> TextSegment:
    """A name that is a link to a place on a page, if there is one."""
    return TextSegment(text=Shown(escaped(text)), kind=PartKind.NAME, place=place)


def commit_line(source: ManifestCommit) -> Line:
    """Return a line with the commit of the manifests of a result, which are in one."""
    return line("Commit ", name_part((source.commit or "")[:12]), " with changes that are not committed" if source.dirty else "")


def note_line(words: str) -> Line:
    """A note below the heading that pages have for notes."""
    return line(("Note: ", Style.FAINT), words, hang=len("Note: "), pages=(words,))


def heading(title: str, *parts: Words | tuple[Words, Style], count: int | None = None, first: bool = False) -> Heading:
    """Build a heading; ``parts`` are its line in a terminal."""
    return Heading(title=title, line=line(*parts), count=count, first=first)


def table(
    columns: Iterable[Column],
    rows: Iterable[Iterable[Line | Words | tuple[Words, Style]] | Line],
    *,
    indent: int = 2,
    titled: bool = True,
) -> Table:
    """Build a table: a cell is a line, words, or a pair of words and style."""
    return Table(
        columns=tuple(columns),
        rows=tuple(
            row if isinstance(row, Line) else tuple(cell if isinstance(cell, Line) else line(cell, hang=0) for cell in row)
            for row in rows
        ),
        indent=indent,
        titled=titled,
    )


_OF_PART: Final = {PartKind.ENTITY: Style.STRONG, PartKind.FLAG: Style.STRONG}


def _segments(part: Words | tuple[Words, Style]) -> tuple[TextSegment, ...]:
    words, style = part if isinstance(part, tuple) and not isinstance(part, Span) else (part, None)
    match words:
        case Message():
            return tuple(_segment(each, style) for each in words.parts)
        case str():
            return (TextSegment(text=Shown(escaped(words)), style=style or Style.PLAIN),)
        case TextSegment():
            return (words,)
        case MessagePart():
            return (_segment(words, style),)
        case Entity():
            return (_segment(MessagePart(kind=PartKind.ENTITY, text=str(words)), style),)
    return (_segment(MessagePart(kind=PartKind.PLACE, text=str(words), span=words), style),)


def _segment(part: MessagePart, style: Style | None) -> TextSegment:
    shown = _OF_PART.get(part.kind, Style.PLAIN) if style is None else style
    return TextSegment(text=Shown(escaped(part.text)), style=shown, kind=part.kind, value=part.value, span=part.span)


def sections_of(blocks: Iterable[Block]) -> list[tuple[Heading | None, tuple[Block, ...]]]:
    """The blocks below each heading, for Markdown and pages; those before the first one have no heading, and are first."""
    sections: list[tuple[Heading | None, list[Block]]] = [(None, [])]
    for block in blocks:
        if isinstance(block, Heading):
            sections.append((block, []))
        elif not isinstance(block, Line) or any(segment.text.strip() for segment in block.on_pages):
            sections[-1][1].append(block)
    filled = [(head, tuple(inner)) for head, inner in sections if inner]
    return sorted(filled, key=lambda section: 0 if section[0] is None else 1 if section[0].first else 2)


def cell_value(cell: Line) -> float:
    """Return the first number of a cell on a page; -1 without one."""
    return next((segment.value for segment in cell.on_pages if segment.value is not None), -1.0)


def rows_on_pages(table: Table) -> list[tuple[tuple[Line, ...], tuple[Line, ...]]]:
    """Return each row of a table with the lines that belong to it, in the order of pages."""
    at = next((at for at, column in enumerate(table.columns) if column.sorts), None)
    rows = _rows_of(table)
    return list(rows) if at is None else sorted(rows, key=lambda row: cell_value(row[0][at]))


def _rows_of(table: Table) -> Iterator[tuple[tuple[Line, ...], tuple[Line, ...]]]:
    row: tuple[Line, ...] | None = None
    below: list[Line] = []
    for each in table.rows:
        if isinstance(each, Line):
            below.append(each)
            continue
        if row is not None:
            yield row, tuple(below)
            below = []
        row = each
    if row is not None:
        yield row, tuple(below)


def columns_on_pages(table: Table) -> tuple[int, ...]:
    """The columns with any text on pages, in their order there."""
    rows = [row for row in table.rows if not isinstance(row, Line)]
    used = (at for at in range(len(table.columns)) if any(each.text for row in rows for each in row[at].on_pages))
    return tuple(sorted(used, key=lambda at: not table.columns[at].heads))
