"""Why: an incident of one client, from the available sources.

The backtest judges the recorded traffic under the quotas of that time. Its seconds over the limit, or the throttles that brokers
logged themselves where they did, make the incident; a second backtest of the incident alone gives shares and values.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.model import (
    BacktestReport,
    BucketVerdict,
    Entity,
    EntityType,
    HistoryNeeds,
    IncidentAnswer,
    IncidentReport,
    IncidentStep,
    MetricServer,
    MissingEvidence,
    Verdict,
    escaped,
)
from reconciler.ports import Progress
from reconciler.resolution import Caveats, EffectiveQuotas, is_reserved
from reconciler.text import count_of, near_miss
from reconciler.workflows.backtest import BacktestOptions, backtest_request, fetch_samples, open_recorded
from reconciler.workflows.incident_groups import add_origins, group_of, groups_of, order_of_groups
from reconciler.workflows.incident_sources import WHICH_LIMIT, SourceAnswer, merge_answers
from reconciler.workflows.incident_times import (
    TrafficEvidence,
    logged_in,
    marks_of,
    moment_at,
    nearest_stretch,
    stretches_of,
)
from reconciler.workflows.next_steps import StepContext, next_steps
from reconciler.workflows.prometheus_traffic import configured_server
from reconciler.workflows.quotas_then import QuotaSources, QuotasThen, proposal_or_empty, read_quotas_then
from reconciler.workflows.resolve import has_group_plugin
from reconciler.workflows.traffic_inputs import names_of

if TYPE_CHECKING:
    from reconciler.traffic import BacktestRequest, GroupTimeline, TrafficSource
    from reconciler.workflows.prometheus_traffic import PrometheusRequest

_SECOND: Final = datetime.timedelta(seconds=1)
_LONGEST: Final = datetime.timedelta(days=7)
_SOURCES: Final = {"cells": "per-second totals", "normal-form": "canonical traffic schema", "recorder": "files of the recorder"}
"""Words for people, where they are not those of the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRequest:
    """Which client and when.

    ``traffic`` makes of the server that the Cluster manifest names how each kind of traffic is read; there may be none.
    """

    client: Entity
    at: datetime.datetime | None
    since: datetime.datetime
    until: datetime.datetime
    zone: str
    quotas: QuotaSources
    traffic: Callable[[MetricServer | None], Sequence[BacktestOptions]]


def explain_incident(request: IncidentRequest, *, progress: Progress | None = None) -> IncidentReport:
    """The report, with the missing sources.

    Raises ``ManifestError``, ``UsageError``, ``FileAccessError``, ``WrongClusterError``, ``UntrustedError``, ``TrafficError`` or
    ``MissingDependencyError``.
    """
    if request.until - request.since > _LONGEST:
        raise UsageError(f"The time between --since and --until is longer than {_LONGEST.days} days: narrow it")
    if request.until <= request.since:
        raise UsageError("--until is not later than --since")
    then = read_quotas_then(request.quotas, request.at or request.since)
    then = replace(then, missing=(*then.missing, *_missing_groups(then)))
    sources = request.traffic(configured_server(then.spec, None))
    if not sources:
        return _without_traffic(
            request,
            then,
            MissingEvidence(
                what="whether the client was throttled",
                because="no traffic was given",
                remedy="give --traffic: a request log, a folder of compact, or prometheus+http(s)://HOST. Or set spec.traffic "
                "of the Cluster manifest",
            ),
        )
    answers = [_with_traffic(request, traffic, then, progress) for traffic in sources]

    def steps(report: IncidentReport) -> tuple[IncidentStep, ...]:
        return next_steps(StepContext(request=request.quotas, then=then, groups=report.groups, goes_on=report.goes_on))

    return merge_answers(answers, steps)


def _missing_groups(then: QuotasThen) -> Iterator[MissingEvidence]:
    """Quotas of groups, where nothing states that the brokers have the plugin that reads them."""
    if then.proposal is None or has_group_plugin(then.spec) or not any(map(is_reserved, then.proposal.proposed)):
        return
    yield MissingEvidence(
        what="whether the client shares the limit of a group",
        because="the cluster stores groups for the broker plugin, and the Cluster manifest does not name the plugin",
        remedy="set spec.quotaCallback of the Cluster manifest, see docs/groups.md",
    )


