"""The two parts of the page that need its script: who gets what, and the search of all entities."""

from __future__ import annotations

from collections.abc import Iterator
from string import Template
from typing import Final

from reconciler.model import Overview
from reconciler.render.html_page import text
from reconciler.render.report_page_data import total
from reconciler.render.report_page_parts import count, page_file, section

_HEADS: Final = ("Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note")


def who_section() -> Iterator[str]:
    """The form that asks for a client or an address, and the place of the answer."""
    yield from section("who", "Who gets what", (page_file("who.html"),), needs_script=True)


def entities_section(overview: Overview) -> Iterator[str]:
    """The search, the filters, and a table of one page."""
    heads = "".join(f'<th scope="col" role="columnheader">{text(head)}</th>' for head in _HEADS)
    caption = text(f"{count(total(overview.clusters), 'entity', 'entities')} of all clusters, declared or live, 50 at a time")
    body = Template(page_file("entities.html")).substitute(caption=caption, heads=heads)
    yield from section("entities", "All entities", (body,), needs_script=True)
