"""The state of all clusters in a few lines for a terminal; the page has the rest."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import ClusterOverview, Overview
from reconciler.render.every_cluster import failure_lines
from reconciler.render.report_page_data import cluster_name
from reconciler.render.report_page_parts import DRIFT_WORDS, count, moment
from reconciler.render.styled import Line, Style, line


def report_lines(overview: Overview, *, written: str | None = None) -> tuple[Line, ...]:
    """A line or two a cluster; ``written``: where the page is."""
    return tuple(_lines(overview, written))


def _lines(overview: Overview, written: str | None) -> Iterator[Line]:
    for one in overview.clusters:
        yield from failure_lines(one.failure) if one.failure is not None else (_cluster(one),)
    yield from (line(("Note: ", Style.FAINT), note) for note in overview.notes)
    if written is not None:
        yield line(("The page is in ", Style.PLAIN), (written, Style.STRONG))


def _cluster(one: ClusterOverview) -> Line:
    counts = [f"{number:,} {DRIFT_WORDS[drift][0]}" for drift, number in one.counts.items() if number]
    state = ("differs", Style.BAD) if one.differs else ("in sync", Style.GOOD)
    read = f", read at {moment(one.observed.at)}" if one.observed else ""
    declared = f"{count(one.declared, 'entity', 'entities')} declared, {one.live or 0:,} live"
    return line((f"Cluster {cluster_name(one)} ", Style.STRONG), state, f": {declared} ({', '.join(counts) or 'nothing'}){read}")
