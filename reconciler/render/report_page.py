"""The state of all clusters as one HTML page that needs nothing but itself: no network, and only the script that it brings along.

What there is to read is plain HTML; searching the entities and asking who gets what is done by the script, from the rows that
``report_page_data`` embeds. The page's policy allows this script and this style sheet by their digests, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import Template
from typing import Final

from reconciler.model import ClusterOverview, Overview
from reconciler.render.html_page import Masthead, PageSection, commit_words, page, page_file, text, tiles
from reconciler.render.plan_text import failure_lines
from reconciler.render.report_page_data import cluster_name, embedded, total
from reconciler.render.report_page_sections import (
    DRIFT_WORDS,
    clusters_section,
    differences_section,
    headline,
    moment,
    runs_section,
    state_tiles,
    traffic_section,
)
from reconciler.render.styled import Line, Style, line
from reconciler.text import count_of

_DISCLOSES: Final = "It names users and client ids: share it accordingly."
SCRIPTS: Final = ("data", "names", "amounts", "addresses", "levels", "elements", "ladder", "asking", "table", "start")
_NO_SCRIPT: Final = '<noscript><p class="note">Without its script this page has neither the search nor the levels.</p></noscript>'


def report_html(overview: Overview) -> str:
    """The page."""
    top = Masthead(
        kicker="Kafka quotas: report",
        answer=headline(overview),
        about=(
            f"Read at {text(moment(overview.at))}",
            *((commit,) if (commit := commit_words(overview.source)) else ()),
            "Limits are per broker",
        ),
        body=tuple(tiles("Clusters", state_tiles(overview))),
    )
    sections = (
        clusters_section(overview),
        who_section(),
        differences_section(overview),
        runs_section(overview),
        traffic_section(overview),
        entities_section(overview),
    )
    return page(
        f"Kafka quotas, {moment(overview.at)}",
        top,
        sections,
        footer=(_DISCLOSES,),
        scripts=SCRIPTS,
        data=embedded(overview),
        main=(_NO_SCRIPT,),
    )


_HEADS: Final = ("Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note")


def who_section() -> PageSection:
    """The form that asks for a client or an address, and the place of the answer."""
    return PageSection(place="who", title="Who gets what", body=(page_file("who.html"),), needs_script=True)


def entities_section(overview: Overview) -> PageSection:
    """The search, the filters, and a table of one page."""
    heads = "".join(f'<th scope="col" role="columnheader">{text(head)}</th>' for head in _HEADS)
    caption = text(f"{count_of(total(overview.clusters), 'entity', 'entities')} of all clusters, declared or live, 50 at a time")
    body = Template(page_file("entities.html")).substitute(caption=caption, heads=heads)
    return PageSection(place="entities", title="All entities", body=(body,), needs_script=True)


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
