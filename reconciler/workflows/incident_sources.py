"""One answer about an incident from several kinds of traffic, with the part of it that each one gave."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.model import IncidentAnswer, IncidentGroup, IncidentReport, IncidentStep, LoggedThrottles, MissingEvidence
from reconciler.workflows.incident_times import PAUSE_S

WHICH_LIMIT: Final = "which limit throttled the client"
_ORDER: Final = (IncidentAnswer.THROTTLED, IncidentAnswer.POSSIBLE, IncidentAnswer.CLEAR, IncidentAnswer.UNKNOWN)
_NEAR: Final = datetime.timedelta(seconds=PAUSE_S)
_MINUTE: Final = datetime.timedelta(minutes=1)
"""A gauge of throttle times, which has no end, is of the last minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAnswer:
    """What one kind of traffic shows. ``gaps``: what it cannot show, beside the missing evidence of its report."""

    source: str
    report: IncidentReport
    gaps: tuple[MissingEvidence, ...] = ()
    failure: MissingEvidence | None = None
    """Why it shows nothing of the client; its report has the limits alone."""


def traffic_by_kind(arguments: Sequence[str], *, is_mapped: bool) -> tuple[tuple[str, ...], ...]:
    """Arguments of ``--traffic`` that can be read together. Raises ``TrafficError`` for a path without traffic."""
    from reconciler.traffic import find_traffic, parse_dataset

    if is_mapped or len(arguments) < 2:
        return (tuple(arguments),) if arguments else ()
    by_kind: dict[tuple[str, bool], list[str]] = {}
    for argument in arguments:
        is_dataset = parse_dataset(argument) is not None
        by_kind.setdefault((find_traffic([argument]).source.value, is_dataset), []).append(argument)
    return tuple(map(tuple, by_kind.values()))


def merge_answers(answers: Sequence[SourceAnswer], steps: Callable[[IncidentReport], tuple[IncidentStep, ...]]) -> IncidentReport:
    """The answer of the source that shows most, with what the others add. ``steps``: what to do next, of the whole report."""
    first, *more = sorted(answers, key=_rank)
    if first.report.answer is IncidentAnswer.POSSIBLE:
        # Single requests decide what sums of seconds leave open.
        first = next((answer for answer in more if _clears(answer.report, first.report)), first)
    others = [answer for answer in answers if answer is not first]
    if first.failure is not None:
        failures = (*(answer.failure for answer in answers if answer.failure is not None), *first.report.missing)
        return replace(first.report, missing=tuple(dict.fromkeys(failures)))
    report, parts = first.report, dict[str, list[str]]()
    for other in others:
        if _is_same_incident(report, other.report):
            report, parts[other.source] = _with_parts(report, other.report)
    usable = [answer for answer in answers if answer.failure is None]
    missing = [gap for gap in report.missing if gap.what != WHICH_LIMIT or not report.causes]
    missing += (gap for gap in first.gaps if all(gap.what in {some.what for some in answer.gaps} for answer in usable))
    title = "Traffic" if not others else "Times, limits and shares" if report.causes else "How near the client was"
    lines = [f"{title}: {first.source}", *(_line(report, other, parts.get(other.source, [])) for other in others)]
    report = replace(report, evidence=(*lines, *report.evidence), missing=tuple(missing))
    return replace(report, steps=steps(report)) if report.causes else report


def _rank(answer: SourceAnswer) -> tuple[object, ...]:
    report = answer.report
    has_members = any(group.members for group in report.causes)
    return _ORDER.index(report.answer), answer.failure is not None, not has_members, report.logged is None, report.end is None


def _clears(report: IncidentReport, possible: IncidentReport) -> bool:
    brokers = {(group.broker, group.key) for group in report.groups}
    return report.answer is IncidentAnswer.CLEAR and {(group.broker, group.key) for group in possible.causes} <= brokers


def _is_same_incident(report: IncidentReport, other: IncidentReport) -> bool:
    if report.begin is None or other.begin is None:
        return False
    end, other_end = report.end or report.begin + _MINUTE, other.end or other.begin + _MINUTE
    return report.begin <= other_end + _NEAR and other.begin <= end + _NEAR


def _with_parts(report: IncidentReport, other: IncidentReport) -> tuple[IncidentReport, list[str]]:
    """The report with what another one adds, and words for that."""
    parts: list[str] = []
    if report.logged is None and other.logged is not None:
        logged: LoggedThrottles = other.logged
        report = replace(report, logged=logged, begin=other.begin, end=other.end)
        parts.append("the brokers' own throttles, with their begin and end")
    elif report.end is None and other.end is not None:
        report = replace(report, begin=other.begin, end=other.end)
        parts.append("begin and end")
    shown = {_place(group): group for group in other.groups}
    groups = [_filled(group, shown.get(_place(group))) for group in report.groups]
    if groups != list(report.groups):
        parts.append("who filled the quota group, and the value that would have passed")
    known = {_place(group) for group in groups}
    further = [group for group in other.causes if _place(group) not in known]
    if further:
        parts.append(f"quota groups on {_brokers(further)}")
    causes_first = sorted([*groups, *further], key=lambda group: not group.is_cause)
    return replace(report, groups=tuple(causes_first)), parts


def _filled(group: IncidentGroup, other: IncidentGroup | None) -> IncidentGroup:
    """A cause with the clients and values of another source, where it has none of its own."""
    if other is None or group.members or not other.members or not group.is_cause:
        return group
    return replace(
        other,
        is_cause=True,
        verdict=group.verdict,
        first=group.first or other.first,
        last=group.last or other.last,
        origin=group.origin or other.origin,
    )


def _place(group: IncidentGroup) -> tuple[object, ...]:
    return group.name, group.key, group.broker


def _brokers(groups: Sequence[IncidentGroup]) -> str:
    brokers = sorted({group.broker for group in groups})
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))}"


def _line(report: IncidentReport, other: SourceAnswer, parts: Sequence[str]) -> str:
    if parts:
        words = ", and ".join(parts)
        return f"{words[0].upper()}{words[1:]}: {other.source}"
    return f"Also read: {other.source}. {''.join(_shows(report, other))}"


def _shows(report: IncidentReport, other: SourceAnswer) -> Iterator[str]:
    if other.failure is not None:
        yield f"Nothing of this client and time: {other.failure.because}"
    elif _is_same_incident(report, other.report):
        yield "The same throttle"
    elif other.report.begin is not None:
        yield f"A throttle at another time, {other.report.begin:%Y-%m-%d %H:%M:%S} UTC"
    elif other.report.answer is IncidentAnswer.CLEAR:
        yield "No throttle"
    else:
        yield "No proof of a throttle"
