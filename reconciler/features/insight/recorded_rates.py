"""Headroom of recorded traffic: request logs, files of the recorder, totals and samples in files, in their last minute."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reconciler.cli.traffic_options import ReadingOptions, configured_backtest
from reconciler.errors import TrafficError
from reconciler.features.insight.observe import GroupLoad, Headroom, Throttling, headroom_of, limited_load, pass_on_throttles
from reconciler.features.insight.rate_sources import RateRequest
from reconciler.model import (
    CONTROLLER,
    BucketName,
    BucketVerdict,
    ClusterSpec,
    Entity,
    EntityType,
    HistoryNeeds,
    QuotaKey,
    compose,
    peak_of,
)
from reconciler.resolution import EffectiveQuotas, QuotaView
from reconciler.workflows import BacktestOptions, Proposal, backtest_request, open_recorded

if TYPE_CHECKING:
    from reconciler.traffic import BacktestRequest, RecordedThrottle
    from reconciler.workflows import TrustedTree

_MINUTE: Final = datetime.timedelta(minutes=1)
_SECOND: Final = datetime.timedelta(seconds=1)
_CONTROLLER: Final = "controller"
_ANY: Final = "the newest line"
_OLD: Final = datetime.timedelta(minutes=5)
_IS_OLD: Final = "The newest line is of {at} UTC. What follows is the minute before it, and not the present."
_LARGEST: Final = "Rates are the largest ones of the minute before {at} UTC."
_NO_THROTTLES: Final = "This traffic has no throttle times. It does not show which quota groups brokers throttled."


def observe_recorded(view: QuotaView, owners: Mapping[Entity, str], request: RateRequest) -> Headroom:
    """The quota groups of the last minute of recorded traffic, with the limits of ``view``.

    Raises ``UsageError``, ``MissingDependencyError``, ``TrafficError`` and ``UntrustedError`` as ``open_recorded``.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    from reconciler.features.insight.recorded_time import between, recorded_throttles
    from reconciler.traffic import Backtest, RequestTraffic, Source

    options = BacktestOptions(traffic=request.traffic)
    proposal = proposal_in_effect(view, request.spec, request.trusted)
    question = question_in_effect(proposal, options)
    with open_recorded(proposal, options, throttles=True) as recorded:
        end = max(part.end for part in recorded.facts.coverage)
        begin = request.since or end - _MINUTE
        if begin >= end:
            raise TrafficError(f"The newest line of the traffic is of {end:%Y-%m-%d %H:%M:%S} UTC")
        # The newest line is of the end itself, and the end of a part does not belong to it.
        part = between(recorded, begin, end + _SECOND)
        report = Backtest(part, replace(question, exact=isinstance(recorded, RequestTraffic))).report()
        throttles = recorded_throttles(recorded, None, since=begin, until=end)
        is_log = recorded.facts.source == Source.LOGS.value
    answers = view.answers()
    measured = [(_load(verdict, answers, owners), peak_of(verdict)) for verdict in report.verdicts if not verdict.undecided]
    groups = pass_on_throttles(_with_throttles(measured, throttles or (), answers, is_log=is_log))
    is_old = datetime.datetime.now(datetime.UTC) - end > _OLD
    notes = [compose(_IS_OLD if is_old else _LARGEST, at=f"{end:%Y-%m-%d %H:%M:%S}")]
    notes += [compose(_NO_THROTTLES)] if throttles is None else []
    return replace(
        headroom_of(view, owners, groups, notes, at_s=end.timestamp()),
        # A broker without requests writes no line, so the newest line of any of them counts.
        shown_until={_ANY: end.timestamp()},
        shows_throttles=throttles is not None,
    )


def proposal_in_effect(view: QuotaView, spec: ClusterSpec, trusted: TrustedTree | None) -> Proposal:
    """Return the quotas of ``view``, to judge traffic by them."""
    entities = {entity: dict(quotas) for entity, quotas in view.entities.items()}
    version = view.cluster.kafka_version
    return Proposal(current=None, proposed=entities, declared={}, spec=spec, trusted=trusted, kafka_version=version)


