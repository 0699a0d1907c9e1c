"""Per-second totals as a DataFrame with the group of each row, made one row at a time."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from reconciler.traffic.spark_versions import frame_of_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic.judging.grouping import Grouping
    from reconciler.traffic.seconds.history import History


def placed_totals(spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Columns ``group``, ``second`` and ``amount``: a row for each second of each client in each of its groups."""
    from reconciler.traffic.seconds.history import read_totals

    groups_of = {one.key: grouping.groups_of_series[index] for index, one in enumerate(history.series)}
    rows = [
        (group, second, amount)
        for batch in read_totals(history, list(groups_of))
        for key, second, amount in zip(*(column.tolist() for column in batch), strict=True)
        for group in groups_of[key]
        if group in groups
    ]
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)] if rows else [pa.array([], pa.int64())] * 3
    return frame_of_table(spark, pa.table(columns, names=["group", "second", "amount"]))
