"""Per-second totals by day, in a dataset of folders or in a table: Spark adds up and writes them, and reads those of a time.

A run computes each of its days from its own traffic alone, and puts it in the place of what was there. So a run can be repeated.
In a table, a run is one commit. In folders it is not: Spark replaces them one after the other.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.client_seconds import DATE, DAY_SCHEMA, DAY_TOTALS, TIME, SmallerDay
from reconciler.traffic.client_totals import CLIENT_TOTALS, FOLDS, MINUTE_TOTALS, NAMES
from reconciler.traffic.kinds import Kind
from reconciler.traffic.request_traffic import SecondsTraffic
from reconciler.traffic.seconds.folder import MINUTE_US
from reconciler.traffic.shuffle.on_spark import SparkRows, scan_frame
from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.log_evidence import CLUSTER, require_one
from reconciler.traffic.sources.log_files import Dataset
from reconciler.traffic.sources.normal_form import CHARGED, DUPLICATE, OF_METRICS, ROWS, UNREADABLE, UNSTATED, require_readable
from reconciler.traffic.sources.parquet_parts import Between
from reconciler.traffic.spark_jobs import logged_stages, reason
from reconciler.traffic.spark_versions import collect_table
from reconciler.traffic.traffic_files import Reading, Traffic, rows_for_workers
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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
        """As ``Rows.total``."""
        if work is MINUTE_TOTALS:
            minute = F.floor(F.unix_micros(TIME) / MINUTE_US).cast("long").alias("minute")
            return collect_table(self.frame.select("broker", minute).dropna().distinct()).cast(work.schema)
        return collect_table(self.totals_frame(work)).cast(work.schema) if work is CLIENT_TOTALS else super().total(work)

    def totals_frame(self, work: Totals[pa.RecordBatch], *, few: bool = True) -> DataFrame:
        """As ``SparkRows.totals_frame``."""
        if work is not CLIENT_TOTALS:
            return super().totals_frame(work, few=few)
        folds = [_SPARK_FOLDS[fold](REQUESTS if name == "lines" else name).alias(name) for name, fold in FOLDS.items()]
        return self.frame.groupBy(*NAMES).agg(*folds).select(*work.schema.names)

    def between(self, start_us: int, end_us: int) -> DayRows:
        """As ``Rows.between``, by whole seconds."""
        return DayRows(self.spark, self.frame.where(_inside(start_us // _SECOND_US, -(-end_us // _SECOND_US))))

    def origins(self) -> tuple[str, ...]:
        """The sources of the totals. Raises ``TrafficError`` for totals of several clusters."""
        rows = self.frame.select(SOURCE, CLUSTER).distinct().collect()
        require_one({row[CLUSTER]: "by its days" for row in rows if row[CLUSTER] is not None})
        return tuple(sorted({row[SOURCE] for row in rows}))


def open_days(rows: DayRows, files: Sequence[str], counted: pa.Table | None = None) -> SecondsTraffic:
    """Days that ``compact`` wrote. ``counted``: as ``SecondsTraffic``. Raises ``TrafficError`` when no request is in the time."""
    source = Source.LOG_CELLS if Source.LOGS.value in rows.origins() else Source.CELLS
    return SecondsTraffic(rows, source=source, files=files, counted=counted, is_stored=True)


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
    types = {field.name: field.type for field in ROWS}
    arrays = [made[name].cast(types[name]) if name in made else pa.nulls(rows, types[name]) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log: Final = logging.getLogger(__name__)
_MISSING: Final = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "TABLE_OR_VIEW_NOT_FOUND")
_CONFLICTS: Final = ("ValidationException", "CommitFailedException", "Found conflicting files", "TABLE_OR_VIEW_ALREADY_EXISTS")
_ORDER: Final = (DATE, "kind", "broker", "user", "client_id", "ip", TIME)
_Counts: TypeAlias = Mapping[tuple[datetime.date, int, str], int]
"""Charged requests by day, broker and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysRequest:
    """``first`` and ``end``: the days to write, from the first one on and before the other; ``None``: all of the traffic."""

    out: Dataset
    first: datetime.date | None = None
    end: datetime.date | None = None
    replace: bool = False
    """Write also a day of which the dataset has more than the traffic."""
    log_timezone: str = "UTC"
    max_unreadable: float = 1.0

    def __contains__(self, day: datetime.date) -> bool:
        return (self.first is None or day >= self.first) and (self.end is None or day < self.end)

    @property
    def between(self) -> Between | None:
        """The time of these days."""
        if self.first is None and self.end is None:
            return None
        first, end = ((day - datetime.date(1970, 1, 1)).days * 86_400_000_000 for day in (
            self.first or datetime.date(1970, 1, 1), self.end or datetime.date(2100, 1, 1)
        ))  # fmt: skip
        # The first microsecond of a day belongs to it, that of the next day does not.
        return Between(after_us=first - 1, until_us=end - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDays:
    """What a run did. ``requests``: charged ones of the days that were written."""

    days: tuple[datetime.date, ...]
    requests: int
    copies: int
    left_out: tuple[SmallerDay, ...]


def write_days(spark: SparkSession, traffic: Traffic, request: DaysRequest) -> WrittenDays:
    """Bring the days of this traffic up to date. Raises ``TrafficError``, and ``UsageError`` for traffic without requests."""
    if traffic.datasets or traffic.source is Source.NORMAL_FORM:
        traffic = replace(traffic, between=request.between)
    traffic = traffic.listed(lambda: spark)
    traffic.require_rows()
    clusters = traffic.clusters(spark)
    require_one(dict.fromkeys(clusters, f"the column {CLUSTER}"))
    rows = rows_for_workers(traffic, spark, Reading(log_timezone=request.log_timezone, kinds=tuple(Kind)))
    totals = None
    try:
        if CLUSTER in traffic.own_columns:
            clusters |= frozenset(rows.total(_CLUSTERS).column(CLUSTER).to_pylist())
        totals = _totals(rows).persist(StorageLevel.MEMORY_AND_DISK)
        counted = _count(spark, totals)
        counted.require_usable(traffic.files, request.max_unreadable)
        now = {key: lines for key, lines in counted.charged.items() if key[0] in request}
        earlier = _earlier(spark, request.out, sorted({day for day, _, _ in now}))
        before: _Counts = {}
        if earlier is not None:
            before, clusters = _charged(earlier), clusters | _clusters_of(earlier)
        require_one(dict.fromkeys(clusters, "of this traffic, or of these days so far"))
        smaller = () if request.replace else tuple(_smaller(before, now))
        left_out = {day.date for day in smaller}
        now = {key: lines for key, lines in now.items() if key[0] not in left_out}
        days = tuple(sorted({day for day, _, _ in now}))
        if days:
            chosen = totals.where(F.col(DATE).isin(*days)).withColumnRenamed("lines", REQUESTS)
            chosen = chosen.withColumn(CLUSTER, F.lit(next(iter(clusters), None)).cast("string"))
            with logged_stages(_log, spark, "days written", what=str(request.out), days=len(days)):
                _write(request.out, chosen.withColumn(SOURCE, F.lit(traffic.source.value)).select(*DAY_COLUMNS))
    finally:
        if totals is not None:
            totals.unpersist()
        rows.close()
    return WrittenDays(days=days, requests=sum(now.values()), copies=counted.statuses.get(DUPLICATE, 0), left_out=smaller)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """``statuses``: all lines by what they are."""

    charged: _Counts
    statuses: Mapping[str, int]

    def require_usable(self, files: Sequence[str], max_unreadable: float) -> None:
        """Raise ``TrafficError`` for too many rows that cannot be read, ``UsageError`` for samples of metrics."""
        if any(self.statuses.get(status) for status in OF_METRICS):
            raise UsageError(
                f"{escaped(files[0])} has samples of metrics, of which no totals of seconds can be made. Keep the files, and "
                "give them to backtest as they are"
            )
        lines = sum(count for status, count in self.statuses.items() if status != UNSTATED)
        require_readable(self.statuses.get(UNREADABLE, 0), lines, max_unreadable, files=files)


def _totals(rows: SparkRows[pa.RecordBatch]) -> DataFrame:
    """``DAY_SCHEMA``, each second of a client once. The seconds of a client are in one partition, and so in one file of a day."""
    partial = rows.made_of_shares(DAY_TOTALS.count, DAY_TOTALS.columns, DAY_TOTALS.schema, few=False)
    folds = [getattr(F, fold)(name).alias(name) for name, fold in DAY_TOTALS.folds.items()]
    return partial.repartition(DATE, *NAMES).groupBy(*DAY_TOTALS.keys).agg(*folds)


def _count(spark: SparkSession, totals: DataFrame) -> _Counted:
    with logged_stages(_log, spark, "rows added up", what=DAY_TOTALS.name) as event:
        rows = totals.groupBy(DATE, "status", "broker", "kind").agg(F.sum("lines").alias("lines")).collect()
        event["results"] = len(rows)
    statuses: dict[str, int] = {}
    for row in rows:
        statuses[row["status"]] = statuses.get(row["status"], 0) + row["lines"]
    charged = {(row[DATE], row["broker"], row["kind"]): row["lines"] for row in rows if row["status"] == CHARGED and row["lines"]}
    return _Counted(charged=charged, statuses=statuses)


def _charged(earlier: DataFrame) -> _Counts:
    counted = earlier.where(F.col("status") == CHARGED).groupBy(DATE, "broker", "kind").agg(F.sum(REQUESTS).alias(REQUESTS))
    return {(row[DATE], row["broker"], row["kind"]): row[REQUESTS] for row in counted.collect()}


def _smaller(before: _Counts, now: _Counts) -> Iterator[SmallerDay]:
    days: set[datetime.date] = set()
    for (day, broker, kind), requests in sorted(before.items()):
        left = now.get((day, broker, kind), 0)
        if left < requests and day not in days:
            days.add(day)
            yield SmallerDay(date=day, broker=broker, kind=kind, before=requests, now=left)


def _name_clusters(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(CLUSTER).cast(pa.string()).unique().drop_null()], schema=_CLUSTERS_SCHEMA)


