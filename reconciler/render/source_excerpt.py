"""A line of a file below a finding about it, with a caret under the column: cut around the column where it is wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.model import Span, escaped
from reconciler.render.layout import cells
from reconciler.render.styled import Line, Style, line

_WITHOUT_WIDTH: Final = 100
_LEAST: Final = 12
_MARK: Final = "..."


def excerpt_lines(text: str, span: Span, style: Style, *, width: int | None) -> Iterator[Line]:
    """The source ``text`` of the line of ``span`` behind its number, then a caret of this style under its column.

    ``width``: the columns of the terminal; without it 100. Characters that do not print are escaped, tabs included.
    """
    number = f"  {span.line} | "
    shown, column = _cut(text, span.column - 1, max((width or _WITHOUT_WIDTH) - len(number), _LEAST))
    blank = f"{' ' * (len(number) - 2)}| {' ' * column}"
    yield line((f"{number}{shown}", Style.FAINT), hang=0)
    yield line((blank, Style.FAINT), ("^", style), hang=0)


def _cut(text: str, at: int, room: int) -> tuple[str, int]:
    """As much of the text around the character ``at`` as fits, and the column where that character begins."""
    at = min(max(at, 0), len(text))
    # Only what may be shown is looked at: a line can have millions of characters.
    before = [escaped(letter) for letter in text[max(at - room, 0) : at]]
    after = [escaped(letter) for letter in text[at : at + room + 1]]
    starts, ends = at <= room, len(text) - at <= room + 1
    right = cells("".join(after)) if ends else room
    left = _taken(reversed(before), room - min(right, room // 3), whole=starts)
    head = "".join(before[len(before) - left :])
    if not (starts and left == len(before)):
        head = f"{_MARK}{head}"
    rest = room - cells(head)
    kept = _taken(after, rest, whole=ends)
    tail = "".join(after[:kept])
    if not (ends and kept == len(after)):
        tail = f"{tail}{_MARK}"
    return f"{head}{tail}", cells(head)


def _taken(pieces: Iterable[str], room: int, *, whole: bool) -> int:
    """How many of the first pieces fit into ``room`` columns; where they are not all, beside the mark of a cut."""
    listed = list(pieces)
    if whole and cells("".join(listed)) <= room:
        return len(listed)
    used = taken = 0
    for piece in listed:
        used += cells(piece)
        if used > room - len(_MARK):
            break
        taken += 1
    return taken
