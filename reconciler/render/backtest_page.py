"""A backtest as one self-contained page: the verdict, what the history can show, then each bucket with its rate over time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.documents import Tone, headline
from reconciler.formats import Json, canonical_bytes
from reconciler.model import BacktestReport, BucketVerdict, Fit, Provenance, UnusedReason, Verdict, broker_words, display_name
from reconciler.render.backtest_plot import DEFINITIONS, PLOT_STYLE, plot
from reconciler.render.backtest_sentences import (
    advice_words,
    after_text,
    capacity_words,
    fit_words,
    history_words,
    kept_words,
    limit_text,
    limit_words,
    longest_words,
    member_name,
    over_words,
    peak_text,
    peak_words,
    regrouped_words,
    rule_sentences,
    safe_words,
    telling,
    unjudged_sentence,
    unused_words,
    waiting_words,
    who,
)
from reconciler.render.findings_text import counts_sentence
from reconciler.render.html_page import finding_item, items, name, page, section, styled, table, text

_CARDS: Final = 40
"""Buckets that are told at length; the others have a row of the table."""
_ROWS: Final = 2000
_MEMBERS: Final = 20
_NOTES: Final = 200
_HEADS: Final = ("Verdict", "Quota group", "Key", "Broker", "Now", "Proposed", "Peak", "Over now", "Over proposed", "Recommended")
_NUMBERS: Final = frozenset({"Broker", "Now", "Proposed", "Peak", "Over now", "Over proposed", "Recommended"})
_MEMBER_HEADS: Final = ("Client", "Share", "While over", "Requests", "Limit now")
_STYLES: Final = {Verdict.THROTTLED: "bad", Verdict.POSSIBLE: "warn", Verdict.INCONCLUSIVE: "warn", Verdict.CLEAR: "good"}
_TONES: Final = {Tone.BAD: "bad", Tone.WARN: "warn", Tone.GOOD: "good"}
_STYLE: Final = (
    PLOT_STYLE
    + """
