"""The state of all clusters as one HTML page that needs nothing but itself: no network, and only the script that it brings along.

What there is to read is plain HTML; searching the entities and asking who gets what is done by the script, from the rows that
``embedded`` adds. The page's policy allows this script and this style sheet by their digests, and nothing else.

The rows are short, so that a hundred thousand of them stay a few megabytes. A row is ``[entity, class, declared, live, owner,
file, line, note, flags, baseline]``, cut after the last field with a value. An entity is ``[type, name, ...]`` with numbers for
types and ``0`` for the default; quotas are ``[key, value, ...]`` with numbers for keys, ``0`` for none, and ``1`` for live
quotas that equal the declared ones; the numbers of words are places in the lists beside the rows, counted from 1 (0: none)
where they may be absent. The table of precedence levels stands beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from string import Template
from typing import Final

from reconciler.formats import Json, moment_to_json, value_to_json
from reconciler.model import (
    DEFAULT,
    BudgetUse,
    ClusterOverview,
    DriftClass,
    Entity,
    EntityOverview,
    Overview,
    Prune,
    QuotaKey,
    Quotas,
    display_name,
    same_value,
)
from reconciler.render.apply_text import failure_lines
from reconciler.render.html_page import Masthead, PageSection, commit_words, page, page_file, text, tiles
from reconciler.render.layout import Line, Style, line
from reconciler.render.report_page_sections import (
    DRIFT_WORDS,
    budgets_section,
    cluster_name,
    clusters_section,
    differences_section,
    expiries_section,
    headline,
    moment,
    runs_section,
    state_tiles,
    traffic_section,
    units_section,
)
from reconciler.resolution import ADDRESS_PRECEDENCE, CLIENT_PRECEDENCE
from reconciler.text import amount, count_of, rate

_DISCLOSES: Final = "This page names users and client ids: share it accordingly."
_HEADS: Final = ("Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note")
SCRIPTS: Final = ("data", "names", "amounts", "addresses", "levels", "elements", "ladder", "asking", "table", "start")
_NO_SCRIPT: Final = '<noscript><p class="note">Without its script this page has neither the search nor the levels.</p></noscript>'
PROTECTED: Final = 1
OUT_OF_SCOPE: Final = 2
CLASSES: Final = tuple(drift.value for drift in DriftClass)


def report_html(overview: Overview) -> str:
    """The state of all clusters as one HTML page without external files."""
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
        *_sections_of_values(overview),
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


def _sections_of_values(overview: Overview) -> Iterator[PageSection]:
    """Budgets, computed values and values that expire, where there are any."""
    if any(cluster.budgets for cluster in overview.clusters):
        yield budgets_section(overview)
    if any(entity.units for cluster in overview.clusters for entity in cluster.entities):
        yield units_section(overview)
    if any(entity.expiries for cluster in overview.clusters for entity in cluster.entities):
        yield expiries_section(overview)


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
    for cluster in overview.clusters:
        yield from failure_lines(cluster.failure) if cluster.failure is not None else (_cluster_line(cluster),)
        yield from (_budget_line(budget) for budget in cluster.budgets)
    yield from (line(("Note: ", Style.FAINT), note) for note in overview.notes)
    if written is not None:
        yield line(("The page is in ", Style.PLAIN), (written, Style.STRONG))


def _cluster_line(overview: ClusterOverview) -> Line:
    counts = [f"{number:,} {DRIFT_WORDS[drift][0]}" for drift, number in overview.counts.items() if number]
    state = ("differs", Style.BAD) if overview.differs else ("in sync", Style.GOOD)
    read = f", read at {moment(overview.observed.at)}" if overview.observed else ""
    declared = f"{count_of(overview.declared, 'entity', 'entities')} declared, {overview.live or 0:,} live"
    return line(
        (f"Cluster {cluster_name(overview)} ", Style.STRONG), state, f": {declared} ({', '.join(counts) or 'nothing'}){read}"
    )


def _budget_line(budget: BudgetUse) -> Line:
    free = f"{amount(budget.key, budget.free)} free"
    state = (free, Style.PLAIN) if budget.free >= 0 else (f"{amount(budget.key, -budget.free)} above its budget", Style.BAD)
    used = "" if budget.used is None else f", {rate(budget.key, budget.used)} used"
    allocated = f"{amount(budget.key, budget.allocated)} of {amount(budget.key, budget.budget)} allocated{used}, "
    return line(f"  Budget of {display_name(budget.owner)}, {budget.key}: {allocated}", state)


def embedded(overview: Overview) -> str:
    """JSON for the inside of a ``script`` element: ASCII, and without any character that could end the element."""
    document = {
        "classes": list(CLASSES),
        "precedence": _precedence(),
        "clusters": [_Rows().of(cluster) for cluster in overview.clusters],
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    # Inside strings these may all be written as escapes, and outside of strings JSON has none of them.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _precedence() -> Json:
    """The table of levels, the strongest first, and what each one's quota group is named by."""
    clients: list[Json] = [
        {"user": level.user.value, "client-id": level.client_id.value, "grouped_by": level.grouped_by.name.lower()}
        for level in CLIENT_PRECEDENCE
    ]
    return {"clients": clients, "addresses": [match.value for match in ADDRESS_PRECEDENCE]}


