"""The sections of the page of a report that are plain HTML: clusters, differences, runs, traffic."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import (
    BudgetUse,
    ClusterOverview,
    DriftClass,
    EntityOverview,
    Form,
    GroupRows,
    Overview,
    RunRecord,
    TrafficOverview,
    Verdict,
    display_name,
    group_verdicts,
    same_value,
)
from reconciler.render.backtest_sentences import peak_share, peak_text, unjudged_sentence, who
from reconciler.render.findings_text import counts_sentence
from reconciler.render.html_page import (
    PageSection,
    amount_html,
    chip,
    items,
    key_name,
    message_html,
    name,
    note,
    notes,
    quoted,
    table,
    text,
    unbroken,
)
from reconciler.render.layout import Tile
from reconciler.render.metric_sentences import metric_rows_words
from reconciler.render.over_limit_words import over_text
from reconciler.text import count_of, expiry_text, rate, recommended_text, safe_text, unit_text

DRIFT_WORDS: Final = {
    DriftClass.IN_SYNC: ("in sync", "good"),
    DriftClass.UNAPPLIED: ("not applied", "warn"),
    DriftClass.CHANGED: ("changed by hand", "bad"),
    DriftClass.MISSING: ("removed by hand", "bad"),
    DriftClass.DIFFERS: ("differs", "bad"),
    DriftClass.ADDED: ("added", "bad"),
    DriftClass.UNMANAGED: ("unmanaged", "faint"),
}


def moment(at: datetime.datetime) -> str:
    """``2026-01-02 12:00 UTC``."""
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"


def time_element(at: datetime.datetime) -> str:
    """The same for HTML, with the machine's form beside it."""
    exact = at.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f'<time datetime="{exact}">{moment(at)}</time>'


def drift_word(drift: DriftClass | None) -> str:
    """A class of drift in words."""
    if drift is None:
        return chip("not compared", "faint")
    return chip(*DRIFT_WORDS[drift])


def bar(share: float) -> str:
    """A part of a limit as a bar with the limit in the middle; it shows nothing that the text beside it does not.

    Below the limit the length is proportional. Above it every longer share is a longer bar, and none fills the width.
    """
    share = max(share, 0.0)
    width = 50 * share if share <= 1 else 100 - 50 / share
    style = "bar over" if share > 1 else "bar"
    return (
        '<svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" x="0" y="3" width="100" height="4"/>'
        f'<rect class="{style}" x="0" y="1" width="{width:.1f}" height="8"/>'
        '<rect class="limit" x="49.6" y="0" width=".8" height="10"/></svg>'
    )


_UNJUDGED: Final = 20
_RESULTS: Final = {
    "done": ("done", "good"),
    "nothing_to_do": ("nothing to do", "faint"),
    "refused": ("refused", "warn"),
    "partial": ("partial", "bad"),
    "failed": ("failed", "bad"),
}
_VERDICTS: Final = {
    Verdict.THROTTLED: "bad",
    Verdict.POSSIBLE: "warn",
    Verdict.CLEAR: "good",
    Verdict.INCONCLUSIVE: "warn",
}
_NO_AUDIT: Final = (
    '<p class="faint">No audit file was given: <code>--audit FILE</code> shows what <code>apply --audit</code> wrote.</p>'
)
_NO_BACKTEST: Final = (
    '<p class="faint">No backtest was given: <code>--backtest FILE</code> shows what <code>backtest --format json</code> '
    "printed.</p>"
)


def headline(overview: Overview) -> str:
    """One sentence for a hurried reader."""
    parts = [words for number, words, _ in _states(overview) if number]
    sentence = ", ".join(parts) or "no cluster"
    return f"{sentence[0].upper()}{sentence[1:]}."


def state_tiles(overview: Overview) -> tuple[Tile, ...]:
    """How many clusters are in which state."""
    titles = ("could not be read", "differ", "in sync", "skipped")
    states = zip(titles, _states(overview), strict=True)
    return tuple(Tile(number=number, words=title, style=style, place="clusters") for title, (number, _, style) in states)


