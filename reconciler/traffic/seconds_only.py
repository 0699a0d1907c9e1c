"""Traffic that looks like requests and is sums of seconds: nothing may be judged request by request."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.means import Mean
from reconciler.traffic.judging.outcome import Outcome
from reconciler.traffic.judging.rate_series import Lines, Points
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.recorded import Facts, RecordedMeans, RecordedOverTime


class SecondsOnly:
    """What the traffic can tell of seconds, and no more."""

    def __init__(self, events: RecordedOverTime) -> None:
        """Closes ``events`` when it is closed."""
        self._events = events

    @property
    def series(self) -> tuple[Series, ...]:
        """Its clients."""
        return self._events.series

    @property
    def facts(self) -> Facts:
        """What it is."""
        return self._events.facts

    @property
    def means(self) -> tuple[Mean, ...]:
        """Its means of longer times."""
        return self._events.means if isinstance(self._events, RecordedMeans) else ()

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        return self._events.by_seconds(grouping, groups, era)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """Outcomes of these groups."""
        return self._events.mutations(grouping, groups, window)

    def minutes(self) -> Mapping[int, Integers]:
        """In which minutes each broker was recorded."""
        return self._events.minutes()

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """Of these few groups."""
        return self._events.rates(grouping, groups, lines)

    def close(self) -> None:
        """Safe to call twice."""
        self._events.close()
