"""Why: an incident of one client, from the available sources.

Throttles that brokers recorded are facts, and come first. Only where none is recorded, the traffic is judged under the quotas of
each moment, and the answer is marked as computed. "Not throttled" is what a request log without a gap shows, and nothing else.
"""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.features.insight.causes import add_origins, groups_in, plain_groups
from reconciler.features.insight.evidence import (
    SHOWN_S,
    SourceEvidence,
    Stretch,
    computed_stretches,
    join_stretches,
    moment_at,
    nearest_stretch,
    observe_span,
    recorded_in,
    recorded_stretches,
)
from reconciler.features.insight.incident import (
    WHETHER,
    IncidentAnswer,
    IncidentGroup,
    IncidentReport,
    IncidentSpan,
    MissingEvidence,
)
from reconciler.features.insight.past_quotas import IncidentRequest, QuotasThen, read_quotas_then
from reconciler.features.insight.recorded_rates import span_options
from reconciler.model import CONTROLLER, EntityType, Verdict
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.resolution import is_reserved
from reconciler.text import count_of, list_some
from reconciler.workflows import has_group_plugin

_SECOND: Final = datetime.timedelta(seconds=1)
_LONGEST: Final = datetime.timedelta(days=7)
_SHOWN: Final = 4
_LOG: Final = "give --traffic with the request log of this time"
_SNAPSHOT: Final = "give --current FILE, a snapshot of that time"
_NO_TRAFFIC: Final = MissingEvidence(
    what=WHETHER,
    because="no traffic was given",
    remedy="give --traffic: a request log, a folder of compact, or prometheus+http(s)://HOST. Or set spec.traffic of the "
    "Cluster manifest",
)
_OTHER_LIMITS: Final = MissingEvidence(
    what="which limits were in effect",
    because="the quotas known here would have throttled this traffic, and the brokers logged no throttle",
    remedy=_SNAPSHOT,
)
_GROUPS: Final = MissingEvidence(
    what="whether the client shares the limit of a group",
    because="the cluster stores groups for the broker plugin, and the Cluster manifest does not name the plugin",
    remedy="set spec.quotaCallback of the Cluster manifest, see kafka-quotas explain totals-and-groups",
)
_CLIENTS: Final = MissingEvidence(
    what="which clients of the quota group were throttled",
    because="this traffic names quota groups, and not the clients in them",
    remedy=_LOG,
)
_MEMBERS: Final = MissingEvidence(
    what="who filled the quota group, and which limit would have passed",
    because="this traffic does not show single clients",
    remedy="give --traffic with the request log or a folder of compact of this time",
)


def explain_incident(request: IncidentRequest, *, progress: Progress = NO_PROGRESS) -> IncidentReport:
    """The report, with the missing sources.

    Raises ``ManifestError``, ``UsageError``, ``FileAccessError``, ``WrongClusterError``, ``UntrustedError``, ``TrafficError`` or
    ``MissingDependencyError``.
    """
    if request.until - request.since > _LONGEST:
        raise UsageError(f"The time between --since and --until is longer than {_LONGEST.days} days: narrow it")
    if request.until <= request.since:
        raise UsageError("--until is not later than --since")
    then = read_quotas_then(request)
    unknown = IncidentReport(
        client=request.client,
        cluster=then.identity,
        at=request.at,
        since=request.since,
        until=request.until,
        answer=IncidentAnswer.UNKNOWN,
        assumed=then.assumed,
        evidence=then.evidence,
        missing=(*then.missing, *_missing_groups(then)),
    )
    if not request.traffic and then.spec.traffic is None:
        return replace(unknown, missing=(_NO_TRAFFIC, *unknown.missing))
    options = span_options(then.spec, None, request.since, request.until, traffic=request.traffic, reading=request.reading)
    with contextlib.ExitStack() as stack:
        evidence = observe_span(stack, request, then, options, progress=progress)
        if isinstance(evidence, MissingEvidence):
            return replace(unknown, missing=(evidence, *unknown.missing))
        return _report(unknown, request, then, evidence)


