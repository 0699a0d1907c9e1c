"""Recorded rows counted and summed by Spark's own expressions: a reference that shares nothing with the engine's arrays."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what all of Spark's own documentation calls its functions

from reconciler.traffic.client_totals import FOLDS, NAMES
from reconciler.traffic.sources.normal_form import CHARGED, UNCHARGED
from reconciler.traffic.spark_versions import collect_table


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
