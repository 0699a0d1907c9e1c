"""A backtest as Markdown for a pull request: a comment of its own, or a section below the plan, within a number of bytes.

The verdict and the rules of the policy are never cut; of everything else whole rows are, and it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.documents import Tone, headline
from reconciler.model import BacktestReport, BucketVerdict, Fit, Provenance, display_name
from reconciler.render.backtest_sentences import (
    after_text,
    capacity_words,
    fit_words,
    history_words,
    kept_words,
    limit_text,
    peak_text,
    regrouped_words,
    rule_sentences,
    telling,
    unjudged_sentence,
    unused_words,
    who,
)
from reconciler.render.markdown import BUDGET
from reconciler.render.markdown_text import (
    NAME_LIMIT,
    OPEN_ROWS,
    Section,
    code,
    fold,
    in_cell,
    list_section,
    prose,
    rows_that_fit,
    size,
)
from reconciler.render.sticky_comment import Marker, marker_line

WHOLE_REPORT: Final = "`kafka-quotas backtest` prints the whole report, and its `--out html=FILE` shows rates over time."

KIND: Final = "backtest"
_LIMITS: Final = (NAME_LIMIT, 400, 100, 40)
"""How much of one name is shown: less only where the verdict and the rules alone would fill half of the room."""
_SENTENCES: Final = 600
"""Bytes kept free for what is said about rows that are left out, beside ``WHOLE_REPORT``."""
_SHORTEST: Final = 300
"""Characters of a name in a summary of the fewest bytes."""
_FRAME: Final = 120
_HEAD: Final = (
    "| Verdict | Quota group | Key | Broker | Now | Proposed | Peak | Seconds over now | Seconds over proposed | Recommended |",
    "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def render_backtest_markdown(report: BacktestReport, *, budget: int = BUDGET) -> str:
    """A whole comment, in at most ``budget`` bytes; its first line is the marker."""
    marker = marker_line(Marker(kind=KIND, cluster=report.cluster, digest=None))
    name = f": {code(display_name(report.cluster))}" if report.cluster else ""
    head = (marker, f"### Kafka quotas{name}", "")
    lines = (*head, *backtest_section(report, room=budget - size(head)))
    return "\n".join(lines).rstrip("\n") + "\n"


def backtest_section(report: BacktestReport, *, room: int) -> tuple[str, ...]:
    """The report in at most ``room`` bytes; where that is not enough for a table, its shortest form."""
    for limit in _LIMITS:
        head = (*_head(report, limit), *_history(report.provenance, limit))
        left = room - size(head) - size((WHOLE_REPORT,)) - _SENTENCES
        if left >= room // 2:
            return (*head, *_body(report, room=left, limit=limit))
    return backtest_summary(report)


def backtest_summary(report: BacktestReport) -> tuple[str, ...]:
    """The verdict and how many rules fail: some hundred bytes, whatever the report."""
    words, tone = headline(report)
    failed = sum(not rule.holds for rule in report.rules)
    policy = f" **{failed} of {len(report.rules)} rules of the policy fail.**" if failed else ""
    return (f"**Backtest:** {_strong(words, tone, _SHORTEST)}{policy} {WHOLE_REPORT}", "")


def _head(report: BacktestReport, limit: int) -> Iterator[str]:
    words, tone = headline(report)
    yield f"**Backtest:** {_strong(words, tone, limit)}"
    yield ""
    for sentence, holds in rule_sentences(report.rules):
        verb = "Allowed" if holds else "**Refused**"
        yield f"- {verb}: {prose(sentence, limit=limit)}"
    if report.rules:
        yield ""


def _strong(words: str, tone: Tone, limit: int) -> str:
    text = prose(words, limit=limit)
    return text if tone is Tone.GOOD else f"**{text}**"


def _history(provenance: Provenance, limit: int) -> Iterator[str]:
    for sentence, tone in history_words(provenance):
        lead = "" if tone is Tone.GOOD else "**Note:** "
        yield f"{lead}{prose(sentence, limit=limit)}."
        yield ""


def _body(report: BacktestReport, *, room: int, limit: int) -> Iterator[str]:
    shown = telling(report)
    rest = tuple(_rest(report, room=room // 3, limit=limit))
    taken = sum(size(section.lines) for section in rest)
    rows = rows_that_fit((_row(one, limit) for one in shown), room - taken - size(_HEAD) - _FRAME)
    counts = [(len(shown) - len(rows), len(shown), "rows"), *((s.left_out, None, "notes") for s in rest)]
    left_out = ", ".join(f"{count}{f' of {of}' if of else ''} {what}" for count, of, what in counts if count)
    if left_out:
        yield from (f"**Left out for want of room: {left_out}.** {WHOLE_REPORT}", "")
    if rows:
        yield from (
            fold(f"{len(rows)} rows, one for each quota group and broker", (*_HEAD, *rows))
            if len(rows) > OPEN_ROWS
            else (*_HEAD, *rows, "")
        )
    kept = kept_words(report)
    if kept is not None:
        yield from (prose(kept, limit=limit), "")
    for section in rest:
        yield from section.lines


def _row(one: BucketVerdict, limit: int) -> str:
    moved = regrouped_words(one)
    bucket = code(who(one.name, undecided=one.undecided), limit=limit)
    seconds = "" if one.seconds_over_before is None else f"{one.seconds_over_before:,}"
    before = " or ".join(limit_text(one.key, value) for value in one.limits_before) or "?"
    after = f"{one.seconds_over:,} of {one.active_seconds:,}"
    if one.throttled is None and one.seconds_possible > one.seconds_over:
        after += f", {one.seconds_possible:,} at most"
    cells = (
        f"**{one.verdict.value}**{f': {prose(one.reason, limit=limit)}' if one.reason else ''}",
        bucket + (f"; {prose(moved, limit=limit)}" if moved else ""),
        code(one.key, limit=limit),
        str(one.broker),
        before,
        f"**{after_text(one)}**" if one.changed else after_text(one),
        peak_text(one),
        seconds,
        after,
        "" if one.recommended is None or one.limit_after is None else limit_text(one.key, one.recommended),
    )
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"


def _rest(report: BacktestReport, *, room: int, limit: int) -> Iterator[Section]:
    lists = (
        ("Not judged: no recorded traffic", [unjudged_sentence(one) for one in report.unjudged]),
        ("Limits against capacity", [capacity_words(use) for use in report.capacity]),
        ("Nearly reached", [fit_words(fit) for fit in report.fits if fit.fit is Fit.NEAR]),
        ("Loose", [fit_words(fit) for fit in report.fits if fit.fit is Fit.LOOSE]),
        ("Not used in this history", [unused_words(one) for one in report.unused]),
        ("Notes", list(report.notes)),
        ("Assumed", list(report.provenance.assumptions)),
    )
    for name, sentences in lists:
        if sentences:
            section = _listed(name, sentences, room=min(room, 4000), limit=limit)
            room -= size(section.lines)
            yield section


def _listed(name: str, sentences: Sequence[str], *, room: int, limit: int) -> Section:
    rows = (f"- {prose(one, limit=limit)}" for one in sentences)
    title = f"{name} ({len(sentences)})"
    if len(sentences) > OPEN_ROWS:
        return list_section(title, rows, total=len(sentences), room=room)
    # Short lists are folded all the same: the table is what a reviewer reads.
    kept = rows_that_fit(rows, room - size(fold(title, ())))
    return Section(lines=fold(title, kept) if kept else (), left_out=len(sentences) - len(kept))
