"""The columns of Parquet files on Spark: each worker reads parts of them, and Spark brings together what belongs together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from reconciler.traffic.columns.counting import SCHEMA as COUNTED
from reconciler.traffic.columns.counting import counted
from reconciler.traffic.columns.parts import ROWS_A_PART, Part, parts_of
from reconciler.traffic.columns.places import Places
from reconciler.traffic.columns.recorded_minutes import SCHEMA as MINUTES
from reconciler.traffic.columns.recorded_minutes import recorded_minutes
from reconciler.traffic.columns.requests import requests
from reconciler.traffic.columns.seconds import cells
from reconciler.traffic.judging.exact import ExactResult, numbers_of, sampled_groups
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.judging.on_spark import blocks_by_seconds, blocks_exactly, points_of_blocks
from reconciler.traffic.judging.rate_series import Lines, Points
from reconciler.traffic.kernels.exact_batch import TIME_BITS
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.on_spark import run_on_workers, shuffle_by_group, split_work
from reconciler.traffic.shuffle.partition import GroupRanges
from reconciler.traffic.sources.on_spark import read_normal_form


def minutes_of(found: DataFrame) -> dict[int, Integers]:
    """By broker the minutes of rows with ``broker`` and ``minute``, rising, each once."""
    table = found.toArrow()
    brokers, minutes = numbers_of(table, "broker"), numbers_of(table, "minute")
    return {broker: np.unique(minutes[brokers == broker]) for broker in np.unique(brokers).tolist()}


class ColumnFiles:
    """Files in the normal form, whose columns have been looked at before (``read_normal_form``)."""

    def __init__(self, spark: SparkSession, files: Sequence[str]) -> None:
        self._spark = spark
        self._files = files
        self._parts = parts_of(files)
        self._workers = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def parts_by_file(self) -> Mapping[str, Sequence[Part]]:
        """Of files without rows there are none."""
        found: dict[str, list[Part]] = {}
        for part in self._parts:
            found.setdefault(part.path, []).append(part)
        return found

    def counted(self) -> DataFrame:
        """Rows as ``counting`` has them, several for a client."""
        # A worker adds up all it reads: the fewer shares, the fewer rows.
        return run_on_workers(self._spark, self._shared(self._workers), counted, COUNTED)

    def minutes(self) -> Mapping[int, Integers]:
        """By broker the minutes since 1970 of which there is any row, rising."""
        return minutes_of(run_on_workers(self._spark, self._shared(self._workers), recorded_minutes, MINUTES))

    def by_seconds(
        self, series: Sequence[Series], grouping: Grouping, groups: Collection[int], era: Rule
    ) -> Mapping[int, GroupVerdict]:
        """As ``judged_rows_by_seconds`` judges the rows."""
        return blocks_by_seconds(self._cells(series, grouping, groups), grouping.groups, era)

    def rates(self, series: Sequence[Series], grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """As ``points_on_spark`` gives them of the rows."""
        return points_of_blocks(self._cells(series, grouping, groups), lines)

    def topics(self) -> DataFrame:
        """The rows of mutations, which are few."""
        return read_normal_form(self._spark, self._files, kinds=(Kind.MUTATION,))

    def _cells(self, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
        places = Places.of(series, grouping, groups)

        def read(parts: Iterable[Part]) -> Iterator[tuple[Integers, Integers]]:
            return cells(parts, places)

        ranges = GroupRanges.of(rows_of_groups(series, grouping, groups), self._workers)
        return shuffle_by_group(self._spark, self._shares(), read, ranges, SECOND_BITS)

    def exactly(self, series: Sequence[Series], grouping: Grouping, window: Window) -> ExactResult:
        """As ``judged_exactly`` judges the rows."""
        groups = sampled_groups(grouping)
        places = Places.of(series, grouping, groups)

        def read(parts: Iterable[Part]) -> Iterator[list[Integers]]:
            return requests(parts, places)

        ranges = GroupRanges.of(rows_of_groups(series, grouping, groups), self._workers)
        sent = shuffle_by_group(self._spark, self._shares(), read, ranges, TIME_BITS)
        return blocks_exactly(sent, grouping, window)

    def _shares(self) -> tuple[tuple[Part, ...], ...]:
        return self._shared(max(self._workers, sum(part.rows for part in self._parts) // ROWS_A_PART))

    def _shared(self, most: int) -> tuple[tuple[Part, ...], ...]:
        return split_work(self._parts, [part.rows for part in self._parts], most)
