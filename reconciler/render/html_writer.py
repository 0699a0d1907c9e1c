"""A view as one HTML page without external files: the answer, numbers, and a section for each heading."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import Message, PartKind, display_name
from reconciler.render.html_page import (
    FoundRow,
    Masthead,
    PageSection,
    chip,
    filter_form,
    folded,
    found_table,
    items,
    message_html,
    page,
    text,
    tiles,
)
from reconciler.render.layout import (
    Block,
    Figure,
    Fold,
    LabelledWords,
    Line,
    Shown,
    Style,
    Table,
    TextSegment,
    View,
    columns_on_pages,
    rows_of,
    sections_of,
)
from reconciler.render.markdown_writer import title_on_pages
from reconciler.render.repository_links import NO_LINKS, RepositoryLinks

MOST_ROWS: Final = 5000
"""Rows of one table; the others are counted."""
_FEW_ROWS: Final = 200
"""The same in a notebook, which keeps its outputs in its file."""
_FILTERED: Final = 5
"""Rows from which on a table has a filter."""


def view_html(view: View, links: RepositoryLinks = NO_LINKS, *, scripts: tuple[str, ...] = ()) -> str:
    """A view as one HTML page. Equal views give equal bytes. ``scripts``: files that figures need, without ``.js``."""
    cluster = f", {display_name(view.cluster)}" if view.cluster else ""
    sections = sections_of(view.blocks)
    above = _body((block for head, inner in sections if head is None for block in inner), links)
    masthead = Masthead(
        kicker=f"Kafka quotas: {view.kind}{cluster}",
        answer=_text(view.answer),
        rest=view.lead,
        about=tuple(_words(each, links) for each in view.about),
        body=(*above, *(tiles(view.tiles_title, view.tiles) if view.tiles else ())),
    )
    foot = () if view.foot is None else (_words(view.foot, links),)
    below = (
        PageSection(place=head.place, title=head.title, count=head.count, body=tuple(_body(inner, links)))
        for head, inner in sections
        if head is not None
    )
    return page(f"Kafka quotas, {view.kind}{cluster}", masthead, below, footer=foot, scripts=scripts)


def view_fragment(view: View) -> str:
    """A view as HTML inside a page of others, such as a notebook: without script and style, and with few rows of each table."""
    parts = [f"<p><b>{_words(view.answer, NO_LINKS)}</b> {text(view.lead)}</p>"]
    for head, inner in sections_of(view.blocks):
        parts += [f"<h4>{text(head.title)}</h4>"] if head is not None else []
        parts += _body(inner, NO_LINKS, most=_FEW_ROWS)
    return f"<div>{''.join(parts)}</div>"


def _body(blocks: Iterable[Block], links: RepositoryLinks, *, most: int = MOST_ROWS) -> Iterator[str]:
    for is_line, group in itertools.groupby(blocks, key=lambda block: isinstance(block, Line)):
        if is_line:
            rows = [words for block in group if isinstance(block, Line) and (words := _words(block, links))]
            yield from items(rows) if len(rows) > 1 else (f"<p>{row}</p>" for row in rows)
            continue
        for block in group:
            yield from _block(block, links, most)


def _block(block: Block, links: RepositoryLinks, most: int) -> Iterator[str]:
    match block:
        case Table():
            yield from _table(block, links, most)
        case LabelledWords():
            rows = (_fact(label, words, links) for label, words in block.rows)
            yield from ('<dl class="facts">', *rows, "</dl>")
        case Fold(place=None):
            yield from folded(_text(block.title), _body(block.blocks, links, most=most), opened=block.opened)
        case Fold():
            state = next((segment.text for segment in block.title.on_pages if segment.chip), "")
            yield f'<details class="card" data-find="{text(state)}"{" open" if block.opened else ""}>'
            yield f'<summary><h3>{_words(block.title, links)}</h3></summary><div class="card-body" id="{block.place}">'
            yield from _body(block.blocks, links, most=most)
            yield "</div></details>"
        case Figure():
            yield from block.html()


def _fact(label: str, shown: Line, links: RepositoryLinks) -> str:
    """An amount stands beside others, a sentence has a row; nothing for a fact without words."""
    words = _words(shown, links)
    kind = "" if shown.on_pages and shown.on_pages[0].kind is PartKind.AMOUNT else ' class="sentence"'
    return f"<div{kind}><dt>{text(title_on_pages(label))}</dt><dd>{words}</dd></div>" if words else ""


def _text(shown: Line) -> str:
    return "".join(segment.text for segment in shown.on_pages).strip()


def _words(shown: Line, links: RepositoryLinks) -> str:
    """A line as HTML, without the blanks around it."""
    segments = shown.on_pages
    first = "".join(_segment(replace(segment, text=Shown(segment.text.lstrip())), links) for segment in segments[:1])
    return (first + "".join(_segment(segment, links) for segment in segments[1:])).strip()


def _segment(segment: TextSegment, links: RepositoryLinks) -> str:
    style = segment.style.page_class
    if segment.chip:
        return chip(segment.text, style or "faint")
    words = message_html(Message((segment.part,)), links)
    if segment.place is not None:
        return f'<a href="#{segment.place}">{words}</a>'
    if segment.kind is PartKind.TEXT and segment.style is Style.STRONG:
        return f"<strong>{words}</strong>"
    return f'<span class="{style}">{words}</span>' if style and words.strip() else words


def _table(block: Table, links: RepositoryLinks, most: int) -> Iterator[str]:
    columns, rows = columns_on_pages(block), list(rows_of(block))
    titles = [title_on_pages(column.title) for column in block.columns]
    chosen = next((at for at in columns if block.columns[at].chosen), None)
    if chosen is not None and len(rows) >= _FILTERED:
        yield from filter_form("Search", titles[chosen], dict.fromkeys(_text(row[chosen]) for row, _ in rows))
    numbers = frozenset(titles[at] for at in columns if block.columns[at].to_the_right)
    valued = {at for at in columns if any(_value(row[at]) >= 0 for row, _ in rows)}
    shown = (
        FoundRow(
            kind="" if chosen is None else _text(row[chosen]),
            cells=_cells(row, below, columns, links),
            sort=[_value(row[at]) if at in valued else None for at in columns],
        )
        for row, below in rows[:most]
    )
    yield from found_table([titles[at] for at in columns], shown, numbers=numbers, sortable=len(rows) > 1)
    if len(rows) > most:
        yield f'<p class="faint">{len(rows) - most:,} more are not listed here.</p>'


def _value(cell: Line) -> float:
    """The first number of a cell; -1 without one."""
    return next((segment.value for segment in cell.on_pages if segment.value is not None), -1.0)


def _cells(row: Sequence[Line], below: Sequence[Line], columns: Sequence[int], links: RepositoryLinks) -> list[str]:
    *cells, last = (_words(row[at], links) for at in columns)
    return [*cells, "<br>".join(filter(None, (last, *(_words(each, links) for each in below))))]
