"""A backtest for a terminal: the verdict, what the history can and cannot show, then each bucket that matters, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.documents import Tone, headline
from reconciler.model import BacktestReport, BucketVerdict, Fit, Provenance, UnusedReason, Verdict, display_name, escaped
from reconciler.render.backtest_sentences import (
    advice_words,
    capacity_words,
    fit_words,
    history_words,
    kept_words,
    limit_words,
    longest_words,
    members_words,
    over_words,
    peak_words,
    regrouped_words,
    rule_sentences,
    safe_words,
    telling,
    title,
    unjudged_sentence,
    unused_words,
    waiting_words,
)
from reconciler.render.styled import Line, Style, line

_SHOWN_BUCKETS: Final = 30
_SHOWN_NOTES: Final = 20
_TONES: Final = {Tone.GOOD: Style.GOOD, Tone.WARN: Style.WARN, Tone.BAD: Style.BAD}
_VERDICTS: Final = {
    Verdict.THROTTLED: Style.BAD,
    Verdict.POSSIBLE: Style.WARN,
    Verdict.INCONCLUSIVE: Style.WARN,
    Verdict.CLEAR: Style.GOOD,
}


def backtest_lines(report: BacktestReport) -> tuple[Line, ...]:
    """The whole report, readable from top to bottom."""
    return tuple(_lines(report))


def _lines(report: BacktestReport) -> Iterator[Line]:
    words, tone = headline(report)
    yield line((f"Backtest: {words}", _TONES[tone]))
    for sentence, holds in rule_sentences(report.rules):
        yield line((sentence, Style.PLAIN if holds else Style.BAD))
    yield from _history(report.provenance)
    shown = telling(report)
    for verdict in shown[:_SHOWN_BUCKETS]:
        yield line()
        yield from _bucket(verdict, current_known=report.provenance.current_known)
    if report.unjudged:
        yield line()
    for one in report.unjudged[:_SHOWN_NOTES]:
        yield line("  ", (Verdict.INCONCLUSIVE.value, Style.WARN), "  ", unjudged_sentence(one))
    if len(report.unjudged) > _SHOWN_NOTES:
        yield line(f"  {len(report.unjudged) - _SHOWN_NOTES:,} more changes are not judged.")
    yield line()
    if len(shown) > _SHOWN_BUCKETS:
        yield line(f"{len(shown) - _SHOWN_BUCKETS:,} more are not shown; --format json has all of them.")
    kept = kept_words(report)
    if kept is not None:
        yield line(kept)
    yield from _notes([capacity_words(use) for use in report.capacity])
    yield from _notes([fit_words(fit) for fit in report.fits if fit.fit is Fit.NEAR])
    yield from _notes([fit_words(fit) for fit in report.fits if fit.fit is Fit.LOOSE])
    for reason in UnusedReason:
        yield from _notes([unused_words(one) for one in report.unused if one.reason is reason])
    yield from _notes(report.notes)
    for assumption in report.provenance.assumptions:
        yield line(("Assumed: ", Style.FAINT), assumption)


def _bucket(verdict: BucketVerdict, *, current_known: bool) -> Iterator[Line]:
    yield line("  ", (verdict.verdict.value, _VERDICTS[verdict.verdict]), "  ", (title(verdict), Style.STRONG))
    yield line(f"    limit    {limit_words(verdict, current_known=current_known)}")
    yield line(f"    peak     {peak_words(verdict)}")
    if verdict.reason is not None:
        yield line(f"    why      {escaped(verdict.reason)}")
    regrouped = regrouped_words(verdict)
    if regrouped is not None:
        yield line(f"    shared   {regrouped}")
    if verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE):
        yield line(f"    over     {over_words(verdict)}")
        longest = longest_words(verdict)
        if longest is not None:
            yield line(f"    longest  {longest}")
        for name, words in (("safe ", safe_words(verdict)), ("write", advice_words(verdict))):
            if words is not None:
                yield line(f"    {name}    ", words)
    if verdict.waiting is not None:
        yield line(f"    waiting  {waiting_words(verdict.waiting)}")
    if verdict.members:
        yield line(f"    clients  {members_words(verdict.members)}")


def _notes(sentences: Sequence[str]) -> Iterator[Line]:
    for sentence in sentences[:_SHOWN_NOTES]:
        yield line(("Note: ", Style.FAINT), sentence)
    if len(sentences) > _SHOWN_NOTES:
        yield line(("Note: ", Style.FAINT), f"{len(sentences) - _SHOWN_NOTES:,} more like these")


def _history(provenance: Provenance) -> Iterator[Line]:
    yield line()
    yield line(("What this rests on", Style.STRONG))
    for sentence, tone in history_words(provenance):
        yield line(("  Warning: ", Style.WARN), sentence) if tone is not Tone.GOOD else line(f"  {sentence}")
    for sample in provenance.unreadable_samples:
        yield line("    ", (display_name(sample[:160]), Style.FAINT))
