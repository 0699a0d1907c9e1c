"""Traffic of which every request is known: request logs, and the normal form."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconciler.model import Waiting
from reconciler.traffic.columns.workers import ColumnFiles, minutes_of
from reconciler.traffic.counted import SAMPLES, added_up, counts_of_rows, facts_of, series_of, statuses
from reconciler.traffic.judging.exact import ExactResult
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.history_gaps import may_have_gaps
from reconciler.traffic.judging.means import CLIENT, FOLDS, Mean, means_of
from reconciler.traffic.judging.on_spark import (
    in_order_of_charging,
    judged_exactly,
    judged_requests,
    judged_rows_by_seconds,
    judged_tokens,
    judged_topics,
    points_on_spark,
    summed_rows,
    waiting_on_spark,
)
from reconciler.traffic.judging.outcome import Outcome, exact_outcomes
from reconciler.traffic.judging.rate_series import Lines, Points
from reconciler.traffic.judging.requests import JudgedRequest
from reconciler.traffic.judging.waiting import CONNECTION_KEY
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.recorded import Source
from reconciler.traffic.sources.log_evidence import NAMED_BROKERS, mark_copies_on_spark
from reconciler.traffic.sources.normal_form import NOT_AN_EVENT
from reconciler.traffic.sources.request_numbers import REQUEST_NUMBER, usual_step
from reconciler.traffic.sources.row_status import UNREADABLE

_NUMBERS_READ: Final = 200_000
"""Lines whose correlation ids are looked at, about."""


class Events:
    """Rows as ``request_log`` has them. They are gone through once for the clients, then once for each judgement."""

    def __init__(
        self, rows: DataFrame, *, source: Source, files: Sequence[str], keep: bool, columns: ColumnFiles | None = None
    ) -> None:
        """``keep``: hold the rows while they are needed, because reading them is the dear part (text, not Parquet).

        ``columns``: the same rows, where they can be read so. Raises ``TrafficError`` when no request can be used.
        """
        self._rows = rows.persist(StorageLevel.MEMORY_AND_DISK) if keep else rows
        self._columns = columns
        try:
            if keep and "begins_line" in rows.columns:
                self._count_once()
            counted = added_up(columns.counted() if columns else counts_of_rows(self._rows))
            self.means: tuple[Mean, ...] = self._means() if statuses(counted).get(NOT_AN_EVENT) else ()
            self.facts = facts_of(
                counted,
                source,
                files,
                samples=self._samples,
                named=self._named_brokers(),
                request_step=self._request_step(counted),
                means=self.means,
            )
            self.series: tuple[Series, ...] = series_of(counted)
        except BaseException:
            self.close()
            raise

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        if self._columns:
            return self._columns.by_seconds(self.series, grouping, groups, era)
        return judged_rows_by_seconds(self._rows, self.series, grouping, groups, era)

    def exactly(self, grouping: Grouping, window: Window) -> ExactResult:
        """Verdicts of all groups."""
        if self._columns:
            return self._columns.exactly(self.series, grouping, window)
        return judged_exactly(self._rows, self.series, grouping, window)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """Outcomes of these groups, topic by topic."""
        rows = self._columns.topics() if self._columns else self._rows
        return exact_outcomes(judged_tokens(rows, self.series, grouping, groups, window), grouping)

    def requests(self, grouping: Grouping, window: Window, controller_window: Window) -> Iterator[JudgedRequest]:
        """Every request; the rows must hold the identity columns."""
        judged = judged_requests(self._rows, self.series, grouping, window)
        if any(group.kind is Kind.MUTATION for group in grouping.groups):
            judged = judged.unionAll(judged_topics(self._rows, self.series, grouping, controller_window))
        return (JudgedRequest(*row) for row in in_order_of_charging(judged).toLocalIterator(prefetchPartitions=True))

    def waiting(self, grouping: Grouping, groups: Sequence[int], window: Window) -> Mapping[int, Waiting]:
        """Of these few groups, which are targets."""
        if CONNECTION_KEY not in self._rows.columns:
            return {}
        return waiting_on_spark(self._rows, self.series, grouping, groups, window)

    def minutes(self) -> Mapping[int, Integers]:
        """Of every line that can be read, charged or not: a broker that was quiet was recorded all the same."""
        if not may_have_gaps(self.facts.coverage):
            return {}
        if self._columns:
            return self._columns.minutes()
        minute = F.floor(F.col("ts_us") / 60_000_000).alias("minute")
        return minutes_of(self._rows.where("ts_us is not null and broker is not null").select("broker", minute).distinct())

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """Of these few groups."""
        if self._columns:
            return self._columns.rates(self.series, grouping, groups, lines)
        return points_on_spark(self.summed(grouping, groups), lines)

    def summed(self, grouping: Grouping, groups: Collection[int]) -> DataFrame:
        """Columns ``group``, ``second`` and ``amount`` of these groups, one row each."""
        return summed_rows(self._rows, self.series, grouping, groups)

    def close(self) -> None:
        """Safe to call twice."""
        self._rows.unpersist()

    def _means(self) -> tuple[Mean, ...]:
        if "interval_us" not in self._rows.columns:
            return ()
        known = self._rows.where((F.col("status") == NOT_AN_EVENT) & F.col("interval_us").isNotNull())
        made = known.select(
            *CLIENT,
            (F.col("records") + F.col("overhead")).alias("amount"),
            F.lit(1).cast("long").alias("rows"),
            F.col("ts_us").alias("first_us"),
            F.col("ts_us").alias("last_us"),
        )
        grouped = made.groupBy(*CLIENT).agg(*(getattr(F, fold)(name).alias(name) for name, fold in FOLDS.items()))
        return means_of(grouped.toArrow())

    def _samples(self) -> tuple[str, ...]:
        if self._columns:
            return ()
        said = self._rows.where((F.col("status") == UNREADABLE) & F.col("detail").isNotNull())
        return tuple(row.detail for row in said.select("detail").orderBy("detail").limit(SAMPLES).collect())

    def _request_step(self, counted: pa.Table) -> float | None:
        """From all lines, or of many lines from a slice of time in the middle, which every broker's log has."""
        if REQUEST_NUMBER not in self._rows.columns:
            return None
        found = self._rows.where(F.col(REQUEST_NUMBER).isNotNull())
        share = _NUMBERS_READ / max(1, sum(statuses(counted).values()))
        begin, end = pc.min(counted.column("start_us")).as_py(), pc.max(counted.column("end_us")).as_py()
        if share < 1 and begin is not None:
            middle, half = (begin + end) // 2, int((end - begin) * share / 2)
            found = found.where(F.col("ts_us").between(middle - half, middle + half))
        return usual_step(found.select(REQUEST_NUMBER).limit(5 * _NUMBERS_READ).toArrow().column(0).to_numpy())

    def _named_brokers(self) -> set[int]:
        if NAMED_BROKERS not in self._rows.columns:
            return set()
        listed = self._rows.where(F.col(NAMED_BROKERS).isNotNull()).select(NAMED_BROKERS).distinct().collect()
        return {int(number) for row in listed for number in row[NAMED_BROKERS].split(",")}

    def _count_once(self) -> None:
        """Give all but one line of the same connection, number and time the status ``DUPLICATE``."""
        once = mark_copies_on_spark(self._rows)
        if once is self._rows:
            return
        once = once.persist(StorageLevel.MEMORY_AND_DISK)
        once.count()
        self._rows.unpersist()
        self._rows = once
