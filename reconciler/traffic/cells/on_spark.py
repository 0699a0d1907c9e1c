"""Cells judged on Spark: each worker reads some files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.traffic.cells.reading import History, cells_of_file
from reconciler.traffic.cells.segments import CELLS
from reconciler.traffic.judging.cell_keys import CellKeys
from reconciler.traffic.judging.grouping import Grouping, rows_of_groups
from reconciler.traffic.judging.on_spark import blocks_by_seconds
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.shuffle.on_spark import shuffle_by_group, split_work
from reconciler.traffic.shuffle.partition import GroupRanges

_BYTES_A_SHARE: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million cells."""


def judged_on_spark(
    spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int], era: Rule
) -> dict[int, GroupVerdict]:
    """Verdicts of these groups, from all cells: each worker reads some files."""
    keys = CellKeys.of(history.series, grouping, groups)

    def read(files: Iterable[str]) -> Iterator[tuple[Integers, Integers]]:
        return (keyed for path in files for cells in cells_of_file(path, keys.clients) for keyed in keys.keyed(*cells))

    files = history.paths(CELLS)
    sizes = [Path(path).stat().st_size for path in files]
    least = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    work = split_work(files, sizes, max(least, sum(sizes) // _BYTES_A_SHARE))
    ranges = GroupRanges.of(rows_of_groups(history.series, grouping, groups), least)
    return blocks_by_seconds(shuffle_by_group(spark, work, read, ranges, SECOND_BITS), grouping.groups, era)


def placed_cells(spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Columns ``group``, ``second``, ``amount`` of the series in these groups, for judging in SQL."""
    placed = [
        (one.key, group)
        for index, one in enumerate(history.series)
        for group in grouping.groups_of_series[index]
        if group in groups
    ]
    keys, numbers = zip(*placed, strict=True) if placed else ((), ())
    table = pa.table([pa.array(keys, type=pa.int64()), pa.array(numbers, type=pa.int32())], names=["series", "group"])
    places = F.broadcast(spark.createDataFrame(table))
    return spark.read.parquet(*history.paths(CELLS)).join(places, "series").select("group", "second", "amount")
