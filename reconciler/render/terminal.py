"""Blocks as rows of characters: for a terminal of some width, or for a file.

Without a width (a pipe, a file, a CI log) a line is never wrapped: one fact stays on one line for ``grep`` and for what turns
``file:line:column`` into links. Columns of a table are aligned there, too.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TextIO, TypeAlias

from reconciler.render.layout import Block, Column, Figure, Fold, Heading, LabelledWords, Line, Shown, Style, Table, TextSegment
from reconciler.text import duration, progress_amount

_GAP: Final = 2

_NARROWEST: Final = 20

_WIDEST_PADDING: Final = 72
"""Without a width: a longer cell moves the rest of its own row only."""

_LEAST_LABEL: Final = 11

_JOINTS: Final = "-_./:=;"

_UNIT: Final = r"(?:[KMGT]i)?B/s|%|x|s|min|h|days|ms|connections/s|partitions/s"

_WORD: Final = re.compile(rf"(?:\S|(?<=[0-9]) (?=(?:{_UNIT})(?![\w/])))+")
"""What is never broken where it fits a row: a word, or a number with its unit."""


def plain(blocks: Iterable[Block], *, width: int | None = None) -> str:
    """Blocks as text without styles, wrapped at ``width`` columns; every row ends in a newline."""
    return "".join(f"{''.join(segment.text for segment in row)}\n" for row in _rows(blocks, width))


def write(blocks: Iterable[Block], stream: TextIO, *, color: bool, width: int | None = None) -> None:
    """Write to a stream, coloured or not, wrapped to ``width`` columns or not at all."""
    paint = _painted if color else operator.attrgetter("text")
    stream.write("".join(f"{''.join(map(paint, row))}\n" for row in _rows(blocks, width)))


def cells(text: str) -> int:
    """Return the columns of a terminal that a text takes: 2 for wide characters and emoji, 0 for combining marks."""
    if text.isascii():
        return len(text)
    # Behind a blank, as in a table: a mark that begins a text takes a column of its own there.
    measured = _wide()(f" {text}") - 1
    return measured if measured >= 0 else len(text)


@functools.cache
def _wide() -> Callable[[str], int]:
    # Most outputs have no such character and do without the import.
    from wcwidth import wcswidth

    return wcswidth


def _painted(segment: TextSegment) -> str:
    code = segment.style.value
    return f"\x1b[{code}m{segment.text}\x1b[0m" if code and segment.text else segment.text


Row: TypeAlias = tuple[TextSegment, ...]


def _rows(blocks: Iterable[Block], width: int | None) -> Iterator[Row]:
    usable = None if width is None else max(width, _NARROWEST)
    for block in blocks:
        match block:
            case Line():
                yield from _wrapped(block, usable) if block.segments or block.pages is None else ()
            case Table():
                yield from _table_rows(block, usable)
            case Heading():
                yield from _wrapped(block.line, usable) if block.line.segments else ()
            case LabelledWords():
                yield from _facts(block, usable)
            case Fold():
                yield from _wrapped(block.title, usable) if block.title.segments else ()
                yield from _rows(block.blocks, width)
            case Figure():
                pass


def _facts(facts: LabelledWords, width: int | None) -> Iterator[Row]:
    rows = [(label, words) for label, words in facts.rows if words.text]
    labels = max((len(label) for label, _ in rows), default=0)
    labels = max(labels, _LEAST_LABEL)
    for label, words in rows:
        head = TextSegment(text=Shown(f"    {label:<{labels}}  "), style=Style.FAINT)
        yield from _wrapped(Line(segments=(head, *words.segments), hang=len(head.text)), width)


def _wrapped(source: Line, width: int | None, *, indented: bool = True) -> Iterator[Row]:
    text = source.text
    if width is None or source.whole or cells(text) <= width:
        yield source.segments
        return
    hang = min(source.hang, width // 2) if indented else 0
    blanks = (TextSegment(text=Shown(" " * hang)),) if hang else ()
    for number, (start, end) in enumerate(_cuts(text, width, hang)):
        part = tuple(_slice(source.segments, start, end))
        yield (*blanks, *part) if number else part


def _cuts(text: str, width: int, hang: int) -> Iterator[tuple[int, int]]:
    """Yield where each row of a text begins and ends; blanks between two rows are in neither."""
    start, end, room = 0, 0, width
    for match in _WORD.finditer(text):
        if end and cells(text[start : match.end()]) > room:
            yield start, end
            start, room = match.start(), width - hang
        while cells(text[start : match.end()]) > room:
            # Only a word that is alone on its row gets here: it is broken where the row is full.
            length = _breaking(text[start : match.end()], room)
            yield start, start + length
            start, room = start + length, width - hang
        end = match.end()
    if end > start:
        yield start, end


def _breaking(text: str, room: int) -> int:
    """Return how many characters of a long word go on this row: up to a joint of the word, if one is in the second half."""
    length = fitting(text, room)
    joint = max(text.rfind(mark, 0, length) for mark in _JOINTS) + 1
    return joint if 2 * joint > length else length


def fitting(text: str, room: int) -> int:
    """Return how many characters of a text fit: at least one, and never half a character with its marks."""
    if text.isascii():
        return max(1, room)
    from wcwidth import iter_graphemes

    length = used = 0
    for grapheme in iter_graphemes(text):
        used += cells(grapheme)
        if used > room and length:
            break
        length += len(grapheme)
    return length


def _slice(segments: Iterable[TextSegment], start: int, end: int) -> Iterator[TextSegment]:
    at = 0
    for segment in segments:
        text = segment.text[max(start - at, 0) : max(end - at, 0)]
        at += len(segment.text)
        if text:
            yield TextSegment(text=Shown(text), style=segment.style)


def _table_rows(given: Table, width: int | None) -> Iterator[Row]:
    table = _with_lines_across(given)
    used = [
        index
        for index in range(len(table.columns))
        if any(row[index].segments and row[index].text for row in table.rows if not isinstance(row, Line))
    ]
    columns = [table.columns[index] for index in used]
    rows = [row if isinstance(row, Line) else tuple(row[index] for index in used) for row in table.rows]
    natural = [
        max(cells(column.title) if table.titled else 0, *(cells(row[at].text) for row in rows if not isinstance(row, Line)))
        for at, column in enumerate(columns)
    ]
    if width is None:
        widths: Sequence[int] | None = [min(column_width, _WIDEST_PADDING) for column_width in natural]
    else:
        widths = _fitted(columns, natural, width - table.indent - _GAP * max(len(columns) - 1, 0))
    if widths is None:
        yield from _as_lines(table, rows, width or 0)
        return
    if table.titled and columns:
        titles = tuple(Line(segments=(TextSegment(text=Shown(column.title), style=Style.FAINT),)) for column in columns)
        yield from _aligned(titles, columns, widths, table.indent, wraps=width is not None)
    for row in rows:
        if isinstance(row, Line):
            yield from _wrapped(row, width)
        elif columns:
            yield from _aligned(row, columns, widths, table.indent, wraps=width is not None)


def _with_lines_across(table: Table) -> Table:
    """Write columns that go across as lines above the rows that share them.

    Of several such columns, an empty line stands between the groups of the first.
    """
    across = sum(column.across for column in table.columns)
    if not across:
        return table
    rows: list[tuple[Line, ...] | Line] = []
    above: tuple[Line, ...] = ()
    for row in table.rows:
        if isinstance(row, Line):
            rows.append(row)
            continue
        shared = next((at for at in range(min(across, len(above))) if row[at] != above[at]), len(above))
        if above and shared == 0 and across > 1:
            rows.append(Line(segments=()))
        rows += (cell for cell in row[shared:across] if cell.segments)
        rows.append(row[across:])
        above = row[:across]
    return Table(columns=table.columns[across:], rows=tuple(rows), indent=table.indent, titled=table.titled)


def _fitted(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int] | None:
    """The widths of columns that fit: those that wrap shrink, the widest first; ``None`` when they cannot fit."""
    widths = list(natural)
    least = [
        column_width if column.least is None else min(column_width, column.least)
        for column, column_width in zip(columns, natural, strict=True)
    ]
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max((at for at, width in enumerate(widths) if width > least[at]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _aligned(row: Sequence[Line], columns: Sequence[Column], widths: Sequence[int], indent: int, *, wraps: bool) -> Iterator[Row]:
    pairs = zip(row, widths, strict=True)
    wrapped = [list(_wrapped(cell, width if wraps else None, indented=False)) for cell, width in pairs]
    for parts in itertools.zip_longest(*wrapped, fillvalue=()):
        made: list[TextSegment] = []
        owed = indent
        for part, column, width in zip(parts, columns, widths, strict=True):
            missing = max(width - sum(cells(segment.text) for segment in part), 0)
            if column.to_the_right:
                owed, missing = owed + missing, 0
            if any(segment.text for segment in part):
                made += (TextSegment(text=Shown(" " * owed)), *part)
                owed = 0
            owed += missing + _GAP
        yield tuple(made)


def _as_lines(table: Table, rows: Iterable[tuple[Line, ...] | Line], width: int) -> Iterator[Row]:
    """Yield each row as a wrapped line, with a gap between its cells."""
    gap, indent = (TextSegment(text=Shown(" " * blanks)) for blanks in (_GAP, table.indent))
    for row in rows:
        if isinstance(row, Line):
            yield from _wrapped(row, width)
            continue
        parts = (part for cell in row if cell.text for part in (gap, *cell.segments))
        yield from _wrapped(Line(segments=(indent, *itertools.islice(parts, 1, None)), hang=table.indent + 2), width)


_SURE_S: Final = 1.0
"""A rate of a shorter time promises too much."""


def progress_text(step: str, count: tuple[float, float | None, str] | None, *, per_s: float, seconds: float) -> str:
    """``reading traffic: 61 %, 14.2 of 23.3 GiB, 1.1 GiB/s, 0:08 left (12 s)``; ``seconds``: since the step began.

    ``count``: how much is done, of how much, and the counted things in the plural, or bytes. ``per_s``: since the first count.
    """
    if count is None:
        return f"{step} ({duration(seconds)})"
    done, total, unit = count
    figures = [f"{min(done / total, 1.0) * 100:.0f} %"] if total else []
    figures.append(progress_amount(done, total, unit))
    if seconds >= _SURE_S and per_s >= (2 if unit else 0.001):
        figures.append(f"{progress_amount(per_s, None, unit)}/s")
    if seconds >= _SURE_S and per_s > 0 and total is not None and done < total:
        minutes, rest = divmod(round((total - done) / per_s), 60)
        figures.append(f"{minutes}:{rest:02} left")
    return f"{step}: {', '.join(figures)} ({duration(seconds)})"