def _states(overview: Overview) -> tuple[tuple[int, str, str], ...]:
    failures = [cluster.failure for cluster in overview.clusters if cluster.failure is not None]
    skipped = sum(1 for failure in failures if failure.skipped)
    unread = len(failures) - skipped
    differ = sum(1 for cluster in overview.clusters if cluster.differs)
    in_sync = len(overview.clusters) - len(failures) - differ
    return (
        (unread, f"{count_of(unread, 'cluster')} could not be read", "bad"),
        (differ, f"{count_of(differ, 'cluster')} {'differs' if differ == 1 else 'differ'} from the manifests", "bad"),
        (in_sync, f"{count_of(in_sync, 'cluster')} {'has' if in_sync == 1 else 'have'} what the manifests declare", "good"),
        (skipped, f"{count_of(skipped, 'cluster')} skipped", "warn"),
    )


def clusters_section(overview: Overview) -> PageSection:
    """One row a cluster, then what is to be known about each."""
    heads = ("Cluster", "State", "Declared", "Live", "In sync", "Differences", "Unmanaged", "Read", "Last run")
    rows = (_cluster_row(cluster, overview) for cluster in overview.clusters)
    numbers = frozenset({"Declared", "Live", "In sync", "Unmanaged"})
    caption = text(f"{count_of(len(overview.clusters), 'cluster')}, entities by their state")
    body = (*table(caption, heads, rows, numbers=numbers, of=len(overview.clusters)), *_details(overview))
    return PageSection(place="clusters", title="Clusters", body=body)


def _cluster_row(row: ClusterOverview, overview: Overview) -> tuple[str, ...]:
    cluster = row.cluster
    about = ", ".join(
        part
        for part in (cluster.id and f"{cluster.id}", f"Kafka {cluster.kafka_version}" if cluster.kafka_version else None)
        if part
    )
    title = f"<strong>{quoted(cluster_name(row))}</strong>" + (f'<br><span class="faint">{quoted(about)}</span>' if about else "")
    changing = (run for run in overview.runs if not run.validate_only and run.result != "nothing_to_do" and run.is_of(cluster))
    last = next(changing, None)
    change = f"{time_element(last.ended)}, {_result(last.result)}" if last else ""
    if row.failure is not None:
        state = chip("skipped" if row.failure.skipped else "could not be read", "warn" if row.failure.skipped else "bad")
        return title, state, f"{row.declared:,}", "?", "?", "?", "?", "", change
    state = chip("differs", "bad") if row.differs else chip("in sync", "good")
    read = f"{time_element(row.observed.at)}, {text(_origin(row))}" if row.observed else ""
    kinds = [(drift, number) for drift, number in row.counts.items() if drift.is_difference and number]
    differences = "<br>".join(chip(f"{number:,} {DRIFT_WORDS[drift][0]}", DRIFT_WORDS[drift][1]) for drift, number in kinds)
    return (
        title,
        state,
        f"{row.declared:,}",
        f"{row.live or 0:,}",
        f"{row.counts.get(DriftClass.IN_SYNC, 0):,}",
        differences or "none",
        f"{row.counts.get(DriftClass.UNMANAGED, 0):,}",
        read,
        change,
    )


def _origin(cluster_overview: ClusterOverview) -> str:
    assert cluster_overview.observed is not None
    return {"broker": "from its brokers", "zookeeper": "from ZooKeeper"}.get(
        cluster_overview.observed.origin.value, "in a snapshot"
    )


