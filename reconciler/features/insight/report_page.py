"""The state of all clusters as one HTML page that needs nothing but itself: no network, and no scripts but its own.

What there is to read is a view like any other. Searching all entities and asking who gets what is done by ``page.js``, from the
rows that ``embedded`` adds. Names and amounts in them are those that the command line prints.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from reconciler.features.insight.predictions import MONTH, Agreement, RunComparison, counts_words, group_name, observed_words
from reconciler.features.insight.report import ClusterOverview, EntityOverview, Overview
from reconciler.formats import Json
from reconciler.manifest import OwnerBudget
from reconciler.model import CLIENT_KEYS, DriftClass, ObservedFrom, Prune, QuotaKey, Quotas, display_name, escaped, same_value
from reconciler.render import (
    Block,
    Column,
    Figure,
    Line,
    Style,
    TextSegment,
    Tile,
    View,
    chip,
    counts_sentence,
    failure_lines,
    heading,
    line,
    table,
    view_html,
)
from reconciler.resolution import ADDRESS_PRECEDENCE, CLIENT_PRECEDENCE, GroupedBy, is_alterable
from reconciler.text import amount, count_of, list_some

_FOLDER: Final = Path(__file__).parent
_SCRIPT: Final = str(_FOLDER / "page")
_NO_SCRIPT: Final = '<noscript><p class="note">This needs the script of the page.</p></noscript>'
_STATES: Final = {
    DriftClass.IN_SYNC: ("in sync", Style.GOOD),
    DriftClass.DIFFERS: ("differs", Style.BAD),
    DriftClass.ADDED: ("added", Style.BAD),
    DriftClass.UNMANAGED: ("unmanaged", Style.FAINT),
    None: ("not compared", Style.FAINT),
}
_ORIGINS: Final = {ObservedFrom.BROKER: "from its brokers", ObservedFrom.ZOOKEEPER: "from ZooKeeper"}
_SHARED: Final = {
    GroupedBy.USER: "all client-ids of the user together",
    GroupedBy.CLIENT_ID: "all users of the client-id together",
    GroupedBy.USER_AND_CLIENT_ID: "this user and client-id alone",
}
_CLUSTERS: Final = ("Cluster", "State", "Declared", "Live", "In sync", "Differences", "Unmanaged", "Read")
_NAMED: Final = 5
_MOST_PREDICTIONS: Final = 200
_COUNTED: Final = frozenset({"Declared", "Live", "In sync", "Unmanaged", "Budget", "Allocated", "Free", "Entities"})

_HEADS: Final = ("Cluster", "Entity", "State", "Limits", "Owner", "Declared at", "Note")


def report_html(overview: Overview) -> str:
    """The state of all clusters as one HTML page without external files: what needs attention first, then every entity."""
    sentence = ", ".join(words for count, _, words, _ in _states(overview) if count) or "no cluster"
    source = overview.source
    dirty = " with changes that are not committed" if source.dirty else ""
    commit = (line(f"Commit {source.commit[:12]}{dirty}"),) if source.commit else ()
    view = View(
        kind="report",
        cluster=None,
        title=line(),
        answer=line(f"{sentence[0].upper()}{sentence[1:]}."),
        blocks=tuple(_blocks(overview)),
        foot=line("This page names users and client-ids: share it accordingly."),
        about=(line(f"Read at {_moment(overview.at)}"), *commit, line("Limits are per broker")),
        tiles=tuple(
            Tile(number=count, words=title, style=style, place="clusters") for count, title, _, style in _states(overview)
        ),
        tiles_title="Clusters",
    )
    return view_html(view, scripts=(_SCRIPT,))


def overview_lines(overview: Overview) -> Iterator[Line]:
    """A line a cluster, and what became of predictions. Budgets and entities are on the page."""
    for cluster in overview.clusters:
        if cluster.failure is not None:
            yield from failure_lines(cluster.failure)
        else:
            counts = [_counted(number, drift) for drift, number in cluster.counts.items() if number]
            state = ("differs", Style.BAD) if cluster.differs else ("in sync", Style.GOOD)
            read = f", read at {_moment(cluster.observed.at)}" if cluster.observed else ""
            declared = f"{count_of(cluster.declared, 'entity', 'entities')} declared, {cluster.live:,} live"
            words = f": {declared} ({', '.join(counts) or 'nothing'}){read}"
            yield line((f"Cluster {cluster.shown_name} ", Style.STRONG), state, words)
        if cluster.comparisons:
            yield line(f"  Predictions of the last {MONTH.days} days: {counts_words(cluster.comparisons)}")
            worst = [group for run in cluster.comparisons for group in run.groups if group.agreement is Agreement.WORSE]
            yield from (line("    ", group_name(group), ": ", observed_words(group), hang=6) for group in worst[:_NAMED])
            yield from (line(("    Note: ", Style.FAINT), note) for note in _notes_of(cluster.comparisons))


def _counted(count: int, drift: DriftClass) -> str:
    """``1 differs``, ``3 differ``, ``2 in sync``."""
    word = _STATES[drift][0]
    return f"{count:,} {word if count == 1 else word.replace('differs', 'differ')}"


def _moment(at: datetime.datetime) -> str:
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"


def _states(overview: Overview) -> tuple[tuple[int, str, str, str], ...]:
    """Return the number of clusters in each state, with the words of its tile, those of a sentence, and its style."""
    failures = [cluster.failure for cluster in overview.clusters if cluster.failure is not None]
    skipped = sum(failure.skipped for failure in failures)
    unread = len(failures) - skipped
    differ = sum(cluster.differs for cluster in overview.clusters)
    in_sync = len(overview.clusters) - len(failures) - differ
    differs = "differs" if differ == 1 else "differ"
    has = "has" if in_sync == 1 else "have"
    return (
        (unread, "could not be read", f"{count_of(unread, 'cluster')} could not be read", "bad"),
        (differ, differs, f"{count_of(differ, 'cluster')} {differs} from the manifests", "bad"),
        (in_sync, "in sync", f"{count_of(in_sync, 'cluster')} {has} what the manifests declare", "good"),
        (skipped, "skipped", f"{count_of(skipped, 'cluster')} skipped", "warn"),
    )


def _blocks(overview: Overview) -> Iterator[Block]:
    yield heading("Who gets what")
    yield _figure("who.html")
    yield heading("Clusters")
    yield _table(_CLUSTERS, map(_cluster_row, overview.clusters))
    yield from _details(overview)
    yield from _differences(overview)
    yield from _budgets(overview)
    yield from _predictions(overview)
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in _HEADS)
    yield heading("All entities", count=sum(len(cluster.entities) for cluster in overview.clusters))
    yield _figure("entities.html", heads)
    yield Figure(html=lambda: iter((f'<script type="application/json" id="data">{embedded(overview)}</script>',)))


def _figure(name: str, heads: str = "") -> Figure:
    """HTML that works by the script alone."""
    html = (_FOLDER / name).read_text(encoding="utf-8").replace("HEADS", heads)
    return Figure(html=lambda: iter((_NO_SCRIPT, f"<div data-needs-script hidden>{html}</div>")))


def _table(heads: tuple[str, ...], rows: Iterator[tuple[Line | str | TextSegment, ...]], *, chosen: str = "") -> Block:
    return table((Column(title=head, to_the_right=head in _COUNTED, chosen=head == chosen) for head in heads), rows)


def _cluster_row(row: ClusterOverview) -> tuple[Line | str | TextSegment, ...]:
    cluster = row.cluster
    about = (cluster.id, f"Kafka {cluster.kafka_version}" if cluster.kafka_version else None)
    title = line((row.shown_name, Style.STRONG), *(f", {escaped(each)}" for each in about if each))
    if row.failure is not None:
        state = chip("skipped", Style.WARN) if row.failure.skipped else chip("could not be read", Style.BAD)
        return title, state, f"{row.declared:,}", "?", "?", "?", "?", ""
    read = f"{_moment(row.observed.at)}, {_ORIGINS.get(row.observed.origin, 'in a snapshot')}" if row.observed else ""
    kinds = [chip(_counted(count, drift), _STATES[drift][1]) for drift, count in row.counts.items()
             if drift.is_difference and count]  # fmt: skip
    return (
        title,
        chip("differs", Style.BAD) if row.differs else chip("in sync", Style.GOOD),
        f"{row.declared:,}",
        f"{row.live:,}",
        f"{row.counts.get(DriftClass.IN_SYNC, 0):,}",
        line(*(part for kind in kinds for part in (kind, " "))) if kinds else "none",
        f"{row.counts.get(DriftClass.UNMANAGED, 0):,}",
        read,
    )


def _details(overview: Overview) -> Iterator[Line]:
    """Yield failures, and the notes of each cluster."""
    for cluster in overview.clusters:
        name = (f"{cluster.shown_name}: ", Style.STRONG)
        if (failed := cluster.failure) is not None:
            yield line(name, failed.message, (f" ({failed.failure_reason})", Style.FAINT))
        if not cluster.complete:
            yield line(name, "Only some of the manifests were read: what they do not declare was not compared.")
        if cluster.findings:
            yield line(name, f"{counts_sentence(cluster.findings)} in the manifests. kafka-quotas validate lists them.")
    noted: dict[str, list[str]] = {}
    for cluster in overview.clusters:
        for note in cluster.notes:
            noted.setdefault(note, []).append(cluster.shown_name)
    for note, names in noted.items():
        whose = "All clusters" if len(names) == len(overview.clusters) > 1 else list_some(names, _NAMED)
        yield line((f"{whose}: ", Style.STRONG), note)


def _differences(overview: Overview) -> Iterator[Block]:
    """Every entity that is neither in sync nor unmanaged."""
    rows = [
        (cluster, entity)
        for cluster in overview.clusters
        for entity in cluster.entities
        if entity.drift and entity.drift.is_difference
    ]
    yield heading("Differences", count=len(rows))
    if not rows:
        read = any(cluster.failure is None for cluster in overview.clusters)
        yield line("None. What is declared is live." if read else "No cluster was read.")
        return
    yield line("kafka-quotas drift --baseline distinguishes changes by hand from those that are merged and not applied.")
    heads = ("Entity", "Cluster", "State", "Declared", "Live", "Owner", "Declared at")
    yield _table(heads, (_difference(cluster, entity) for cluster, entity in rows), chosen="State")


def _difference(cluster: ClusterOverview, entity: EntityOverview) -> tuple[Line | str | TextSegment, ...]:
    wanted, live = entity.declared or {}, entity.live or {}
    keys = [key for key in sorted(wanted.keys() | live.keys()) if not same_value(wanted.get(key), live.get(key))]
    sides = (", ".join(f"{key} {amount(key, side.get(key))}" for key in keys) if side else "nothing" for side in (wanted, live))
    return (
        line(entity.entity),
        cluster.shown_name,
        line(chip(*_STATES[entity.drift]), " protected" if entity.protected else ""),
        *sides,
        escaped(entity.owner or ""),
        line(entity.source) if entity.source else "",
    )


def _budgets(overview: Overview) -> Iterator[Block]:
    """Yield the table of budgets, the owners above theirs first."""
    rows = [(cluster, budget) for cluster in overview.clusters for budget in cluster.budgets]
    if not rows:
        return
    rows.sort(key=lambda row: row[1].free >= 0)
    yield heading("Budgets", count=len(rows))
    heads = ("Owner", "Cluster", "Limit", "Budget", "Allocated", "Free", "Entities")
    yield _table(heads, (_budget_row(cluster, budget) for cluster, budget in rows))


def _budget_row(cluster: ClusterOverview, budget: OwnerBudget) -> tuple[Line | str, ...]:
    key = budget.key.value
    above = line(chip("above", Style.BAD), f" {amount(key, -budget.free)}")
    return (
        display_name(budget.owner),
        cluster.shown_name,
        key,
        amount(key, budget.budget.value),
        amount(key, budget.allocated),
        amount(key, budget.free) if budget.free >= 0 else above,
        f"{budget.entities:,}",
    )


def _predictions(overview: Overview) -> Iterator[Block]:
    """Yield what backtests predicted of the runs of the last month, beside the traffic since, the worst first."""
    compared = [(cluster, run) for cluster in overview.clusters for run in cluster.comparisons]
    if not compared:
        return
    groups = [(cluster, run, group) for cluster, run in compared for group in run.groups]
    groups.sort(key=lambda row: list(Agreement).index(row[2].agreement))
    yield heading("Predictions", count=len(groups))
    yield line(f"In the last {MONTH.days} days: {counts_words(run for _, run in compared)}.")
    rows = (
        (cluster.shown_name, _moment(run.since), line(group_name(group)), line(observed_words(group)))
        for cluster, run, group in groups[:_MOST_PREDICTIONS]
    )
    yield _table(("Cluster", "Since", "Quota group", "Predicted and observed"), rows)
    yield from (line(("Note: ", Style.FAINT), note) for note in _notes_of(run for _, run in compared))


def _notes_of(comparisons: Iterable[RunComparison]) -> Iterable[str]:
    """Return each note of the comparisons once."""
    return dict.fromkeys(str(note) for run in comparisons for note in run.notes)


def embedded(overview: Overview) -> str:
    """JSON for the inside of a ``script`` element: ASCII, and without any character that could end the element."""
    document = {
        "styles": {word: style.page_class for word, style in _STATES.values()},
        "levels": [
            {"user": level.user.value, "client": level.client_id.value, "shared": _SHARED[level.grouped_by]}
            for level in CLIENT_PRECEDENCE
        ],
        "addresses": [match.value for match in ADDRESS_PRECEDENCE],
        "client_keys": [key.value for key in CLIENT_KEYS],
        "address_keys": [QuotaKey.CONNECTION_CREATION_RATE.value],
        "clusters": [_embedded(cluster) for cluster in overview.clusters],
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    # Inside strings these may all be written as escapes, and outside of strings JSON has none of them.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _embedded(cluster: ClusterOverview) -> Json:
    return {
        "name": cluster.shown_name,
        "at": _moment(cluster.observed.at) if cluster.observed else None,
        "prunes": cluster.complete and cluster.prune is not Prune.NEVER,
        "callback": cluster.callback,
        "statics": dict(cluster.static_defaults),
        "entities": [_entity(entity) for entity in cluster.entities],
    }


def _entity(entity: EntityOverview) -> Json:
    """Return the row of an entity. ``live`` is true where it equals what is declared. ``stays``: apply leaves it alone."""
    same = entity.drift is DriftClass.IN_SYNC and entity.declared is not None
    stays = not entity.in_scope or (entity.declared is None and not is_alterable(entity.entity))
    tags = [*(["protected"] if entity.protected else []), *([] if entity.in_scope else ["outside the scope"])]
    fields: dict[str, Json] = {
        "name": str(entity.entity),
        "state": _STATES[entity.drift][0],
        "declared": _amounts(entity.declared),
        "live": True if same else _amounts(entity.live),
        "owner": None if entity.owner is None else escaped(entity.owner),
        "place": None if entity.source is None else escaped(f"{entity.source.file}:{entity.source.line}"),
        "note": None if entity.note is None else escaped(entity.note),
        "stays": stays or None,
        "tags": list(tags) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _amounts(quotas: Quotas | None) -> Json:
    return None if quotas is None else {escaped(key): amount(key, value) for key, value in sorted(quotas.items())}
