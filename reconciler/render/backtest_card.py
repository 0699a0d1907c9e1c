"""One quota group of a backtest as a card: its limits and what they would have done, the rates, and a row for each broker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.formats import Json, canonical_bytes
from reconciler.model import BacktestReport, BucketVerdict, GroupRows, Verdict, broker_words, peak_of
from reconciler.render.backtest_plot import MOST_LINES, plot, swatch
from reconciler.render.backtest_sentences import (
    limit_text,
    member_name,
    members_words,
    over_words,
    peak_text,
    regrouped_words,
    who,
)
from reconciler.render.html_page import amount_html, chip, folded, name, place_html, table_cells, table_head, text, unbroken
from reconciler.render.metric_sentences import has_only_metrics, metrics_words
from reconciler.render.over_limit_words import before_text, over_text, range_text
from reconciler.render.repository_links import RepositoryLinks
from reconciler.text import amount, duration, factor, recommended_text, safe_text

VERDICT_STYLES: Final = {
    Verdict.THROTTLED: "bad",
    Verdict.POSSIBLE: "warn",
    Verdict.INCONCLUSIVE: "faint",
    Verdict.CLEAR: "good",
}
_BROKERS: Final = 12
"""Brokers with a row in the open; the rows of the others are folded."""
_MEMBERS: Final = 20
_BROKER_HEADS: Final = ("Broker", "Verdict", "Peak", "Over the limit", "Over today", "Longest time over")
_MEMBER_HEADS: Final = ("Client", "Share", "While over", "Requests", "Limit now")


def anchor(bucket_verdict: BucketVerdict) -> str:
    """Where a quota group is on the page: the same for the same group in every report."""
    about: Json = [
        bucket_verdict.key,
        bucket_verdict.name.user,
        bucket_verdict.name.client_id,
        [list(tag) for tag in bucket_verdict.name.other],
        bucket_verdict.undecided,
    ]
    return f"group-{hashlib.sha256(canonical_bytes(about)).hexdigest()[:12]}"


def card(group: GroupRows, report: BacktestReport, links: RepositoryLinks, *, opened: bool) -> Iterator[str]:
    """The rows of one quota group, the worst first."""
    worst = group.worst
    yield f'<details class="card" data-find="{worst.verdict.value}"{" open" if opened else ""}>'
    yield (
        f"<summary><h3>{chip(worst.verdict.value, VERDICT_STYLES[worst.verdict])} "
        f"{name(who(worst.name, undecided=worst.undecided))}</h3> "
        f'<span class="from">{name(worst.key)}{_declared(worst, report, links)}</span></summary>'
    )
    yield f'<div class="card-body" id="{anchor(worst)}">'
    yield '<dl class="facts">'
    yield from (f"<div><dt>{text(what)}</dt><dd>{words}</dd></div>" for what, words in _facts(group, report) if words)
    yield "</dl>"
    yield from plot(group.rows)
    yield from _brokers(group)
    yield from (f"<p>{text(words)}</p>" for words in _remarks(group) if words)
    yield from _members(worst)
    yield "</div></details>"


def limits_html(bucket_verdict: BucketVerdict) -> str:
    """The limits now, each an amount in one piece."""
    if not bucket_verdict.limits.before:
        return "?"
    return " or ".join(unbroken(limit_text(bucket_verdict.key, value)) for value in bucket_verdict.limits.before)


def after_html(bucket_verdict: BucketVerdict) -> str:
    """The proposed limit, where it is known."""
    return "?" if bucket_verdict.undecided else amount_html(bucket_verdict.key, bucket_verdict.limits.after, absent="unlimited")


def _declared(bucket_verdict: BucketVerdict, report: BacktestReport, links: RepositoryLinks) -> str:
    entity = bucket_verdict.limits.entity
    if entity is None:
        return ""
    owner, span = report.owner_of.get(entity), report.sources.get((entity, bucket_verdict.key))
    parts = [f"limit of {name(str(bucket_verdict.limits.entity))}"]
    parts += [f"owner {name(owner)}"] if owner else []
    parts += [place_html(span, links)] if span else []
    return " \N{MIDDLE DOT} " + " \N{MIDDLE DOT} ".join(parts)


def _facts(group: GroupRows, report: BacktestReport) -> Iterator[tuple[str, str]]:
    worst, peak, first = group.worst, group.highest, group.first
    yield "Limit per broker", _limit(worst, report)
    yield "Over the limit" if not worst.changed else "Over the new limit", _over(group)
    times = factor(worst.limits.after, peak_of(peak))
    part = f" <small>({times.removeprefix('x')}\N{MULTIPLICATION SIGN} the limit)</small>" if times else ""
    yield "Peak", unbroken(peak_text(peak)) + part
    if first is not None and worst.verdict is Verdict.THROTTLED:
        yield "First over", f'<span class="amount">{first:%m-%d %H:%M} UTC</span>'
    if worst.limits.after is not None and worst.advice.safe is not None:
        style = "" if worst.recorded.censored else ' class="good"'
        safe = f"<span{style}>{unbroken(safe_text(worst) or '')}</span>"
        p999 = worst.advice.safe_p999
        if p999 is not None and p999 < worst.advice.safe and not worst.recorded.censored:
            safe += f" <small>({unbroken(amount(worst.key, p999))} for 99.9 % of the time)</small>"
        yield "Safe from", safe
    if worst.limits.after is not None and worst.advice.recommended is not None:
        base = "highest sample" if has_only_metrics(worst) else "safe"
        margin = f" <small>({base} and {100 * worst.advice.margin:.0f} %)</small>" if worst.advice.margin else ""
        yield "Recommended", unbroken(recommended_text(worst) or "") + margin


def _limit(bucket_verdict: BucketVerdict, report: BacktestReport) -> str:
    if bucket_verdict.undecided:
        return "not known"
    if not report.provenance.current_known:
        return f"{after_html(bucket_verdict)} <small>(the limit now is not known)</small>"
    if not bucket_verdict.changed or bucket_verdict.limits.before == (bucket_verdict.limits.after,):
        return f"{after_html(bucket_verdict)} <small>(stays)</small>"
    return f"{limits_html(bucket_verdict)} \N{RIGHTWARDS ARROW} {after_html(bucket_verdict)}"


def _over(group: GroupRows) -> str:
    words = text(over_text(group))
    return f'<span class="bad">{words}</span>' if group.verdict is Verdict.THROTTLED else words


def _brokers(group: GroupRows) -> Iterator[str]:
    drawn = [verdict.broker for verdict in group.rows if verdict.rates is not None][:MOST_LINES]
    rows = [f'<tr role="row">{_broker(verdict, drawn)}</tr>' for verdict in group.rows]
    head = tuple(table_head("", _BROKER_HEADS))
    yield from (*head, *rows[:_BROKERS], "</tbody></table>")
    if len(rows) > _BROKERS:
        yield from folded(f"{len(rows) - _BROKERS:,} more brokers", (*head, *rows[_BROKERS:], "</tbody></table>"))
    if len(drawn) == MOST_LINES and len(rows) > MOST_LINES:
        yield f"<p>The drawing has the first {MOST_LINES} brokers.</p>"


def _broker(bucket_verdict: BucketVerdict, drawn: Sequence[int]) -> str:
    mark = f"{swatch(drawn.index(bucket_verdict.broker))} " if bucket_verdict.broker in drawn else ""
    longest = ""
    if bucket_verdict.over.longest_from is not None:
        since = f"{bucket_verdict.over.longest_from:%m-%d %H:%M}"
        longest = f'{unbroken(duration(bucket_verdict.over.longest_s))} <span class="amount">from {since}</span>'
    row = GroupRows.of_row(bucket_verdict)
    between = range_text(row)
    cells = (
        mark + text(broker_words(bucket_verdict.broker)),
        chip(bucket_verdict.verdict.value, VERDICT_STYLES[bucket_verdict.verdict]),
        unbroken(peak_text(bucket_verdict)),
        text(f"{over_text(row)}, {between}" if between else over_text(row)),
        text(before_text(row) or "?"),
        longest,
    )
    return table_cells(_BROKER_HEADS, [""] * len(cells), cells)


def _remarks(group: GroupRows) -> Iterator[str]:
    worst = group.worst
    for reason in dict.fromkeys(verdict.reason for verdict in group.rows if verdict.reason):
        yield f"{reason[0].upper()}{reason[1:]}."
    for verdict in group.rows[:_BROKERS]:
        if (seen := metrics_words(verdict)) is not None:
            yield f"Metrics on {broker_words(verdict.broker)}: {seen}."
    if has_only_metrics(worst) and worst.advice.reason is not None:
        yield f"Recommended: {worst.advice.reason}."
    if worst.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE) and worst.replay is not None:
        yield f"On {broker_words(worst.broker)}: {over_words(worst)}."
    if (words := regrouped_words(worst)) is not None:
        yield f"Shared before: {words}."
    if len(worst.recorded.members) == 1:
        yield f"The only client is {member_name(worst.recorded.members[0])}."


def _members(verdict: BucketVerdict) -> Iterator[str]:
    members = verdict.recorded.members
    if len(members) < 2:
        return
    if has_only_metrics(verdict):
        yield f"<p>{text(f'Clients on {broker_words(verdict.broker)}: {members_words(members, shares=False)}.')}</p>"
        return
    rows = [f'<tr role="row">{_member(verdict, number)}</tr>' for number in range(min(_MEMBERS, len(members)))]
    more = f"<p>{len(members) - _MEMBERS:,} more clients share this limit.</p>" if len(members) > _MEMBERS else ""
    body = (*table_head("", _MEMBER_HEADS), *rows, "</tbody></table>", more)
    yield from folded(f"Clients on {broker_words(verdict.broker)}: {members_words(members)}", body)


def _member(bucket_verdict: BucketVerdict, number: int) -> str:
    member = bucket_verdict.recorded.members[number]
    excess = "?" if member.share_of_excess is None else f"{100 * member.share_of_excess:.0f} %"
    before = unbroken(limit_text(bucket_verdict.key, member.limit_before)) if bucket_verdict.limits.before else "?"
    cells = (name(member_name(member)), f"{100 * member.share:.0f} %", excess, f"{member.requests:,}", before)
    return table_cells(_MEMBER_HEADS, [""] * len(cells), cells)
