"""Small pieces of the page of a report: tables that keep their meaning on a telephone, moments, and bars."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from reconciler.model import (
    BucketTraffic,
    ClusterOverview,
    DriftClass,
    EntityOverview,
    Form,
    Overview,
    RunRecord,
    TrafficOverview,
    Verdict,
    display_name,
    same_value,
)
from reconciler.render.backtest_sentences import unjudged_sentence
from reconciler.render.findings_text import counts_sentence
from reconciler.render.html_page import name, styled, text
from reconciler.render.report_page_data import cluster_name
from reconciler.text import amount, count_of, rate

MOST_ROWS: Final = 200
"""Rows of a table that is plain HTML; what is left out is counted below it."""

_FEW: Final = 3
_FOLDER: Final = Path(__file__).parent / "page"

DRIFT_WORDS: Final = {
    DriftClass.IN_SYNC: ("in sync", "good"),
    DriftClass.UNAPPLIED: ("not applied", "warn"),
    DriftClass.CHANGED: ("changed by hand", "bad"),
    DriftClass.MISSING: ("removed by hand", "bad"),
    DriftClass.DIFFERS: ("differs", "bad"),
    DriftClass.ADDED: ("added", "bad"),
    DriftClass.UNMANAGED: ("unmanaged", "faint"),
}


@cache
def page_file(name: str) -> str:
    """A file that is part of every page: script, style, or HTML that is always the same."""
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip("\n")


def moment(at: datetime.datetime) -> str:
    """``2026-01-02 12:00 UTC``."""
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"


def time_element(at: datetime.datetime) -> str:
    """The same for HTML, with the machine's form beside it."""
    exact = at.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f'<time datetime="{exact}">{moment(at)}</time>'


def quoted(value: str) -> str:
    """Text of a stranger within a sentence, kept from turning round what is beside it."""
    return f"<bdi>{text(' '.join(value.splitlines()))}</bdi>"


def drift_word(drift: DriftClass | None) -> str:
    """A class of drift in words."""
    if drift is None:
        return styled("not compared", "faint")
    return styled(*DRIFT_WORDS[drift])


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: frozenset[str] = frozenset(), of: int = 0
) -> Iterator[str]:
    """A table whose first column heads its rows; ``caption`` and cells are HTML. Rows after ``MOST_ROWS`` are only counted.

    Roles are said, because a narrow screen lays it out as blocks, and browsers take the meaning of a table away then.
    """
    classes = ["number" if head in numbers else "" for head in heads]
    yield f'<table role="table"><caption>{caption}</caption>'
    yield '<thead role="rowgroup"><tr role="row">'
    yield "".join(
        f'<th scope="col" role="columnheader"{_class(one)}>{text(head)}</th>' for head, one in zip(heads, classes, strict=True)
    )
    yield '</tr></thead><tbody role="rowgroup">'
    for number, row in enumerate(rows):
        if number == MOST_ROWS:
            break
        yield _row(heads, classes, row)
    yield "</tbody></table>"
    if of > MOST_ROWS:
        yield f'<p class="faint">{of - MOST_ROWS:,} more are not listed here.</p>'


def _row(heads: Sequence[str], classes: Sequence[str], row: Sequence[str]) -> str:
    cells = [f'<th scope="row" role="rowheader" data-label="{text(heads[0])}">{row[0]}</th>']
    for head, kind, cell in zip(heads[1:], classes[1:], row[1:], strict=True):
        kinds = " ".join(word for word in (kind, "" if cell else "empty") if word)
        cells.append(f'<td role="cell"{_class(kinds)} data-label="{text(head)}">{cell}</td>')
    return f'<tr role="row">{"".join(cells)}</tr>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def section(place: str, title: str, body: Iterable[str], *, needs_script: bool = False) -> Iterator[str]:
    """A part of the page that the contents lead to."""
    hidden = " data-needs-script hidden" if needs_script else ""
    yield f'<section id="{place}" aria-labelledby="{place}-title"{hidden}>'
    yield f'<h2 id="{place}-title" tabindex="-1">{text(title)}</h2>'
    yield from body
    yield "</section>"