class _Rows:
    """The rows of one cluster, and the words that they share."""

    def __init__(self) -> None:
        self._types: dict[str, int] = {}
        # The five known ones first: their order is the one in which limits are shown.
        self._keys: dict[str, int] = {key.value: number for number, key in enumerate(QuotaKey)}
        self._owners: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def of(self, cluster_overview: ClusterOverview) -> Json:
        rows: list[Json] = [self._row(entity) for entity in cluster_overview.entities]
        return {
            "name": cluster_name(cluster_overview),
            "prunes": cluster_overview.complete and cluster_overview.prune not in (None, Prune.NEVER.value),
            "at": moment_to_json(cluster_overview.observed.at) if cluster_overview.observed else None,
            "callback": cluster_overview.callback,
            "statics": dict(cluster_overview.static_defaults),
            "types": list(self._types),
            "keys": list(self._keys),
            "owners": list(self._owners),
            "files": list(self._files),
            "rows": rows,
        }

    def _row(self, entity_overview: EntityOverview) -> Json:
        row: list[Json] = [
            self._entity(entity_overview.entity),
            -1 if entity_overview.drift is None else CLASSES.index(entity_overview.drift.value),
            self._quotas(entity_overview.declared),
            1
            if entity_overview.declared is not None and _equal(entity_overview.declared, entity_overview.live)
            else self._quotas(entity_overview.live),
            _place(self._owners, entity_overview.owner) + 1 if entity_overview.owner is not None else 0,
            _place(self._files, entity_overview.source.file) + 1 if entity_overview.source else 0,
            entity_overview.source.line if entity_overview.source else 0,
            entity_overview.note or 0,
            (PROTECTED if entity_overview.protected else 0) | (0 if entity_overview.in_scope else OUT_OF_SCOPE),
            self._quotas(entity_overview.baseline),
        ]
        while row[-1] == 0:
            row.pop()
        return row

    def _entity(self, entity: Entity) -> list[Json]:
        parts: list[Json] = []
        for entity_type, name in entity.parts:
            parts += [_place(self._types, entity_type), 0 if name is DEFAULT else name]
        return parts

    def _quotas(self, quotas: Quotas | None) -> Json:
        if quotas is None:
            return 0
        flat: list[Json] = []
        for key, value in sorted(quotas.items()):
            flat += [_place(self._keys, key), value_to_json(value)]
        return flat


def _equal(quotas: Quotas, other: Quotas | None) -> bool:
    return other is not None and quotas.keys() == other.keys() and all(same_value(v, other[k]) for k, v in quotas.items())


def _place(known: dict[str, int], word: str) -> int:
    return known.setdefault(word, len(known))


def total(clusters: Iterable[ClusterOverview]) -> int:
    """Entities of all clusters together."""
    return sum(len(cluster.entities) for cluster in clusters)