def _with_traffic(
    request: IncidentRequest, traffic: BacktestOptions, then: QuotasThen, progress: Progress | None
) -> SourceAnswer:
    from reconciler.traffic import require_arrow

    require_arrow()
    proposal = proposal_or_empty(then)
    if traffic.prometheus is not None:
        traffic = replace(traffic, prometheus=replace(traffic.prometheus, names=names_of((request.client,))))
    try:
        options, notes = fetch_samples(proposal, traffic, progress=progress)
    except TrafficError as error:
        # The limits of that time are worth knowing all the same.
        return _without_source(request, then, traffic, _no_samples(error))
    then = replace(then, evidence=(*then.evidence, *(str(note).removesuffix(".") for note in notes)))
    # How much history a clear verdict needs is a matter of changes: an incident is judged by the traffic of its own time.
    question = replace(backtest_request(proposal, options), unchanged=True, in_effect=True, needs=HistoryNeeds(hours=0.0))
    with open_recorded(proposal, options, throttles=True, progress=progress) as recorded:
        try:
            evidence = _evidence(recorded, request, question, server=traffic.prometheus)
        except TrafficError as error:
            return _without_source(
                request,
                then,
                traffic,
                MissingEvidence(
                    what="whether the client was throttled",
                    because=f"the traffic has nothing of this time: {error}",
                    remedy="give traffic of this time, or other times with --since and --until",
                ),
            )
        if not evidence.timelines and not evidence.logged:
            unknown = _not_logged(request) if evidence.of_violations else _unknown_client(request, recorded)
            return _without_source(request, then, traffic, unknown)
        return _judged(request, then, recorded, evidence, question)


def _evidence(
    recorded: TrafficSource, request: IncidentRequest, question: BacktestRequest, *, server: PrometheusRequest | None
) -> TrafficEvidence:
    from reconciler.traffic import Source, group_timelines, recorded_throttles

    report, timelines = group_timelines(
        recorded,
        question,
        since=request.since,
        until=request.until,
        is_asked=lambda verdict: _has_client(verdict, request.client),
    )
    logged = recorded_throttles(recorded)
    of_violations = report.provenance.source == Source.VIOLATIONS
    begin, end = request.since.timestamp(), request.until.timestamp()
    if logged is not None:
        logged = tuple(
            throttled
            for throttled in logged
            if begin <= throttled.second <= end
            and (
                _is_group_of(throttled.user, throttled.client_id, request.client)
                if of_violations
                else _is_client(throttled.user, throttled.client_id, request.client)
            )
        )
    return TrafficEvidence(
        timelines=timelines,
        logged=logged,
        source=_words(report.provenance.source) if server is None else f"samples of {server.address}",
        of_violations=of_violations,
        start=report.provenance.start,
        end=report.provenance.end,
        brokers=tuple(coverage.broker for coverage in report.provenance.coverage),
        all_brokers=tuple(sorted({*report.provenance.named_brokers, *report.provenance.cluster_brokers})),
    )


def _words(source: str) -> str:
    return _SOURCES.get(source, source.replace("-", " "))


def _no_samples(error: TrafficError) -> MissingEvidence:
    return MissingEvidence(
        what="whether the client was throttled",
        because=f"the samples of Prometheus cannot be read: {error}",
        remedy="repair that, or give --traffic with a request log of this time",
    )


def _has_client(verdict: BucketVerdict, client: Entity) -> bool:
    if EntityType.IP.value in client.types:
        return (EntityType.IP.value, client.name(EntityType.IP.value)) in verdict.tags
    if not verdict.members:
        # Verdicts of means name the quota group alone.
        return _is_group_of(verdict.user, verdict.client_id, client)
    return any(_is_client(member.user, member.client_id, client) for member in verdict.members)


def _is_client(user: str | None, client_id: str | None, client: Entity) -> bool:
    names = {EntityType.USER.value: user, EntityType.CLIENT_ID.value: client_id}
    return all(kind in names and names[kind] == name for kind, name in client.parts)


def _is_group_of(user: str | None, client_id: str | None, client: Entity) -> bool:
    """Whether a quota group of these tags may be the client's; an empty one is absent."""
    tags = {EntityType.USER.value: user, EntityType.CLIENT_ID.value: client_id}
    return all(not tags.get(kind) or tags[kind] == name for kind, name in client.parts) and any(
        tags.get(kind) == name for kind, name in client.parts
    )