def _details(overview: Overview) -> Iterator[str]:
    yield from notes(overview.notes)
    for cluster in overview.clusters:
        failed = cluster.failure
        if failed is None and not cluster.notes and not cluster.findings and cluster.complete:
            continue
        yield f"<h3>{quoted(cluster_name(cluster))}</h3>"
        if failed is not None:
            word = chip("Skipped" if failed.skipped else "Could not be read", "warn" if failed.skipped else "bad")
            yield f'<p>{word} {message_html(failed.message)} <span class="faint">({text(failed.failure_reason)})</span></p>'
        if not cluster.complete:
            yield note("Only some of the manifests were read: what they do not declare was not compared.")
        if cluster.findings:
            counts = text(counts_sentence(cluster.findings))
            yield f"<p>{counts} in the manifests. <code>kafka-quotas validate</code> lists them.</p>"
        yield from notes(cluster.notes, opened=len(overview.clusters) == 1)


def differences_section(overview: Overview) -> PageSection:
    """Every entity that is neither in sync nor unmanaged, as far as a page goes."""
    differences = [
        (cluster, entity)
        for cluster in overview.clusters
        for entity in cluster.entities
        if entity.drift and entity.drift.is_difference
    ]
    body = tuple(_differences(overview, differences))
    return PageSection(place="differences", title="Differences", count=len(differences), body=body)


def _differences(overview: Overview, differences: Sequence[tuple[ClusterOverview, EntityOverview]]) -> Iterator[str]:
    if not differences:
        read = [cluster for cluster in overview.clusters if cluster.failure is None]
        yield f"<p>{chip('None', 'good')} What is declared is live.</p>" if read else "<p>No cluster was read.</p>"
        return
    if any(entity.drift is DriftClass.DIFFERS for _, entity in differences):
        yield note(
            "No baseline was given, so changes that were merged but not applied look like changes by hand. "
            "<code>--baseline</code> distinguishes them."
        )
    rows = (_difference(cluster, entity) for cluster, entity in differences)
    heads = ("Entity", "Cluster", "State", "Declared", "Live", "Owner", "Declared at")
    yield from table(text(count_of(len(differences), "entity", "entities")), heads, rows, of=len(differences))


def _difference(cluster_overview: ClusterOverview, entity: EntityOverview) -> tuple[str, ...]:
    wanted, live = entity.declared or {}, entity.live or {}
    keys = [key for key in sorted(wanted.keys() | live.keys()) if not same_value(wanted.get(key), live.get(key))]
    sides = [
        "<br>".join(f"{name(key)} {amount_html(key, side.get(key))}" for key in keys) if side else "nothing"
        for side in (wanted, live)
    ]
    protected = ' <span class="tag">protected</span>' if entity.protected else ""
    return (
        name(str(entity.entity)),
        quoted(cluster_name(cluster_overview)),
        drift_word(entity.drift) + protected,
        *sides,
        quoted(entity.owner or ""),
        name(f"{entity.source.file}:{entity.source.line}") if entity.source else "",
    )


def runs_section(overview: Overview) -> PageSection:
    """The runs of the audit files, the latest first."""
    heads = ("Ended", "Cluster", "Command", "Result", "Entities", "Who", "Commit", "Accepted guards")
    total = len(overview.runs) + overview.runs_left_out
    if overview.runs:
        body = tuple(table(text(f"{count_of(total, 'run')}, the latest first"), heads, map(_run, overview.runs), of=total))
    elif overview.audited:
        body = ("<p>The audit file has no run.</p>",)
    else:
        body = (_NO_AUDIT,)
    return PageSection(place="runs", title="Last runs", body=body)


def _result(result: str) -> str:
    return chip(*_RESULTS[result]) if result in _RESULTS else quoted(result)


def _run(run: RunRecord) -> tuple[str, ...]:
    result = _result(run.result)
    if run.failure_reason:
        result += f" ({text(run.failure_reason)})"
    if run.result in ("done", "partial") and not run.verified and not run.validate_only:
        result += f" {chip('not verified', 'warn')}"
    counts = (("applied", run.applied), ("failed", run.failed), ("unknown", run.unknown), ("not attempted", run.not_attempted))
    who = run.os_user if run.principal is None else f"{run.principal} ({run.os_user})"
    commit = name(run.commit[:12]) + (" with uncommitted changes" if run.dirty else "") if run.commit else ""
    label = run.cluster.name or run.cluster.id
    return (
        time_element(run.ended),
        quoted(display_name(label)) if label else "",
        text(run.command) + (" (validate only)" if run.validate_only else ""),
        result,
        text(", ".join(f"{number:,} {word}" for word, number in counts if number)),
        quoted(who),
        commit,
        text(", ".join(run.accepted)),
    )


