"""A view as Markdown within a number of bytes: the answer, then its sections. Rows and lines without room are counted."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.model import PartKind, display_name
from reconciler.render.layout import (
    Block,
    Fold,
    LabelledWords,
    Line,
    Style,
    Table,
    TextSegment,
    View,
    columns_on_pages,
    rows_of,
    sections_of,
)
from reconciler.render.markdown_text import Section, code, fold, in_cell, part_markdown, prose, rows_that_fit, size
from reconciler.render.repository_links import NO_LINKS, RepositoryLinks
from reconciler.text import count_of

_WHOLE_PAGE: Final = 1_000_000
"""Bytes, a little less than the 1 MiB that the summary of a step in GitHub Actions may have."""
_FORGE_READS: Final = re.compile("[@#!]|://|www\\.")
"""Mentions of people, numbers of pull requests, and addresses."""
_SENTENCE: Final = 300
"""Bytes kept free for the sentence about what has no room."""


def view_markdown(view: View, *, budget: int = _WHOLE_PAGE, links: RepositoryLinks = NO_LINKS) -> str:
    """A view in at most ``budget`` bytes."""
    cluster = f": {code(display_name(view.cluster))}" if view.cluster else ""
    answer = prose("".join(segment.text for segment in view.answer.on_pages))
    top = [f"### Kafka quotas, {view.kind}{cluster}", "", f"**{answer}** {prose(view.lead)}".strip(), ""]
    foot = [] if view.foot is None else [_words(view.foot, links)]
    body = _Body(links=links, room=budget - size((*top, *foot)) - _SENTENCE)
    body.write(view.blocks)
    if body.left_out:
        rows = count_of(body.left_out, "row has", "rows have")
        top += [f"**{rows} no room here.** `kafka-quotas {view.kind}` prints all of them.", ""]
    return "\n".join((*top, *body.lines, *foot)).rstrip("\n") + "\n"


def blocks_markdown(blocks: Iterable[Block], *, room: int, links: RepositoryLinks = NO_LINKS) -> Section:
    """Blocks as lines of Markdown in at most ``room`` bytes."""
    body = _Body(links=links, room=room)
    body.write(blocks)
    return Section(lines=tuple("\n".join(body.lines).strip().split("\n")) if body.lines else (), left_out=body.left_out)


@dataclass(slots=True, kw_only=True)
class _Body:
    """Lines of Markdown so far, the bytes that are left, and how many rows had no room."""

    links: RepositoryLinks
    room: int
    lines: list[str] = field(default_factory=list)
    left_out: int = 0

    def write(self, blocks: Iterable[Block]) -> None:
        for head, inner in sections_of(blocks):
            count = "" if head is None or head.count is None else f" ({head.count:,})"
            above = () if head is None else (f"#### {head.title}{count}", "")
            for is_line, group in itertools.groupby(inner, key=lambda block: isinstance(block, Line)):
                if is_line:
                    self._rows([f"- {_words(block, self.links)}" for block in group if isinstance(block, Line)], above)
                    above = ()
                    continue
                for block in group:
                    self._block(block, above)
                    above = ()

    def _block(self, block: Block, above: Sequence[str]) -> None:
        match block:
            case Table():
                columns = columns_on_pages(block)
                titles = (title_on_pages(block.columns[at].title) for at in columns)
                marks = (" ---: " if block.columns[at].to_the_right else " --- " for at in columns)
                rows = [self._row(row, below, columns) for row, below in rows_of(block)]
                self._rows(rows, (*above, f"| {' | '.join(titles)} |", f"|{'|'.join(marks)}|"))
            case LabelledWords():
                shown = ((label, _words(words, self.links)) for label, words in block.rows)
                self._rows([f"- **{label}**: {words}" for label, words in shown if words], above)
            case Fold():
                inner = _Body(links=self.links, room=self.room - _SENTENCE)
                inner.write(block.blocks)
                title = "".join(map(_in_summary, block.title.on_pages)).strip()
                opened = block.opened and block.place is None
                self._rows(["\n".join(fold(title, inner.lines, opened=opened))] if inner.lines else [], above)
                self.left_out += inner.left_out
            case _:
                pass

    def _row(self, row: Sequence[Line], below: Sequence[Line], columns: Sequence[int]) -> str:
        cells = [in_cell(_words(row[at], self.links)) for at in columns]
        last = (cells[-1], *(in_cell(_words(each, self.links)) for each in below))
        return f"| {' | '.join((*cells[:-1], '<br>'.join(filter(None, last))))} |"

    def _rows(self, rows: Sequence[str], above: Sequence[str]) -> None:
        kept = rows_that_fit(rows, self.room - size((*above, "")))
        self.left_out += len(rows) - len(kept)
        if kept:
            lines = (*above, *kept, "")
            self.lines += lines
            self.room -= size(lines)


def title_on_pages(title: str) -> str:
    """The title of a column: as on terminals, but with a capital letter."""
    return title[:1].upper() + title[1:]


def _words(shown: Line, links: RepositoryLinks) -> str:
    """A line without the blanks around it."""
    return "".join(_segment(segment, links, begins=not at) for at, segment in enumerate(shown.on_pages)).strip()


def _in_summary(segment: TextSegment) -> str:
    """A part of the title of a fold: HTML, where a forge reads no Markdown. Names, and what it could take for one, are code."""
    text = html.escape(segment.text, quote=False)
    return f"<code>{text}</code>" if segment.kind is not PartKind.TEXT or _FORGE_READS.search(text) else text


def _segment(segment: TextSegment, links: RepositoryLinks, *, begins: bool) -> str:
    words = part_markdown(segment.part, begins=begins, place=links.place) if segment.text else ""
    bold = segment.chip or (segment.kind is PartKind.TEXT and segment.style is Style.STRONG)
    return words.replace(words.strip(), f"**{words.strip()}**") if bold and words.strip() else words