def _report(unknown: IncidentReport, request: IncidentRequest, then: QuotasThen, evidence: SourceEvidence) -> IncidentReport:
    since, until = request.since.timestamp(), request.until.timestamp()
    computed = [*_computed(evidence, since, until)]
    recorded = join_stretches(recorded_stretches(evidence.throttles or (), since, until))
    recorded = recorded or join_stretches(_shown_over(evidence, computed))
    stretches = recorded or join_stretches(computed)
    read = f"Traffic: {evidence.source}, from {evidence.start:%Y-%m-%d %H:%M:%S} to {evidence.end:%Y-%m-%d %H:%M:%S} UTC"
    report = replace(unknown, evidence=(read, *evidence.notes, *then.evidence))
    chosen = nearest_stretch(stretches, request.at)
    if chosen is None:
        return _without_incident(report, request, then, evidence)
    groups, missing = add_origins(request, then, groups_in(evidence, chosen, is_recorded=bool(recorded)))
    causes = [group for group in groups if group.is_cause]
    missing += [*_changes(then, chosen), *([] if causes else [_which_limit(then, groups)]), *report.missing]
    if recorded and evidence.names_groups:
        missing.append(_CLIENTS)
    missing += _unseen_brokers(then, evidence)
    if causes and not any(member.requests for group in causes for member in group.members):
        missing.append(_MEMBERS)
    seconds_over = None if recorded else _seconds_over(causes)
    return replace(
        report,
        answer=IncidentAnswer.THROTTLED if recorded else IncidentAnswer.COMPUTED,
        span=_span(request, evidence, chosen, others=len(stretches) - 1, seconds_over=seconds_over),
        groups=groups,
        recorded=recorded_in(evidence, chosen) if recorded else None,
        assumed=None if recorded else report.assumed,
        missing=tuple(dict.fromkeys(missing)),
    )


def _without_incident(
    report: IncidentReport, request: IncidentRequest, then: QuotasThen, evidence: SourceEvidence
) -> IncidentReport:
    missing: list[MissingEvidence] = []
    unseen = tuple(_unseen_brokers(then, evidence))
    if evidence.is_complete and not unseen and (request.at is None or evidence.start <= request.at <= evidence.end):
        # A clear answer is of the time of the log only.
        since, until = max(request.since, evidence.start), min(request.until, evidence.end)
        report = replace(report, answer=IncidentAnswer.CLEAR, since=since, until=until)
        if any(line.verdict.verdict is Verdict.THROTTLED for line in evidence.timelines):
            missing.append(_OTHER_LIMITS)
    else:
        missing.append(_undecided(request, evidence, unseen))
    missing += [*report.missing, *unseen]
    return replace(report, groups=plain_groups(evidence), missing=tuple(dict.fromkeys(missing)))


def _computed(evidence: SourceEvidence, since: float, until: float) -> Iterator[Stretch]:
    """Seconds over a limit, but for brokers whose log shows that they throttled nothing."""
    logged = {*evidence.brokers, CONTROLLER} if evidence.is_complete else set()
    for line in evidence.timelines:
        begin, end = max(since, line.part.begin.timestamp()), min(until, line.part.end.timestamp())
        stretches = computed_stretches(line) if line.verdict.broker not in logged else ()
        yield from (within for stretch in stretches if (within := stretch.within(begin, end)) is not None)


def _shown_over(evidence: SourceEvidence, computed: Sequence[Stretch]) -> Iterator[Stretch]:
    """Rates over a limit whose samples show a throttle. Alone they may show one from before ``since``, for up to a minute."""
    moments = [throttle.begin_us / 1e6 for throttle in evidence.throttles or () if throttle.of_samples]
    for stretch in computed:
        if any(stretch.begin <= moment <= stretch.end + SHOWN_S for moment in moments):
            yield stretch


