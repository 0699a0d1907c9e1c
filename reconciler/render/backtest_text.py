"""A backtest for a terminal: the verdict first, then each bucket that matters, then what the history can and cannot show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.formats.canonical import number_text
from reconciler.model.backtest import BacktestReport, BucketVerdict, Member, Provenance, UnusedReason, Verdict
from reconciler.model.entity import display_name
from reconciler.render.amounts import amount, rate
from reconciler.render.styled import Line, Style, line
from reconciler.render.waiting_words import waiting_words

_SHOWN_BUCKETS: Final = 30
_SHOWN_MEMBERS: Final = 5
_SHOWN_UNUSED: Final = 20
_PEAK_WORDS: Final = {"controller_mutation_rate": "would never have overdrawn it"}
_REQUEST_WORDS: Final = {"controller_mutation_rate": "topics", "connection_creation_rate": "connections closed"}
_NOT_CHARGED_WORDS: Final = {
    "other-api": "of other kinds",
    "follower": "follower fetches",
    "refused-transaction": "refused transactional produces",
}

_VERDICT: Final = {
    Verdict.CERTAIN: ("THROTTLED", Style.BAD),
    Verdict.POSSIBLE: ("possible", Style.WARN),
    Verdict.INCONCLUSIVE: ("unknown", Style.WARN),
    Verdict.CLEAR: ("clear", Style.GOOD),
}
_SOURCE_WORDS: Final = {"request-log": "request log", "normal-form": "Parquet file", "cells": "compacted file"}


def backtest_lines(report: BacktestReport) -> tuple[Line, ...]:
    """The whole report, readable from top to bottom."""
    return tuple(_lines(report))


def _lines(report: BacktestReport) -> Iterator[Line]:
    yield _headline(report)
    shown = [v for v in report.verdicts if v.changed or v.verdict is not Verdict.CLEAR]
    for verdict in shown[:_SHOWN_BUCKETS]:
        yield line()
        yield from _bucket(verdict, current_known=report.provenance.current_known)
    yield line()
    if len(shown) > _SHOWN_BUCKETS:
        yield line(f"{len(shown) - _SHOWN_BUCKETS} more are not shown; --format json has all of them.")
    kept = len(report.verdicts) - len(shown)
    if kept:
        yield line(
            f"{_count(kept, 'more bucket')} {_are(kept)} untouched by the change, and no request of theirs was over a limit."
        )
    yield from _unused(report)
    yield from _history(report.provenance)


def _headline(report: BacktestReport) -> Line:
    hit = {(v.key, v.user, v.client_id) for v in report.verdicts if v.verdict is Verdict.CERTAIN}
    changed = {(v.key, v.user, v.client_id) for v in report.verdicts if v.changed}
    if hit & changed:
        count = len(hit & changed)
        words = (
            f"Backtest: the proposed quotas would have throttled {count} of {_count(len(changed), 'bucket')} whose limit changes."
        )
        return line((words, Style.BAD))
    if hit:
        over = f"{_count(len(hit), 'bucket')} {_are(len(hit))} over a limit that stays"
        return line((f"Backtest: the change would have throttled nobody; {over}.", Style.WARN))
    maybe = {(v.key, v.user, v.client_id) for v in report.verdicts if v.verdict is Verdict.POSSIBLE and v.changed}
    if maybe:
        words = (
            f"Backtest: the proposed quotas might have throttled {len(maybe)} of {_count(len(changed), 'bucket')} whose limit "
            "changes; --exact can tell."
        )
        return line((words, Style.WARN))
    limited = (
        f"{_count(len(changed), 'bucket')} {'gets' if len(changed) == 1 else 'get'} another limit"
        if changed
        else "no limit changes"
    )
    return line((f"Backtest: no recorded request would have been throttled ({limited}).", Style.GOOD))


def _bucket(verdict: BucketVerdict, *, current_known: bool) -> Iterator[Line]:
    over = verdict.verdict in (Verdict.CERTAIN, Verdict.POSSIBLE)
    yield line("  ", _VERDICT[verdict.verdict], "  ", (_title(verdict), Style.STRONG))
    yield line(f"    limit    {_limit_change(verdict, current_known=current_known)}")
    peak = f"{rate(verdict.key, verdict.peak)} {_PEAK_WORDS.get(verdict.key, 'sampled rate')}"
    if verdict.headroom is not None:
        share = 100 / verdict.headroom
        peak += f", {share:.0f} % of the proposed limit"
    yield line(f"    peak     {peak}")
    if over:
        yield line(f"    over     {_over(verdict)}")
        if verdict.longest_from is not None:
            yield line(f"    longest  {verdict.longest_s} s without a break, from {verdict.longest_from:%H:%M:%S} UTC")
        if verdict.recommended is not None:
            safe = amount(verdict.key, verdict.recommended)
            yield line("    safe     ", (safe, Style.STRONG), ": no request of this history is over it, on any broker")
    if verdict.waiting is not None:
        yield line(f"    waiting  {waiting_words(verdict.waiting)}")
    if verdict.members:
        yield line(f"    clients  {_members(verdict.members)}")


def _title(verdict: BucketVerdict) -> str:
    parts = []
    if verdict.user:
        parts.append(f"user {display_name(verdict.user)}")
    if verdict.client_id:
        parts.append(f"client-id {display_name(verdict.client_id)}")
    parts += [f"{display_name(tag)} {display_name(name)}" for tag, name in verdict.tags]
    if verdict.undecided:
        parts.append("not recorded whole")
    who = ", ".join(parts) or "clients without a client id"
    return f"{who}: {verdict.key} on broker {verdict.broker}"


def _limit_change(verdict: BucketVerdict, *, current_known: bool) -> str:
    if verdict.undecided:
        return "not known, since it is not recorded who these clients are"
    after = _limit(verdict.key, verdict.limit_after)
    source = f", set for {verdict.entity}" if verdict.entity is not None else ""
    if not current_known:
        return f"{after}{source} (what holds now is not known)"
    before = " or ".join(_limit(verdict.key, limit) for limit in verdict.limits_before)
    return f"{before} -> {after}{source}" if verdict.changed else f"{after}{source} (stays)"


def _limit(key: str, value: float | None) -> str:
    return "unlimited" if value is None else amount(key, value)


def _over(verdict: BucketVerdict) -> str:
    text = f"{verdict.seconds_over} of {verdict.active_seconds} s with traffic ({100 * verdict.share_over:.0f} %)"
    if verdict.throttled is None:
        text = f"about {text}, {verdict.seconds_certain} for certain, {verdict.seconds_possible} at most"
        if verdict.seconds_over_before is not None:
            text += f" (before the change about {verdict.seconds_over_before})"
    else:
        what = _REQUEST_WORDS.get(verdict.key, "requests")
        text += f", {verdict.throttled:,} of {verdict.requests:,} {what}{_refused(verdict)}"
        if verdict.throttled_before is not None:
            text += f" (before the change {verdict.throttled_before:,})"
    return f"{text}, first at {verdict.first:%Y-%m-%d %H:%M:%S} UTC"


def _refused(verdict: BucketVerdict) -> str:
    if verdict.refused is None or verdict.partly_refused is None:
        return ""
    if not verdict.refused:
        return " delayed"
    partly = f", {_count(verdict.partly_refused, 'request')} only in part" if verdict.partly_refused else ""
    return f" ({verdict.refused:,} refused{partly})"


def _members(members: Sequence[Member]) -> str:
    shown = [f"{_member_name(m)} {100 * m.share:.0f} %" for m in members[:_SHOWN_MEMBERS]]
    if len(members) > _SHOWN_MEMBERS:
        shown.append(f"{len(members) - _SHOWN_MEMBERS} more")
    return ", ".join(shown)


def _member_name(member: Member) -> str:
    client = display_name(member.client_id) if member.client_id else "(no client id)"
    if member.client_id is None:
        client = "(client id not recorded)"
    user = "(user not recorded)" if member.user is None else display_name(member.user)
    return f"{user}/{client}"


def _unused(report: BacktestReport) -> Iterator[Line]:
    for reason, words in (
        (UnusedReason.NO_CLIENT, "declared, but no client in this history has"),
        (UnusedReason.HIDDEN, "declared, but stronger quotas win for every client in this history that has"),
    ):
        found = [u for u in report.unused if u.reason is reason]
        for one in found[:_SHOWN_UNUSED]:
            yield line(("Note: ", Style.FAINT), f"{one.entity} {one.key} {number_text(one.value)}: {words} it")
        if len(found) > _SHOWN_UNUSED:
            yield line(("Note: ", Style.FAINT), f"{len(found) - _SHOWN_UNUSED} more quotas like these")


def _history(provenance: Provenance) -> Iterator[Line]:
    yield line()
    yield line(("What this rests on", Style.STRONG))
    start, end = provenance.start, provenance.end
    brokers = ", ".join(str(c.broker) for c in provenance.coverage)
    whose = "broker" if len(provenance.coverage) == 1 else "brokers"
    yield line(
        f"  {_count(len(provenance.files), _SOURCE_WORDS[provenance.source])} of {whose} {brokers}, "
        f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC ({(end - start).total_seconds():.0f} s): "
        f"{_count(provenance.requests, 'charged request')} of {provenance.series} clients and kinds"
    )
    left_out = [f"{count:,} {_NOT_CHARGED_WORDS.get(kind, kind)}" for kind, count in provenance.not_charged.items() if count]
    if left_out:
        yield line(f"  not charged to a byte rate: {', '.join(left_out)}")
    if provenance.unreadable:
        yield line(("  Warning: ", Style.WARN), f"{_count(provenance.unreadable, 'request line')} could not be read, such as:")
        for sample in provenance.unreadable_samples:
            yield line("    ", (display_name(sample[:160]), Style.FAINT))
    for assumption in provenance.assumptions:
        yield line(f"  assumed: {assumption}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
