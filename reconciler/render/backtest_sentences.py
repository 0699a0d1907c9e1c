"""A backtest in sentences, shared by text, Markdown and pages. Names are made visible here; each renderer escapes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.documents import Tone, headline
from reconciler.model import (
    GAUGE,
    BacktestReport,
    BucketName,
    BucketVerdict,
    Finding,
    Member,
    PeakBound,
    Provenance,
    RuleOutcome,
    Severity,
    UnusedQuota,
    Verdict,
    broker_words,
    display_name,
)
from reconciler.render.layout import Block, Line, Style, heading, labelled, line
from reconciler.render.metric_sentences import censored_words, has_only_metrics, observation_words, sample_text
from reconciler.text import amount, bound_text, count_of, length_text, list_some

ANSWER: Final = "backtest-answer"
"""Id of the finding that carries the headline."""
_NOT_CHARGED_WORDS: Final = {
    "other-api": "of other kinds",
    "follower": "follower fetches",
    "duplicate": "copies of other lines",
    "refused-transaction": "refused transactional produces",
    "silent-minute": "silent minutes",
}
_SOURCE_WORDS: Final = {
    "request-log": "request log",
    "normal-form": "Parquet file",
    "cells": "compacted file",
    "log-cells": "compacted file",
    "mapped-file": "mapped file",
    "recorder": "recorder file",
}
_SHOWN_NAMES: Final = 5


def answer(report: BacktestReport) -> Finding:
    """The headline as a finding, a warning unless the answer is good."""
    words, tone = headline(report)
    return Finding(id=ANSWER, severity=Severity.INFO if tone is Tone.GOOD else Severity.WARNING, message=words)


def rule_sentences(rules: Sequence[RuleOutcome]) -> Iterator[tuple[str, bool]]:
    """Each rule of the policy in its own words, with what breaks it, and whether it is kept."""
    for rule in rules:
        words = (rule.reason or rule.words).rstrip(".")
        if rule.holds:
            yield f"{words}.", True
            continue
        some = [f"{who(bucket.bucket)}: {bucket.key} on {broker_words(bucket.broker)}" for bucket in rule.failed]
        some += [f"{change.entity}: {change.key} limits no recorded traffic" for change in rule.unjudged]
        yield f"{words}. {list_some(some, _SHOWN_NAMES, between='; ')}", False


def who(name: BucketName, *, undecided: bool = False) -> str:
    """Return the names that share the limit: ``user payments, client-id app``."""
    tags = (("user", name.user), ("client-id", name.client_id), *name.other)
    parts = [f"{display_name(tag)} {display_name(value)}" for tag, value in tags if value]
    if undecided:
        parts.append("not recorded whole")
    return ", ".join(parts) or "clients without a client-id"


def group_title(verdict: BucketVerdict) -> str:
    """The quota group of a row, whatever its broker."""
    return f"{who(verdict.name, undecided=verdict.undecided)}: {verdict.key}"


def limit_text(key: str, value: float | None, *, absent: str = "unlimited") -> str:
    """A limit with its unit."""
    return absent if value is None else amount(key, value)


def peak_text(verdict: BucketVerdict) -> str:
    """The largest rate in three digits, the bound of it that is known, or the highest sample of a metric."""
    if verdict.metrics is not None and has_only_metrics(verdict):
        return sample_text(verdict, verdict.metrics)
    bound = verdict.peak.bound
    up = None if bound is PeakBound.EXACT else bound is PeakBound.UPPER
    return f"{bound.words}{bound_text(verdict.key, verdict.peak.rate, up=up)}"


def regrouped_words(verdict: BucketVerdict) -> str | None:
    """The quota groups in which its clients shared limits before."""
    if not verdict.limits.buckets_before:
        return None
    names = [who(name) for name in verdict.limits.buckets_before]
    return f"these clients had other quota groups before: {list_some(names, _SHOWN_NAMES, between='; ')}"


def members_words(members: Sequence[Member], *, shares: bool = True) -> str:
    """The largest clients: their part of the traffic, and of what was charged in the seconds over the limit.

    ``shares`` off: names alone, where metrics do not show parts.
    """
    shown = [f"{member_name(member)} {_share(member)}" if shares else member_name(member) for member in members[:_SHOWN_NAMES]]
    if len(members) > _SHOWN_NAMES:
        shown.append(f"{len(members) - _SHOWN_NAMES:,} more")
    return ", ".join(shown)


def _share(member: Member) -> str:
    excess = "" if member.share_of_excess is None else f" ({100 * member.share_of_excess:.0f} % while over)"
    return f"{100 * member.share:.0f} %{excess}"


def member_name(member: Member) -> str:
    """``user/client-id``."""
    client = display_name(member.client_id) if member.client_id else "(no client-id)"
    if member.client_id is None:
        client = "(client-id not recorded)"
    user = "(user not recorded)" if member.user is None else display_name(member.user)
    return f"{user}/{client}"


def unused_words(quota: UnusedQuota) -> str:
    """A quota that limited no client of this history, and why."""
    return f"{quota.entity} {quota.key} {limit_text(quota.key, quota.value)}: {quota.reason.words(quota.key)}"


def history_words(provenance: Provenance) -> Iterator[tuple[str, Tone]]:
    """Yield sentences on what the history is and what it lacks, each with its tone."""
    start, end = provenance.start, provenance.end
    brokers = [str(coverage.broker) for coverage in provenance.coverage]
    some = list_some(brokers, 20)
    of_requests = all(observations.semantics in ("event", "second") for observations in provenance.observations)
    rows = [] if of_requests else [*observation_words(provenance)]
    if provenance.requests or not rows:
        as_totals = (
            " in per-second totals" if any(observation.semantics == "second" for observation in provenance.observations) else ""
        )
        rows.insert(
            0, f"{count_of(provenance.requests, 'counted request')}{as_totals} of {count_of(provenance.series, 'client stream')}"
        )
    whole = (
        f"{count_of(len(provenance.files), _SOURCE_WORDS.get(provenance.source, provenance.source))} of "
        f"{'broker' if len(brokers) == 1 else 'brokers'} {some}, {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC "
        f"({length_text((end - start).total_seconds())}): {', and '.join(rows)}"
    )
    yield whole, Tone.GOOD
    yield f"judged {f'by Spark on {display_name(provenance.spark)}' if provenance.spark else 'without Spark'}", Tone.GOOD
    for coverage in provenance.coverage:
        if coverage.minutes_missing:
            yield coverage.gap_words, Tone.WARN
    if provenance.throttled_then:
        requests = count_of(provenance.throttled_then, "request")
        yield f"quotas throttled {requests} of this history when it was recorded", Tone.WARN
    if not of_requests:
        yield from ((words, Tone.WARN) for words in censored_words(provenance))
    counts = {kind: count for kind, count in provenance.not_charged.items() if count and kind != GAUGE}
    left_out = [f"{count:,} {_NOT_CHARGED_WORDS.get(kind, kind)}" for kind, count in counts.items()]
    if left_out:
        yield f"not counted: {', '.join(left_out)}", Tone.GOOD
    if provenance.unreadable.lines:
        yield f"{count_of(provenance.unreadable.lines, 'request line')} could not be read", Tone.WARN


def kept_words(report: BacktestReport) -> str | None:
    """Return how many quota groups are not shown, because they stay and are not seen over a limit; ``None``: none."""
    shown = {verdict.group for verdict in telling(report)}
    kept = {verdict.group for verdict in report.verdicts} - shown
    if not kept:
        return None
    throttled = {verdict.group for verdict in report.verdicts if verdict.recorded.censored} - shown
    if throttled:
        known = f"Quotas throttled {len(throttled):,} of them when they were recorded."
    elif any(observations.semantics == GAUGE for observations in report.provenance.observations):
        known = "None was seen over a limit."
    else:
        known = "No recorded client there is over a limit."
    return f"The change does not touch {count_of(len(kept), 'more quota group')}. {known}"


def telling(report: BacktestReport) -> list[BucketVerdict]:
    """The rows that are worth reading."""
    return [verdict for verdict in report.verdicts if verdict.changed or verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]


TONE_STYLES: Final = {Tone.GOOD: Style.GOOD, Tone.WARN: Style.WARN, Tone.BAD: Style.BAD}
VERDICT_STYLES: Final = {
    Verdict.THROTTLED: Style.BAD,
    Verdict.POSSIBLE: Style.WARN,
    Verdict.INCONCLUSIVE: Style.WARN,
    Verdict.CLEAR: Style.GOOD,
}


def heading_lines(title: str, rest: str = "", *, count: int | None = None) -> Iterator[Block]:
    """The title of a section, and what it counts."""
    yield line()
    yield heading(title, (title, Style.STRONG), f" ({rest})" if rest else "", count=count)
    if rest and count is None:
        yield line(pages=((f"{rest[0].upper()}{rest[1:]}.", Style.FAINT),))


def more_line(count: int, what: str) -> Line:
    """A line about so many that are not shown."""
    more = f"{count:,} more {what}"
    return line((f"  and {more}. --details shows all", Style.FAINT), pages=((f"{more} are in the JSON report.", Style.FAINT),))


def history_lines(provenance: Provenance, *, samples: bool) -> Iterator[Block]:
    """Yield the evidence of the report. ``samples``: with lines that could not be read."""
    yield from heading_lines("Evidence")
    for sentence, tone in history_words(provenance):
        yield labelled("  Warning: ", Style.WARN, sentence) if tone is not Tone.GOOD else line(f"  {sentence}")
    if samples:
        for sample in provenance.unreadable.samples:
            yield line("    ", (display_name(sample[:160]), Style.FAINT))
