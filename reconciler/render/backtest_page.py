"""A backtest as one page: the answer, quota groups counted once by verdict, then each group with its rates over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.documents import headline
from reconciler.model import (
    BacktestReport,
    Fit,
    GroupRows,
    Provenance,
    UnusedReason,
    Verdict,
    display_name,
    group_verdicts,
    peak_of,
)
from reconciler.render.backtest_card import VERDICT_STYLES, after_html, anchor, card, limits_html
from reconciler.render.backtest_plot import DEFINITIONS
from reconciler.render.backtest_sentences import (
    capacity_words,
    fit_words,
    history_words,
    kept_words,
    peak_text,
    rule_sentences,
    unjudged_sentence,
    unused_words,
    who,
)
from reconciler.render.findings_text import counts_sentence
from reconciler.render.html_page import (
    FoundRow,
    Masthead,
    PageSection,
    chip,
    commit_words,
    filter_form,
    finding_item,
    folded,
    found_table,
    items,
    key_name,
    message_html,
    name,
    page,
    text,
    tiles,
    unbroken,
)
from reconciler.render.html_writer import view_html
from reconciler.render.layout import Tile
from reconciler.render.over_limit_words import over_text
from reconciler.render.repository_links import NO_LINKS, RepositoryLinks
from reconciler.render.simulation_text import simulation_view
from reconciler.text import count_of, duration, recommended_text, safe_text

_CARDS: Final = 40
"""Quota groups with a card; the others have a row of the table."""
_ROWS: Final = 2000
_NOTES: Final = 200
_HEADS: Final = ("Quota group", "Verdict", "Key", "Now", "Proposed", "Peak", "Over", "Safe from", "Recommended")
_NUMBERS: Final = frozenset({"Now", "Proposed", "Peak", "Over", "Safe from", "Recommended"})
_SEEN_OVER: Final = (Verdict.THROTTLED, Verdict.POSSIBLE)


def backtest_html(report: BacktestReport, links: RepositoryLinks = NO_LINKS) -> str:
    """A report as one HTML page without external files. Equal reports give equal bytes."""
    if report.simulation is not None:
        return view_html(simulation_view(report, report.simulation, details=True), links)
    cluster = f": {display_name(report.cluster)}" if report.cluster else ""
    groups = group_verdicts(report.verdicts)
    sections = _sections(report, groups, links)
    return page(f"Kafka quotas, backtest{cluster}", _masthead(report, groups), sections, main=(DEFINITIONS,))


def _masthead(report: BacktestReport, groups: Sequence[GroupRows]) -> Masthead:
    words, _ = headline(report)
    answer, _, rest = words.partition(". ")
    cluster = f", {display_name(report.cluster)}" if report.cluster else ""
    history = report.provenance
    length = duration((history.end - history.start).total_seconds())
    about = (
        f"{text(length)} of traffic, {history.start:%Y-%m-%d %H:%M} to {history.end:%Y-%m-%d %H:%M} UTC",
        text(count_of(len(history.coverage), "broker")),
        commit_words(report.commit),
    )
    return Masthead(
        kicker=f"Kafka quotas: backtest{cluster}",
        answer=f"{answer}." if rest else answer,
        rest=rest,
        about=tuple(entry for entry in about if entry),
        body=tuple(_top(report, groups)),
    )


def _top(report: BacktestReport, groups: Sequence[GroupRows]) -> Iterator[str]:
    if report.rules:
        yield from items(_rule(sentence, holds=holds) for sentence, holds in rule_sentences(report.rules))
    changed = [group.verdict for group in groups if group.changed]
    rows = [
        Tile(number=changed.count(verdict), words=verdict.value, style=VERDICT_STYLES[verdict], place="changed")
        for verdict in (Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR)
    ]
    rows.append(Tile(number=len(report.unjudged), words="not recorded, effect not known", style="warn", place="unjudged"))
    rows.append(Tile(number=len(_over_already(groups)), words="over a limit that stays", style="warn", place="already"))
    yield from tiles("Quota groups, each counted once by its worst broker", rows)


def _over_already(groups: Sequence[GroupRows]) -> list[GroupRows]:
    return [group for group in groups if not group.changed and group.verdict in _SEEN_OVER]


def _rule(sentence: str, *, holds: bool) -> str:
    return f"{chip('Allowed', 'good') if holds else chip('Refused', 'bad')} {message_html(sentence)}"


def _sections(report: BacktestReport, groups: Sequence[GroupRows], links: RepositoryLinks) -> Iterator[PageSection]:
    changed = [group for group in groups if group.changed]
    already = _over_already(groups)
    if changed:
        body = tuple(_groups(changed, report, links, cards=_CARDS))
        yield PageSection(place="changed", title="Changed by this pull request", count=len(changed), body=body)
    if report.unjudged:
        yield PageSection(
            place="unjudged",
            title="Not judged: no recorded traffic",
            count=len(report.unjudged),
            body=tuple(_listed([unjudged_sentence(change) for change in report.unjudged])),
        )
    if already:
        body = tuple(_groups(already, report, links, cards=max(_CARDS - len(changed), 0)))
        yield PageSection(place="already", title="Over its limit already today", count=len(already), body=body)
    history = (*_history(report.provenance), *_paragraph(kept_words(report) or ""))
    yield PageSection(place="history", title="What this rests on", body=history)
    if report.findings:
        findings = sorted(report.findings, key=lambda finding: finding.severity.rank)
        body = items(finding_item(finding, links) for finding in findings[:_NOTES])
        if len(findings) > _OPEN:
            body = tuple(folded(counts_sentence(findings), body))
        yield PageSection(place="findings", title="Findings", count=len(findings), body=body)
    more = tuple(_rest(report))
    if more:
        yield PageSection(place="more", title="More", body=more)


_OPEN: Final = 8
_FILTERED: Final = 5
"""Rows from which on a table has a filter."""


def _groups(groups: Sequence[GroupRows], report: BacktestReport, links: RepositoryLinks, *, cards: int) -> Iterator[str]:
    if len(groups) > 1:
        if len(groups) >= _FILTERED:
            yield from filter_form("Search", "Verdict", (verdict.value for verdict in Verdict))
        rows = (_row(group, linked=number < cards) for number, group in enumerate(groups[:_ROWS]))
        yield from found_table("The worst first", _HEADS, rows, numbers=_NUMBERS)
        if len(groups) > _ROWS:
            yield from _paragraph(f"{len(groups) - _ROWS:,} more are in the JSON report.")
    for group in groups[:cards]:
        yield from card(group, report, links, opened=group.verdict is not Verdict.CLEAR)
    if len(groups) > cards:
        yield from _paragraph(f"{len(groups) - cards:,} more quota groups have only their row in the table above.")


def _row(group: GroupRows, *, linked: bool) -> FoundRow:
    worst, peak = group.worst, group.highest
    title = name(who(worst.name, undecided=worst.undecided))
    after = after_html(worst)
    advised = worst.limits.after is not None
    cells = (
        f'<a href="#{anchor(worst)}">{title}</a>' if linked else title,
        chip(worst.verdict.value, VERDICT_STYLES[worst.verdict]),
        key_name(worst.key),
        limits_html(worst),
        f"<strong>{after}</strong>" if worst.changed else after,
        unbroken(_bound(peak_text(peak))),
        f'<span class="amount">{text(_bound(over_text(group)))}</span>',
        _advised(safe_text(worst)) if advised else "",
        _advised(recommended_text(worst)) if advised else "",
    )
    order = list(VERDICT_STYLES).index(worst.verdict)
    sort = (
        None,
        float(order),
        None,
        _number(worst.limits.lowest_before),
        _number(worst.limits.after),
        peak_of(peak),
        group.time_over.share,
        worst.advice.safe or 0.0,
        worst.advice.recommended or 0.0,
    )
    return FoundRow(kind=worst.verdict.value, cells=cells, sort=sort)


def _advised(words: str | None) -> str:
    return "" if words is None else unbroken(_bound(words))


def _bound(words: str) -> str:
    """For a narrow column: the sign in place of ``at most`` and ``at least``."""
    return words.replace("at most ", "\N{LESS-THAN OR EQUAL TO} ", 1).replace("at least ", "\N{GREATER-THAN OR EQUAL TO} ", 1)


def _number(limit: float | None) -> float:
    """For sorting: no limit is above every limit."""
    return 1e300 if limit is None else limit


def _history(provenance: Provenance) -> Iterator[str]:
    yield from items(message_html(sentence) for sentence, _ in history_words(provenance))
    if provenance.unreadable_samples:
        yield from ("<pre>", *(text(sample[:160]) for sample in provenance.unreadable_samples), "</pre>")


def _rest(report: BacktestReport) -> Iterator[str]:
    lists = (
        ("Limits against capacity", [capacity_words(use) for use in report.capacity]),
        ("Nearly reached", [fit_words(fit) for fit in report.fits if fit.fit is Fit.NEAR]),
        ("Loose", [fit_words(fit) for fit in report.fits if fit.fit is Fit.LOOSE]),
        ("Not used in this history", _unused(report, UnusedReason.NO_CLIENT)),
        ("Overridden by stronger quotas", _unused(report, UnusedReason.HIDDEN)),
        ("Notes", list(report.notes)),
        ("Assumed", list(report.provenance.assumptions)),
    )
    for title, sentences in lists:
        if sentences:
            yield from folded(f"{title} ({len(sentences):,})", _listed(sentences))


def _unused(report: BacktestReport, reason: UnusedReason) -> list[str]:
    return [unused_words(quota) for quota in report.unused if quota.reason is reason]


def _listed(sentences: Sequence[str]) -> Iterator[str]:
    yield from items(message_html(sentence) for sentence in sentences[:_NOTES])
    if len(sentences) > _NOTES:
        yield from _paragraph(f"{len(sentences) - _NOTES:,} more are in the JSON report.")


def _paragraph(words: str) -> Iterator[str]:
    if words:
        yield f"<p>{text(words)}</p>"
