"""A violation log as a history: throttles of the quotas of that time, and no traffic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from reconciler.errors import TrafficError
from reconciler.model import BucketVerdict, Observations, Provenance
from reconciler.text import list_some
from reconciler.traffic.backtest_request import BacktestRequest
from reconciler.traffic.judging.by_seconds import Lines, Points
from reconciler.traffic.judging.evidence import Evidence, Mean
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.judging.violation_verdicts import judge_violations
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kernels.second_sums import GroupVerdict, Rule
from reconciler.traffic.seconds.folder import Covered
from reconciler.traffic.sources.log_files import BrokerFiles, log_parts
from reconciler.traffic.sources.normal_form import UNREADABLE
from reconciler.traffic.sources.violation_log import (
    VIOLATION,
    ThrottledSecond,
    ViolationCounts,
    read_violations,
    throttled_seconds,
)
from reconciler.traffic.traffic_source import Facts, Source

STATUS: Final = "violation"
"""The status of its lines, and their semantics."""
_MINUTE_US: Final = 60_000_000


class ViolationTraffic:
    """What the files of brokers' violation logs have. It has no series: nothing of it can be judged under other limits."""

    series: tuple[Series, ...] = ()
    means: tuple[Mean, ...] = ()
    states_throttles: bool = True

    def __init__(
        self, throttles: Sequence[ThrottledSecond], files: Sequence[str], *, unreadable: int = 0, samples: tuple[str, ...] = ()
    ) -> None:
        """``throttles``: in order of time. Raises ``TrafficError`` when there are none."""
        if not throttles:
            raise TrafficError(f"recorded traffic {list_some(files, 1)}: no quota violation of this time can be read")
        self.throttles = tuple(throttles)
        self._files = tuple(files)
        requests = sum(second.requests for second in throttles)
        facts = Facts.of(
            Source.VIOLATIONS,
            files,
            covered=_covered(throttles),
            statuses={STATUS: requests, UNREADABLE: unreadable} if unreadable else {STATUS: requests},
            throttled_then=requests,
            samples=samples,
        )
        groups = len({(second.broker, second.key, second.user, second.client_id) for second in throttles})
        observed = Observations(semantics=STATUS, rows=requests, series=groups, throttled_then=requests)
        self.facts: Facts = replace(facts, observations=(observed,))

    @classmethod
    def read(cls, logs: Sequence[BrokerFiles], *, zone: str) -> ViolationTraffic:
        """Read the logs whole. ``zone``: of times without an offset. Raises ``TrafficError``."""
        counts = ViolationCounts()
        violations = (
            violation
            for part in log_parts(logs, 1)
            for violation in read_violations(
                (line for line in part.lines() if VIOLATION in line),
                broker=part.broker,
                zone=zone,
                counts=counts,
            )
        )
        seconds = throttled_seconds(violations)
        shown = tuple(line.decode("utf-8", "replace").rstrip("\n") for line in counts.samples)
        return cls(seconds, [file for log in logs for file in log.files], unreadable=counts.unreadable, samples=shown)

    def between(self, start_us: int, end_us: int) -> ViolationTraffic:
        """The seconds from ``start_us`` on and before ``end_us``. Raises ``TrafficError`` when there are none."""
        chosen = [second for second in self.throttles if start_us <= second.begin_us < end_us]
        return ViolationTraffic(chosen, self._files)

    def minutes(self) -> Mapping[int, Integers]:
        """All of them: a silence of a violation log is not a gap."""
        first = min(second.begin_us for second in self.throttles) // _MINUTE_US
        last = max(second.end_us for second in self.throttles) // _MINUTE_US
        return {broker: np.arange(first, last + 1) for broker in {second.broker for second in self.throttles}}

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """None: it has no traffic."""
        del grouping, groups, era
        return {}

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """None."""
        del grouping, groups, window
        return {}

    def evidence(self, question: BacktestRequest, tables: Sequence[Tables], provenance: Provenance) -> Evidence:
        """A verdict for each quota group and broker that logged a throttle."""
        del provenance
        before = tables[0] if len(tables) > 1 else None
        return judge_violations(self.throttles, before, tables[-1], in_effect=question.in_effect)

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """None."""
        del grouping, groups, lines
        return {}

    def close(self) -> None:
        """Nothing is open."""


def _covered(throttles: Iterable[ThrottledSecond]) -> Iterator[Covered]:
    times: dict[int, tuple[int, int]] = {}
    for second in throttles:
        start, end = times.get(second.broker, (second.begin_us, second.end_us))
        times[second.broker] = min(start, second.begin_us), max(end, second.end_us)
    for broker, (start, end) in sorted(times.items()):
        yield Covered(broker=broker, requests=0, start_us=start, end_us=end)