def bar(share: float) -> str:
    """A part of a limit as a bar with the limit marked at two thirds; it says nothing that the text beside it does not."""
    width = 200 * min(max(share, 0.0), 1.5) / 3
    style = "bar over" if share > 1 else "bar"
    return (
        '<svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" x="0" y="3" width="100" height="4"/>'
        f'<rect class="{style}" x="0" y="1" width="{width:.1f}" height="8"/>'
        '<rect class="limit" x="66.3" y="0" width=".7" height="10"/></svg>'
    )


def notes(lines: Iterable[str], *, opened: bool = True) -> Iterator[str]:
    """Sentences to know, each text; folded unless ``opened``, and always when there are many."""
    rows = [f"<li>{text(' '.join(line.splitlines()))}</li>" for line in lines]
    if not rows:
        return
    state = " open" if opened and len(rows) <= _FEW else ""
    yield f'<details{state}><summary>{count_of(len(rows), "note")}</summary><ul class="plain">{"".join(rows)}</ul></details>'


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
    """One sentence: what a hurried reader takes away; HTML."""
    failures = [one.failure for one in overview.clusters if one.failure is not None]
    skipped = sum(1 for one in failures if one.skipped)
    unread = len(failures) - skipped
    differ = sum(1 for one in overview.clusters if one.differs)
    in_sync = len(overview.clusters) - len(failures) - differ
    parts = []
    if unread:
        parts.append(styled(f"{count_of(unread, 'cluster')} could not be read", "bad"))
    if differ:
        parts.append(styled(f"{count_of(differ, 'cluster')} {'differs' if differ == 1 else 'differ'} from the manifests", "bad"))
    if in_sync:
        parts.append(styled(f"{count_of(in_sync, 'cluster')} {'has' if in_sync == 1 else 'have'} what the manifests say", "good"))
    if skipped:
        parts.append(styled(f"{count_of(skipped, 'cluster')} skipped", "warn"))
    return ", ".join(parts) + "."


def clusters_section(overview: Overview) -> Iterator[str]:
    """One row a cluster, then what is to be known about each."""
    heads = ("Cluster", "State", "Declared", "Live", "In sync", "Differences", "Unmanaged", "Read", "Last run")
    rows = (_cluster_row(one, overview) for one in overview.clusters)
    numbers = frozenset({"Declared", "Live", "In sync", "Unmanaged"})
    caption = text(f"{count_of(len(overview.clusters), 'cluster')}, entities by their state")
    yield from section(
        "clusters", "Clusters", (*table(caption, heads, rows, numbers=numbers, of=len(overview.clusters)), *_details(overview))
    )


def _cluster_row(one: ClusterOverview, overview: Overview) -> tuple[str, ...]:
    cluster = one.cluster
    about = ", ".join(
        part
        for part in (cluster.id and f"{cluster.id}", f"Kafka {cluster.kafka_version}" if cluster.kafka_version else None)
        if part
    )
    title = f"<strong>{quoted(cluster_name(one))}</strong>" + (f'<br><span class="faint">{quoted(about)}</span>' if about else "")
    changing = (run for run in overview.runs if not run.validate_only and run.result != "nothing_to_do" and run.is_of(cluster))
    last = next(changing, None)
    change = f"{time_element(last.ended)}, {styled(*_RESULTS.get(last.result, (last.result, 'warn')))}" if last else ""
    if one.failure is not None:
        state = styled("skipped" if one.failure.skipped else "could not be read", "warn" if one.failure.skipped else "bad")
        return title, state, f"{one.declared:,}", "?", "?", "?", "?", "", change
    state = styled("differs", "bad") if one.differs else styled("in sync", "good")
    read = f"{time_element(one.observed.at)}, {text(_origin(one))}" if one.observed else ""
    kinds = [(drift, number) for drift, number in one.counts.items() if drift.is_difference and number]
    differences = "<br>".join(styled(f"{number:,} {DRIFT_WORDS[drift][0]}", DRIFT_WORDS[drift][1]) for drift, number in kinds)
    return (
        title,
        state,
        f"{one.declared:,}",
        f"{one.live or 0:,}",
        f"{one.counts.get(DriftClass.IN_SYNC, 0):,}",
        differences or "none",
        f"{one.counts.get(DriftClass.UNMANAGED, 0):,}",
        read,
        change,
    )