def traffic_section(overview: Overview) -> PageSection:
    """The verdicts of backtests on recorded traffic under the limits, the worst first."""
    body = tuple(line for report in overview.traffic for line in _traffic(report))
    return PageSection(place="traffic", title="Traffic against limits", body=body or (_NO_BACKTEST,))


def _traffic(traffic_overview: TrafficOverview) -> Iterator[str]:
    cluster = f"{quoted(display_name(traffic_overview.cluster))}, " if traffic_overview.cluster else ""
    yield f"<h3>{cluster}{quoted(traffic_overview.file)}</h3>"
    bad = any(bucket.verdict is Verdict.THROTTLED for bucket in traffic_overview.buckets)
    doubt = traffic_overview.unjudged or any(bucket.verdict is not Verdict.CLEAR for bucket in traffic_overview.buckets)
    if traffic_overview.headline:
        answer = ("Throttled", "bad") if bad else ("Not sure", "warn") if doubt else ("Clear", "good")
        yield f"<p>{chip(*answer)} {text(traffic_overview.headline)}</p>"
    span = f"from {time_element(traffic_overview.start)} to {time_element(traffic_overview.end)}"
    yield f"<p>{text(_history_words(traffic_overview)[0])} {span}, {text(_history_words(traffic_overview)[1])}.</p>"
    if traffic_overview.unjudged:
        yield from items(message_html(unjudged_sentence(change)) for change in traffic_overview.unjudged[:_UNJUDGED])
        if len(traffic_overview.unjudged) > _UNJUDGED:
            yield f"<p>{len(traffic_overview.unjudged) - _UNJUDGED:,} more changes are not judged.</p>"
    groups = group_verdicts(traffic_overview.buckets)
    rows = (_group(group, before_known=traffic_overview.current_known) for group in groups)
    heads = ("Quota group", "Verdict", "Key", "Peak against limit", "Peak", "Limit", "Over", "Safe", "Recommended", "Broker")
    caption = f"Quota groups of {quoted(traffic_overview.file)}, the worst first. The mark on each bar is the limit"
    yield from table(caption, heads, rows, numbers=frozenset({"Over"}), of=len(groups))


def _history_words(traffic_overview: TrafficOverview) -> tuple[str, str]:
    """What was recorded, and how it was judged."""
    samples = [words for observation in traffic_overview.observations if (words := metric_rows_words(observation)) is not None]
    if samples and not traffic_overview.requests:
        return ", ".join(samples), "judged from samples: they prove throttling, and never its absence"
    recorded = ", ".join([count_of(traffic_overview.requests, "request"), *samples])
    if traffic_overview.form is Form.EXACT:
        return recorded, "judged request by request"
    return recorded, "judged from sums of whole seconds: a peak is what no request can have exceeded"


def _group(group: GroupRows, *, before_known: bool) -> tuple[str, ...]:
    worst = group.worst
    share = peak_share(group.highest)
    after = amount_html(worst.key, worst.limits.after, absent="unlimited")
    limit = f"<strong>{after}</strong>"
    if worst.changed and before_known:
        limit += f', <span class="faint">before {amount_html(worst.key, worst.limits.lowest_before, absent="unlimited")}</span>'
    return (
        name(who(worst.name, undecided=worst.undecided)),
        chip(worst.verdict.value, _VERDICTS[worst.verdict]) + (f" {quoted(worst.reason)}" if worst.reason else ""),
        key_name(worst.key),
        bar(share) + f"{100 * share:,.0f} %" if share is not None else "",
        unbroken(peak_text(group.highest)),
        limit,
        text(over_text(group)),
        unbroken(words) if (words := safe_text(worst)) is not None else "",
        unbroken(words) if (words := recommended_text(worst)) is not None else "",
        f"{worst.broker}, the worst of {len(group.rows):,}" if len(group.rows) > 1 else f"{worst.broker}",
    )