def _not_logged(request: IncidentRequest) -> MissingEvidence:
    return MissingEvidence(
        what="whether the client was throttled",
        because=f"the violation log has no throttle of {request.client} at this time, and its loggers may have been off",
        remedy="give --traffic with the request log of this time, or samples of Prometheus",
    )


def _unknown_client(request: IncidentRequest, recorded: TrafficSource) -> MissingEvidence:
    kinds = [kind for kind in request.client.types if kind != EntityType.IP.value]
    known: set[str] = set()
    for kind in kinds:
        known |= {(series.user if kind == EntityType.USER.value else series.client_id) or "" for series in recorded.series}
    near = "".join(near_miss(str(request.client.name(kind)), known) for kind in kinds)
    clients = len({(series.user, series.client_id, series.ip) for series in recorded.series})
    return MissingEvidence(
        what="whether the client was throttled",
        because=f"the traffic has {count_of(clients, 'client')}, and none is {request.client}{near}",
        remedy="check the name: names of users and client-ids are exact. kafka-quotas backtest --details lists those recorded",
    )


def _judged(
    request: IncidentRequest,
    then: QuotasThen,
    recorded: TrafficSource,
    evidence: TrafficEvidence,
    question: BacktestRequest,
) -> SourceAnswer:
    certain = evidence.logged or any(map(_is_certain, evidence.timelines))
    stretches = stretches_of(marks_of(evidence, possible=not certain))
    chosen = nearest_stretch(stretches, request.at)
    missing = list(then.missing)
    if chosen is None:
        return _not_throttled(request, then, evidence, missing)
    begin, end = moment_at(chosen.begin), moment_at(chosen.end)
    # A mean proves a throttle in a time that is longer than it, so there is no end to look up to.
    timed = chosen.end > chosen.begin
    report = _of_incident(recorded, question, begin, end) if timed else None
    verdicts = {(verdict.key, verdict.broker, verdict.name): verdict for verdict in report.verdicts} if report is not None else {}
    groups = tuple(groups_of(evidence.timelines, verdicts, chosen, explained=bool(certain)))
    groups, more = add_origins(request.quotas, then, groups)
    missing += more
    if not any(group.is_cause for group in groups):
        missing.append(_unexplained(then))
    answer = IncidentAnswer.THROTTLED if certain else IncidentAnswer.POSSIBLE
    incident = IncidentReport(
        client=request.client,
        cluster=then.identity,
        at=request.at,
        since=request.since,
        until=request.until,
        zone=request.zone,
        answer=answer,
        begin=begin,
        end=end if timed else None,
        begins_earlier=begin - _SECOND <= max(request.since, evidence.start),
        goes_on=_touches_end(end, request, evidence),
        other_incidents=len(stretches) - 1,
        groups=groups,
        logged=logged_in(evidence, chosen),
        evidence=then.evidence,
        missing=tuple(missing),
    )
    return SourceAnswer(source=_source_words(evidence), report=incident, gaps=tuple(_missing_of(evidence)))


def _is_certain(line: GroupTimeline) -> bool:
    if line.seconds is None:
        return line.verdict.verdict is Verdict.THROTTLED
    return any(line.seconds.over)


def _touches_end(end: datetime.datetime, request: IncidentRequest, evidence: TrafficEvidence) -> bool:
    return end + _SECOND >= min(request.until, evidence.end)


def _of_incident(
    recorded: TrafficSource, question: BacktestRequest, begin: datetime.datetime, end: datetime.datetime
) -> BacktestReport | None:
    from reconciler.traffic import incident_report

    try:
        return incident_report(recorded, question, begin=begin, end=end + _SECOND)
    except TrafficError:
        return None


def _unexplained(then: QuotasThen) -> MissingEvidence:
    because = "no quota of that time is known"
    if then.proposal is not None and then.proposal.proposed:
        because = "no quota known here explains the logged throttles: another one was in effect"
    return MissingEvidence(what=WHICH_LIMIT, because=because, remedy="give --current FILE or --bootstrap-server HOST:PORT")


