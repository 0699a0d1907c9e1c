"""The frame of every page and its pieces: one file that loads nothing, for telephones, keyboards, the dark and paper.

A page is complete without script. The policy allows its own script and style sheet by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from reconciler import __version__
from reconciler.model import Message, MessagePart, PartKind, Span, display_name, escaped, parts_of
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
    Tile,
    View,
    columns_on_pages,
    rows_of,
    sections_of,
)
from reconciler.render.markdown_writer import title_on_pages
from reconciler.render.repository_links import NO_LINKS, RepositoryLinks

_LONG_NAME: Final = 2000
_LONG_WORD: Final = re.compile(rf"\S{{{_LONG_NAME + 1},}}")
_SHOWN_START: Final = 300
_SHOWN_END: Final = 60
_FOLDER: Final = Path(__file__).parent / "page"
_READING: Final = "reading"
"""The script that every page has, after its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A part of a page that the jump list leads to; ``body`` is HTML. ``count`` stands beside its title."""

    place: str
    title: str
    body: tuple[str, ...]
    count: int | None = None
    needs_script: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Masthead:
    """The top of a page: ``answer`` is its heading, ``rest`` the sentences after it; both are text. ``about``, ``body``: HTML."""

    kicker: str
    answer: str
    rest: str = ""
    about: tuple[str, ...] = ()
    body: tuple[str, ...] = ()


@cache
def page_file(name: str) -> str:
    """A file that is part of pages: script, style, or HTML that is always the same."""
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip("\n")


@cache
def page_style() -> str:
    """The style sheet."""
    return page_file("page.css")


@cache
def page_script(*names: str) -> str:
    """The script: these files and the one that every page has, one after the other, in a scope of their own."""
    return '"use strict";\n(() => {\n' + "\n\n".join(page_file(f"{name}.js") for name in (*names, _READING)) + "\n})();\n"


def policy(*scripts: str) -> str:
    """What the browser may do: run this script, apply this style, and nothing else; nowhere to load from or send to."""
    return (
        f"default-src 'none'; script-src {_digest(page_script(*scripts))}; style-src {_digest(page_style())}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page(
    title: str,
    masthead: Masthead,
    sections: Iterable[PageSection],
    *,
    footer: Sequence[str] = (),
    scripts: tuple[str, ...] = (),
    data: str | None = None,
    main: Iterable[str] = (),
) -> str:
    """A whole document. ``title`` is text; ``footer`` and ``main`` (before the sections) are HTML, ``data`` is for scripts."""
    return "\n".join(_document(title, masthead, tuple(sections), tuple(footer), scripts, data, tuple(main))) + "\n"


def _document(
    title: str,
    masthead: Masthead,
    sections: tuple[PageSection, ...],
    footer: tuple[str, ...],
    scripts: tuple[str, ...],
    data: str | None,
    main: tuple[str, ...],
) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy(*scripts)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{text(title)}</title>"
    yield f"<style>{page_style()}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#main">Skip to the content</a>'
    yield "<header>"
    yield f'<p class="kicker">{text(masthead.kicker)}</p>'
    rest = f' <p class="lead">{text(masthead.rest)}</p>' if masthead.rest else ""
    yield f"<h1>{text(masthead.answer)}</h1>{rest}"
    if masthead.about:
        yield f'<ul class="about">{"".join(f"<li>{entry}</li>" for entry in masthead.about)}</ul>'
    yield from masthead.body
    yield "</header>"
    if len(sections) > 1:
        yield '<nav class="jump" aria-label="Contents" tabindex="0"><ul>'
        for section in sections:
            count = f" ({section.count:,})" if section.count is not None else ""
            yield f'<li><a href="#{section.place}">{text(section.title)}{count}</a></li>'
        yield "</ul></nav>"
    yield '<main id="main" tabindex="-1">'
    yield from main
    for section in sections:
        yield from _section(section)
    yield "</main>"
    paragraphs = "".join(f"<p>{paragraph}</p>" for paragraph in footer)
    yield f"<footer>{paragraphs}<p>Written by kafka-quotas {text(__version__)}.</p></footer>"
    if data is not None:
        yield f'<script type="application/json" id="data">{data}</script>'
    yield f"<script>{page_script(*scripts)}</script>"
    yield "</body>"
    yield "</html>"


def _section(page_section: PageSection) -> Iterator[str]:
    hidden = " data-needs-script hidden" if page_section.needs_script else ""
    count = f" ({page_section.count:,})" if page_section.count is not None else ""
    yield f'<section id="{page_section.place}" aria-labelledby="{page_section.place}-title"{hidden}>'
    yield f'<h2 id="{page_section.place}-title" tabindex="-1">{text(page_section.title)}{count}</h2>'
    yield from page_section.body
    yield "</section>"


def text(value: str) -> str:
    """Text for HTML, attributes included; what does not print (controls, bidirectional marks) is shown as an escape.

    Of a word of more than ``_LONG_NAME`` letters the middle is left out.
    """
    return html.escape(escaped(_LONG_WORD.sub(lambda word: _shortened(word[0]), value[:])), quote=True)


def _shortened(value: str) -> str:
    if len(value) <= _LONG_NAME:
        return value
    left_out = len(value) - _SHOWN_START - _SHOWN_END
    return f"{value[:_SHOWN_START]}\N{HORIZONTAL ELLIPSIS} ({left_out:,} letters) \N{HORIZONTAL ELLIPSIS}{value[-_SHOWN_END:]}"


def name(value: str) -> str:
    """A name or place: literal, and kept from turning round the text beside it. The middle of a very long one is left out."""
    return f"<code><bdi>{text(_shortened(value))}</bdi></code>"


def message_html(value: str, links: RepositoryLinks = NO_LINKS) -> str:
    """A message: names, keys and flags as code, places as links to their line where that is known, amounts in one piece."""
    return "".join(_message_part(part, links) for part in parts_of(value))


def place_html(span: Span, links: RepositoryLinks) -> str:
    """``file:line:column``, as a link where the address of the line is known."""
    address, shown = links.line_address(span), name(str(span))
    return f'<a href="{text(address)}">{shown}</a>' if address else shown


def _message_part(part: MessagePart, links: RepositoryLinks) -> str:
    if part.span is not None:
        return place_html(part.span, links)
    match part.kind:
        case PartKind.TEXT:
            return text(part.text)
        case PartKind.AMOUNT:
            return f'<span class="amount">{text(part.text)}</span>'
        case PartKind.ENTITY:
            return f"<strong>{name(part.text)}</strong>"
    return name(part.text)


def chip(value: str, style: str) -> str:
    """One or two words on a ground of a style: ``bad``, ``warn``, ``good`` or ``faint``."""
    return f'<span class="chip {style}">{text(value)}</span>'


def tiles(title: str, rows: Iterable[Tile]) -> Iterator[str]:
    """Numbers with their words; ``title`` states what is counted."""
    yield f'<p class="tiles-title">{text(title)}</p>'
    yield '<ul class="tiles">'
    for row in rows:
        words = f'<a href="#{row.place}">{text(row.words)}</a>' if row.place and row.number else text(row.words)
        style = row.style if row.number else "none"
        yield f'<li class="{style}"><strong>{row.number:,}</strong> {words}</li>'
    yield "</ul>"


def items(rows: Iterable[str]) -> tuple[str, ...]:
    """A list; each row is HTML."""
    return ("<ul>", *(f"<li>{row}</li>" for row in rows), "</ul>")


def folded(title: str, body: Iterable[str], *, opened: bool = False) -> Iterator[str]:
    """What is unfolded by a click, a search in the page, a link or a printer; ``title`` is text, ``body`` HTML."""
    yield f'<details class="more"{" open" if opened else ""}><summary>{text(title)}</summary>'
    yield from body
    yield "</details>"


def _table_cells(
    heads: Sequence[str], classes: Sequence[str], row: Sequence[str], *, sort: Sequence[float | None] | None = None
) -> str:
    """The cells of a row; ``sort`` has the numbers that columns are sorted by, ``None`` where the text is."""
    keys = ["" if by is None else f' data-sort="{by:g}"' for by in sort or [None] * len(heads)]
    cells = [f'<th scope="row" role="rowheader" data-label="{text(heads[0])}"{keys[0]}>{row[0]}</th>']
    for head, kind, cell, key in zip(heads[1:], classes[1:], row[1:], keys[1:], strict=True):
        kinds = " ".join(word for word in (kind, "" if cell else "empty") if word)
        cells.append(f'<td role="cell"{_class(kinds)} data-label="{text(head)}"{key}>{cell}</td>')
    return "".join(cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A row that can be filtered by ``kind``, if it has one. ``sort``: numbers, ``None`` for a column that sorts by its text."""

    kind: str
    cells: Sequence[str]
    sort: Sequence[float | None]


