"""A view as one HTML page that loads nothing, for telephones, keyboards, the dark and paper.

A page is complete without script. The policy allows its own script and style sheet by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from reconciler import __version__
from reconciler.model import Message, MessagePart, PartKind, display_name, escaped, parts_of
from reconciler.render.layout import (
    Block,
    Figure,
    Fold,
    Heading,
    LabelledWords,
    Line,
    Shown,
    Style,
    Table,
    TextSegment,
    Tile,
    View,
    cell_value,
    columns_on_pages,
    rows_on_pages,
    sections_of,
)
from reconciler.render.markdown import NO_LINKS, RepositoryLinks, title_on_pages

MOST_ROWS: Final = 5000
"""Rows of one table; the others are counted."""
_FILTERED: Final = 5
"""Rows from which on a table has a filter."""
_LONG_NAME: Final = 2000
_SHORT_NAME: Final = 24
_LONG_WORD: Final = re.compile(rf"\S{{{_LONG_NAME + 1},}}")
_WHOLE: Final = re.compile(r"(?<![\w.,;&-])(?:[0-9][0-9.,]* (?:[KMGT]iB/s|B/s|%|s\b|min\b|h\b|days\b)|--[a-z]+(?:-[a-z]+)*\b)")
"""What stays on one line: a number with its unit, and a flag."""
_SHOWN_START: Final = 300
_SHOWN_END: Final = 60
_FOLDER: Final = Path(__file__).parent / "page"
_READING: Final = "reading"
"""The script that every page has, after its own."""


@cache
def _page_file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip("\n")


@cache
def page_script(*names: str) -> str:
    """The script: these files and the one that every page has, one after the other, in a scope of their own."""
    return '"use strict";\n(() => {\n' + "\n\n".join(_page_file(f"{name}.js") for name in (*names, _READING)) + "\n})();\n"


def policy(*scripts: str) -> str:
    """Return what the browser may do: run this script, apply this style, and nothing else. It loads and sends nothing."""
    return (
        f"default-src 'none'; script-src {_digest(page_script(*scripts))}; style-src {_digest(_page_file('page.css'))}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def view_html(view: View, links: RepositoryLinks = NO_LINKS, *, scripts: tuple[str, ...] = ()) -> str:
    """A view as one HTML page. Equal views give equal bytes. ``scripts``: files that figures need, without ``.js``."""
    return "\n".join(_page(view, links, scripts)) + "\n"


def _page(view: View, links: RepositoryLinks, scripts: tuple[str, ...]) -> Iterator[str]:
    cluster = f", {display_name(view.cluster)}" if view.cluster else ""
    sections = sections_of(view.blocks)
    below = [(head, inner) for head, inner in sections if head is not None]
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy(*scripts)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{html_text(f'Kafka quotas, {view.kind}{cluster}')}</title>"
    yield f"<style>{_page_file('page.css')}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#main">Skip to the content</a>'
    yield "<header>"
    yield f'<p class="kicker">{html_text(f"Kafka quotas: {view.kind}{cluster}")}</p>'
    rest = f' <p class="lead">{html_text(view.lead)}</p>' if view.lead else ""
    yield f"<h1>{html_text(_text(view.answer))}</h1>{rest}"
    if view.about:
        yield f'<ul class="about">{"".join(f"<li>{_words(each, links)}</li>" for each in view.about)}</ul>'
    yield from _body((block for head, inner in sections if head is None for block in inner), links)
    if view.tiles:
        yield from _tiles(view.tiles_title, view.tiles)
    yield "</header>"
    if len(below) > 1:
        yield '<nav class="jump" aria-label="Contents" tabindex="0"><ul>'
        for head, _ in below:
            yield f'<li><a href="#{head.place}">{_title(head)}</a></li>'
        yield "</ul></nav>"
    yield '<main id="main" tabindex="-1">'
    for head, inner in below:
        yield f'<section id="{head.place}" aria-labelledby="{head.place}-title">'
        yield f'<h2 id="{head.place}-title" tabindex="-1">{_title(head)}</h2>'
        yield from _body(inner, links)
        yield "</section>"
    yield "</main>"
    foot = "" if view.foot is None else f"<p>{_words(view.foot, links)}</p>"
    yield f"<footer>{foot}<p>Written by kafka-quotas {html_text(__version__)}.</p></footer>"
    yield f"<script>{page_script(*scripts)}</script>"
    yield "</body>"
    yield "</html>"


def _title(head: Heading) -> str:
    return html_text(head.title) + (f" ({head.count:,})" if head.count is not None else "")


def html_text(value: str) -> str:
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
    return f"<code><bdi>{_in_pieces(html_text(_shortened(value)))}</bdi></code>"


def _in_pieces(shown: str) -> str:
    """A short name with a hyphen stays in one piece, and a path breaks after a slash."""
    parts = shown.split("/")
    if "-" not in shown or max(map(len, parts)) > _SHORT_NAME:
        return shown
    ends = [*(f"{part}/" for part in parts[:-1]), parts[-1]]
    return "<wbr>".join(f'<span class="w">{part}</span>' for part in ends if part)


def message_html(value: str, links: RepositoryLinks = NO_LINKS) -> str:
    """A message: names, keys and flags as code, places as links to their line where that is known, amounts in one piece."""
    return "".join(_message_part(part, links) for part in parts_of(value))


def _message_part(part: MessagePart, links: RepositoryLinks) -> str:
    if part.span is not None:
        address, shown = links.line_address(part.span), name(str(part.span))
        return f'<a href="{html_text(address)}">{shown}</a>' if address else shown
    match part.kind:
        case PartKind.TEXT:
            return _WHOLE.sub(r'<span class="w">\g<0></span>', html_text(part.text))
        case PartKind.AMOUNT:
            return f'<span class="amount">{html_text(part.text)}</span>'
        case PartKind.ENTITY:
            return f"<strong>{name(part.text)}</strong>"
    return name(part.text)


def _tiles(title: str, rows: Iterable[Tile]) -> Iterator[str]:
    """Numbers with their words; ``title`` states what is counted."""
    yield f'<p class="tiles-title">{html_text(title)}</p>'
    yield '<ul class="tiles">'
    for row in rows:
        words = f'<a href="#{row.place}">{html_text(row.words)}</a>' if row.place and row.number else html_text(row.words)
        style = row.style if row.number else "none"
        yield f'<li class="{style}"><strong>{row.number:,}</strong> {words}</li>'
    yield "</ul>"


def _body(blocks: Iterable[Block], links: RepositoryLinks) -> Iterator[str]:
    for is_line, group in itertools.groupby(blocks, key=lambda block: isinstance(block, Line)):
        if is_line:
            rows = [words for block in group if isinstance(block, Line) and (words := _words(block, links))]
            yield from (
                ("<ul>", *(f"<li>{row}</li>" for row in rows), "</ul>") if len(rows) > 1 else (f"<p>{row}</p>" for row in rows)
            )
            continue
        for block in group:
            yield from _block(block, links)


def _block(block: Block, links: RepositoryLinks) -> Iterator[str]:
    match block:
        case Table():
            yield from _table(block, links)
        case LabelledWords():
            rows = (_fact(label, words, links) for label, words in block.rows)
            yield from ('<dl class="facts">', *rows, "</dl>")
        case Fold(place=None):
            yield f'<details class="more"{" open" if block.opened else ""}><summary>{html_text(_text(block.title))}</summary>'
            yield from _body(block.blocks, links)
            yield "</details>"
        case Fold():
            state = next((segment.text for segment in block.title.on_pages if segment.chip), "")
            yield f'<details class="card" data-find="{html_text(state)}"{" open" if block.opened else ""}>'
            yield f'<summary><h3>{_words(block.title, links)}</h3></summary><div class="card-body" id="{block.place}">'
            yield from _body(block.blocks, links)
            yield "</div></details>"
        case Figure():
            yield from block.html()


def _fact(label: str, shown: Line, links: RepositoryLinks) -> str:
    """An amount stands beside others, a sentence has a row; nothing for a fact without words."""
    words = _words(shown, links)
    kind = "" if shown.on_pages and shown.on_pages[0].kind is PartKind.AMOUNT else ' class="sentence"'
    return f"<div{kind}><dt>{html_text(title_on_pages(label))}</dt><dd>{words}</dd></div>" if words else ""


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
        return f'<span class="chip {style or "faint"}">{html_text(segment.text)}</span>'
    words = message_html(Message((segment.part,)), links)
    if segment.place is not None:
        return f'<a href="#{segment.place}">{words}</a>'
    if segment.kind is PartKind.TEXT and segment.style is Style.STRONG:
        return f"<strong>{words}</strong>"
    return f'<span class="{style}">{words}</span>' if style and words.strip() else words


def _table(block: Table, links: RepositoryLinks) -> Iterator[str]:
    """A table whose first column heads its rows, with a filter and sorted by its heads where the script runs.

    Roles are written out, because a narrow screen lays the table out as blocks, and browsers take its meaning away then.
    """
    columns, rows = columns_on_pages(block), rows_on_pages(block)
    titles = {at: html_text(title_on_pages(block.columns[at].title)) for at in columns}
    classes = {at: "number" if block.columns[at].to_the_right else "" for at in columns}
    chosen = next((at for at in columns if block.columns[at].chosen), None)
    valued = {at for at in columns if any(cell_value(row[at]) >= 0 for row, _ in rows)}
    if chosen is not None and len(rows) >= _FILTERED:
        options = (html_text(kind) for kind in dict.fromkeys(_text(row[chosen]) for row, _ in rows))
        yield '<form class="filter" role="search" autocomplete="off" hidden>'
        yield '<label class="field">Search<input type="search" spellcheck="false" autocapitalize="none"></label>'
        listed = "".join(f'<option value="{kind}">{kind}</option>' for kind in options)
        yield f'<label class="field">{titles[chosen]}<select><option value="">all</option>{listed}</select></label>'
        yield "</form>"
        yield '<p role="status" class="hint"></p>'
    yield f'<table role="table"{_class("sortable" if len(rows) > 1 else "")}>'
    yield '<thead role="rowgroup"><tr role="row">'
    yield "".join(f'<th scope="col" role="columnheader"{_class(classes[at])}>{titles[at]}</th>' for at in columns)
    yield '</tr></thead><tbody role="rowgroup">'
    for row, below in rows[:MOST_ROWS]:
        mark = "" if chosen is None or not _text(row[chosen]) else f' data-find="{html_text(_text(row[chosen]))}"'
        cells = []
        for at in columns:
            lines = (row[at], *below) if at == columns[-1] else (row[at],)
            words = "<br>".join(filter(None, (_words(each, links) for each in lines)))
            about = f'data-label="{titles[at]}"' + (f' data-sort="{cell_value(row[at]):g}"' if at in valued else "")
            kinds = " ".join(filter(None, (classes[at], "" if words else "empty")))
            is_head = at == columns[0]
            head, tag = ('th scope="row" role="rowheader"', "th") if is_head else (f'td role="cell"{_class(kinds)}', "td")
            cells.append(f"<{head} {about}>{words}</{tag}>")
        yield f'<tr role="row"{mark}>{"".join(cells)}</tr>'
    yield "</tbody></table>"
    if len(rows) > MOST_ROWS:
        yield f'<p class="faint">{len(rows) - MOST_ROWS:,} more are not listed here.</p>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
