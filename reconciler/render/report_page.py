"""The state of all clusters as one HTML page that needs nothing but itself: no network, and only the script that it brings along.

What there is to read is plain HTML; searching the entities and asking who gets what is done by the script, from the rows that
``report_page_data`` embeds. The page's policy allows this script and this style sheet by their digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from string import Template
from typing import Final

from reconciler.model import ClusterOverview, Overview
from reconciler.render.html_page import text
from reconciler.render.plan_text import failure_lines
from reconciler.render.report_page_data import cluster_name, embedded, total
from reconciler.render.report_page_sections import (
    DRIFT_WORDS,
    clusters_section,
    differences_section,
    headline,
    moment,
    page_file,
    runs_section,
    section,
    traffic_section,
)
from reconciler.render.styled import Line, Style, line
from reconciler.text import count_of

_DISCLOSES: Final = "It names users and client ids: share it accordingly."
_SCRIPTS: Final = ("data", "names", "amounts", "addresses", "levels", "elements", "ladder", "asking", "table", "start")
_CONTENTS: Final = (
    ("clusters", "Clusters"),
    ("who", "Who gets what"),
    ("differences", "Differences"),
    ("runs", "Last runs"),
    ("traffic", "Traffic against limits"),
    ("entities", "All entities"),
)


def report_html(overview: Overview) -> str:
    """The page."""
    return "\n".join(_lines(overview)) + "\n"


@cache
def page_script() -> str:
    """The script: its files one after the other, in a scope of their own."""
    return '"use strict";\n(() => {\n' + "\n\n".join(page_file(f"{name}.js") for name in _SCRIPTS) + "\n})();\n"


@cache
def page_style() -> str:
    """The style sheet."""
    return page_file("page.css")


def policy() -> str:
    """What the browser may do: run this script, apply this style, and nothing else; nowhere to load from or send to."""
    return (
        f"default-src 'none'; script-src {_digest(page_script())}; style-src {_digest(page_style())}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _lines(overview: Overview) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{text(f'Kafka quotas, {moment(overview.at)}')}</title>"
    yield f"<style>{page_style()}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#main">Skip to the content</a>'
    yield "<header>"
    yield "<h1>Kafka quotas</h1>"
    yield f'<p class="lead">{headline(overview)}</p>'
    yield f'<p class="faint">{_origin(overview)}</p>'
    yield '<nav aria-label="Contents"><ul>'
    yield from (f'<li><a href="#{place}">{text(words)}</a></li>' for place, words in _CONTENTS)
    yield "</ul></nav>"
    yield "</header>"
    yield '<main id="main" tabindex="-1">'
    yield '<noscript><p class="note">Without its script this page has neither the search nor the levels.</p></noscript>'
    yield from clusters_section(overview)
    yield from who_section()
    yield from differences_section(overview)
    yield from runs_section(overview)
    yield from traffic_section(overview)
    yield from entities_section(overview)
    yield "</main>"
    yield f"<footer><p>Written by kafka-quotas {text(overview.version)}. {_DISCLOSES}</p></footer>"
    yield f'<script type="application/json" id="data">{embedded(overview)}</script>'
    yield f"<script>{page_script()}</script>"
    yield "</body>"
    yield "</html>"


def _origin(overview: Overview) -> str:
    source = overview.source
    commit = ""
    if source.commit:
        commit = f" Manifests of commit <code>{text(source.commit[:12])}</code>"
        commit += ", with changes that are not committed." if source.dirty else "."
    return f"Read at {text(moment(overview.at))}.{commit} Limits are per broker."


_HEADS: Final = ("Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note")


def who_section() -> Iterator[str]:
    """The form that asks for a client or an address, and the place of the answer."""
    yield from section("who", "Who gets what", (page_file("who.html"),), needs_script=True)


def entities_section(overview: Overview) -> Iterator[str]:
    """The search, the filters, and a table of one page."""
    heads = "".join(f'<th scope="col" role="columnheader">{text(head)}</th>' for head in _HEADS)
    caption = text(f"{count_of(total(overview.clusters), 'entity', 'entities')} of all clusters, declared or live, 50 at a time")
    body = Template(page_file("entities.html")).substitute(caption=caption, heads=heads)
    yield from section("entities", "All entities", (body,), needs_script=True)


def overview_lines(overview: Overview, *, written: str | None = None) -> tuple[Line, ...]:
    """A line or two a cluster; ``written``: where the page is."""
    return tuple(_overview_lines(overview, written))


def _overview_lines(overview: Overview, written: str | None) -> Iterator[Line]:
    for one in overview.clusters:
        yield from failure_lines(one.failure) if one.failure is not None else (_cluster_line(one),)
    yield from (line(("Note: ", Style.FAINT), note) for note in overview.notes)
    if written is not None:
        yield line(("The page is in ", Style.PLAIN), (written, Style.STRONG))


def _cluster_line(one: ClusterOverview) -> Line:
    counts = [f"{number:,} {DRIFT_WORDS[drift][0]}" for drift, number in one.counts.items() if number]
    state = ("differs", Style.BAD) if one.differs else ("in sync", Style.GOOD)
    read = f", read at {moment(one.observed.at)}" if one.observed else ""
    declared = f"{count_of(one.declared, 'entity', 'entities')} declared, {one.live or 0:,} live"
    return line((f"Cluster {cluster_name(one)} ", Style.STRONG), state, f": {declared} ({', '.join(counts) or 'nothing'}){read}")
