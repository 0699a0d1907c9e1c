"""Small pieces of the page of a report: tables that keep their meaning on a telephone, moments, and bars."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from reconciler.model import DriftClass
from reconciler.render.html_page import styled, text

MOST_ROWS: Final = 200
"""Rows of a table that is plain HTML; what is left out is counted below it."""

_FEW: Final = 3
_FOLDER: Final = Path(__file__).parent / "page"

DRIFT_WORDS: Final = {
    DriftClass.IN_SYNC: ("in sync", "good"),
    DriftClass.UNAPPLIED: ("not applied", "warn"),
    DriftClass.CHANGED: ("changed by hand", "bad"),
    DriftClass.MISSING: ("removed by hand", "bad"),
    DriftClass.DIFFERS: ("differs", "bad"),
    DriftClass.ADDED: ("added", "bad"),
    DriftClass.UNMANAGED: ("unmanaged", "faint"),
}


@cache
def page_file(name: str) -> str:
    """A file that is part of every page: script, style, or HTML that is always the same."""
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip("\n")


def moment(at: datetime.datetime) -> str:
    """``2026-01-02 12:00 UTC``."""
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"


def time_element(at: datetime.datetime) -> str:
    """The same for HTML, with the machine's form beside it."""
    exact = at.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f'<time datetime="{exact}">{moment(at)}</time>'


def count(number: int, word: str, words: str | None = None) -> str:
    """``1 entity``, ``2,000 entities``."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def quoted(value: str) -> str:
    """Text of a stranger within a sentence, kept from turning round what is beside it."""
    return f"<bdi>{text(' '.join(value.splitlines()))}</bdi>"


def drift_word(drift: DriftClass | None) -> str:
    """A class of drift in words."""
    if drift is None:
        return styled("not compared", "faint")
    return styled(*DRIFT_WORDS[drift])


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: frozenset[str] = frozenset(), of: int = 0
) -> Iterator[str]:
    """A table whose first column heads its rows; ``caption`` and cells are HTML. Rows after ``MOST_ROWS`` are only counted.

    Roles are said, because a narrow screen lays it out as blocks, and browsers take the meaning of a table away then.
    """
    classes = ["number" if head in numbers else "" for head in heads]
    yield f'<table role="table"><caption>{caption}</caption>'
    yield '<thead role="rowgroup"><tr role="row">'
    yield "".join(
        f'<th scope="col" role="columnheader"{_class(one)}>{text(head)}</th>' for head, one in zip(heads, classes, strict=True)
    )
    yield '</tr></thead><tbody role="rowgroup">'
    for number, row in enumerate(rows):
        if number == MOST_ROWS:
            break
        yield _row(heads, classes, row)
    yield "</tbody></table>"
    if of > MOST_ROWS:
        yield f'<p class="faint">{of - MOST_ROWS:,} more are not listed here.</p>'


def _row(heads: Sequence[str], classes: Sequence[str], row: Sequence[str]) -> str:
    cells = [f'<th scope="row" role="rowheader" data-label="{text(heads[0])}">{row[0]}</th>']
    for head, kind, cell in zip(heads[1:], classes[1:], row[1:], strict=True):
        kinds = " ".join(word for word in (kind, "" if cell else "empty") if word)
        cells.append(f'<td role="cell"{_class(kinds)} data-label="{text(head)}">{cell}</td>')
    return f'<tr role="row">{"".join(cells)}</tr>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def section(place: str, title: str, body: Iterable[str], *, needs_script: bool = False) -> Iterator[str]:
    """A part of the page that the contents lead to."""
    hidden = " data-needs-script hidden" if needs_script else ""
    yield f'<section id="{place}" aria-labelledby="{place}-title"{hidden}>'
    yield f'<h2 id="{place}-title" tabindex="-1">{text(title)}</h2>'
    yield from body
    yield "</section>"


def bar(share: float) -> str:
    """A part of a limit as a bar with the limit marked at two thirds; it says nothing that the text beside it does not."""
    width = 200 * min(max(share, 0.0), 1.5) / 3
    style = "bar over" if share > 1 else "bar"
    return (
        '<svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" x="0" y="3" width="100" height="4"/>'
        f'<rect class="{style}" x="0" y="1" width="{width:.1f}" height="8"/>'
        '<rect class="limit" x="66.3" y="0" width=".7" height="10"/></svg>'
    )


def notes(lines: Iterable[str], *, opened: bool = True) -> Iterator[str]:
    """Sentences to know, each text; folded unless ``opened``, and always when there are many."""
    rows = [f"<li>{text(' '.join(line.splitlines()))}</li>" for line in lines]
    if not rows:
        return
    state = " open" if opened and len(rows) <= _FEW else ""
    yield f'<details{state}><summary>{count(len(rows), "note")}</summary><ul class="plain">{"".join(rows)}</ul></details>'
