"""Lists and tables in Markdown that keep to a number of bytes: whole rows are dropped, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

OPEN_ROWS: Final = 15
"""More rows than this are folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of Markdown, and how many rows had no room in it."""

    lines: tuple[str, ...] = ()
    left_out: int = 0


def size(lines: Iterable[str]) -> int:
    """Bytes of these lines in UTF-8, their line ends included."""
    return sum(len(one.encode()) + 1 for one in lines)


def fitting(rows: Iterable[str], room: int) -> list[str]:
    """The first rows that fit together into ``room`` bytes."""
    kept = []
    for row in rows:
        room -= size((row,))
        if room < 0:
            break
        kept.append(row)
    return kept


def folded(title: str, lines: Sequence[str]) -> tuple[str, ...]:
    """Lines behind a title that opens them. ``title`` is plain text of this tool."""
    return ("<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", "")


def listed(title: str, rows: Iterable[str], *, total: int, room: int, opened: bool = False) -> Section:
    """A titled list of ``total`` rows in at most ``room`` bytes, folded when it is long and not ``opened``.

    No more rows are asked for than have room.
    """
    folds = total > OPEN_ROWS and not opened
    kept = fitting(rows, room - size(folded(title, ()) if folds else (f"**{title}**", "", "")))
    if not kept:
        return Section(left_out=total)
    return Section(lines=folded(title, kept) if folds else (f"**{title}**", "", *kept, ""), left_out=total - len(kept))
