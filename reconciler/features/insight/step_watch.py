"""The clients of a run that changes limits in steps: which of them brokers throttle after each step, and for how long.

A broker's throttle time is a mean of up to a minute, so a value alone may be of an older throttle. A sample counts as throttled
when the value appears, or moves while the rate is at least half of the limit, or stands while the rate is at the limit. Each
sample stands for the time since the one before it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.insight.observe import GroupLoad, join_limits
from reconciler.features.insight.rate_sources import RateReading, RateRequest, is_page, read_rates
from reconciler.features.prometheus import trusted_reader
from reconciler.model import UNPREDICTED_SHARE, BucketName, Change, Entity, Prediction, WatchedGroup, WatchedStep, escaped
from reconciler.planning import quotas_after
from reconciler.ports import Clock, QuotaCluster, StepWatcher, SystemClock
from reconciler.resolution import EffectiveQuotas, QuotaView, ViewKind
from reconciler.text import duration, list_some
from reconciler.traffic import Measure
from reconciler.workflows import Intent, configured_server, current_view, names_of

_OF_MANIFEST: Final = "spec.traffic"
_PAGE_EVERY_S: Final = 2.0
_SERVER_EVERY_S: Final = 5.0
_PAGE_PATIENCE_S: Final = 30.0
_SERVER_PATIENCE_S: Final = 150.0
"""How long a source may show nothing new; two scrapes of a minute and some delay are shorter."""
_LEAST_SHARE: Final = 0.5
"""Of the limit, the least rate in the seconds after a throttle: less is left of an older one."""
_MOST: Final = 20
_SHOWN: Final = 3


def watch_steps(intent: Intent, cluster: QuotaCluster, sources: Sequence[str], predictions: Sequence[Prediction]) -> StepWatcher:
    """Watch by the sources of ``apply --watch``. Raises ``UsageError`` for a source that does not show the present moment."""
    spec, trusted = intent.spec, intent.trusted
    server = None
    if _OF_MANIFEST in sources:
        server = configured_server(spec, trusted)
        if server is None or len(sources) > 1:
            raise UsageError(
                f"--watch {_OF_MANIFEST} needs a Prometheus server in spec.traffic of the Cluster manifest, and no other source. "
                "Name the server there, or pass --watch prometheus+http(s)://HOST"
            )
    of_pages = all(map(is_page, sources)) and server is None

    def view() -> QuotaView:
        return current_view(cluster.current_state(), source=cluster, name=spec.name, spec=spec)

    def read(entities: Mapping[Entity, Mapping[str, float]]) -> RateReading:
        traffic = () if server is not None else tuple(sources)
        names, reader = names_of(entities), trusted_reader(trusted)
        return read_rates(RateRequest(traffic=traffic, server=server, names=names, read_file=reader))

    return SourceWatcher(
        source=escaped(server.address) if server is not None else list_some([*map(escaped, sources)], _SHOWN),
        view=view,
        read=read,
        predictions=predictions,
        clock=SystemClock(),
        pace=WatchPace() if of_pages else WatchPace(every_s=_SERVER_EVERY_S, patience_s=_SERVER_PATIENCE_S),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPace:
    """How often a source is read, and how long it may show nothing new after the time that is asked for, in seconds."""

    every_s: float = _PAGE_EVERY_S
    patience_s: float = _PAGE_PATIENCE_S


@dataclass(slots=True, kw_only=True)
class _Tally:
    """A quota group on one broker since the write of a step."""

    load: GroupLoad
    throttled_s: float = 0.0
    rate: float = 0.0

    def group(self, seconds: float, accepted: float) -> WatchedGroup:
        load = self.load
        return WatchedGroup(
            bucket=_bucket(load),
            key=load.key.value,
            broker=load.broker,
            rate=self.rate,
            limit=load.limit,
            throttled=min(self.throttled_s / seconds, 1.0),
            accepted=accepted,
        )


@dataclass(slots=True, kw_only=True)
class _StepTime:
    """What of one step has been seen. ``since_s``, ``end_s``: seconds since 1970 by the clock of the source."""

    step: int
    since_s: float
    end_s: float
    tallies: dict[tuple[object, ...], _Tally] = field(default_factory=dict)
    until_s: dict[str, float] = field(default_factory=dict)
    """By broker, up to when its samples are counted."""


class SourceWatcher:
    """A ``StepWatcher`` by the samples that ``read`` returns for the quotas of ``view``."""

    def __init__(
        self,
        *,
        source: str,
        view: Callable[[], QuotaView],
        read: Callable[[Mapping[Entity, Mapping[str, float]]], RateReading],
        predictions: Sequence[Prediction],
        clock: Clock,
        pace: WatchPace,
    ) -> None:
        self.source: Final = source
        self._read_view = view
        self._read = read
        self._clock = clock
        self._pace = pace
        self._accepted = {(each.bucket, each.key): each.accepted for each in predictions}
        self._view = QuotaView(kind=ViewKind.CLUSTER, entities={})
        self._shown: frozenset[str] = frozenset()
        self._ahead_s = 0.0
        self._means: dict[tuple[object, ...], float | None] = {}

    def begin(self, changes: Sequence[Change]) -> None:
        """As ``StepWatcher.begin``."""
        self._view = self._read_view()
        if self._view.caveats.callback is not None:
            raise UsageError(f"--watch needs limits that are known: {self._view.caveats.callback}")
        reading, now_s = self._read(self._view.entities), self._now_s()
        shown = {name: at for name, at in _shown_until(reading).items() if at > now_s - _SERVER_PATIENCE_S}
        if not shown:
            notes = " ".join(map(str, reading.notes))
            raise TrafficError(f"{self.source} shows no quota group of now, so --watch would see nothing. {notes}".rstrip())
        if reading.series and all(series.measure is not Measure.THROTTLE_TIME for series in reading.series):
            raise TrafficError(f"{self.source} has rates and no throttle times. 'kafka-quotas doctor' prints the repair")
        self._shown = frozenset(shown)
        self._ahead_s = max(0.0, max(shown.values()) - now_s)
        self._means = {_place(load): _mean(load) for load in self._loads(reading, self._view, changes)}

    def watch(self, changes: Sequence[Change], *, step: int, since: datetime.datetime, seconds: float) -> WatchedStep:
        """As ``StepWatcher.watch``."""
        view = replace(self._view, entities=quotas_after(self._view.entities, changes))
        start = self._clock.monotonic()
        time = _StepTime(step=step, since_s=since.timestamp() + self._ahead_s, end_s=self._now_s() + seconds + self._ahead_s)
        while True:
            self._clock.sleep(self._pace.every_s)
            problem = ""
            try:
                reading = self._read(view.entities)
            except TrafficError as error:
                problem = str(error)
            else:
                self._count(time, reading, view, changes)
                shown = _shown_until(reading)
                seen = self._seen(time, shown)
                late = sorted(name for name in self._shown if shown.get(name, 0.0) < time.end_s)
                if not late or self._is_certain(time, seconds):
                    self._view = view
                    return seen
                problem = f"{list_some([*map(escaped, late)], _SHOWN)}: no sample that is new enough"
            if self._clock.monotonic() - start > seconds + self._pace.patience_s:
                waited = duration(self._clock.monotonic() - start)
                raise TrafficError(f"{self.source} does not show the {waited} after the step. {problem}")

    def _count(self, time: _StepTime, reading: RateReading, view: QuotaView, changes: Sequence[Change]) -> None:
        newest = _newest(reading)
        for load in self._loads(reading, view, changes):
            place, mean, at_s = _place(load), _mean(load), newest[load.broker]
            last_s = max(time.until_s.get(load.broker, 0.0), time.since_s)
            if at_s <= last_s:
                continue
            tally = time.tallies.setdefault(place, _Tally(load=load))
            tally.load, tally.rate = load, max(tally.rate, load.rate)
            if mean is not None and _is_throttled(load, mean, self._means.get(place)):
                tally.throttled_s += at_s - last_s
            self._means[place] = mean
        time.until_s |= newest

    def _seen(self, time: _StepTime, shown: Mapping[str, float]) -> WatchedStep:
        known = [at for name, at in shown.items() if name in self._shown]
        seconds = max(min(known, default=time.since_s) - time.since_s, self._pace.every_s / 2)
        groups = (self._group(tally, seconds) for tally in time.tallies.values() if tally.throttled_s)
        worst = sorted(groups, key=lambda group: (not group.is_too_much, group.accepted - group.throttled, group.broker))
        return WatchedStep(step=time.step, seconds=round(seconds, 1), groups=len(time.tallies), throttled=tuple(worst[:_MOST]))

    def _is_certain(self, time: _StepTime, seconds: float) -> bool:
        """Whether a group has been throttled for more than is accepted of the whole time, whatever follows."""
        return any(self._group(tally, seconds).is_too_much for tally in time.tallies.values())

    def _group(self, tally: _Tally, seconds: float) -> WatchedGroup:
        name = _bucket(tally.load), tally.load.key.value
        return tally.group(max(seconds, 1.0), self._accepted.get(name, UNPREDICTED_SHARE))

    def _loads(self, reading: RateReading, view: QuotaView, changes: Sequence[Change]) -> Iterator[GroupLoad]:
        """The quota groups whose limit a change sets, or took away."""
        changed = {(change.entity, key.key) for change in changes for key in change.keys}
        answers = self._view.answers()
        for load in join_limits(view, {}, reading).groups:
            if (load.source, load.key.value) in changed or (_source(answers, load), load.key.value) in changed:
                yield load

    def _now_s(self) -> float:
        return self._clock.now().timestamp()


def _is_throttled(load: GroupLoad, mean: float, before: float | None) -> bool:
    if before is None:
        return True
    share = load.share or 0.0
    return share >= 1.0 or (share >= _LEAST_SHARE and mean != before)


def _mean(load: GroupLoad) -> float | None:
    return None if load.throttling is None else load.throttling.mean_ms


def _place(load: GroupLoad) -> tuple[object, ...]:
    return load.broker, load.key, *sorted(load.tags.items())


def _bucket(load: GroupLoad) -> BucketName:
    tags = dict(load.tags)
    user, client_id = tags.pop("user", ""), tags.pop("client-id", "")
    return BucketName(user=user, client_id=client_id, other=tuple(sorted(tags.items())))


def _source(answers: EffectiveQuotas, load: GroupLoad) -> Entity | None:
    """Whose quota limits a group."""
    if (ip := load.tags.get("ip")) is not None:
        candidate = answers.addresses.winner(ip)
    else:
        resolver = answers.resolvers.get(load.key.value)
        candidate = None if resolver is None else resolver.limit_of_group(load.tags.get("user"), load.tags.get("client-id"))
    return None if candidate is None else candidate.entity


def _newest(reading: RateReading) -> dict[str, float]:
    """By broker the time of its newest sample."""
    newest: dict[str, float] = {}
    for series, samples in reading.series.items():
        name = reading.brokers.get(series.broker, str(series.broker))
        newest[name] = max(newest.get(name, 0.0), samples[-1][0])
    return newest


def _shown_until(reading: RateReading) -> Mapping[str, float]:
    """Up to when each page, or each broker of a server, shows what there is."""
    return reading.pages or _newest(reading)