_CLUSTERS_SCHEMA: Final = pa.schema([(CLUSTER, pa.string())])
_CLUSTERS: Final[Totals[pa.RecordBatch]] = Totals(
    name="ids of clusters", columns=(CLUSTER,), count=_name_clusters, schema=_CLUSTERS_SCHEMA, keys=(CLUSTER,), folds={}
)


def _clusters_of(frame: DataFrame) -> frozenset[str]:
    return frozenset(row[CLUSTER] for row in frame.select(CLUSTER).distinct().collect() if row[CLUSTER] is not None)


def _earlier(spark: SparkSession, out: Dataset, days: Sequence[datetime.date]) -> DataFrame | None:
    """What the dataset has of these days, ``None`` where there is none yet. Raises ``TrafficError`` for a foreign one."""
    try:
        frame = spark.read.table(out.name) if out.is_table else spark.read.parquet(out.name)
        columns = frame.columns
    except AnalysisException as error:
        if any(word in str(error) for word in _MISSING):
            return None
        raise
    if not has_days(columns) or DATE not in columns:
        raise TrafficError(f"{escaped(str(out))} was not written by compact. Name another place, which compact creates")
    return frame.where(F.col(DATE).isin(*days))


def _write(out: Dataset, days: DataFrame) -> None:
    """Put these days in the place of those that are there."""
    if not out.is_table:
        days.sortWithinPartitions(*_ORDER).write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(
            DATE
        ).parquet(out.name)
        return
    try:
        if not days.sparkSession.catalog.tableExists(out.name):
            days.limit(0).writeTo(out.name).using("iceberg").partitionedBy(F.col(DATE)).create()
        days.sortWithinPartitions(*_ORDER).writeTo(out.name).overwritePartitions()
    except (PySparkException, Py4JError) as error:
        if any(word in str(error) for word in _CONFLICTS):
            raise TrafficError(f"{escaped(str(out))}: another run has written the same days. Run this again") from None
        log_event(_log, "table not written", table=out.name, error=reason(str(error)))
        raise