def _origin(one: ClusterOverview) -> str:
    assert one.observed is not None
    return {"broker": "from its brokers", "zookeeper": "from ZooKeeper"}.get(one.observed.origin.value, "in a snapshot")


def _details(overview: Overview) -> Iterator[str]:
    yield from notes(overview.notes)
    for one in overview.clusters:
        failed = one.failure
        if failed is None and not one.notes and not one.findings and one.complete:
            continue
        yield f"<h3>{quoted(cluster_name(one))}</h3>"
        if failed is not None:
            word = styled("Skipped" if failed.skipped else "Could not be read", "warn" if failed.skipped else "bad")
            yield f'<p>{word}: {quoted(failed.message)} <span class="faint">({text(failed.failure_reason)})</span></p>'
        if not one.complete:
            yield f"<p>{styled('Only some of the manifests were read: what they do not declare was not compared.', 'warn')}</p>"
        if one.findings:
            yield f"<p>{text(counts_sentence(one.findings))} in the manifests; <code>kafka-quotas validate</code> lists them.</p>"
        yield from notes(one.notes, opened=len(overview.clusters) == 1)


def differences_section(overview: Overview) -> Iterator[str]:
    """Every entity that is neither in sync nor unmanaged, as far as a page goes."""
    found = [(one, entity) for one in overview.clusters for entity in one.entities if entity.drift and entity.drift.is_difference]
    yield from section("differences", "Differences", _differences(overview, found))


def _differences(overview: Overview, found: Sequence[tuple[ClusterOverview, EntityOverview]]) -> Iterator[str]:
    if not found:
        read = [one for one in overview.clusters if one.failure is None]
        yield f"<p>{styled('None.', 'good')} What is declared is live.</p>" if read else "<p>No cluster was read.</p>"
        return
    if any(entity.drift is DriftClass.DIFFERS for _, entity in found):
        yield (
            '<p class="note">No baseline was given, so what was merged but not applied is not told from what was changed by '
            "hand: <code>--baseline</code> tells.</p>"
        )
    rows = (_difference(one, entity) for one, entity in found)
    heads = ("Entity", "Cluster", "State", "Declared", "Live", "Owner", "Declared at")
    yield from table(text(count_of(len(found), "entity", "entities")), heads, rows, of=len(found))


def _difference(one: ClusterOverview, entity: EntityOverview) -> tuple[str, ...]:
    wanted, live = entity.declared or {}, entity.live or {}
    keys = [key for key in sorted(wanted.keys() | live.keys()) if not same_value(wanted.get(key), live.get(key))]
    sides = [
        "<br>".join(f"{name(key)} {text(amount(key, side.get(key)))}" for key in keys) if side else "nothing"
        for side in (wanted, live)
    ]
    protected = ' <span class="tag">protected</span>' if entity.protected else ""
    return (
        name(str(entity.entity)),
        quoted(cluster_name(one)),
        drift_word(entity.drift) + protected,
        *sides,
        quoted(entity.owner or ""),
        name(f"{entity.source.file}:{entity.source.line}") if entity.source else "",
    )