def question_in_effect(proposal: Proposal, options: BacktestOptions) -> BacktestRequest:
    """Return the judgement of traffic by the proposed quotas as those in effect.

    How much history a clear verdict needs is a matter of changes, so none is needed here. Raises as ``backtest_request``.
    """
    return replace(backtest_request(proposal, options), unchanged=True, in_effect=True, needs=HistoryNeeds(hours=0.0))


def span_options(
    spec: ClusterSpec,
    trusted: TrustedTree | None,
    since: datetime.datetime,
    until: datetime.datetime,
    *,
    traffic: tuple[str, ...] = (),
    reading: ReadingOptions | None = None,
) -> BacktestOptions:
    """Return how ``traffic``, or else that of the Cluster manifest, is read. Only samples of a server are read by times.

    Raises as ``configured_backtest``.
    """
    options = configured_backtest(spec, trusted, traffic=traffic, reading=reading)
    server = None if options.prometheus is None else replace(options.prometheus, since=since, until=until)
    return replace(options, prometheus=server, between=None)


def _load(verdict: BucketVerdict, answers: EffectiveQuotas, owners: Mapping[Entity, str]) -> GroupLoad:
    ip = dict(verdict.name.other).get(EntityType.IP.value)
    return limited_load(
        answers,
        owners,
        broker=_CONTROLLER if verdict.broker == CONTROLLER else str(verdict.broker),
        key=QuotaKey(verdict.key),
        names=(verdict.name.user or None, verdict.name.client_id or None, ip),
        rate=peak_of(verdict),
    )


def _with_throttles(
    measured: Iterable[tuple[GroupLoad, float]], throttles: Iterable[RecordedThrottle], answers: EffectiveQuotas, *, is_log: bool
) -> list[tuple[GroupLoad, float]]:
    """The loads, each with the throttles of its clients.

    A log does not name the quota that throttled a request of bytes: it is that of its bytes or of its request time, whichever
    group is nearer to its limit. The lines of a broker and of the controller show one mutation twice.
    """
    loads = list(measured)
    places = {(load.key.value, load.broker, name_of_group(load)): place for place, (load, _) in enumerate(loads)}
    of_place: dict[int, list[RecordedThrottle]] = {}
    for throttle in throttles:
        keys = [throttle.key]
        if is_log and throttle.key in (QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value):
            keys.append(QuotaKey.REQUEST_PERCENTAGE.value)
        brokers = (_CONTROLLER, str(throttle.broker)) if throttle.key == _MUTATION else (str(throttle.broker),)
        candidates = [
            place
            for key in keys
            for broker in brokers
            if (place := places.get((key, broker, group_of_throttle(throttle, key, answers)))) is not None
        ]
        if candidates:
            of_place.setdefault(max(candidates, key=lambda place: loads[place][0].share or 0.0), []).append(throttle)
    for place, of_group in of_place.items():
        load, peak = loads[place]
        loads[place] = replace(load, throttling=_throttling(of_group)), peak
    return loads


_MUTATION: Final = QuotaKey.CONTROLLER_MUTATION_RATE.value


def name_of_group(load: GroupLoad) -> BucketName:
    """Return the tags of a load as a backtest has them."""
    tags = dict(load.tags)
    user, client_id = tags.pop(EntityType.USER.value, ""), tags.pop(EntityType.CLIENT_ID.value, "")
    return BucketName(user, client_id, tuple(sorted(tags.items())))


def group_of_throttle(throttle: RecordedThrottle, key: str, answers: EffectiveQuotas) -> BucketName:
    """The quota group, for this key, of a throttled client. A row of samples or of the recorder names the group itself."""
    resolver = answers.resolvers.get(key)
    if resolver is None or throttle.user is None or throttle.client_id is None:
        return BucketName(throttle.user or "", throttle.client_id or "")
    bucket = resolver.resolve(throttle.user, throttle.client_id).bucket
    return BucketName(bucket.user or "", bucket.client_id or "")


def _throttling(throttles: Iterable[RecordedThrottle]) -> Throttling:
    rows = list(throttles)
    requests = sum(row.requests for row in rows) or 1
    return Throttling(
        mean_ms=sum(row.throttle_ms for row in rows) / requests,
        since=datetime.datetime.fromtimestamp(min(row.begin_us for row in rows) / 1e6, datetime.UTC),
        or_earlier=True,
    )
