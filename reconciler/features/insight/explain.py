"""Why: an incident of one client, from the available sources.

Throttles that brokers recorded are facts, and come first. Only where none is recorded, the traffic is judged under the quotas of
each moment, and the answer is marked as computed. "Not throttled" is what a request log without a gap shows, and nothing else.
"""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.errors import UsageError
from reconciler.features.insight.causes import add_origins, groups_in, plain_groups
from reconciler.features.insight.evidence import (
    SHOWN_S,
    IncidentRequest,
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
    AskedTimes,
    IncidentAnswer,
    IncidentGroup,
    IncidentReport,
    IncidentSpan,
    MissingEvidence,
)
from reconciler.features.insight.past_quotas import QuotasThen, read_quotas_then
from reconciler.features.insight.why_view import next_commands
from reconciler.model import CONTROLLER, EntityType, Verdict
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.resolution import is_reserved
from reconciler.text import list_some
from reconciler.workflows import has_group_plugin

_SECOND: Final = datetime.timedelta(seconds=1)
_LONGEST: Final = datetime.timedelta(days=7)
_SHOWN: Final = 4
_NO_TRAFFIC: Final = MissingEvidence(
    what=WHETHER,
    because="no traffic was given",
    remedy="give --traffic: a request log, a folder of compact, or prometheus+http(s)://HOST. Or set spec.traffic of the "
    "Cluster manifest",
)
_OTHER_LIMITS: Final = MissingEvidence(
    what="which limits were in effect",
    because="the quotas known here would have throttled this traffic, and the brokers logged no throttle",
    remedy="give --current FILE, a snapshot of that time",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """The incident, or why there is none to show."""

    answer: IncidentAnswer
    chosen: Stretch | None = None
    others: int = 0
    missing: tuple[MissingEvidence, ...] = ()


def explain_incident(request: IncidentRequest, *, progress: Progress = NO_PROGRESS) -> IncidentReport:
    """The report, with the missing sources.

    Raises ``ManifestError``, ``UsageError``, ``FileAccessError``, ``WrongClusterError``, ``UntrustedError``, ``TrafficError`` or
    ``MissingDependencyError``.
    """
    if request.until - request.since > _LONGEST:
        raise UsageError(f"The time between --since and --until is longer than {_LONGEST.days} days: narrow it")
    if request.until <= request.since:
        raise UsageError("--until is not later than --since")
    then = read_quotas_then(request.quotas, request.since, request.until, client=request.client)
    options = request.traffic(then.spec)
    if options is None:
        return _report(request, then, None, _Finding(answer=IncidentAnswer.UNKNOWN, missing=(_NO_TRAFFIC,)))
    with contextlib.ExitStack() as stack:
        evidence = observe_span(stack, request, then, options, progress=progress)
        if isinstance(evidence, MissingEvidence):
            return _report(request, then, None, _Finding(answer=IncidentAnswer.UNKNOWN, missing=(evidence,)))
        return _report(request, then, evidence, _finding(request, evidence))


def _finding(request: IncidentRequest, evidence: SourceEvidence) -> _Finding:
    since, until = request.since.timestamp(), request.until.timestamp()
    recorded = join_stretches(recorded_stretches(evidence.throttles or (), since, until))
    recorded = recorded or join_stretches(_shown_over(evidence, since, until))
    if (chosen := nearest_stretch(recorded, request.at)) is not None:
        return _Finding(answer=IncidentAnswer.THROTTLED, chosen=chosen, others=len(recorded) - 1)
    for possible, answer in ((False, IncidentAnswer.COMPUTED), (True, IncidentAnswer.POSSIBLE)):
        computed = join_stretches(_computed(evidence, since, until, possible=possible))
        if (chosen := nearest_stretch(computed, request.at)) is not None:
            return _Finding(answer=answer, chosen=chosen, others=len(computed) - 1)
    if evidence.is_complete and (request.at is None or evidence.start <= request.at <= evidence.end):
        return _Finding(answer=IncidentAnswer.CLEAR)
    return _Finding(answer=IncidentAnswer.UNKNOWN, missing=(_undecided(request, evidence),))


def _computed(evidence: SourceEvidence, since: float, until: float, *, possible: bool) -> Iterator[Stretch]:
    """Seconds over a limit, but for brokers whose log shows that they throttled nothing."""
    logged = {*evidence.brokers, CONTROLLER} if evidence.is_complete else set()
    for part, line in evidence.timelines:
        if line.verdict.broker in logged:
            continue
        begin, end = max(since, part.begin.timestamp()), min(until, part.end.timestamp())
        for stretch in computed_stretches(line, possible=possible):
            if (within := stretch.within(begin, end)) is not None:
                yield within


def _shown_over(evidence: SourceEvidence, since: float, until: float) -> Iterator[Stretch]:
    """Rates over a limit whose samples show a throttle. Alone they may show one from before ``since``, for up to a minute."""
    moments = [throttle.begin_us / 1e6 for throttle in evidence.throttles or () if throttle.of_samples]
    for stretch in _computed(evidence, since, until, possible=False):
        if any(stretch.begin <= moment <= stretch.end + SHOWN_S for moment in moments):
            yield stretch


def _undecided(request: IncidentRequest, evidence: SourceEvidence) -> MissingEvidence:
    """Return the reasons for which the sources do not decide."""
    remedy: str | None = "give --traffic with the request log of this time"
    if evidence.is_complete:
        because = f"the log is from {evidence.start:%Y-%m-%d %H:%M:%S} to {evidence.end:%H:%M:%S} UTC, and --at is not in it"
        remedy = "give traffic of this time"
    elif evidence.is_log:
        lack = f"{evidence.unread:,} of its lines cannot be read" if evidence.unread else evidence.holes[0]
        because = f"the log has no throttle of {request.client}, and {lack}"
    elif evidence.throttles is None:
        because = f"the traffic ({evidence.source}) has no throttle times, and is over no limit that is known here"
        remedy = None if EntityType.IP.value in request.client.types else remedy
    else:
        because = f"the traffic ({evidence.source}) shows no throttle, which does not prove that there was none"
    return MissingEvidence(what=WHETHER, because=because, remedy=remedy)


def _report(request: IncidentRequest, then: QuotasThen, evidence: SourceEvidence | None, finding: _Finding) -> IncidentReport:
    groups: tuple[IncidentGroup, ...] = ()
    missing = [*finding.missing]
    since, until = request.since, request.until
    recorded, sources = None, list(then.evidence)
    if evidence is not None:
        groups, more = _groups(request, then, evidence, finding)
        missing += more
        if finding.answer is IncidentAnswer.CLEAR:
            # A clear answer is of the time of the log only.
            since, until = max(since, evidence.start), min(until, evidence.end)
        if finding.answer is IncidentAnswer.THROTTLED and finding.chosen is not None:
            recorded = recorded_in(evidence, finding.chosen)
        read = f"Traffic: {evidence.source}, from {evidence.start:%Y-%m-%d %H:%M:%S} to {evidence.end:%Y-%m-%d %H:%M:%S} UTC"
        sources = [read, *evidence.notes, *sources]
    missing += [*then.missing, *_missing_groups(then), *(_gaps(evidence, groups, finding) if evidence is not None else ())]
    span = None if evidence is None else _span(request, evidence, finding, groups)
    report = IncidentReport(
        client=request.client,
        cluster=then.identity,
        asked=AskedTimes(at=request.at, since=since, until=until),
        answer=finding.answer,
        span=span,
        groups=groups,
        recorded=recorded,
        assumed=then.assumed if finding.answer is not IncidentAnswer.THROTTLED else None,
        evidence=tuple(sources),
        missing=tuple(dict.fromkeys(missing)),
    )
    return replace(report, commands=next_commands(request.quotas, report.causes)) if report.causes else report


def _span(
    request: IncidentRequest, evidence: SourceEvidence, finding: _Finding, groups: Sequence[IncidentGroup]
) -> IncidentSpan | None:
    if finding.chosen is None:
        return None
    begin, end = moment_at(finding.chosen.begin), moment_at(finding.chosen.end)
    sums: Counter[tuple[object, ...]] = Counter()
    for group in groups:
        # Samples have a first moment over a limit, and no seconds.
        if group.is_cause and group.last is not None:
            sums[group.place] += group.seconds_over
    longest = max(sums.values(), default=0) or None
    return IncidentSpan(
        begin=begin,
        end=end if begin != end else None,
        begins_earlier=begin - _SECOND <= max(request.since, evidence.start),
        goes_on=end + _SECOND >= min(request.until, evidence.end),
        others=finding.others,
        seconds_over=None if finding.answer is IncidentAnswer.THROTTLED else longest,
    )


def _groups(
    request: IncidentRequest, then: QuotasThen, evidence: SourceEvidence, finding: _Finding
) -> tuple[tuple[IncidentGroup, ...], list[MissingEvidence]]:
    """The groups, and what is not known of their limits."""
    if finding.chosen is None:
        would_throttle = any(line.verdict.verdict is Verdict.THROTTLED for _, line in evidence.timelines)
        unexplained = finding.answer is IncidentAnswer.CLEAR and would_throttle
        return plain_groups(evidence), [_OTHER_LIMITS] if unexplained else []
    is_recorded = finding.answer is IncidentAnswer.THROTTLED
    possible = finding.answer is IncidentAnswer.POSSIBLE
    groups = groups_in(evidence, finding.chosen, is_recorded=is_recorded, possible=possible)
    made, missing = add_origins(request.quotas, then, groups)
    missing += _changes(then, finding.chosen)
    if not any(group.is_cause for group in made):
        missing.append(_which_limit(request, then, made))
    return made, missing


def _changes(then: QuotasThen, chosen: Stretch) -> Iterator[MissingEvidence]:
    """Changes of the client's quotas during an incident, of which one part is explained."""
    times = [part.begin for part in then.parts[1:] if chosen.begin < part.begin.timestamp() < chosen.end]
    if times:
        yield MissingEvidence(
            what="which limits were in effect in all of this incident",
            because=f"the quotas of the client changed at {list_some([f'{at:%Y-%m-%d %H:%M:%S} UTC' for at in times], _SHOWN)}",
            remedy="look at each time by itself with --since and --until",
        )


def _which_limit(request: IncidentRequest, then: QuotasThen, groups: Sequence[IncidentGroup]) -> MissingEvidence:
    limited = any(group.limit is not None for group in groups)
    because = "no quota of that time is known"
    if limited or any(part.proposal is not None and part.proposal.proposed for part in then.parts):
        because = "no quota known here explains the recorded throttles: another one was in effect, or several may be the cause"
    named = request.quotas.names_cluster or request.quotas.access.current is not None
    remedy = "give --current FILE, a snapshot of that time" if named else "give --current FILE or --bootstrap-server HOST:PORT"
    return MissingEvidence(what="which limit throttled the client", because=because, remedy=remedy)


def _missing_groups(then: QuotasThen) -> Iterator[MissingEvidence]:
    """Quotas of groups, where nothing states that the brokers have the plugin that reads them."""
    entities = {entity for part in then.parts if part.proposal is not None for entity in part.proposal.proposed}
    if has_group_plugin(then.spec) or not any(map(is_reserved, entities)):
        return
    yield MissingEvidence(
        what="whether the client shares the limit of a group",
        because="the cluster stores groups for the broker plugin, and the Cluster manifest does not name the plugin",
        remedy="set spec.quotaCallback of the Cluster manifest, see kafka-quotas explain totals-and-groups",
    )


def _gaps(evidence: SourceEvidence, groups: Sequence[IncidentGroup], finding: _Finding) -> Iterator[MissingEvidence]:
    """Yield what the source does not show."""
    log = "give --traffic with the request log of this time"
    if finding.chosen is not None and not any(throttle.longest_ms for throttle in evidence.throttles or ()):
        yield MissingEvidence(
            what="how long each request was throttled",
            because="only request logs have the brokers' own throttle times",
            remedy=log,
        )
    if finding.answer is IncidentAnswer.THROTTLED and evidence.names_groups:
        yield MissingEvidence(
            what="which clients of the quota group were throttled",
            because="this traffic names quota groups, and not the clients in them",
            remedy=log,
        )
    if unseen := sorted(set(evidence.recorded.facts.named_brokers) - set(evidence.brokers)):
        brokers = "broker" if len(unseen) == 1 else "brokers"
        yield MissingEvidence(
            what=f"whether {brokers} {list_some([*map(str, unseen)], _SHOWN)} throttled the client",
            because="the traffic has no requests of them at that time",
            remedy="give their request logs with --traffic BROKER=PATH",
        )
    causes = [group for group in groups if group.is_cause]
    if causes and not any(member.requests for group in causes for member in group.members):
        yield MissingEvidence(
            what="who filled the quota group, and which limit would have passed",
            because="this traffic does not show single clients",
            remedy="give --traffic with the request log or a folder of compact of this time",
        )
