"""Tables for notebooks. Every cell is escaped: names of clients are texts of strangers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from reconciler.model import escaped

MOST_ROWS: Final = 200
"""A notebook keeps its outputs in its file."""


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, notes: Iterable[str] = ()) -> str:
    """A table with its title, and sentences below it."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS])
    left_out = [f"{len(rows) - MOST_ROWS:,} more rows are not shown."] if len(rows) > MOST_ROWS else []
    below = "".join(f"<p>{_cell(note)}</p>" for note in (*left_out, *notes))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><p><b>{_cell(title)}</b></p>{table}{below}</div>"


def _cell(value: object) -> str:
    # HTML knows no escape for characters that hide or reorder text, so they are escaped as for a terminal first.
    return "" if value is None else escape(escaped(str(value)))