def cluster_name(cluster_overview: ClusterOverview) -> str:
    """What a cluster is called on the page, ready to be shown."""
    name = cluster_overview.cluster.name or cluster_overview.cluster.id
    return display_name(name) if name else "the cluster"


def budgets_section(overview: Overview) -> PageSection:
    """How much of each budget is allocated, used and free; an owner above its budget first."""
    rows = [(cluster, budget) for cluster in overview.clusters for budget in cluster.budgets]
    rows.sort(key=lambda row: row[1].free >= 0)
    heads = ("Owner", "Cluster", "Limit", "Budget", "Allocated", "Used", "Free", "Entities")
    cells = (_budget_cells(cluster, budget) for cluster, budget in rows)
    numbers = frozenset({"Budget", "Allocated", "Used", "Free", "Entities"})
    caption = text("On each broker. Used: the owner's largest sum on one broker, of peaks in backtests or of rates at a moment")
    return PageSection(
        place="budgets", title="Budgets", count=len(rows), body=tuple(table(caption, heads, cells, numbers=numbers, of=len(rows)))
    )


def _budget_cells(cluster: ClusterOverview, budget: BudgetUse) -> tuple[str, ...]:
    key = budget.key
    free = amount_html(key, budget.free) if budget.free >= 0 else f"{chip('above', 'bad')} {amount_html(key, -budget.free)}"
    return (
        quoted(display_name(budget.owner)),
        quoted(cluster_name(cluster)),
        key_name(key),
        amount_html(key, budget.budget),
        amount_html(key, budget.allocated),
        text("not known") if budget.used is None else text(rate(key, budget.used)),
        free,
        f"{budget.entities:,}",
    )


def units_section(overview: Overview) -> PageSection:
    """What was declared as a total, shares or a part of something, beside the number that each broker enforces."""
    rows = [
        (cluster, entity, key, unit)
        for cluster in overview.clusters
        for entity in cluster.entities
        for key, unit in sorted(entity.units.items())
    ]
    cells = (
        (
            name(str(entity.entity)),
            quoted(cluster_name(cluster)),
            key_name(key),
            text(unit_text(key, unit)),
            amount_html(key, (entity.declared or {})[key]) if key in (entity.declared or {}) else text("not computed"),
        )
        for cluster, entity, key, unit in rows
    )
    heads = ("Entity", "Cluster", "Limit", "Declared", "Each broker")
    caption = text(count_of(len(rows), "computed value"))
    return PageSection(
        place="computed", title="Computed values", count=len(rows), body=tuple(table(caption, heads, cells, of=len(rows)))
    )


def expiries_section(overview: Overview) -> PageSection:
    """Values that are there for a while, by the moment of their expiry."""
    rows = sorted(
        (
            (expiry.at, cluster_name(cluster), entity, key, expiry)
            for cluster in overview.clusters
            for entity in cluster.entities
            for key, expiry in entity.expiries.items()
        ),
        key=lambda row: (*row[:2], row[2].entity.sort_key, row[3]),
    )
    cells = (
        (
            name(str(entity.entity)),
            quoted(cluster),
            key_name(key),
            amount_html(key, (entity.declared or {})[key]) if key in (entity.declared or {}) else text("no value of its own"),
            text(expiry_text(key, expiry)),
        )
        for _, cluster, entity, key, expiry in rows
    )
    heads = ("Entity", "Cluster", "Limit", "Declared now", "Expiry")
    caption = text(f"{count_of(len(rows), 'value')} with an expiry, the first to expire first")
    return PageSection(
        place="expiries", title="Temporary values", count=len(rows), body=tuple(table(caption, heads, cells, of=len(rows)))
    )
