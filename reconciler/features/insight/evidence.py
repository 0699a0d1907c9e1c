"""What traffic shows of a client: recorded throttles, and rates under the quotas of each moment, joined to incidents."""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError
from reconciler.features.insight.incident import WHETHER, MissingEvidence, RecordedThrottles
from reconciler.features.insight.past_quotas import IncidentRequest, QuotasThen
from reconciler.features.insight.recorded_rates import question_in_effect
from reconciler.model import CONTROLLER, BucketVerdict, Entity, EntityType, Verdict, escaped
from reconciler.ports import Progress
from reconciler.resolution import EffectiveQuotas
from reconciler.text import count_of, near_miss
from reconciler.workflows import BacktestOptions, Proposal, fetch_samples, open_recorded

if TYPE_CHECKING:
    from reconciler.features.insight.recorded_time import GroupTimeline
    from reconciler.traffic import BacktestRequest, RecordedThrottle, TrafficSource

PAUSE_S: Final = 12
"""Seconds without a throttle that end an incident: no request counts longer in a sampled rate."""
SHOWN_S: Final = 60
"""How long a broker's throttle time shows a throttle, at most."""
LOOK_BACK: Final = datetime.timedelta(seconds=2 * SHOWN_S)
"""How much of the time before is read, to see whether a throttle time rose in the time that is asked about."""
_NEARLY_ALL: Final = 0.999999


@dataclass(frozen=True, slots=True)
class Stretch:
    """From ``begin`` to ``end``, both in seconds since 1970, with fractions where brokers logged them."""

    begin: float
    end: float

    def distance(self, second: float) -> float:
        """Return the seconds between a moment and the stretch. 0 within."""
        return max(self.begin - second, second - self.end, 0.0)

    def within(self, begin: float, end: float) -> Stretch | None:
        """The part of it in this time; ``None``: there is none."""
        return None if self.end < begin or self.begin > end else Stretch(max(self.begin, begin), min(self.end, end))


def recorded_stretches(throttles: Iterable[RecordedThrottle], since: float, until: float) -> Iterator[Stretch]:
    """Yield the stretches of a time in which brokers recorded throttles."""
    samples: dict[tuple[object, ...], list[RecordedThrottle]] = defaultdict(list)
    for throttle in throttles:
        if throttle.of_samples:
            samples[throttle.broker, throttle.kind, throttle.user, throttle.client_id].append(throttle)
            continue
        begin, end = throttle.begin_us / 1e6, throttle.end_us / 1e6
        if end >= since and begin <= until:
            # A broker states the end of a throttle in advance.
            yield Stretch(max(begin, since), end)
    for of_series in samples.values():
        for run in _runs(of_series):
            if (proven := _proven(run, since)) is not None and (stretch := proven.within(since, until)) is not None:
                yield stretch


def _runs(samples: Sequence[RecordedThrottle]) -> Iterator[list[RecordedThrottle]]:
    """Samples of one series that show a throttle, without one between them that does not."""
    run: list[RecordedThrottle] = []
    for sample in sorted(samples, key=lambda sample: sample.begin_us):
        # Samples of one second are one item, which begins with the first and ends with the last of them.
        if run and sample.begin_us - run[-1].end_us > max(sample.interval_us, 1) * 1.5:
            yield run
            run = []
        run.append(sample)
    if run:
        yield run


def _proven(run: Sequence[RecordedThrottle], since: float) -> Stretch | None:
    """Return the stretch that a row of samples proves: from its first sample to a minute before its last.

    The first sample that shows a throttle is never earlier than the throttle. Where each sample may show a throttle from before
    ``since``, nothing of the time from then on is proven.
    """
    first, last = run[0].begin_us / 1e6, run[-1].end_us / 1e6
    earliest = first - min(run[0].interval_us / 1e6 or SHOWN_S, SHOWN_S)
    end = max(first, last - SHOWN_S)
    return None if earliest < since and last - SHOWN_S < since else Stretch(first, end)


