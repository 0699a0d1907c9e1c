"""The clients of a run that changes limits in steps: which of them brokers throttle after each step, and for how long.

A broker's throttle time is a mean of up to a minute, so a value alone may be of an older throttle. A sample counts as throttled
when the value appears, or moves while the rate is at least half of the limit, or stands while the rate is at the limit. Each
sample stands for the time since the one before it.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.insight.observe import GroupLoad, Headroom, limited_load, observe
from reconciler.features.insight.rate_sources import configured_rates
from reconciler.features.insight.recorded_rates import name_of_group
from reconciler.features.prometheus import is_page
from reconciler.model import UNPREDICTED_SHARE, Change, Prediction, WatchedGroup, WatchedStep, escaped
from reconciler.planning import quotas_after
from reconciler.ports import Clock, QuotaCluster, StepWatcher, SystemClock
from reconciler.resolution import QuotaView, ViewKind
from reconciler.text import duration, list_some
from reconciler.workflows import Intent, current_view, is_prometheus

_OF_MANIFEST: Final = "spec.traffic"
_SERVER_PATIENCE_S: Final = 150.0
"""How long a source may show nothing new; two scrapes of a minute and some delay are shorter."""
_READS_OF_TIME: Final = 100
"""A broker needs time to make its page: as little as one in a hundred of the time of a step."""
_AFTER_END_S: Final = 0.5
_RECENT_S: Final = 900.0
_LEAST_SHARE: Final = 0.5
"""Of the limit, the least rate in the seconds after a throttle: less is left of an older one."""
_MOST: Final = 20
_SHOWN: Final = 3


def watch_steps(intent: Intent, cluster: QuotaCluster, sources: Sequence[str], predictions: Sequence[Prediction]) -> StepWatcher:
    """Watch by the sources of ``apply --watch``. Raises ``UsageError`` for one of the Cluster manifest that it does not name."""
    spec, trusted = intent.spec, intent.trusted
    by_manifest = _OF_MANIFEST in sources
    if by_manifest and (spec.traffic is None or len(sources) > 1):
        raise UsageError(
            f"--watch {_OF_MANIFEST} needs spec.traffic of the Cluster manifest, and no other source. Name a Prometheus server "
            "there, or pass --watch prometheus+http(s)://HOST"
        )

    def view() -> QuotaView:
        return current_view(cluster.current_state(), source=cluster, name=spec.name, spec=spec)

    def look(view: QuotaView, since: datetime.datetime | None) -> Headroom:
        rates = configured_rates(spec, trusted)
        if not by_manifest:
            rates = replace(rates, traffic=tuple(sources), server=None)
        recent = tuple(file for argument in rates.traffic for file in _recent(argument))
        return observe(view, {}, replace(rates, traffic=recent, since=since))

    return SourceWatcher(
        source=_OF_MANIFEST if by_manifest else list_some([*map(escaped, sources)], _SHOWN),
        view=view,
        look=look,
        predictions=predictions,
        clock=SystemClock(),
        pace=WatchPace() if all(map(is_page, sources)) else _NO_PAGE,
    )


def _recent(argument: str) -> tuple[str, ...]:
    """Return the files of the last minutes in a folder of the recorder, since each look reads them anew."""
    folder = Path(argument)
    if is_page(argument) or is_prometheus(argument) or not folder.is_dir():
        return (argument,)
    recent = time.time() - _RECENT_S
    files = [file for file in folder.rglob("quota-recorder-*") if file.stat().st_mtime > recent]
    return tuple(map(str, sorted(files))) or (argument,)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPace:
    """How often a source is read, and how long it may show nothing new after the time that is asked for, in seconds.

    ``longest_s``: the longest pause after a read that took long, which spares the broker that makes a page.
    """

    every_s: float = 2.0
    longest_s: float = 20.0
    patience_s: float = 30.0


_NO_PAGE: Final = WatchPace(every_s=5.0, longest_s=5.0, patience_s=_SERVER_PATIENCE_S)


@dataclass(slots=True, kw_only=True)
class _Tally:
    """A quota group on one broker since the write of a step."""

    load: GroupLoad
    throttled_s: float = 0.0
    rate: float = 0.0


@dataclass(slots=True, kw_only=True)
class _StepTime:
    """What of one step has been seen. ``since_s``, ``end_s``: seconds since 1970 by the clock of the source.

    ``until_s``: by broker, up to when its samples are counted.
    """

    since_s: float
    end_s: float
    tallies: dict[tuple[object, ...], _Tally] = field(default_factory=dict)
    until_s: dict[str, float] = field(default_factory=dict)


class SourceWatcher:
    """A ``StepWatcher`` by what ``look`` returns for quotas and, of recorded traffic, for the time since a moment."""

    def __init__(
        self,
        *,
        source: str,
        view: Callable[[], QuotaView],
        look: Callable[[QuotaView, datetime.datetime | None], Headroom],
        predictions: Sequence[Prediction],
        clock: Clock,
        pace: WatchPace,
    ) -> None:
        self.source: Final = source
        self._read_view = view
        self._look = look
        self._clock = clock
        self._pace = pace
        self._accepted = {(each.bucket, each.key): each.accepted for each in predictions}
        self._view = QuotaView(kind=ViewKind.CLUSTER, entities={})
        self._shown: frozenset[str] = frozenset()
        self._ahead_s = 0.0
        self._pause_s = pace.every_s
        self._means: dict[tuple[object, ...], float | None] = {}

    def begin(self, changes: Sequence[Change]) -> None:
        """Read the quotas, and require a source that shows clients. Otherwise as ``StepWatcher.begin``."""
        self._view = self._read_view()
        if self._view.caveats.callback is not None:
            raise UsageError(f"--watch needs limits that are known: {self._view.caveats.callback}")
        seen, now_s = self._timed_look(self._view, None), self._now_s()
        shown = {name: at for name, at in seen.shown_until.items() if at > now_s - _SERVER_PATIENCE_S}
        if not shown:
            notes = " ".join(map(str, seen.notes))
            raise TrafficError(f"{self.source} shows no quota group of now, so --watch would see nothing. {notes}".rstrip())
        if not seen.shows_throttles:
            raise TrafficError(f"{self.source} has rates and no throttle times. 'kafka-quotas doctor' prints the repair")
        self._shown = frozenset(shown)
        self._ahead_s = max(0.0, max(shown.values()) - now_s)
        self._means = {_place(load): _mean(load) for load in self._changed(seen, changes)}

    def watch(self, changes: Sequence[Change], *, step: int, since: datetime.datetime, seconds: float) -> WatchedStep:
        """Look until the source shows the whole time, or too long a throttle. Otherwise as ``StepWatcher.watch``."""
        view = replace(self._view, entities=quotas_after(self._view.entities, changes))
        since += datetime.timedelta(seconds=self._ahead_s)
        start = self._clock.monotonic()
        span = _StepTime(since_s=since.timestamp(), end_s=self._now_s() + seconds + self._ahead_s)
        while True:
            self._clock.sleep(self._pause(span))
            try:
                seen = self._timed_look(view, since)
            except TrafficError as error:
                problem = str(error)
            else:
                self._count(span, seen, changes)
                late = sorted(name for name in self._shown if seen.shown_until.get(name, 0.0) < span.end_s)
                if not late or self._is_certain(span, seconds):
                    self._view = view
                    return self._watched(step, span, seen)
                problem = f"{list_some([*map(escaped, late)], _SHOWN)}: no sample that is new enough"
            waited = self._clock.monotonic() - start
            if waited > seconds + self._pace.patience_s:
                raise TrafficError(f"{self.source} does not show the {duration(waited)} after the step. {problem}")

    def _timed_look(self, view: QuotaView, since: datetime.datetime | None) -> Headroom:
        begun = self._clock.monotonic()
        try:
            return self._look(view, since)
        finally:
            cost_s = self._clock.monotonic() - begun
            self._pause_s = max(self._pace.every_s, min(_READS_OF_TIME * cost_s, self._pace.longest_s))

    def _pause(self, span: _StepTime) -> float:
        """Return the seconds until the next look. A long pause ends just after the end of the step, when that is near."""
        left = span.end_s + _AFTER_END_S - self._now_s()
        is_near = self._pause_s > self._pace.every_s and 0 < left < 1.5 * self._pause_s
        return left if is_near else self._pause_s

    def _count(self, span: _StepTime, seen: Headroom, changes: Sequence[Change]) -> None:
        newest_s = 0.0 if seen.at is None else seen.at.timestamp()
        counted: dict[str, float] = {}
        for load in self._changed(seen, changes):
            place, mean, at_s = _place(load), _mean(load), seen.shown_until.get(load.broker, newest_s)
            last_s = max(span.until_s.get(load.broker, 0.0), span.since_s)
            if at_s <= last_s:
                continue
            tally = span.tallies.setdefault(place, _Tally(load=load))
            tally.load, tally.rate = load, max(tally.rate, load.rate)
            if mean is not None and _is_throttled(load, mean, self._means.get(place)):
                tally.throttled_s += at_s - last_s
            self._means[place] = mean
            counted[load.broker] = at_s
        span.until_s |= counted

    def _watched(self, step: int, span: _StepTime, seen: Headroom) -> WatchedStep:
        known = [at for name, at in seen.shown_until.items() if name in self._shown]
        seconds = max(min(known, default=span.since_s) - span.since_s, self._pace.every_s / 2)
        groups = (self._group(tally, seconds) for tally in span.tallies.values() if tally.throttled_s)
        worst = sorted(groups, key=lambda group: (not group.is_too_much, group.accepted - group.throttled, group.broker))
        return WatchedStep(step=step, seconds=round(seconds, 1), groups=len(span.tallies), throttled=tuple(worst[:_MOST]))

    def _is_certain(self, span: _StepTime, seconds: float) -> bool:
        """Whether a group has been throttled for more than is accepted of the whole time, whatever follows."""
        return any(self._group(tally, seconds).is_too_much for tally in span.tallies.values())

    def _group(self, tally: _Tally, seconds: float) -> WatchedGroup:
        load = tally.load
        bucket, key = name_of_group(load), load.key.value
        return WatchedGroup(
            bucket=bucket,
            key=key,
            broker=load.broker,
            rate=tally.rate,
            limit=load.limit,
            throttled=min(tally.throttled_s / max(seconds, 1.0), 1.0),
            accepted=self._accepted.get((bucket, key), UNPREDICTED_SHARE),
        )

    def _changed(self, seen: Headroom, changes: Sequence[Change]) -> Iterator[GroupLoad]:
        """The quota groups whose limit a change sets, or took away."""
        changed = {(change.entity, key.key) for change in changes for key in change.keys}
        answers = self._view.answers()
        for load in seen.groups:
            names = load.tags.get("user"), load.tags.get("client-id"), load.tags.get("ip")
            before = limited_load(answers, {}, broker=load.broker, key=load.key, names=names, rate=load.rate)
            if {(load.source, load.key.value), (before.source, load.key.value)} & changed:
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
