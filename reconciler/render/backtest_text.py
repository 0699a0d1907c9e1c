"""A backtest for a terminal: the answer, one row for each quota group, what was not checked, and the answer again.

Details are one block for each quota group with a row for each broker, the fit of limits, notes and assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import (
    HISTORY_INCOMPLETE,
    BacktestReport,
    BucketVerdict,
    Fit,
    GroupRows,
    UnusedReason,
    Verdict,
    broker_words,
    escaped,
    group_verdicts,
)
from reconciler.render.backtest_blocks import VERDICT_STYLES, answer_line, heading_lines, history_lines, more_lines
from reconciler.render.backtest_sentences import (
    advice_words,
    after_text,
    capacity_words,
    fit_words,
    group_title,
    kept_words,
    limit_text,
    limit_words,
    longest_words,
    margin_words,
    members_words,
    over_words,
    peak_share,
    peak_text,
    regrouped_words,
    rule_sentences,
    safe_words,
    telling,
    unused_words,
)
from reconciler.render.layout import Block, Column, Line, Style, labelled, line, table
from reconciler.render.metric_sentences import has_only_metrics, metrics_words
from reconciler.render.over_limit_words import over_text, row_over_text
from reconciler.render.simulation_text import simulation_view
from reconciler.text import count_of, recommended_text

_SHOWN_GROUPS: Final = 30
_SHOWN_NOTES: Final = 20
_GROUPS: Final = (
    Column(title="verdict"),
    Column(title="quota group", least=18),
    Column(title="limit", least=10),
    Column(title="peak", least=11),
    Column(title="over", to_the_right=True),
    Column(title="recommended", least=11),
)
_UNJUDGED: Final = (
    Column(title="verdict"),
    Column(title="quota", least=18),
    Column(title="limit", least=12),
    Column(title="why", least=20),
)
_BROKERS: Final = (
    Column(title="broker"),
    Column(title="verdict"),
    Column(title="peak", least=12),
    Column(title="over", least=20),
    Column(title="longest", least=20),
)


def backtest_lines(report: BacktestReport, *, details: bool = False) -> tuple[Block, ...]:
    """The report, readable from top to bottom; ``details``: with all that it rests on, and each broker."""
    if report.simulation is not None:
        return simulation_view(report, report.simulation, details=details).lines
    return tuple(_blocks(report, details=details))


def _blocks(report: BacktestReport, *, details: bool) -> Iterator[Block]:
    yield answer_line(report, "Backtest")
    for sentence, passes in rule_sentences(report.rules):
        yield line((sentence, Style.PLAIN if passes else Style.BAD))
    yield from _sections(report, details=details)
    if details:
        for group in group_verdicts(telling(report)):
            yield line()
            yield from _group(group, current_known=report.provenance.current_known)
    yield from history_lines(report.provenance, samples=details)
    yield from _rest(report, details=details)
    yield line()
    yield answer_line(report, "Backtest")


def _sections(report: BacktestReport, *, details: bool) -> Iterator[Block]:
    groups = group_verdicts(telling(report))
    most = None if details else _SHOWN_GROUPS
    current_known = report.provenance.current_known
    for heading, some in (
        ("Changed by this proposal", [group for group in groups if group.changed]),
        ("Over its limit already today", [group for group in groups if not group.changed]),
    ):
        if some:
            yield from heading_lines(heading, f"{count_of(len(some), 'quota group')}: {_counts(some)}")
            yield table(_GROUPS, (_row(group, current_known=current_known) for group in some[:most]))
            yield from more_lines(len(some), most, "quota groups")
    if report.unjudged:
        count = count_of(len(report.unjudged), "changed quota")
        yield from heading_lines(
            "Not checked", f"{count} that {'limits' if len(report.unjudged) == 1 else 'limit'} no recorded traffic"
        )
        yield table(
            _UNJUDGED,
            (
                (
                    (Verdict.INCONCLUSIVE.value, Style.WARN),
                    f"{change.entity}: {change.key}",
                    " -> ".join(limit_text(change.key, value, absent="not set") for value in (change.before, change.after)),
                    change.why,
                )
                for change in report.unjudged[:most]
            ),
        )
        yield from more_lines(len(report.unjudged), most, "changed quotas")
    if not details:
        for finding in report.findings:
            if finding.id == HISTORY_INCOMPLETE:
                yield line((finding.message, Style.WARN))
    kept = kept_words(report)
    if kept is not None:
        yield line()
        yield line(kept)


def _counts(groups: Sequence[GroupRows]) -> str:
    counts = Counter(group.verdict for group in groups)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in VERDICT_STYLES if counts[verdict])


def _row(group: GroupRows, *, current_known: bool) -> tuple[tuple[str, Style] | str, ...]:
    worst = group.worst
    over = worst.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)
    after = after_text(worst)
    if worst.changed and current_known and not worst.undecided:
        after = f"{' or '.join(limit_text(worst.key, limit) for limit in worst.limits.before)} -> {after}"
    return (
        (worst.verdict.value, VERDICT_STYLES[worst.verdict]),
        group_title(worst),
        after,
        peak_text(group.highest),
        over_text(group) if over else "",
        (recommended_text(worst) or "") if over or has_only_metrics(worst) else "",
    )


def _group(group: GroupRows, *, current_known: bool) -> Iterator[Block]:
    worst = group.worst
    yield line("  ", (worst.verdict.value, VERDICT_STYLES[worst.verdict]), "  ", (group_title(worst), Style.STRONG))
    over = worst.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)
    for label, words in (
        ("limit", limit_words(worst, current_known=current_known)),
        ("why", None if worst.reason is None else escaped(worst.reason)),
        ("shared", regrouped_words(worst)),
        ("safe", safe_words(worst) if over else None),
        ("samples", metrics_words(worst)),
        ("recommended", advice_words(worst) if over or has_only_metrics(worst) else None),
        ("margin", margin_words(worst) if over else None),
        (
            "clients",
            members_words(worst.recorded.members, shares=not has_only_metrics(worst)) if worst.recorded.members else None,
        ),
    ):
        if words is not None:
            yield labelled(f"    {label:<11}  ", Style.FAINT, words)
    yield table(_BROKERS, (_broker_row(row) for row in group.rows), indent=4)


def _broker_row(row: BucketVerdict) -> tuple[tuple[str, Style] | str, ...]:
    over = row.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)
    longest, share = longest_words(row) if over else None, peak_share(row)
    return (
        broker_words(row.broker),
        (row.verdict.value, VERDICT_STYLES[row.verdict]),
        peak_text(row) if share is None else f"{peak_text(row)}, {100 * share:.0f} % of the limit",
        row_over_text(row) if has_only_metrics(row) else over_words(row) if over else "",
        longest or "",
    )


def _rest(report: BacktestReport, *, details: bool) -> Iterator[Line]:
    near = [fit_words(fit) for fit in report.fits if fit.fit is Fit.NEAR]
    loose = [fit_words(fit) for fit in report.fits if fit.fit is Fit.LOOSE]
    unused = [unused_words(quota) for reason in UnusedReason for quota in report.unused if quota.reason is reason]
    for note in report.notes:
        yield labelled("Note: ", Style.FAINT, note)
    if details:
        for sentences in ([capacity_words(use) for use in report.capacity], near, loose, unused):
            yield from _notes(sentences)
        for assumption in report.provenance.assumptions:
            yield labelled("Assumed: ", Style.FAINT, assumption)
        return
    above = {use.broker for use in report.capacity}
    folded = (
        count_of(len(above), "broker with limits above its capacity", "brokers with limits above their capacity"),
        count_of(len(near), "limit nearly reached", "limits nearly reached"),
        count_of(len(loose), "loose limit"),
        count_of(len(unused), "unused quota"),
        count_of(len(report.provenance.assumptions), "assumption"),
    )
    words = [text for text in folded if not text.startswith("0 ")]
    if words or report.verdicts:
        also = f"{', '.join(words)}, and " if words else ""
        yield labelled("--details ", Style.FAINT, f"shows {also}each broker.")


def _notes(sentences: Sequence[str]) -> Iterator[Line]:
    for sentence in sentences[:_SHOWN_NOTES]:
        yield labelled("Note: ", Style.FAINT, sentence)
    if len(sentences) > _SHOWN_NOTES:
        yield labelled("Note: ", Style.FAINT, f"{len(sentences) - _SHOWN_NOTES:,} more like these. --format json has all of them")