def computed_stretches(line: GroupTimeline) -> Iterator[Stretch]:
    """The seconds over a limit. A rate without seconds has a first moment and a length at most."""
    over = line.verdict.over
    if line.verdict.limits.after is None:
        return
    if line.seconds is not None and line.verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE):
        for second in over_seconds(line):
            yield Stretch(second, second + _NEARLY_ALL)
    elif line.seconds is None and over.first is not None:
        first = over.first.timestamp()
        yield Stretch(first, first + over.longest_s)


def over_seconds(line: GroupTimeline) -> Iterator[float]:
    """The seconds in which the group is over its limit."""
    if (series := line.seconds) is not None:
        start = series.start.timestamp()
        yield from (start + place for place, count in enumerate(series.over) if count)


def join_stretches(marks: Iterable[Stretch]) -> list[Stretch]:
    """The marks joined where the pause between them is short, in order of time."""
    joined: list[Stretch] = []
    for mark in sorted(marks, key=lambda stretch: stretch.begin):
        if joined and mark.begin - joined[-1].end <= PAUSE_S:
            joined[-1] = Stretch(joined[-1].begin, max(joined[-1].end, mark.end))
        else:
            joined.append(mark)
    return joined


def nearest_stretch(stretches: Sequence[Stretch], at: datetime.datetime | None) -> Stretch | None:
    """The one at the asked moment or nearest to it; without a moment the longest."""
    if not stretches:
        return None
    if at is None:
        return max(stretches, key=lambda stretch: stretch.end - stretch.begin)
    second = at.timestamp()
    return min(stretches, key=lambda stretch: stretch.distance(second))


def moment_at(second: float) -> datetime.datetime:
    """Seconds since 1970 as a UTC time."""
    return datetime.datetime.fromtimestamp(second, tz=datetime.UTC)


_SOURCES: Final = {
    "cells": "per-second totals",
    "log-cells": "per-second totals of request logs",
    "normal-form": "canonical traffic schema",
    "recorder": "files of the recorder",
}
"""Words for people, where they are not those of the document."""
_OF_SUMS: Final = ("recorder", "cells", "log-cells")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEvidence:
    """``throttles``: of the client or of its quota group; ``None``: the source has no place for them.

    ``is_log``: a request log with requests of the client. ``names_groups``: its throttles are those of quota groups that lack one
    of the client's names.
    """

    source: str
    recorded: TrafficSource
    request_of: Callable[[Proposal], BacktestRequest]
    throttles: tuple[RecordedThrottle, ...] | None
    timelines: tuple[GroupTimeline, ...]
    """Quota groups of the client."""
    is_log: bool
    names_groups: bool
    start: datetime.datetime
    end: datetime.datetime
    brokers: tuple[int, ...]
    unread: int = 0
    """Lines that could not be read or placed in time."""
    holes: tuple[str, ...] = ()
    """Of a log, times without any line that are longer than its usual pauses, as clauses."""
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether no throttle of the client on its brokers and in its time is missing."""
        return self.is_log and not self.unread and not self.holes


def observe_span(
    stack: contextlib.ExitStack, asked: IncidentRequest, then: QuotasThen, options: BacktestOptions, *, progress: Progress
) -> SourceEvidence | MissingEvidence:
    """Return what traffic shows of a client, or why it shows nothing. It is open until the end of ``stack``.

    ``observe`` does the same for all groups at the present moment. Raises as ``open_recorded`` and ``backtest_request``.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    server = options.prometheus
    known = [part.proposal for part in then.parts if part.proposal is not None]
    proposal = known[-1] if known else Proposal(current=None, proposed={}, declared={}, spec=then.spec)
    if server is not None:
        options = replace(options, prometheus=replace(server, since=asked.since - LOOK_BACK))
    try:
        options, notes = fetch_samples(proposal, options, progress=progress)
        recorded = stack.enter_context(open_recorded(proposal, options, throttles=True, progress=progress))
    except TrafficError as error:
        if server is None:
            raise
        # The server may have nothing of this time, and the limits of that time are worth knowing all the same.
        because = f"the samples of Prometheus cannot be read: {error}"
        remedy = "repair that, or give --traffic with a request log of this time"
        return MissingEvidence(what=WHETHER, because=because, remedy=remedy)

    return _evidence(asked, then, recorded, options, notes)


