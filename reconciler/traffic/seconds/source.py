"""A folder of per-second totals as recorded traffic: a small change is judged in this process, a large one on Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.model import BucketVerdict
from reconciler.traffic.columns.group_index import KeyIndex
from reconciler.traffic.judging.by_seconds import judge_seconds
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.judging.means import Mean
from reconciler.traffic.judging.mutations import tokens_by_seconds
from reconciler.traffic.judging.rate_series import Lines, Points, plot_points
from reconciler.traffic.judging.verdicts import seconds_verdicts
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.seconds.folder import MINUTE_US, SegmentFolder, minutes_in
from reconciler.traffic.seconds.reading import History, SecondsFile, SecondTotals, open_history, read_totals
from reconciler.traffic.shuffle.rows import LocalRows, Rows
from reconciler.traffic.traffic_source import Facts, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MOST_HERE: Final = 20_000_000
"""Totals of one client and second that are judged in this process: half a GB, and a few seconds."""


_BYTES_A_TASK: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million rows."""


class SecondsSource:
    """A folder that ``compact`` made. ``session`` starts Spark when it is needed. Raises ``TrafficError`` as ``open_history``."""

    def __init__(self, folder: SegmentFolder, session: Callable[[], SparkSession], *, most_here: int = MOST_HERE) -> None:
        self._history = open_history(folder)
        self._session = session
        self._most_here = most_here
        self.facts = _facts(self._history)

    @property
    def means(self) -> tuple[Mean, ...]:
        """Per-second totals have none."""
        return ()

    @property
    def series(self) -> tuple[Series, ...]:
        """Its clients."""
        return self._history.series

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        index, expected = KeyIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)
        return judge_seconds(self._rows(index), index.keyed, expected, grouping.groups, era)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """Verdicts of these groups; mutations are few, so it is done here."""
        keys = KeyIndex.of(self.series, grouping, groups).keys
        found = tokens_by_seconds(read_totals(self._history, keys), self.series, grouping, groups, window)
        return seconds_verdicts(found, self.series, grouping, window)

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
        index, expected = KeyIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)
        return plot_points(self._rows(index), index.keyed, expected, lines)

    def close(self) -> None:
        """Nothing is held."""

    def _rows(self, index: KeyIndex) -> Rows[SecondTotals]:
        """The totals of these clients: in this process where they are few, else on Spark."""
        if self._at_most(index.keys) <= self._most_here:
            return LocalRows(lambda _: read_totals(self._history, index.keys))
        return _totals_on_spark(self._session(), self._history, index.keys)

    def _at_most(self, keys: Integers) -> int:
        """The largest number of totals that series can have: one for each request, and for each second of the history."""
        wanted = set(keys.tolist())
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


def _totals_on_spark(spark: SparkSession, history: History, clients: Integers) -> Rows[SecondTotals]:
    """The totals of ``clients``, whose keys rise, and of others that lie near them: each worker reads some files."""
    from reconciler.traffic.shuffle.on_spark import ReadRows

    def read(file: SecondsFile, _: Sequence[str]) -> Iterator[SecondTotals]:
        return file.batches(clients)

    files = history.files()
    sizes = [Path(file.path).stat().st_size for file in files]
    return ReadRows(spark, files, sizes, read, a_task=_BYTES_A_TASK)
