"""Where something is written down."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.entity import escaped


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A place in a file. ``line`` and ``column`` count from 1; ``file`` is the path as the user would type it.

    ``str(span)`` is for people: the path is escaped.
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{escaped(self.file)}:{self.line}:{self.column}"