def _evidence(
    asked: IncidentRequest, then: QuotasThen, recorded: TrafficSource, options: BacktestOptions, notes: Iterable[object]
) -> SourceEvidence | MissingEvidence:
    from reconciler.features.insight.recorded_time import between, group_timelines, has_requests, recorded_throttles
    from reconciler.traffic import UNCLEAR_TIME, Source, recorded_coverage

    request_of = functools.partial(question_in_effect, options=options)
    facts = recorded.facts
    throttles = recorded_throttles(recorded, asked.names, since=asked.since - LOOK_BACK, until=asked.until)
    if throttles is not None:
        throttles = tuple(throttle for throttle in throttles if _is_of_client(throttle, then, asked.client))
    try:
        in_time = between(recorded, asked.since, asked.until)
    except TrafficError as error:
        because = f"the traffic has nothing of this time: {error}"
        remedy = "give traffic of this time, or other times with --since and --until"
        return MissingEvidence(what=WHETHER, because=because, remedy=remedy)
    timelines: list[GroupTimeline] = []
    for part in then.parts:
        if part.proposal is not None:
            is_asked = functools.partial(_has_client, EffectiveQuotas(part.proposal.proposed), asked.client)
            timelines += group_timelines(recorded, request_of(part.proposal), part, is_asked)
    if not throttles and not timelines and not has_requests(in_time, asked.names):
        return _unknown_client(asked.client, in_time)
    coverage = in_time.facts.coverage
    is_log = facts.source == Source.LOGS.value and bool(asked.names) and has_requests(in_time, asked.names)
    # What one broker logged after the end of another's log does not clear the other.
    starts, ends = [part.start for part in coverage], [part.end for part in coverage]
    holes = (part.gap_words for part in recorded_coverage(in_time) if part.minutes_missing) if is_log else ()
    name, server = facts.source, options.prometheus
    return SourceEvidence(
        source=_SOURCES.get(name, name.replace("-", " ")) if server is None else f"samples of {escaped(server.address)}",
        recorded=recorded,
        request_of=request_of,
        throttles=throttles,
        timelines=tuple(timelines),
        is_log=is_log,
        names_groups=all(any(getattr(throttle, column) is None for column, _ in asked.names) for throttle in throttles or ()),
        start=max(asked.since, max(starts) if is_log else min(starts)),
        end=min(asked.until, min(ends) if is_log else max(ends)),
        holes=tuple(holes),
        brokers=tuple(part.broker for part in coverage if part.broker != CONTROLLER),
        unread=facts.unreadable + facts.not_charged.get(UNCLEAR_TIME, 0),
        notes=tuple(str(note).removesuffix(".") for note in (*notes, *facts.notes)),
    )


def _has_client(quotas: EffectiveQuotas, client: Entity, verdict: BucketVerdict) -> bool:
    ip = EntityType.IP.value
    if ip in client.types:
        return (ip, client.name(ip)) in verdict.name.other
    if any(_are_names_of(member.user, member.client_id, client) for member in verdict.recorded.members):
        return True
    # Members of samples and of the recorder are quota groups, whose absent names are unknown.
    tags = [(member.user, member.client_id) for member in verdict.recorded.members] or [
        (verdict.name.user, verdict.name.client_id)
    ]
    return any(is_group_of(quotas, verdict.key, user, client_id, client) for user, client_id in tags)


def _are_names_of(user: str | None, client_id: str | None, client: Entity) -> bool:
    names = {EntityType.USER.value: user, EntityType.CLIENT_ID.value: client_id}
    return all(kind in names and names[kind] == name for kind, name in client.parts)