def filter_form(words: str, kind: str, kinds: Iterable[str]) -> Iterator[str]:
    """Search words and a kind, for the rows of the same section; only where the script runs."""
    yield '<form class="filter" role="search" autocomplete="off" hidden>'
    yield f'<label class="field">{text(words)}<input type="search" spellcheck="false" autocapitalize="none"></label>'
    options = "".join(f'<option value="{text(kind)}">{text(kind)}</option>' for kind in kinds)
    yield f'<label class="field">{text(kind)}<select><option value="">all</option>{options}</select></label>'
    yield "</form>"
    yield '<p role="status" class="hint"></p>'


def found_table(heads: Sequence[str], rows: Iterable[FoundRow], *, numbers: frozenset[str], sortable: bool) -> Iterator[str]:
    """A table whose first column heads its rows; ``sortable``: by its heads, where the script runs.

    Roles are written out, because a narrow screen lays the table out as blocks, and browsers take its meaning away then.
    """
    classes = ["number" if head in numbers else "" for head in heads]
    yield f'<table role="table"{_class("sortable" if sortable else "")}>'
    yield '<thead role="rowgroup"><tr role="row">'
    yield "".join(
        f'<th scope="col" role="columnheader"{_class(kind)}>{text(head)}</th>' for head, kind in zip(heads, classes, strict=True)
    )
    yield '</tr></thead><tbody role="rowgroup">'
    for row in rows:
        cells = _table_cells(heads, classes, row.cells, sort=row.sort)
        mark = f' data-find="{text(row.kind)}"' if row.kind else ""
        yield f'<tr role="row"{mark}>{cells}</tr>'
    yield "</tbody></table>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


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