def _undecided(request: IncidentRequest, evidence: SourceEvidence, unseen: Sequence[MissingEvidence]) -> MissingEvidence:
    """Return the reasons for which the sources do not decide."""
    remedy: str | None = _LOG
    if evidence.is_complete and unseen:
        because, remedy = f"the log has no throttle of {request.client}, and {unseen[0].because}", unseen[0].remedy
    elif evidence.is_complete:
        because = f"the log is from {evidence.start:%Y-%m-%d %H:%M:%S} to {evidence.end:%H:%M:%S} UTC, and --at is not in it"
        remedy = "give traffic of this time"
    elif evidence.is_log:
        lack = f"{evidence.unread:,} of its lines cannot be read" if evidence.unread else evidence.holes[0]
        because = f"the log has no throttle of {request.client}, and {lack}"
    elif any(line.verdict.verdict is Verdict.POSSIBLE for line in evidence.timelines):
        because = f"the traffic ({evidence.source}) shows no throttle, and its totals do not decide whether it is over a limit"
    elif evidence.throttles is None:
        because = f"the traffic ({evidence.source}) has no throttle times, and is over no limit that is known here"
        remedy = None if EntityType.IP.value in request.client.types else remedy
    else:
        because = f"the traffic ({evidence.source}) shows no throttle, which does not prove that there was none"
    return MissingEvidence(what=WHETHER, because=because, remedy=remedy)


def _span(
    request: IncidentRequest, evidence: SourceEvidence, chosen: Stretch, *, others: int, seconds_over: int | None
) -> IncidentSpan:
    begin, end = moment_at(chosen.begin), moment_at(chosen.end)
    return IncidentSpan(
        begin=begin,
        end=end if begin != end else None,
        begins_earlier=begin - _SECOND <= max(request.since, evidence.start),
        goes_on=end + _SECOND >= min(request.until, evidence.end),
        others=others,
        seconds_over=seconds_over,
    )


def _seconds_over(causes: Sequence[IncidentGroup]) -> int | None:
    """Return the seconds over a limit of the group that has most. Samples have a first moment, and no seconds."""
    sums: Counter[tuple[object, ...]] = Counter()
    for group in causes:
        sums[group.row.place] += 0 if group.last is None else group.seconds_over
    return max(sums.values(), default=0) or None


def _changes(then: QuotasThen, chosen: Stretch) -> Iterator[MissingEvidence]:
    """Changes of the client's quotas during an incident, of which one part is explained."""
    times = [part.begin for part in then.parts[1:] if chosen.begin < part.begin.timestamp() < chosen.end]
    if times:
        yield MissingEvidence(
            what="which limits were in effect in all of this incident",
            because=f"the quotas of the client changed at {list_some([f'{at:%Y-%m-%d %H:%M:%S} UTC' for at in times], _SHOWN)}",
            remedy="look at each time by itself with --since and --until",
        )


def _which_limit(then: QuotasThen, groups: Sequence[IncidentGroup]) -> MissingEvidence:
    because = "no quota of that time is known"
    if any(group.limit is not None for group in groups) or any(part.proposal and part.proposal.proposed for part in then.parts):
        because = "no quota known here explains the recorded throttles: another one was in effect, or several may be the cause"
    return MissingEvidence(what="which limit throttled the client", because=because, remedy=_SNAPSHOT)


def _missing_groups(then: QuotasThen) -> Iterator[MissingEvidence]:
    """Quotas of groups, where nothing states that the brokers have the plugin that reads them."""
    entities = {entity for part in then.parts if part.proposal is not None for entity in part.proposal.proposed}
    if not has_group_plugin(then.spec) and any(map(is_reserved, entities)):
        yield _GROUPS


def _unseen_brokers(then: QuotasThen, evidence: SourceEvidence) -> Iterator[MissingEvidence]:
    """Brokers that recorded answers name, else how many the cluster has more: a log need not state which broker wrote it."""
    in_cluster = max((len(part.proposal.brokers) for part in then.parts if part.proposal is not None), default=0)
    what, because = "", ""
    if unseen := sorted(set(evidence.recorded.facts.named_brokers) - set(evidence.brokers)):
        what = f"{'broker' if len(unseen) == 1 else 'brokers'} {list_some([*map(str, unseen)], _SHOWN)}"
        because = f"the traffic has no requests of {what} at that time"
    elif (others := in_cluster - len(evidence.brokers)) > 0:
        what = count_of(others, "other broker")
        because = f"the cluster has {in_cluster} brokers, and the traffic of that time is of {len(evidence.brokers)}"
    if what:
        remedy = "give their request logs with --traffic BROKER=PATH"
        yield MissingEvidence(what=f"whether {what} throttled the client", because=because, remedy=remedy)