article { border-top: 2px solid var(--line); break-inside: avoid-page; margin-top: 1.4rem; padding-top: .4rem; }
h3 { font-size: 1.05rem; margin: .2rem 0 .5rem; overflow-wrap: anywhere; }
p, figcaption span { min-width: 0; overflow-wrap: anywhere; }
dl { display: grid; gap: .2rem 1rem; grid-template-columns: 7.5rem minmax(0, 1fr); margin: 0; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
td a { color: inherit; }
td[data-label="Quota group"], td[data-label="Client"] { min-width: 10rem; overflow-wrap: anywhere; }
@media screen and (max-width: 72rem) { td[data-label] { min-width: 0; } }
@media screen and (max-width: 30rem) { dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: .4rem; } }
@media print { dl { gap: .1rem .8rem; } h3 { break-after: avoid; } }
"""
)


def backtest_html(report: BacktestReport) -> str:
    """The page: no script, nothing loaded, the same bytes for the same report."""
    cluster = f": {display_name(report.cluster)}" if report.cluster else ""
    return page(f"Kafka quotas, backtest{cluster}", _body(report), style=_STYLE)


def anchor(one: BucketVerdict) -> str:
    """Where a bucket is told on the page: the same for the same bucket in every report."""
    about: Json = [one.key, one.broker, one.user, one.client_id, [list(tag) for tag in one.tags], one.undecided]
    return f"bucket-{hashlib.sha256(canonical_bytes(about)).hexdigest()[:12]}"


def _body(report: BacktestReport) -> Iterator[str]:
    words, tone = headline(report)
    cluster = f": {name(display_name(report.cluster))}" if report.cluster else ""
    yield DEFINITIONS
    yield f"<header><h1>Backtest{cluster}</h1>"
    yield f'<p class="lead">{styled(words, _TONES[tone])}</p>'
    if report.rules:
        yield from items(_rule(sentence, holds=holds) for sentence, holds in rule_sentences(report.rules))
    yield "</header>"
    if report.unjudged:
        yield from section("Not judged: no recorded traffic", _noted([unjudged_sentence(one) for one in report.unjudged]))
    yield from section("What this rests on", _history(report.provenance))
    shown = telling(report)
    if shown:
        cards = {id(one) for one in shown[:_CARDS]}
        rows = (_row(one, linked=id(one) in cards) for one in shown[:_ROWS])
        more = f"{len(shown) - _ROWS:,} more are in the JSON report." if len(shown) > _ROWS else ""
        yield from section(
            "Quota groups on each broker, the worst first", (*table(_HEADS, rows, numbers=_NUMBERS), *_paragraph(more))
        )
    yield from _paragraph(kept_words(report) or "")
    for one in shown[:_CARDS]:
        yield from _card(one, current_known=report.provenance.current_known)
    if len(shown) > _CARDS:
        yield from _paragraph(f"{len(shown) - _CARDS:,} more buckets have only their row in the table above.")
    yield from _rest(report)


def _rule(sentence: str, *, holds: bool) -> str:
    return f"{styled('Allowed' if holds else 'Refused', 'good' if holds else 'bad')}: {text(sentence)}"


def _history(provenance: Provenance) -> Iterator[str]:
    yield from items(text(s) if tone is Tone.GOOD else styled(s, _TONES[tone]) for s, tone in history_words(provenance))
    if provenance.unreadable_samples:
        yield from ("<pre>", *(text(sample[:160]) for sample in provenance.unreadable_samples), "</pre>")


def _row(one: BucketVerdict, *, linked: bool) -> tuple[str, ...]:
    bucket = name(who(one.name, undecided=one.undecided))
    before = " or ".join(limit_text(one.key, value) for value in one.limits_before) or "?"
    most = f", {one.seconds_possible:,} at most" if one.throttled is None and one.seconds_possible > one.seconds_over else ""
    advice = "" if one.recommended is None or one.limit_after is None else limit_text(one.key, one.recommended)
    return (
        styled(one.verdict.value, _STYLES[one.verdict]),
        f'<a href="#{anchor(one)}">{bucket}</a>' if linked else bucket,
        name(one.key),
        str(one.broker),
        text(before),
        f"<strong>{text(after_text(one))}</strong>" if one.changed else text(after_text(one)),
        text(peak_text(one)),
        "?" if one.seconds_over_before is None else f"{one.seconds_over_before:,} s",
        f"{one.seconds_over:,} of {one.active_seconds:,} s{most}",
        text(advice),
    )


def _card(one: BucketVerdict, *, current_known: bool) -> Iterator[str]:
    yield f'<article id="{anchor(one)}">'
    verdict = styled(one.verdict.value, _STYLES[one.verdict])
    bucket = name(who(one.name, undecided=one.undecided))
    yield f"<h3>{verdict} {bucket}: {name(one.key)} on {broker_words(one.broker)}</h3>"
    facts = (
        ("Limit", limit_words(one, current_known=current_known)),
        ("Why", one.reason),
        ("Peak", peak_words(one)),
        ("Over", over_words(one) if one.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE) else None),
        ("Longest", longest_words(one)),
        ("Safe", safe_words(one) if one.limit_after is not None else None),
        ("Recommended", advice_words(one) if one.limit_after is not None else None),
        ("Shared before", regrouped_words(one)),
        ("If clients wait", waiting_words(one.waiting) if one.waiting is not None else None),
    )
    yield "<dl>"
    yield from (f"<dt>{text(what)}</dt><dd>{text(words)}</dd>" for what, words in facts if words)
    yield "</dl>"
    if one.rates is not None:
        yield from plot(one, one.rates)
    if len(one.members) > 1:
        yield from table(_MEMBER_HEADS, (_member(one, number) for number in range(min(_MEMBERS, len(one.members)))))
        if len(one.members) > _MEMBERS:
            yield from _paragraph(f"{len(one.members) - _MEMBERS:,} more clients share this bucket.")
    elif one.members:
        yield from _paragraph(f"The only client is {member_name(one.members[0])}.")
    yield "</article>"


def _member(one: BucketVerdict, number: int) -> tuple[str, ...]:
    member = one.members[number]
    excess = "?" if member.share_of_excess is None else f"{100 * member.share_of_excess:.0f} %"
    before = limit_text(one.key, member.limit_before) if one.limits_before else "?"
    return name(member_name(member)), f"{100 * member.share:.0f} %", excess, f"{member.requests:,}", text(before)


def _rest(report: BacktestReport) -> Iterator[str]:
    lists = (
        ("Limits against capacity", [capacity_words(use) for use in report.capacity]),
        ("Nearly reached", [fit_words(fit) for fit in report.fits if fit.fit is Fit.NEAR]),
        ("Loose", [fit_words(fit) for fit in report.fits if fit.fit is Fit.LOOSE]),
        *(
            ("Not used in this history" if r is UnusedReason.NO_CLIENT else "Hidden by stronger quotas", _unused(report, r))
            for r in UnusedReason
        ),
        ("Notes", list(report.notes)),
        ("Assumed", list(report.provenance.assumptions)),
    )
    if report.findings:
        found = sorted(report.findings, key=lambda finding: finding.severity.rank)
        yield from section(f"Findings: {counts_sentence(found)}", items(finding_item(one) for one in found[:_NOTES]))
    for title, sentences in lists:
        if sentences:
            yield from section(title, _noted(sentences))


def _unused(report: BacktestReport, reason: UnusedReason) -> list[str]:
    return [unused_words(one) for one in report.unused if one.reason is reason]


def _noted(sentences: Sequence[str]) -> Iterator[str]:
    yield from items(text(one) for one in sentences[:_NOTES])
    if len(sentences) > _NOTES:
        yield from _paragraph(f"{len(sentences) - _NOTES:,} more are in the JSON report.")


def _paragraph(words: str) -> Iterator[str]:
    if words:
        yield f"<p>{text(words)}</p>"
