"""When a client was throttled: what brokers recorded, or seconds over a limit, joined to incidents."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.model import Verdict

if TYPE_CHECKING:
    from reconciler.traffic import GroupTimeline, RecordedThrottle

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
        """How far a second is from it; 0 within."""
        return max(self.begin - second, second - self.end, 0.0)

    def within(self, begin: float, end: float) -> Stretch | None:
        """The part of it in this time; ``None``: there is none."""
        return None if self.end < begin or self.begin > end else Stretch(max(self.begin, begin), min(self.end, end))


def recorded_stretches(throttles: Iterable[RecordedThrottle], since: float, until: float) -> Iterator[Stretch]:
    """When brokers throttled, as they recorded it, within a time."""
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
    """What a run proves: a throttle before its first sample, and one in the minute before its last.

    The first sample that shows a throttle is never earlier than the throttle. Where each sample may show a throttle from before
    ``since``, nothing of the time from then on is proven.
    """
    first, last = run[0].begin_us / 1e6, run[-1].end_us / 1e6
    earliest = first - min(run[0].interval_us / 1e6 or SHOWN_S, SHOWN_S)
    end = max(first, last - SHOWN_S)
    return None if earliest < since and last - SHOWN_S < since else Stretch(first, end)


def computed_stretches(line: GroupTimeline, *, possible: bool) -> Iterator[Stretch]:
    """The seconds over a limit. A rate without seconds has a first moment and a length at most."""
    series = line.seconds
    if line.verdict.limits.after is None:
        return
    if series is not None and line.verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE):
        for second in over_seconds(line, possible=possible):
            yield Stretch(second, second + _NEARLY_ALL)
    elif series is None and line.verdict.over.first is not None:
        first = line.verdict.over.first.timestamp()
        yield Stretch(first, first + line.verdict.over.longest_s)


def over_seconds(line: GroupTimeline, *, possible: bool) -> Iterator[float]:
    """The seconds in which the group is over its limit, or possibly is."""
    series = line.seconds
    if series is not None:
        start = series.start.timestamp()
        counts = series.possible if possible else series.over
        yield from (start + place for place, count in enumerate(counts) if count)


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