def is_group_of(quotas: EffectiveQuotas, key: str, user: str | None, client_id: str | None, client: Entity) -> bool:
    """Whether a quota group of these tags is the client's: its names do not contradict, and the quotas give no other group.

    An empty or absent tag is one that the group does not have.
    """
    tags = {EntityType.USER.value: user or None, EntityType.CLIENT_ID.value: client_id or None}
    known = dict(client.parts)
    if any(tags.get(kind) not in (None, name) for kind, name in known.items()):
        return False
    if not any(tags.get(kind) == name for kind, name in known.items()):
        return False
    asked = known.get(EntityType.USER.value), known.get(EntityType.CLIENT_ID.value)
    resolver = quotas.resolvers.get(key)
    if resolver is None or not all(isinstance(name, str) for name in asked):
        return True
    resolved = resolver.resolve(str(asked[0]), str(asked[1]))
    group = (resolved.bucket.user or None, resolved.bucket.client_id or None)
    return resolved.winner is None or group == (tags[EntityType.USER.value], tags[EntityType.CLIENT_ID.value])


def _is_of_client(throttle: RecordedThrottle, then: QuotasThen, client: Entity) -> bool:
    if _are_names_of(throttle.user, throttle.client_id, client):
        return True
    proposal = then.at(throttle.begin_us / 1e6).proposal
    quotas = EffectiveQuotas({} if proposal is None else proposal.proposed)
    return is_group_of(quotas, throttle.key, throttle.user, throttle.client_id, client)


def _unknown_client(client: Entity, recorded: TrafficSource) -> MissingEvidence:
    """A client that single requests lack has another name, or was silent. Samples show quota groups only."""
    clients = {(series.user, series.client_id, series.ip) for series in recorded.series}
    names = {name for names in clients for name in names if name}
    near = "".join(near_miss(str(name), names) for _, name in client.parts)
    because = f"the traffic of this time has {count_of(len(clients), 'client')}, and none is {client}{near}"
    remedy: str | None = "check the name and the time: names are exact. kafka-quotas backtest --details lists those recorded"
    if EntityType.IP.value in client.types:
        because, remedy = "no source records how long connections of an address were delayed", None
    elif recorded.gauges:
        because = f"the samples show no quota group of {client}. Brokers show a client only while a quota applies to it"
        remedy = "give --traffic with the request log of this time"
    return MissingEvidence(what=WHETHER, because=because, remedy=remedy)


def recorded_in(evidence: SourceEvidence, chosen: Stretch) -> RecordedThrottles | None:
    """The throttles of an incident as brokers recorded them, added up."""
    rows = [throttle for throttle in evidence.throttles or () if _is_in(throttle, chosen)]
    if not rows:
        return None
    # A line for topics has a row for its time, and rows for its topics. The first counts it.
    lines = [row for row in rows if not row.of_samples and (row.kind.value != "mutation" or not evidence.is_log)]
    # A forwarded request has a line of its broker and one of the controller.
    refused = max(sum(row.refused for row in rows if (row.broker == CONTROLLER) is here) for here in (True, False))
    return RecordedThrottles(
        requests=sum(row.requests for row in lines) if evidence.recorded.facts.source not in _OF_SUMS else 0,
        refused=refused if evidence.is_log else 0,
        seconds=len({row.begin_us // 1_000_000 for row in rows if not row.of_samples}),
        samples=len({(row.broker, row.begin_us) for row in rows if row.of_samples}),
        longest_ms=max(row.longest_ms for row in rows) or None,
    )


def _is_in(throttle: RecordedThrottle, chosen: Stretch) -> bool:
    """A sample shows a throttle of the minute before it."""
    late = SHOWN_S if throttle.of_samples else 0
    return throttle.begin_us / 1e6 <= chosen.end + late + 1e-6 and throttle.end_us / 1e6 >= chosen.begin
