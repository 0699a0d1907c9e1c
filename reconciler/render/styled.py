"""Text with meaning instead of colours: lines of styled segments, plain text or coloured at the very end."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NewType, TextIO, TypeAlias

from reconciler.model import escaped


class Style(enum.StrEnum):
    """What a piece of text means; the values are rich's style names."""

    PLAIN = ""
    STRONG = "bold"
    FAINT = "dim"
    CREATE = "green"
    UPDATE = "yellow"
    DELETE = "red"
    BAD = "bold red"
    WARN = "bold yellow"
    GOOD = "bold green"


Shown = NewType("Shown", str)
"""Text of which every character prints: ``line`` escapes the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of text of one style."""

    text: Shown
    style: Style = Style.PLAIN


Line: TypeAlias = tuple[Segment, ...]


def line(*parts: str | tuple[str, Style]) -> Line:
    """Build a line: plain strings, or pairs of text and style. No text can end the line or move a cursor."""
    return tuple(_segment(p, Style.PLAIN) if isinstance(p, str) else _segment(*p) for p in parts)


def _segment(text: str, style: Style) -> Segment:
    return Segment(text=Shown(escaped(text[:])), style=style)


def plain(lines: Iterable[Line]) -> str:
    """The text without any style; every line ends in a newline."""
    return "".join("".join(segment.text for segment in one) + "\n" for one in lines)


def write(lines: Sequence[Line], stream: TextIO, *, color: bool) -> None:
    """Write lines to a stream, coloured or not."""
    if not color:
        stream.write(plain(lines))
        return
    # rich takes a tenth of a second to import, so only a coloured terminal pays for it.
    from rich.console import Console
    from rich.text import Text

    # Who calls has decided; rich would look at TERM and NO_COLOR once more, and decide otherwise.
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    for one in lines:
        console.print(Text.assemble(*((segment.text, segment.style.value) for segment in one)))
