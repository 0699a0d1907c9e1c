"""Recorded rows counted and summed by Spark's own expressions: a reference that shares nothing with the engine's arrays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what all of Spark's own documentation calls its functions

from reconciler.traffic.client_totals import FOLDS, NAMES
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.sources.normal_form import CHARGED, IDENTITY, UNCHARGED
from reconciler.traffic.spark_versions import collect_table, frame_of_table

_PLACES: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()),
        ("client_id", pa.string()), ("ip", pa.string()), ("series", pa.int32()), ("group", pa.int32()),
    ]
)  # fmt: skip


def counts_of_rows(rows: DataFrame) -> DataFrame:
    """Rows of ``request_log``, each counted as one."""
    of_client = F.col("status") == CHARGED
    return rows.select(
        "status",
        *(F.when(of_client, F.col(name)).alias(name) for name in NAMES[1:]),
        F.lit(1).cast("long").alias("lines"),
        (F.col("records") + F.col("overhead")).alias("amount"),
        F.col("records").alias("largest"),
        F.col("ts_us").alias("start_us"),
        F.col("ts_us").alias("end_us"),
        F.coalesce(F.col("throttled"), F.lit(False)).cast("long").alias("throttled"),
        *(F.when(F.col("status") == status, 1).otherwise(0).cast("long").alias(name) for status, name in UNCHARGED.items()),
    )


def added_up(counts: DataFrame) -> pa.Table:
    """On the driver, all of ``counts`` (columns of ``client_totals.SCHEMA``)."""
    # Sums and extremes of numbers alone: a smallest text would make Spark sort all rows.
    found = counts.groupBy(*NAMES).agg(*(getattr(F, fold)(name).alias(name) for name, fold in FOLDS.items()))
    return collect_table(found)


def summed_rows(rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Single requests (columns of ``request_log``) as columns ``group``, ``second`` and ``amount``, one row each."""
    charged = with_groups(rows.where(F.col("status") == CHARGED), series, grouping, groups)
    second = F.floor(F.col("ts_us") / 1_000_000).alias("second")
    return charged.groupBy("group", second).agg(F.sum(F.col("records") + F.col("overhead")).alias("amount"))


def with_groups(rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Rows that have the columns ``IDENTITY``, with ``series`` (its index) and ``group``; rows of no group are left out."""
    table = [
        (one.broker, one.kind.value, one.user, one.client_id, one.ip, index, group)
        for index, one in enumerate(series)
        for group in grouping.groups_of_series[index]
        if group in groups
    ]
    columns = zip(*table, strict=True) if table else [()] * len(_PLACES)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _PLACES, strict=True)]
    places = frame_of_table(rows.sparkSession, pa.Table.from_arrays(arrays, schema=_PLACES))
    # Names that are not known are null, and equal here.
    known = F.broadcast(places.withColumnsRenamed({name: f"its_{name}" for name in IDENTITY}))
    same = [rows[name].eqNullSafe(known[f"its_{name}"]) for name in IDENTITY]
    return rows.join(known, reduce(Column.__and__, same)).drop(*(f"its_{name}" for name in IDENTITY))