def _not_throttled(
    request: IncidentRequest, then: QuotasThen, evidence: TrafficEvidence, missing: list[MissingEvidence]
) -> SourceAnswer:
    """Nothing was over, or nothing of it is known."""
    lines = evidence.timelines
    undecided = any(timeline.verdict.verdict in (Verdict.INCONCLUSIVE, Verdict.POSSIBLE, Verdict.THROTTLED) for timeline in lines)
    logged = evidence.logged is not None and not evidence.of_violations
    if logged and any(timeline.verdict.verdict is Verdict.THROTTLED for timeline in lines):
        missing.append(
            MissingEvidence(
                what="which limits were in effect",
                because="the quotas known here would have throttled this traffic, and the brokers logged no throttle",
                remedy="give --current FILE, a snapshot of that time",
            )
        )
    since, until = max(request.since, evidence.start), min(request.until, evidence.end)
    seen = request.at is None or since <= request.at <= until
    if not seen:
        missing.insert(0, _not_recorded(since, until))
    answer = IncidentAnswer.CLEAR if seen and (logged or not undecided) else IncidentAnswer.UNKNOWN
    groups = sorted((group_of(timeline.verdict, (), is_cause=False) for timeline in lines), key=order_of_groups)
    report = IncidentReport(
        client=request.client,
        cluster=then.identity,
        at=request.at,
        since=since if answer is IncidentAnswer.CLEAR else request.since,
        until=until if answer is IncidentAnswer.CLEAR else request.until,
        zone=request.zone,
        answer=answer,
        groups=tuple(groups),
        evidence=then.evidence,
        missing=tuple(missing),
    )
    return SourceAnswer(source=_source_words(evidence), report=report, gaps=tuple(_missing_of(evidence)))


def _not_recorded(since: datetime.datetime, until: datetime.datetime) -> MissingEvidence:
    """Nothing follows from a time without a recording."""
    return MissingEvidence(
        what="whether the client was throttled",
        because=f"the traffic is from {since:%Y-%m-%d %H:%M:%S} to {until:%H:%M:%S} UTC, and --at is not in it",
        remedy="give traffic of this time",
    )


def _without_source(
    request: IncidentRequest, then: QuotasThen, traffic: BacktestOptions, reason: MissingEvidence
) -> SourceAnswer:
    source = traffic.prometheus.address if traffic.prometheus is not None else ", ".join(map(str, traffic.traffic))
    return SourceAnswer(source=escaped(source), report=_without_traffic(request, then, reason), failure=reason)


def _without_traffic(request: IncidentRequest, then: QuotasThen, reason: MissingEvidence) -> IncidentReport:
    """The limits alone."""
    limits = {}
    if then.proposal is not None:
        caveats = Caveats(groups=has_group_plugin(then.spec))
        answer = EffectiveQuotas(then.proposal.proposed, caveats).answer(request.client)
        limits = {key: (limit.value, limit.source) for key, limit in answer.quotas.items()}
    return IncidentReport(
        client=request.client,
        cluster=then.identity,
        at=request.at,
        since=request.since,
        until=request.until,
        zone=request.zone,
        answer=IncidentAnswer.UNKNOWN,
        limits=limits,
        evidence=then.evidence,
        missing=(reason, *then.missing),
    )


def _missing_of(evidence: TrafficEvidence) -> Iterator[MissingEvidence]:
    if evidence.logged is None:
        yield MissingEvidence(
            what="how long each request was throttled",
            because="only request logs have the brokers' own throttle times",
            remedy="give --traffic with the request log of this time",
        )
    unseen = [str(broker) for broker in evidence.all_brokers if broker not in evidence.brokers]
    if unseen:
        yield MissingEvidence(
            what=f"whether {'broker' if len(unseen) == 1 else 'brokers'} {', '.join(unseen)} throttled the client",
            because="the traffic has no requests of them at that time",
            remedy="give their request logs with --traffic BROKER=PATH",
        )
    if evidence.of_violations:
        yield MissingEvidence(
            what="who filled the quota group, and which limit would have passed",
            because="a violation log has throttles and no traffic",
            remedy="give --traffic with the request log or a folder of compact of this time",
        )
    elif any(timeline.seconds is None and timeline.verdict.limit_after is not None for timeline in evidence.timelines):
        yield MissingEvidence(
            what="when the throttles of some quota groups began and ended, and who filled them",
            because="means and gauges prove a throttle, and neither its time nor its clients",
            remedy="give --traffic with the request log or a folder of compact of this time",
        )


def _source_words(evidence: TrafficEvidence) -> str:
    start, end = evidence.start, evidence.end
    return f"{escaped(evidence.source)}, from {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"
