"""A folder of per-second totals as recorded traffic: a small change is judged in this process, a large one on Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.traffic.judging.by_seconds import Limits
from reconciler.traffic.judging.cell_keys import CellKeys
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.judging.locally import judged_locally
from reconciler.traffic.judging.outcome import Outcome, seconds_outcomes
from reconciler.traffic.judging.rate_series import Lines, Points, points_here
from reconciler.traffic.judging.tokens import tokens_by_seconds
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.recorded import Facts, Source
from reconciler.traffic.seconds.folder import MINUTE_US, SegmentFolder, minutes_in
from reconciler.traffic.seconds.reading import History, SecondsFile, open_history, read_totals
from reconciler.traffic.shuffle.partition import GroupRanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


MOST_HERE: Final = 20_000_000
"""Totals of one client and second that are judged in this process: half a GB, and a few seconds."""


class SecondsSource:
    """A folder that ``compact`` made. ``session`` starts Spark when it is needed. Raises ``TrafficError`` as ``open_history``."""

    def __init__(self, folder: SegmentFolder, session: Callable[[], SparkSession], *, most_here: int = MOST_HERE) -> None:
        self._history = open_history(folder)
        self._session = session
        self._most_here = most_here
        self.facts = _facts(self._history)

    @property
    def series(self) -> tuple[Series, ...]:
        """Its clients."""
        return self._history.series

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        keys = self._keys(grouping, groups)
        if self._at_most(keys) <= self._most_here:
            limits = Limits.of(grouping.groups, era)
            return judged_locally(read_totals(self._history, keys), self.series, grouping, groups, limits)
        return judge_on_spark(self._session(), self._history, grouping, groups, era)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """Outcomes of these groups; mutations are few, so it is done here."""
        keys = self._keys(grouping, groups)
        found = tokens_by_seconds(read_totals(self._history, keys), self.series, grouping, groups, window)
        return seconds_outcomes(found, self.series, grouping, window)

    def minutes(self) -> Mapping[int, Integers]:
        """What ``compact`` saw of each of a broker's files; of an old one, all between its first and its last request."""
        found: dict[int, list[tuple[int, int]]] = {}
        for segment in self._history.segments:
            for part in segment.coverage:
                known = part.minutes or ((part.start_us // MINUTE_US, part.end_us // MINUTE_US),)
                found.setdefault(part.broker, []).extend(known)
        return {broker: minutes_in(ranges) for broker, ranges in found.items()}

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """Of these few groups."""
        keys = self._keys(grouping, groups)
        if self._at_most(keys) <= self._most_here:
            return points_here(read_totals(self._history, keys), self.series, grouping, groups, lines)
        return rates_on_spark(self._session(), self._history, grouping, groups, lines)

    def close(self) -> None:
        """Nothing is held."""

    def _keys(self, grouping: Grouping, groups: Collection[int]) -> list[int]:
        """Of the clients that are in one of these groups."""
        wanted = frozenset(groups)
        return [
            one.key for one, of_one in zip(self.series, grouping.groups_of_series, strict=True) if not wanted.isdisjoint(of_one)
        ]

    def _at_most(self, keys: Collection[int]) -> int:
        """How many totals series can have: one for each request, and for each second of the history."""
        wanted = set(keys)
        seconds = sum((c.end_us - c.start_us) // 1_000_000 + 1 for s in self._history.segments for c in s.coverage)
        return sum(min(one.requests, seconds) for one in self.series if one.key in wanted)


def _facts(history: History) -> Facts:
    statuses: dict[str, int] = {}
    for segment in history.segments:
        for status, lines in segment.statuses.items():
            statuses[status] = statuses.get(status, 0) + lines
    return Facts.of(
        Source.CELLS,
        sorted(segment.source for segment in history.segments),
        covered=(part for segment in history.segments for part in segment.coverage),
        statuses=statuses,
        throttled_then=history.throttled,
    )


_BYTES_A_SHARE: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million rows."""


def judge_on_spark(
    spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int], era: Rule
) -> dict[int, GroupVerdict]:
    """Verdicts of these groups."""
    from reconciler.traffic.judging.on_spark import blocks_by_seconds

    return blocks_by_seconds(_shuffle_totals(spark, history, grouping, groups), grouping.groups, era)


def rates_on_spark(
    spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int], lines: Lines
) -> Mapping[int, Points]:
    """Rates over time of these groups."""
    from reconciler.traffic.judging.on_spark import points_of_blocks

    return points_of_blocks(_shuffle_totals(spark, history, grouping, groups), lines)


def _shuffle_totals(spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    from reconciler.traffic.shuffle.on_spark import shuffle_by_group, split_work

    keys = CellKeys.of(history.series, grouping, groups)

    def read(files: Iterable[SecondsFile]) -> Iterator[tuple[Integers, Integers]]:
        return (keyed for file in files for totals in file.batches(keys.clients) for keyed in keys.keyed(*totals))

    files = history.files()
    sizes = [Path(file.path).stat().st_size for file in files]
    least = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    work = split_work(files, sizes, max(least, sum(sizes) // _BYTES_A_SHARE))
    ranges = GroupRanges.of(rows_of_groups(history.series, grouping, groups), least)
    return shuffle_by_group(spark, work, read, ranges, SECOND_BITS)
