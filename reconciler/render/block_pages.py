"""Lines and tables of a terminal as Markdown, and as sections of an HTML page.

A line that begins with strong text is the heading of the lines and tables after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.render.html_page import PageSection, items, table, text, unbroken
from reconciler.render.layout import Block, Line, Style, Table
from reconciler.render.markdown_text import in_cell, prose

_SHORT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSection:
    """The blocks below one heading. ``title`` is empty before the first one."""

    title: str
    rest: str
    blocks: tuple[Block, ...]


def block_sections(blocks: Iterable[Block]) -> Iterator[BlockSection]:
    """The blocks by their headings, without empty lines."""
    title, rest, collected = "", "", list[Block]()
    for block in blocks:
        if isinstance(block, Line) and block.segments and block.segments[0].style is Style.STRONG:
            if title or collected:
                yield BlockSection(title=title, rest=rest, blocks=tuple(collected))
            title, rest = block.segments[0].text, "".join(segment.text for segment in block.segments[1:]).strip()
            collected = []
        elif isinstance(block, Table) or block.text.strip():
            collected.append(block)
    if title or collected:
        yield BlockSection(title=title, rest=rest, blocks=tuple(collected))


def blocks_as_markdown(blocks: Iterable[Block]) -> Iterator[str]:
    """Paragraphs of Markdown: a heading for each section, tables, and lists of lines."""
    for section in block_sections(blocks):
        if section.title:
            yield f"### {prose(f'{section.title} {section.rest}')}"
        lines: list[str] = []
        for block in section.blocks:
            if isinstance(block, Line):
                lines.append(f"- {prose(block.text.strip())}")
                continue
            if lines:
                yield "\n".join(lines)
                lines = []
            yield "\n".join(_markdown_table(block))
        if lines:
            yield "\n".join(lines)


def blocks_as_sections(blocks: Iterable[Block]) -> Iterator[PageSection]:
    """The same as sections of a page."""
    for section in block_sections(blocks):
        title = section.title or "Result"
        yield PageSection(place=title.lower().replace(" ", "-"), title=title, body=tuple(_html(section)))


def _html(section: BlockSection) -> Iterator[str]:
    """Lists of lines, and tables. The line before a table is its caption."""
    about = section.rest.removeprefix("(").removesuffix(")")
    lines: list[str] = []
    for number, block in enumerate(section.blocks):
        if isinstance(block, Line):
            lines.append(text(block.text.strip()))
            continue
        caption = lines.pop() if lines else text(about or section.title) if number == 0 else ""
        if lines:
            yield from items(lines)
            lines = []
        columns = _used_columns(block)
        heads = [block.columns[place].title for place in columns]
        numbers = frozenset(block.columns[place].title for place in columns if block.columns[place].to_the_right)
        rows = ([_cell(row[place].text) for place in columns] for row in block.rows if not isinstance(row, Line))
        yield from table(caption, heads, rows, numbers=numbers, of=len(block.rows))
    if lines:
        yield from items(lines)


def _cell(value: str) -> str:
    """Short cells stay in one piece."""
    return unbroken(value) if len(value) <= _SHORT else text(value)


def _markdown_table(block: Table) -> Iterator[str]:
    columns = _used_columns(block)
    yield f"| {' | '.join(block.columns[number].title for number in columns)} |"
    yield f"|{'|'.join(' ---: ' if block.columns[number].to_the_right else ' --- ' for number in columns)}|"
    for row in block.rows:
        if not isinstance(row, Line):
            yield f"| {' | '.join(in_cell(prose(row[number].text, begins_line=False)) for number in columns)} |"


def _used_columns(block: Table) -> list[int]:
    """The columns with any text."""
    rows = [row for row in block.rows if not isinstance(row, Line)]
    return [number for number in range(len(block.columns)) if any(row[number].text.strip() for row in rows)]
