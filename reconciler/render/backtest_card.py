"""One quota group of a backtest: its limits and what they would have done, its rates, a row for each broker, and its clients."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from reconciler.formats import Json, canonical_bytes
from reconciler.hooks import added, load
from reconciler.model import (
    BacktestReport,
    BucketVerdict,
    GroupRows,
    MessagePart,
    PartKind,
    ReplayCounts,
    Verdict,
    broker_words,
    name_part,
    peak_of,
)
from reconciler.render.backtest_sentences import (
    VERDICT_STYLES,
    group_title,
    limit_text,
    member_name,
    members_words,
    peak_text,
    regrouped_words,
    who,
)
from reconciler.render.layout import Block, Column, Figure, Fold, LabelledWords, Line, Style, Words, chip, line, table
from reconciler.render.metric_sentences import before_text, has_only_metrics, metrics_words, over_text, range_text
from reconciler.text import duration, factor, recommended_text, safe_text, short_moment

_MEMBERS: Final = 20
_REQUEST_WORDS: Final = {"controller_mutation_rate": "topics", "connection_creation_rate": "connections closed"}
_BROKER_COLUMNS: Final = (
    Column(title="broker"),
    Column(title="verdict"),
    Column(title="peak", least=12),
    Column(title="over", least=20),
    Column(title="over today"),
    Column(title="longest", least=20),
)
_MEMBER_COLUMNS: Final = tuple(Column(title=title) for title in ("client", "share", "while over", "requests", "limit now"))


def anchor(row: BucketVerdict) -> str:
    """Return the place of a quota group on the page: the same for the same group in every report."""
    about: Json = [row.key, row.name.user, row.name.client_id, [list(tag) for tag in row.name.other], row.undecided]
    return f"group-{hashlib.sha256(canonical_bytes(about)).hexdigest()[:12]}"


def group_card(group: GroupRows, report: BacktestReport) -> Fold:
    """All rows of one quota group, the worst first."""
    worst = group.worst
    style = VERDICT_STYLES[worst.verdict]
    state = (chip(worst.verdict.value, style), " ", name_part(who(worst.name, undecided=worst.undecided)), " ")
    title = line(
        "  ",
        (worst.verdict.value, style),
        "  ",
        (group_title(worst), Style.STRONG),
        pages=(*state, *((part, Style.FAINT) for part in _declared(worst, report))),
    )
    opened = group.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)
    return Fold(title=title, blocks=tuple(_blocks(group, report)), opened=opened, place=anchor(worst))


def amount_words(words: str, value: float | None = None) -> MessagePart:
    """An amount in one piece. ``value``: what a page sorts by."""
    return MessagePart(kind=PartKind.AMOUNT, text=words, value=value)


def limit_parts(row: BucketVerdict, *, current_known: bool, arrow: str = " \N{RIGHTWARDS ARROW} ") -> Iterator[Words]:
    """The proposed limit, after those of now where it changes."""
    if row.undecided:
        yield "?"
        return
    if row.changed and current_known:
        for number, before in enumerate(row.limits.before):
            yield from (_limit_amount(row.key, before),) if not number else (" or ", _limit_amount(row.key, before))
        yield arrow
    yield _limit_amount(row.key, row.limits.after)


def _limit_amount(key: str, limit: float | None) -> MessagePart:
    """Return a limit as a part of a message. Pages sort no limit above every limit."""
    return amount_words(limit_text(key, limit), 1e300 if limit is None else limit)


def _declared(row: BucketVerdict, report: BacktestReport) -> Iterator[Words]:
    yield row.key
    if row.limits.entity is None:
        return
    yield from (" \N{MIDDLE DOT} limit of ", row.limits.entity)
    if (owner := report.declared.owner_of.get(row.limits.entity)) is not None:
        yield from (" \N{MIDDLE DOT} owner ", name_part(owner))
    if (span := report.declared.sources.get((row.limits.entity, row.key))) is not None:
        yield from (" \N{MIDDLE DOT} ", span)


def _blocks(group: GroupRows, report: BacktestReport) -> Iterator[Block]:
    yield LabelledWords(rows=tuple(_facts(group, current_known=report.provenance.current_known)))
    brokers = {part.broker for part in report.provenance.coverage}
    if any(row.rates is not None for row in group.rows):
        yield from (Figure(html=functools.partial(_drawing, place, group.rows, brokers)) for place in added("PLOTS"))
    yield table(_BROKER_COLUMNS, map(_broker, group.rows), indent=4)
    yield from _members(group.worst)


def _drawing(place: str, rows: Sequence[BucketVerdict], brokers: Collection[int]) -> Iterator[str]:
    """Return the lines of a plot. A terminal does without the import."""
    drawn: Iterator[str] = load(place)(rows, brokers)
    return drawn


def _facts(group: GroupRows, *, current_known: bool) -> Iterator[tuple[str, Line]]:
    worst, highest, first = group.worst, group.highest, group.first
    of_metrics, limited = has_only_metrics(worst), worst.limits.after is not None
    source = () if worst.limits.entity is None else (", set for ", worst.limits.entity)
    rest = "" if current_known and worst.changed else " (stays)" if current_known else " (the limit now is not known)"
    parts = limit_parts(worst, current_known=current_known, arrow=" -> ")
    yield "limit", line(*parts, *source, rest, pages=(*limit_parts(worst, current_known=current_known), rest))
    bad = Style.BAD if group.verdict is Verdict.THROTTLED else Style.PLAIN
    yield "over the new limit" if worst.changed else "over the limit", line((amount_words(over_text(group)), bad))
    times = factor(worst.limits.after, peak_of(highest)).removeprefix("x")
    yield "peak", line(amount_words(peak_text(highest)), f" ({times}\N{MULTIPLICATION SIGN} the limit)" if times else "")
    if first is not None and worst.verdict is Verdict.THROTTLED:
        yield "first over", line(amount_words(f"{short_moment(first)} UTC"))
    yield "why", line(". ".join(dict.fromkeys(row.reason for row in group.rows if row.reason)))
    yield "shared", line(regrouped_words(worst) or "")
    safe = safe_text(worst) if limited else None
    yield "safe", line((amount_words(safe or ""), Style.PLAIN if worst.recorded.censored else Style.GOOD))
    yield "samples", line(metrics_words(worst) or "")
    advised = recommended_text(worst) if limited and not of_metrics else None
    yield "recommended", line(amount_words(advised or ""))
    yield "advice", line(worst.advice.reason or "")
    clients = members_words(worst.recorded.members, shares=not of_metrics)
    yield "clients", line(clients, pages=() if len(worst.recorded.members) > 1 and not of_metrics else None)


def _broker(row: BucketVerdict) -> tuple[Line | Words, ...]:
    group, replay = GroupRows.of_row(row), row.replay
    over = [over_text(group), range_text(group)]
    if replay is not None and replay.throttled:
        what = _REQUEST_WORDS.get(row.key, "requests")
        over.append(f"{replay.throttled:,} of {row.recorded.requests:,} {what}{_refused(replay)}")
    longest = row.over.longest_from
    return (
        broker_words(row.broker),
        chip(row.verdict.value, VERDICT_STYLES[row.verdict]),
        line(amount_words(peak_text(row)), hang=0),
        line(", ".join(filter(None, over)), hang=0),
        before_text(group) or "?",
        "" if longest is None else line(amount_words(duration(row.over.longest_s)), f" from {short_moment(longest)}", hang=0),
    )


def _refused(replay: ReplayCounts) -> str:
    if replay.refused is None:
        return ""
    return f" ({replay.refused:,} refused)" if replay.refused else " delayed"


def _members(row: BucketVerdict) -> Iterator[Block]:
    if len(row.recorded.members) < 2 or has_only_metrics(row):
        return
    rows = [_member(row, number) for number in range(min(_MEMBERS, len(row.recorded.members)))]
    more = len(row.recorded.members) - _MEMBERS
    blocks: list[Block] = [table(_MEMBER_COLUMNS, rows)]
    blocks += [line(pages=(f"{more:,} more clients share this limit.",))] if more > 0 else []
    title = f"Clients on {broker_words(row.broker)}: {members_words(row.recorded.members)}"
    yield Fold(title=line(pages=(title,)), blocks=tuple(blocks))


def _member(row: BucketVerdict, number: int) -> tuple[Line, ...]:
    member = row.recorded.members[number]
    excess = "?" if member.share_of_excess is None else f"{100 * member.share_of_excess:.0f} %"
    before = amount_words(limit_text(row.key, member.limit_before)) if row.limits.before else "?"
    cells = (name_part(member_name(member)), f"{100 * member.share:.0f} %", excess, f"{member.requests:,}", before)
    return tuple(line(pages=(cell,)) for cell in cells)
