"""An incident for a terminal: the answer, its causes, missing evidence, and commands to type."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.features.insight.incident import (
    WHETHER,
    IncidentAnswer,
    IncidentGroup,
    IncidentReport,
    MissingEvidence,
    RecordedThrottles,
)
from reconciler.model import broker_words, display_name, escaped
from reconciler.render import Block, Column, Line, Style, labelled, limit_text, line, member_name, table, who
from reconciler.text import amount, count_of, duration, rate, shown

_SHOWN: Final = 5
_LABEL: Final = 13
_LOWER_BOUND: Final = "A throttled client sends less than it wants to, so this is a lower bound"
_TONES: Final = {
    IncidentAnswer.THROTTLED: Style.BAD,
    IncidentAnswer.COMPUTED: Style.WARN,
    IncidentAnswer.CLEAR: Style.GOOD,
    IncidentAnswer.UNKNOWN: Style.WARN,
}
_GROUPS: Final = (
    Column(title="quota group", least=18),
    Column(title="broker"),
    Column(title="limit", least=10),
    Column(title="peak", least=11),
    Column(title="of the limit", to_the_right=True),
)
_BROKERS: Final = (Column(title="broker"), Column(title="peak", least=11), Column(title="over", least=18))
_MEMBERS: Final = (
    Column(title="client", least=18),
    Column(title="share", to_the_right=True),
    Column(title="requests", to_the_right=True),
)


def incident_headline(report: IncidentReport) -> str:
    """The answer of an incident report as one sentence without a full stop."""
    client, span, answer = report.client, report.span, report.answer
    if answer is IncidentAnswer.UNKNOWN:
        reason = next((gap.because for gap in report.missing if gap.what == WHETHER), None)
        return f"Whether {client} was throttled is not known{f': {reason}' if reason else ''}".removesuffix(".")
    if answer is IncidentAnswer.CLEAR:
        return f"The brokers logged no throttle of {client} from {_span_of(report.since, report.until)}"
    around = "" if span is None else f" around {_at(span.begin)}"
    if answer is IncidentAnswer.COMPUTED:
        length = "" if span is None or span.seconds_over is None else f" for {duration(span.seconds_over)}"
        if span is not None and span.end is not None:
            around = f" between {_span_of(span.begin, span.end, word='and')}"
        under = "" if report.assumed is None else f" with the quotas of {report.assumed}, if they were in effect then"
        return f"{client} would have been throttled{length}{around}{under} (computed: the traffic shows no throttle)"
    if span is None or span.end is None:
        return f"{client} was throttled{around}"
    if report.recorded is not None and not report.recorded.seconds:
        return f"{client} was throttled from about {_span_of(span.begin, span.end)} or up to a minute longer"
    length = duration((span.end - span.begin).total_seconds())
    return f"{client} was throttled from {_span_of(span.begin, span.end)} ({length})"


def incident_lines(report: IncidentReport) -> Iterator[Block]:
    """An incident report as lines: the answer, its causes, other groups, missing evidence and next steps."""
    yield line((f"{incident_headline(report)}.", _TONES[report.answer]), hang=0)
    yield from _about_the_time(report)
    causes: dict[tuple[object, ...], list[IncidentGroup]] = {}
    for group in report.causes:
        causes.setdefault((who(group.row.name), group.row.key, group.limit, group.entity, group.since), []).append(group)
    for groups in list(causes.values())[:_SHOWN]:
        yield line()
        yield from _cause(report, groups)
    if len(causes) > _SHOWN:
        yield line((f"  and {len(causes) - _SHOWN:,} more quota groups. --format json has all of them", Style.FAINT))
    others = [group for group in report.groups if not group.is_cause and (group.limit is not None or not report.causes)]
    if others:
        yield line()
        yield line(("Other quota groups of this client" if report.causes else "How near it was", Style.STRONG))
        yield table(_GROUPS, map(_other, others[:_SHOWN]))
    yield line()
    yield line(("What this rests on", Style.STRONG))
    if report.recorded is not None:
        yield from (line(f"  {sentence}.") for sentence in _recorded(report.recorded))
    for sentence in report.evidence:
        yield line(f"  {sentence}.")
    yield from _missing(report.missing)
    if report.causes:
        yield line()
        yield line("To raise the limit, run kafka-quotas alter, and then change the manifest.")


def _recorded(recorded: RecordedThrottles) -> Iterator[str]:
    longest = ""
    if (ms := recorded.longest_ms) is not None:
        longest = f", the longest {f'{ms} ms' if ms < 1000 else f'{ms / 1000:.1f} s'}"
    if recorded.requests:
        yield f"The brokers logged {count_of(recorded.requests, 'throttled request')} of this client{longest}"
    elif recorded.seconds and not recorded.refused:
        yield f"The brokers recorded throttles of this client in {count_of(recorded.seconds, 'second')}"
    if recorded.refused:
        yield f"The controller refused {count_of(recorded.refused, 'topic')} (error 89, THROTTLING_QUOTA_EXCEEDED)"
    if recorded.samples:
        samples = count_of(recorded.samples, "sample")
        yield f"The brokers' metrics show throttles in {samples}. A sample shows a throttle for up to a minute"


def _about_the_time(report: IncidentReport) -> Iterator[Line]:
    span = report.span
    if span is None or span.end is None:
        return
    if report.at is not None and not span.begin <= report.at <= span.end:
        yield line(f"This is the incident nearest to {_at(report.at)}.", hang=0)
    edge = "the traffic or the time that was looked at"
    if span.begins_earlier:
        yield line(f"The incident may have begun earlier: {edge} begins there. Use --since.", hang=0)
    if span.goes_on:
        yield line(f"The incident may go on: {edge} ends there. Use --until.", hang=0)
    if span.others:
        more = count_of(span.others, "more incident")
        yield line(f"The same client has {more} between {_span_of(report.since, report.until, word='and')}.", hang=0)


def _cause(report: IncidentReport, groups: Sequence[IncidentGroup]) -> Iterator[Block]:
    """One quota group and limit: the broker where it was over its limit for longest, then a row for each other broker."""
    group, *others = sorted(groups, key=lambda each: -(each.seconds_over or 0))
    more = f" and {count_of(len(others), 'more broker')}" if others else ""
    yield line((f"{who(group.row.name)}: {group.row.key} on {broker_words(group.row.broker)}{more}", Style.STRONG))
    source = f", set for {group.entity}" if group.entity is not None else ""
    span = report.span
    whole = span is None or (group.since <= span.begin and group.until >= (span.end or span.begin))
    rows = [
        ("limit", f"{limit_text(group.row.key, group.limit)}{source}"),
        ("in effect", None if whole else f"from {_span_of(group.since, group.until)}"),
        *_origin_rows(group),
        ("peak", _peak_words(group)),
        ("over", _over_words(group)),
        ("would pass", _pass_words(group)),
        ("caveat", None if group.row.reason is None else escaped(group.row.reason)),
    ]
    for label, words in rows:
        if words is not None:
            yield labelled(f"  {label:<{_LABEL}}", Style.FAINT, words)
    if group.members:
        yield line(("  filled by", Style.FAINT))
        excess = any(member.share_of_excess is not None for member in group.members)
        shares = [(m, m.share_of_excess if excess else m.share) for m in group.members[:_SHOWN]]
        # Samples of rates show whose they are, and no single request.
        columns = _MEMBERS if any(member.requests for member in group.members) else _MEMBERS[:-1]
        rows_of_members = ((member_name(m), f"{100 * (share or 0.0):.0f} %", f"{m.requests:,}") for m, share in shares)
        yield table(columns, (row[: len(columns)] for row in rows_of_members), indent=4)
        if len(group.members) > _SHOWN:
            yield line((f"    and {count_of(len(group.members) - _SHOWN, 'more client')}", Style.FAINT))
    if others:
        rows_of_others = ((broker_words(each.row.broker), _peak_words(each), _over_words(each) or "") for each in others)
        yield table(_BROKERS, rows_of_others, indent=2)


def _peak_words(group: IncidentGroup) -> str:
    share = "" if group.share_of_limit is None else f", {100 * group.share_of_limit:.0f} % of the limit"
    return f"{group.row.peak.bound.words}{rate(group.row.key, group.row.peak.rate)}{share}"


def _origin_rows(group: IncidentGroup) -> Iterator[tuple[str, str]]:
    if (origin := group.origin) is not None:
        by = f"by {display_name(origin.author)}: {shown(origin.subject)}"
        before = "not set before" if origin.before is None else f"before: {amount(group.row.key, origin.before)}"
        yield "set by", f"commit {origin.commit[:12]} of {_at(origin.committed)} {by}"
        yield "", f"{escaped(origin.file)}:{origin.line}, {before}"


def _over_words(group: IncidentGroup) -> str | None:
    if group.first is None:
        return None
    if group.last is None:
        return f"first at {_at(group.first)}"
    seconds = duration(group.seconds_over)
    return f"{seconds}, from {_span_of(group.first, group.last)}"


def _pass_words(group: IncidentGroup) -> str | None:
    if group.row.advice.safe is None and group.row.advice.recommended is None:
        return None
    if group.row.advice.safe is None:
        return f"not known from samples. Recommended: {amount(group.row.key, group.row.advice.recommended)}. {_LOWER_BOUND}"
    words = f"{amount(group.row.key, group.row.advice.safe)} or more for the traffic of this incident"
    if group.row.advice.recommended is not None and group.row.advice.recommended > group.row.advice.safe:
        words += f", recommended {amount(group.row.key, group.row.advice.recommended)}"
    return f"{words}. {_LOWER_BOUND}"


def _other(group: IncidentGroup) -> tuple[str, ...]:
    share = "" if group.share_of_limit is None else f"{100 * group.share_of_limit:.0f} %"
    return (
        f"{who(group.row.name)}: {group.row.key}",
        broker_words(group.row.broker),
        limit_text(group.row.key, group.limit),
        f"{group.row.peak.bound.words}{rate(group.row.key, group.row.peak.rate)}",
        share,
    )


def _missing(missing: Sequence[MissingEvidence]) -> Iterator[Line]:
    if not missing:
        return
    yield line()
    yield line(("Not known", Style.STRONG))
    for evidence in missing:
        remedy = f". To know it, {evidence.remedy}" if evidence.remedy is not None else ""
        yield labelled("  - ", Style.WARN, f"{evidence.what}: {evidence.because.rstrip('.')}{remedy}")


def _span_of(begin: datetime.datetime, end: datetime.datetime, *, word: str = "to") -> str:
    """``2026-11-22 14:01:12 to 14:06:40 UTC``; the day of the end only where it is another one."""
    first, last = begin.astimezone(datetime.UTC), end.astimezone(datetime.UTC)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{first:%Y-%m-%d %H:%M:%S} {word} {until} UTC"


def _at(moment: datetime.datetime) -> str:
    return f"{moment.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
