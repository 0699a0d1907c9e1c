"""A backtest: the answer, one row for each quota group, what was not checked, and what the answer rests on.

Details are a card for each quota group with a row for each broker, notes and assumptions. A page has all of it, with numbers at
the top and rates over time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.documents import headline
from reconciler.model import HISTORY_INCOMPLETE, BacktestReport, GroupRows, Verdict, group_verdicts, peak_of
from reconciler.render.backtest_card import amount_words, anchor, group_card, limit_parts
from reconciler.render.backtest_sentences import (
    TONE_STYLES,
    VERDICT_STYLES,
    group_title,
    heading_lines,
    history_lines,
    kept_words,
    limit_text,
    more_line,
    peak_text,
    regrouped_words,
    rule_sentences,
    telling,
    unused_words,
)
from reconciler.render.findings_text import counts_sentence, findings_on_page
from reconciler.render.layout import (
    Block,
    Column,
    Fold,
    Line,
    Style,
    Tile,
    View,
    Words,
    chip,
    commit_line,
    heading,
    labelled,
    line,
    linked_name,
    note_line,
    table,
)
from reconciler.render.metric_sentences import has_only_metrics, over_text
from reconciler.text import count_of, duration, recommended_text, safe_text

_SHOWN_GROUPS: Final = 30
_SHOWN_NOTES: Final = 20
_CARDS: Final = 40
"""Quota groups with a card on a page; the others have a row of the table."""
_ROWS_OF_PAGE: Final = 2000
_NOTES_OF_PAGE: Final = 200
_OPEN_FINDINGS: Final = 8
_CHANGED: Final = "Changed by this proposal"
_STAYING: Final = "Over a limit that stays"
_NOT_CHECKED: Final = "Not checked"
_GROUPS: Final = (
    Column(title="verdict", chosen=True),
    Column(title="quota group", least=18, heads=True),
    Column(title="limit", least=10),
    Column(title="peak", least=10),
    Column(title="over", to_the_right=True, least=7),
    Column(title="safe from"),
    Column(title="recommended", least=11),
)
_UNJUDGED: Final = (
    Column(title="verdict"),
    Column(title="quota", least=18, heads=True),
    Column(title="limit", least=10),
    Column(title="why", least=20),
)


def backtest_view(report: BacktestReport, *, details: bool = False, page: bool = False) -> View:
    """The report, readable from top to bottom. ``details``: with all that it rests on, and each broker; ``page``: for a page."""
    blocks = _blocks(report, details=details or page, page=page)
    words, tone = headline(report)
    answer, _, rest = words.partition(". ")
    style = TONE_STYLES[tone]
    title = labelled("Backtest: ", style, (words, style))
    return View(
        kind="backtest",
        cluster=report.cluster,
        title=title,
        answer=line(*title.segments, hang=title.hang, pages=((f"{answer}." if rest else answer, style),)),
        lead=rest,
        blocks=tuple(blocks),
        about=tuple(_about(report)) if page else (),
        tiles=tuple(_tiles(report)) if page else (),
        tiles_title="Quota groups, each counted once by its worst broker",
    )


def _about(report: BacktestReport) -> Iterator[Line]:
    history = report.provenance
    length = duration((history.end - history.start).total_seconds())
    yield line(f"{length} of traffic, {history.start:%Y-%m-%d %H:%M} to {history.end:%Y-%m-%d %H:%M} UTC")
    yield line(count_of(len(history.coverage), "broker"))
    if report.commit.commit:
        yield commit_line(report.commit)


def rule_lines(report: BacktestReport) -> Iterator[Line]:
    """The rules of the policy with their results."""
    for sentence, passes in rule_sentences(report.rules):
        state, label = ("passed", "Rule passed: ") if passes else ("fails", "Rule fails: ")
        style = Style.GOOD if passes else Style.BAD
        yield line((label, style), sentence, pages=(chip(state, style), " ", sentence))


def _tiles(report: BacktestReport) -> Iterator[Tile]:
    groups = group_verdicts(telling(report))
    counts = Counter(group.verdict for group in groups if group.changed)
    for verdict, style in VERDICT_STYLES.items():
        shown = "faint" if verdict is Verdict.INCONCLUSIVE else style.page_class
        yield Tile(number=counts[verdict], words=verdict.value, style=shown, place=heading(_CHANGED).place)
    unknown, staying = heading(_NOT_CHECKED).place, heading(_STAYING).place
    yield Tile(number=len(report.unjudged), words="not checked", style="warn", place=unknown)
    over = sum(not group.changed for group in groups)
    yield Tile(number=over, words="over a limit that stays", style="warn", place=staying)


def _blocks(report: BacktestReport, *, details: bool, page: bool) -> Iterator[Block]:
    if report.rules:
        yield from rule_lines(report)
    groups = group_verdicts(telling(report))
    changed, staying = ([group for group in groups if group.changed is wanted] for wanted in (True, False))
    for title, some, cards in ((_CHANGED, changed, _CARDS), (_STAYING, staying, max(_CARDS - len(changed), 0))):
        if some:
            yield from _section(title, some, report, details=details, cards=cards if page else None)
    if report.unjudged:
        yield from _unjudged(report, most=_NOTES_OF_PAGE if page else None if details else _SHOWN_GROUPS)
    if not details:
        incomplete = (finding.message for finding in report.findings if finding.id == HISTORY_INCOMPLETE)
        yield from (line((message, Style.WARN), pages=()) for message in incomplete)
    kept = kept_words(report)
    if kept is not None:
        yield line()
        yield line(kept, pages=())
    yield from history_lines(report.provenance, samples=details)
    if kept is not None:
        yield line(pages=(kept,))
    if page and report.findings:
        yield from _findings(report)
    yield from _rest(report, details=details, most=_NOTES_OF_PAGE if page else _SHOWN_NOTES)
    yield line()


def backtest_basis(report: BacktestReport) -> Iterator[Block]:
    """Yield the evidence and all else that the history shows, for a comment that has the verdicts."""
    words, _ = headline(report)
    yield line(words)
    yield line("Percentages are shares of the seconds with traffic.")
    kept = kept_words(report)
    yield line(kept or "")
    for group in group_verdicts(telling(report)):
        for why in (group.worst.reason, regrouped_words(group.worst)):
            if why and group.changed:
                yield line(f"{group_title(group.worst)}: {why}.")
    if report.unjudged:
        yield from _unjudged(report, most=_NOTES_OF_PAGE)
    yield from history_lines(report.provenance, samples=False)
    yield from _rest(report, details=True, most=_NOTES_OF_PAGE)


def _section(
    title: str, groups: Sequence[GroupRows], report: BacktestReport, *, details: bool, cards: int | None
) -> Iterator[Block]:
    """A row for each quota group, and a card with ``details``; ``cards``: on a page so many."""
    counts = Counter(group.verdict for group in groups)
    words = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in VERDICT_STYLES if counts[verdict])
    yield from heading_lines(title, f"{count_of(len(groups), 'quota group')}: {words}", count=len(groups))
    most = _ROWS_OF_PAGE if cards is not None else None if details else _SHOWN_GROUPS
    known = report.provenance.current_known
    linked = len(groups) if cards is None else cards
    rows = (_row(group, current_known=known, linked=number < linked) for number, group in enumerate(groups[:most]))
    yield table(_GROUPS, rows)
    if most is not None and len(groups) > most:
        yield more_line(len(groups) - most, "quota groups")
    if not details:
        return
    for group in groups[:cards]:
        yield line()
        yield group_card(group, report)
    if cards is not None and len(groups) > cards:
        yield line(f"{len(groups) - cards:,} more quota groups have only their row in the table above.")


def _row(group: GroupRows, *, current_known: bool, linked: bool) -> tuple[Line | Words, ...]:
    worst, peak = group.worst, group.highest
    over = worst.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)
    advised = worst.limits.after is not None
    order = list(VERDICT_STYLES).index(worst.verdict)
    return (
        chip(worst.verdict.value, VERDICT_STYLES[worst.verdict], value=float(order)),
        line(group_title(worst), hang=0, pages=(linked_name(group_title(worst), anchor(worst) if linked else None),)),
        line(
            *limit_parts(worst, current_known=current_known, arrow=" -> "),
            hang=0,
            pages=limit_parts(worst, current_known=current_known),
        ),
        line(peak_text(peak), hang=0, pages=(amount_words(_bound(peak_text(peak)), peak_of(peak)),)),
        line(over_text(group) if over else "", hang=0, pages=(amount_words(_bound(over_text(group)), group.time_over.share),)),
        line(pages=(amount_words(_bound((advised and safe_text(worst)) or ""), worst.advice.safe),)),
        line(
            (recommended_text(worst) or "") if over or has_only_metrics(worst) else "",
            hang=0,
            pages=(amount_words(_bound((advised and recommended_text(worst)) or ""), worst.advice.recommended),),
        ),
    )


def _bound(words: str) -> str:
    """Return words for a narrow column: with a sign in place of ``at most`` and ``at least``."""
    return words.replace("at most ", "\N{LESS-THAN OR EQUAL TO} ", 1).replace("at least ", "\N{GREATER-THAN OR EQUAL TO} ", 1)


def _unjudged(report: BacktestReport, *, most: int | None) -> Iterator[Block]:
    count = count_of(len(report.unjudged), "changed quota")
    limits = "limits" if len(report.unjudged) == 1 else "limit"
    yield from heading_lines(_NOT_CHECKED, f"{count} that {limits} no recorded traffic")
    rows = (
        (
            chip(_NOT_CHECKED.lower(), Style.WARN),
            f"{change.entity}: {change.key}",
            line(before, " -> ", after, hang=0, pages=(before, " \N{RIGHTWARDS ARROW} ", after)),
            change.why,
        )
        for change in report.unjudged[:most]
        for before, after in [[limit_text(change.key, value, absent="not set") for value in (change.before, change.after)]]
    )
    yield table(_UNJUDGED, rows)
    if most is not None and len(report.unjudged) > most:
        yield more_line(len(report.unjudged) - most, "changed quotas")


def _findings(report: BacktestReport) -> Iterator[Block]:
    yield heading("Findings", count=len(report.findings))
    lines = tuple(findings_on_page(report.findings))
    yield from (
        lines if len(lines) <= _OPEN_FINDINGS else (Fold(title=line(pages=(counts_sentence(report.findings),)), blocks=lines),)
    )


def _rest(report: BacktestReport, *, details: bool, most: int) -> Iterator[Block]:
    yield heading("More")
    if not details:
        yield from map(note_line, report.notes)
        if report.verdicts:
            yield labelled("--details ", Style.FAINT, "shows each broker, and what is assumed.")
        return
    for title, sentences, label in (
        ("Notes", report.notes, "Note: "),
        ("Not used in this history", [*map(unused_words, report.unused)], "Note: "),
        ("Assumed", report.provenance.assumptions, "Assumed: "),
    ):
        lines = [line((label, Style.FAINT), words, hang=len(label), pages=(words,)) for words in sentences[:most]]
        if len(sentences) > most:
            words = f"{len(sentences) - most:,} more like these. --format json has all of them"
            lines.append(line((label, Style.FAINT), words, hang=len(label), pages=(words,)))
        if lines:
            yield Fold(title=line(pages=(f"{title} ({len(sentences):,})",)), blocks=tuple(lines))
