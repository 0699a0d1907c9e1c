"""When a client was throttled: marks of evidence, joined to incidents."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.model import LoggedThrottles, Verdict

if TYPE_CHECKING:
    from reconciler.traffic import GroupTimeline, ThrottledSecond

PAUSE_S: Final = 12
"""Seconds without a throttle that end an incident: no request counts longer in a sampled rate."""
_NEARLY_ALL: Final = 0.999999


@dataclass(frozen=True, slots=True)
class Stretch:
    """From ``begin`` to ``end``, both in seconds since 1970, with fractions where brokers logged them."""

    begin: float
    end: float

    def distance(self, second: float) -> float:
        """How far a second is from it; 0 within."""
        return max(self.begin - second, second - self.end, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficEvidence:
    """What traffic shows about the client."""

    timelines: tuple[GroupTimeline, ...]
    logged: tuple[ThrottledSecond, ...] | None
    source: str
    start: datetime.datetime
    end: datetime.datetime
    of_violations: bool = False
    """``logged`` is of violation logs: it may lack throttles, and its names are those of quota groups."""
    brokers: tuple[int, ...] = ()
    """Those whose requests the traffic has."""
    all_brokers: tuple[int, ...] = ()
    """Those of the cluster, as far as they are known."""


def marks_of(evidence: TrafficEvidence, *, possible: bool) -> Iterator[Stretch]:
    """When the client was throttled: as the brokers logged it where they did, else the seconds over a limit."""
    if evidence.logged:
        for throttled in evidence.logged:
            yield Stretch(throttled.begin_us / 1e6, throttled.end_us / 1e6)
        return
    if evidence.logged is not None:
        # The log has every throttle, and this client has none in it.
        return
    for line in evidence.timelines:
        series = line.seconds
        if series is not None and line.verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE):
            start = series.start.timestamp()
            counts = series.possible if possible else series.over
            for place, count in enumerate(counts):
                if count:
                    yield Stretch(start + place, start + place + _NEARLY_ALL)
        elif series is None and line.verdict.first is not None:
            first = line.verdict.first.timestamp()
            yield Stretch(first, first + line.verdict.longest_s)


def stretches_of(marks: Iterator[Stretch]) -> list[Stretch]:
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


def logged_in(evidence: TrafficEvidence, chosen: Stretch) -> LoggedThrottles | None:
    """The throttles of one incident, added up."""
    if evidence.logged is None:
        return None
    # One request counts for bytes and for time: the kind with the most requests has them all.
    some = [second for second in evidence.logged if chosen.begin <= second.begin_us / 1e6 <= chosen.end]
    by_key: dict[str, list[ThrottledSecond]] = {}
    for second in some:
        by_key.setdefault(second.key, []).append(second)
    timed = by_key.pop("request_percentage", [])
    bytes_only = [second for rows in by_key.values() for second in rows]
    rows = max((timed, bytes_only), key=lambda seconds: sum(second.requests for second in seconds))
    if not rows:
        return None
    return LoggedThrottles(
        requests=sum(second.requests for second in rows),
        longest_ms=max(second.longest_ms for second in rows),
        sum_ms=sum(second.throttle_ms for second in rows),
        brokers=tuple(sorted({second.broker for second in rows})),
    )


def moment_at(second: float) -> datetime.datetime:
    """Seconds since 1970 as a UTC time."""
    return datetime.datetime.fromtimestamp(second, tz=datetime.UTC)