def runs_section(overview: Overview) -> Iterator[str]:
    """The runs of the audit files, the latest first."""
    heads = ("Ended", "Cluster", "Command", "Result", "Entities", "Who", "Commit", "Accepted guards")
    total = len(overview.runs) + overview.runs_left_out
    if overview.runs:
        body = tuple(table(text(f"{count_of(total, 'run')}, the latest first"), heads, map(_run, overview.runs), of=total))
    elif overview.audited:
        body = ("<p>The audit file has no run.</p>",)
    else:
        body = (_NO_AUDIT,)
    yield from section("runs", "Last runs", body)


def _run(run: RunRecord) -> tuple[str, ...]:
    result = styled(*_RESULTS.get(run.result, (run.result, "warn")))
    if run.failure_reason:
        result += f" ({text(run.failure_reason)})"
    if run.result in ("done", "partial") and not run.verified and not run.validate_only:
        result += f" {styled('not verified', 'warn')}"
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


def traffic_section(overview: Overview) -> Iterator[str]:
    """What backtests say of recorded traffic under the limits, the worst first."""
    body = tuple(line for one in overview.traffic for line in _traffic(one))
    yield from section("traffic", "Traffic against limits", body or (_NO_BACKTEST,))


def _traffic(one: TrafficOverview) -> Iterator[str]:
    cluster = f"{quoted(display_name(one.cluster))}, " if one.cluster else ""
    yield f"<h3>{cluster}{quoted(one.file)}</h3>"
    word = (
        "judged request by request"
        if one.form is Form.EXACT
        else "judged from sums of whole seconds: a peak is what no request can have exceeded"
    )
    bad = any(bucket.verdict is Verdict.THROTTLED for bucket in one.buckets)
    doubt = one.unjudged or any(bucket.verdict is not Verdict.CLEAR for bucket in one.buckets)
    if one.headline:
        yield f"<p>{styled(one.headline, 'bad' if bad else 'warn' if doubt else 'good')}</p>"
    yield f"<p>{count_of(one.requests, 'request')} from {time_element(one.start)} to {time_element(one.end)}, {word}.</p>"
    if one.unjudged:
        yield "<ul>"
        yield from (f"<li>{text(unjudged_sentence(change))}</li>" for change in one.unjudged[:_UNJUDGED])
        yield "</ul>"
        if len(one.unjudged) > _UNJUDGED:
            yield f"<p>{len(one.unjudged) - _UNJUDGED:,} more changes are not judged.</p>"
    rows = (_bucket(bucket, before_known=one.current_known) for bucket in one.buckets)
    heads = (
        "Quota group",
        "Key",
        "Broker",
        "Verdict",
        "Peak against limit",
        "Peak",
        "Limit",
        "Seconds over",
        "Safe",
        "Recommended",
    )
    caption = f"Quota groups of {quoted(one.file)} on each broker, the worst first; the mark on each bar is the limit"
    yield from table(caption, heads, rows, numbers=frozenset({"Broker", "Seconds over"}), of=len(one.buckets))


def _bucket(one: BucketTraffic, *, before_known: bool) -> tuple[str, ...]:
    tags = " ".join(f"{tag}={display_name(value)}" for tag, value in one.bucket.items())
    share = one.share
    before = "unlimited" if one.limit_before is None else amount(one.key, one.limit_before)
    after = "unlimited" if one.limit_after is None else amount(one.key, one.limit_after)
    limit = f"<strong>{text(after)}</strong>" + (
        f', <span class="faint">before {text(before)}</span>' if one.changed and before_known else ""
    )
    return (
        name(tags) if tags else "clients without a client id",
        name(one.key),
        str(one.broker),
        styled(one.verdict.value, _VERDICTS[one.verdict]) + (f": {quoted(one.reason)}" if one.reason else ""),
        bar(share) + f"{100 * share:,.0f} %" if share is not None else "",
        text(f"{one.peak_bound.words}{rate(one.key, one.peak)}"),
        limit,
        f"{one.seconds_over:,} of {one.active_seconds:,}",
        text(amount(one.key, one.safe)) if one.safe is not None else "",
        text(amount(one.key, one.recommended)) if one.recommended is not None else "",
    )
