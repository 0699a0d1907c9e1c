"""Per-second totals by day, in a dataset of folders or in a table: Spark adds up and writes them, and reads those of a time.

A run computes each of its days from its own traffic alone, and puts it in the place of what was there. So a run can be repeated.
In a table, a run is one commit. In folders it is not: Spark replaces them one after the other.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from reconciler.errors import TrafficError, UsageError
from reconciler.model import escaped
from reconciler.traffic.client_totals import CLIENT_TOTALS, FOLDS, MINUTE_TOTALS, NAMES
from reconciler.traffic.client_totals import SCHEMA as CLIENT_SCHEMA
from reconciler.traffic.request_traffic import TrafficSource
from reconciler.traffic.seconds.folder import MINUTE_US
from reconciler.traffic.shuffle.on_spark import SparkRows, scan_frame
from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.log_evidence import CLUSTER, require_one
from reconciler.traffic.sources.log_files import Dataset
from reconciler.traffic.sources.normal_form import ROWS, with_missing
from reconciler.traffic.sources.parquet_parts import Between
from reconciler.traffic.spark_versions import collect_table
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


DATE: Final = "date"
TIME: Final = "ts"
DAY_SCHEMA: Final = pa.schema([(DATE, pa.date32()), (TIME, pa.timestamp("us", "UTC")), *CLIENT_SCHEMA])
"""``ts``: the begin of the second. Rows whose time cannot be read have neither day nor second."""
SOURCE: Final = "source"
"""The column with what the totals were made of, as ``traffic_source.Source``."""
REQUESTS: Final = "requests"
"""What the column ``lines`` of ``DAY_SCHEMA`` is called in a dataset."""
DAY_COLUMNS: Final = (*(REQUESTS if name == "lines" else name for name in DAY_SCHEMA.names), CLUSTER, SOURCE)
_SECOND_US: Final = 1_000_000
_SPARK_FOLDS: Final = {"sum": F.sum, "max": F.max, "min": F.min}
_TEXTS: Final = ("kind", "user", "client_id", "ip", "status")


def has_days(columns: Collection[str]) -> bool:
    """Whether a dataset or a table has the columns of per-second totals. A file alone has no ``date``."""
    return {*DAY_COLUMNS} - {DATE} <= set(columns)


class DayRows(SparkRows[pa.RecordBatch]):
    """Rows of days. Spark adds up clients and minutes itself, since each row is many requests."""

    def __init__(self, spark: SparkSession, frame: DataFrame) -> None:
        """``frame``: ``DAY_COLUMNS`` of the time to judge."""
        super().__init__(spark, scan_frame(frame, lambda _: DAY_COLUMNS, lambda batch, columns: (_canonical(batch, columns),)))
        self.frame = frame

    def total(self, work: Totals[pa.RecordBatch]) -> pa.Table:
        """Implement ``Rows.total``."""
        if work is MINUTE_TOTALS:
            minute = F.floor(F.unix_micros(TIME) / MINUTE_US).cast("long").alias("minute")
            return collect_table(self.frame.select("broker", minute).dropna().distinct()).cast(work.schema)
        return collect_table(self.totals_frame(work)).cast(work.schema) if work is CLIENT_TOTALS else super().total(work)

    def totals_frame(self, work: Totals[pa.RecordBatch], *, few: bool = True) -> DataFrame:
        """Implement ``SparkRows.totals_frame``."""
        if work is not CLIENT_TOTALS:
            return super().totals_frame(work, few=few)
        folds = [_SPARK_FOLDS[fold](REQUESTS if name == "lines" else name).alias(name) for name, fold in FOLDS.items()]
        return self.frame.groupBy(*NAMES).agg(*folds).select(*work.schema.names)

    def between(self, start_us: int, end_us: int) -> DayRows:
        """Implement ``Rows.between``, by whole seconds."""
        return DayRows(self.spark, self.frame.where(_inside(start_us // _SECOND_US, -(-end_us // _SECOND_US))))

    def origins(self) -> tuple[str, ...]:
        """The sources of the totals. Raises ``TrafficError`` for totals of several clusters."""
        rows = self.frame.select(SOURCE, CLUSTER).distinct().collect()
        require_one({row[CLUSTER]: "by its days" for row in rows if row[CLUSTER] is not None})
        return tuple(sorted({row[SOURCE] for row in rows}))


def open_days(rows: DayRows, files: Sequence[str], counted: pa.Table | None = None) -> TrafficSource:
    """Days that ``compact`` wrote. ``counted``: as ``TrafficSource``. Raises ``TrafficError`` when no request is in the time."""
    source = Source.LOG_CELLS if Source.LOGS.value in rows.origins() else Source.CELLS
    return TrafficSource(rows, source=source, files=files, counted=counted, is_stored=True)


def day_rows(spark: SparkSession, datasets: Sequence[Dataset], between: Between | None) -> DayRows:
    """The totals of whole seconds in a stretch of time. Raises ``UsageError`` for several datasets."""
    dataset, *others = datasets
    if others:
        raise UsageError(
            f"--traffic names {escaped(str(dataset))}, which has per-second totals, and something else: give it alone"
        )
    frame = spark.read.table(dataset.name) if dataset.is_table else spark.read.parquet(dataset.name)
    rows = DayRows(spark, frame.select(*DAY_COLUMNS))
    if between is None:
        return rows
    part = rows.between(-(-between.after_us // _SECOND_US) * _SECOND_US, between.until_us)
    if part.frame.isEmpty():
        raise TrafficError(f"recorded traffic {escaped(str(dataset))} has no day in this time. {_days_text(frame)}")
    return part


def _days_text(frame: DataFrame) -> str:
    row: Any = frame.agg(F.min(DATE), F.max(DATE)).collect()[0]
    return f"The days there are {row[0]} to {row[1]}"


def _inside(first: int, end: int) -> Column:
    """Seconds since 1970 from ``first`` on and before ``end``, by days, which folders and tables know, and by time."""
    days = [datetime.datetime.fromtimestamp(second, datetime.UTC).date() for second in (first, end - 1)]
    begin, before = (F.timestamp_seconds(F.lit(second)) for second in (first, end))
    return F.col(DATE).between(*days) & (F.col(TIME) >= begin) & (F.col(TIME) < before)


def _canonical(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Columns of ``ROWS``: each second with requests as one row."""
    batch = batch.filter(pc.greater(batch.column(REQUESTS), 0))
    rows = batch.num_rows
    made: dict[str, Any] = {
        **{name: batch.column(name) for name in (*_TEXTS, "broker")},
        "ts_us": batch.column(TIME).cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
        "records": batch.column("amount"),
        "overhead": pa.array(np.zeros(rows, dtype=np.int64)),
    }
    return with_missing(
        {name: column.cast(ROWS.field(name).type) for name, column in made.items() if name in columns}, columns, rows
    )
