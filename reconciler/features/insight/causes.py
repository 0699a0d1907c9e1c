"""The quota groups of a client in an incident: which of them explain it, and the commits that set their limits."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import GitError, ManifestError, UsageError
from reconciler.features.insight.evidence import PAUSE_S, SHOWN_S, SourceEvidence, Stretch, moment_at, over_seconds
from reconciler.features.insight.incident import IncidentGroup, LimitOrigin, MissingEvidence
from reconciler.features.insight.past_quotas import IncidentRequest, QuotaPart, QuotasThen, limit_origin
from reconciler.model import CONTROLLER, BucketVerdict, QuotaKey, Verdict

if TYPE_CHECKING:
    from reconciler.traffic import RecordedThrottle

_SECOND: Final = datetime.timedelta(seconds=1)
_REQUEST: Final = QuotaKey.REQUEST_PERCENTAGE.value
_MUTATION: Final = QuotaKey.CONTROLLER_MUTATION_RATE.value
_LONGEST_REQUEST_MS: Final = 1000
"""A request quota throttles for one sample at most, of a second by default."""
_MOST_UNLOGGED: Final = 10.0
"""A broker counts several times the thread time that a log shows. More than that is not known to have happened."""
_LEAST_SHARE: Final = 0.3
"""A group that reaches less of its limit than this did not throttle anything."""
_LATE_S: Final = 3.0
"""A change takes effect some time after its commit, whose date has whole seconds."""
_DRIFT: Final[str | None] = "kafka-quotas drift shows such quotas"
_OF_BYTES: Final = (QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value)


def groups_in(evidence: SourceEvidence, chosen: Stretch, *, is_recorded: bool) -> list[IncidentGroup]:
    """The groups of the client under the quotas of an incident.

    Where the quotas changed during it, those of its longest part count, or of the next part that explains it.
    """
    overlaps = {
        line.part.begin: (line.part, overlap)
        for line in evidence.timelines
        if (overlap := chosen.within(line.part.begin.timestamp(), line.part.end.timestamp())) is not None
    }
    first: list[IncidentGroup] = []
    for part, overlap in sorted(overlaps.values(), key=lambda pair: pair[1].begin - pair[1].end):
        groups = _groups_of_part(evidence, part, overlap, is_recorded=is_recorded)
        first = first or groups
        if any(group.is_cause for group in groups):
            return groups
    return first


def _groups_of_part(evidence: SourceEvidence, part: QuotaPart, overlap: Stretch, *, is_recorded: bool) -> list[IncidentGroup]:
    from reconciler.features.insight.recorded_time import incident_verdicts

    verdicts: dict[object, BucketVerdict] = {}
    if part.proposal is not None and overlap.end > overlap.begin:
        begin, end = moment_at(overlap.begin), moment_at(overlap.end) + _SECOND
        verdicts = incident_verdicts(evidence.recorded, evidence.request_of(part.proposal), begin=begin, end=end)
    made: dict[object, IncidentGroup] = {}
    for line in evidence.timelines:
        if line.part is not part:
            continue
        verdict = verdicts.get(line.verdict.place, line.verdict)
        seconds = [second for second in over_seconds(line) if overlap.begin - PAUSE_S <= second <= overlap.end + 1]
        is_over = bool(seconds) or verdict.verdict is Verdict.THROTTLED
        cause = not is_recorded and verdict.limits.after is not None and is_over
        made.setdefault(verdict.place, _group_of(verdict, seconds, part, is_cause=cause))
    groups = list(made.values())
    if not is_recorded:
        return groups
    limited = [group for group in groups if group.limit is not None]
    causes = [
        cause
        for key, broker, longest_ms in _throttles_in(evidence, part, overlap)
        for cause in _explaining(limited, key, broker, longest_ms, is_log=evidence.is_log)
    ]
    return [replace(group, is_cause=group in causes) for group in groups]


def _throttles_in(evidence: SourceEvidence, part: QuotaPart, overlap: Stretch) -> set[tuple[str, int, int]]:
    """Quota key, broker and longest throttle of what was recorded in a part of the incident."""
    longest_of: dict[tuple[str, int], int] = {}
    topics = {_client_and_second(throttle) for throttle in evidence.throttles or () if throttle.key == _MUTATION}
    for throttle in evidence.throttles or ():
        at, until = throttle.begin_us / 1e6, throttle.end_us / 1e6
        if throttle.of_samples:
            at -= min(throttle.interval_us / 1e6, SHOWN_S)
        in_part = part.begin.timestamp() <= at < part.end.timestamp() + _LATE_S
        if not (in_part and until >= overlap.begin and at <= overlap.end + 1):
            continue
        if evidence.is_log and throttle.key == _REQUEST and _client_and_second(throttle) in topics:
            # The line of a request for topics has a row for its time, too.
            continue
        place = throttle.key, throttle.broker
        longest_of[place] = max(longest_of.get(place, 0), throttle.longest_ms)
    return {(key, broker, longest) for (key, broker), longest in longest_of.items()}


def _client_and_second(throttle: RecordedThrottle) -> tuple[int, str | None, str | None]:
    return throttle.begin_us // 1_000_000, throttle.user, throttle.client_id


def _explaining(
    groups: Sequence[IncidentGroup], key: str, broker: int, longest_ms: int, *, is_log: bool
) -> Iterator[IncidentGroup]:
    """The limits that throttled requests of a key.

    A log's line does not name the quota. Brokers book throttles of mutations as those of request time.
    """
    keys = {key}
    if key == _REQUEST and not is_log:
        keys.add(_MUTATION)
    elif key in _OF_BYTES and is_log:
        keys.add(_REQUEST)
    near = [
        group
        for group in groups
        if group.row.key in keys
        and (group.row.broker == broker or (group.row.key == _MUTATION and CONTROLLER in (group.row.broker, broker)))
        and _may_throttle(group)
    ]
    over = [group for group in near if group.seconds_over or group.row.verdict is Verdict.THROTTLED]
    if longest_ms > _LONGEST_REQUEST_MS:
        near = [group for group in near if group.row.key != _REQUEST] or near
    yield from over or (near if len({group.row.key for group in near}) == 1 else ())


def _may_throttle(group: IncidentGroup) -> bool:
    """Whether the traffic came near the limit; what a source shows of request time and topics is a lower bound."""
    if group.limit is None:
        return False
    if group.row.key == _MUTATION and group.row.verdict is not Verdict.CLEAR:
        return True
    return group.row.peak.rate * (_MOST_UNLOGGED if group.row.key == _REQUEST else 1.0) >= group.limit * _LEAST_SHARE


def _in_order(groups: Iterable[IncidentGroup]) -> tuple[IncidentGroup, ...]:
    """Return the groups that belong in the report: causes, then other limited groups, the fullest first.

    Of one group the earliest limit is first.
    """
    shown = (group for group in groups if group.limit is not None or group.row.key in _OF_BYTES)
    return tuple(sorted(shown, key=_order))


def _order(group: IncidentGroup) -> tuple[object, ...]:
    place = group.row.key, group.row.broker, group.row.name.user or "", group.row.name.client_id or ""
    return not group.is_cause, group.limit is None, group.since, -(group.share_of_limit or 0.0), place


def plain_groups(evidence: SourceEvidence) -> tuple[IncidentGroup, ...]:
    """The groups of the whole time, none of them a cause."""
    return _in_order(_group_of(line.verdict, (), line.part, is_cause=False) for line in evidence.timelines)


def _group_of(verdict: BucketVerdict, over: Sequence[float], part: QuotaPart, *, is_cause: bool) -> IncidentGroup:
    """A verdict as a group of the report. ``over``: its seconds over the limit, rising."""
    first = None if verdict.over.first is None or verdict.over.first < part.begin else verdict.over.first
    return IncidentGroup(
        row=verdict,
        is_cause=is_cause,
        first=moment_at(over[0]) if over else first,
        last=moment_at(over[-1]) if over else None,
        seconds_over=len(over) or verdict.over.seconds,
        since=part.begin,
        until=part.end,
    )


def add_origins(
    asked: IncidentRequest, then: QuotasThen, groups: Sequence[IncidentGroup]
) -> tuple[tuple[IncidentGroup, ...], list[MissingEvidence]]:
    """The groups in their order, the causes with the commits that set their limits."""
    missing: list[MissingEvidence] = []
    origins: dict[tuple[object, ...], LimitOrigin | None] = {}
    for group in groups:
        manifests, place = then.at(group.since.timestamp()).manifests, (group.entity, group.row.key)
        if not group.is_cause or group.entity is None or manifests is None or place in origins:
            continue
        because, remedy = "the manifests of that time do not declare it: it was set by other means", _DRIFT
        try:
            origins[place] = limit_origin(
                manifests, then.paths, cluster=asked.cluster, entity=group.entity, key=group.row.key, runs=asked.runs
            )
        except (GitError, ManifestError, UsageError) as error:
            origins[place], because, remedy = None, str(error), None
        if origins[place] is None:
            missing.append(MissingEvidence(what=f"who set {group.row.key} of {group.entity}", because=because, remedy=remedy))
    with_origins = (
        replace(group, origin=origins.get((group.entity, group.row.key))) if group.is_cause else group for group in groups
    )
    return _in_order(with_origins), missing
