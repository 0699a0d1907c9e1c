"""Per-second totals on Spark: each worker reads some files, and each group of clients comes to one worker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from reconciler.traffic.cells.reading import History, SecondsFile
from reconciler.traffic.judging.cell_keys import CellKeys
from reconciler.traffic.judging.grouping import Grouping, rows_of_groups
from reconciler.traffic.judging.on_spark import blocks_by_seconds, points_of_blocks
from reconciler.traffic.judging.rate_series import Lines, Points
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.shuffle.on_spark import shuffle_by_group, split_work
from reconciler.traffic.shuffle.partition import GroupRanges

_BYTES_A_SHARE: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million rows."""


def judge_on_spark(
    spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int], era: Rule
) -> dict[int, GroupVerdict]:
    """Verdicts of these groups."""
    return blocks_by_seconds(_shuffle_totals(spark, history, grouping, groups), grouping.groups, era)


def rates_on_spark(
    spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int], lines: Lines
) -> Mapping[int, Points]:
    """Rates over time of these groups."""
    return points_of_blocks(_shuffle_totals(spark, history, grouping, groups), lines)


def _shuffle_totals(spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    keys = CellKeys.of(history.series, grouping, groups)

    def read(files: Iterable[SecondsFile]) -> Iterator[tuple[Integers, Integers]]:
        return (keyed for file in files for totals in file.batches(keys.clients) for keyed in keys.keyed(*totals))

    files = history.files()
    sizes = [Path(file.path).stat().st_size for file in files]
    least = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    work = split_work(files, sizes, max(least, sum(sizes) // _BYTES_A_SHARE))
    ranges = GroupRanges.of(rows_of_groups(history.series, grouping, groups), least)
    return shuffle_by_group(spark, work, read, ranges, SECOND_BITS)
