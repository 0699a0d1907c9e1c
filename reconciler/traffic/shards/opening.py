"""Opens traffic whose clients stay with Spark's workers: the driver gets totals by broker, kind and status."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F

from reconciler.errors import UsageError
from reconciler.traffic.client_seconds import ONE_PASS, keep_sums
from reconciler.traffic.client_totals import CLIENT_TOTALS, FOLDS, NAMES, SCHEMA, statuses
from reconciler.traffic.dataset_traffic import DayTotals
from reconciler.traffic.kinds import Kind
from reconciler.traffic.request_traffic import RequestTraffic, SecondsTraffic, charge_batches
from reconciler.traffic.seconds.day_traffic import open_days
from reconciler.traffic.session_frames import FRAME_NAME, rows_of_session
from reconciler.traffic.shuffle.on_spark import KeptRows, SparkRows
from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.line_time import check_zone
from reconciler.traffic.sources.normal_form import CHARGED, DEFAULT_MOST, DELTA, OF_METRICS, SECOND_SUM
from reconciler.traffic.spark_jobs import logged_stages
from reconciler.traffic.spark_versions import collect_table
from reconciler.traffic.traffic_files import Reading, Traffic, require_usable, rows_for_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic.sources.mapping import TrafficMapping
    from reconciler.traffic.sources.parquet_parts import Between

_log: Final = logging.getLogger(__name__)
_SPARK_FOLDS: Final = {"sum": F.sum, "min": F.min, "max": F.max}
_IN_BRIEF: Final = ("status", "broker", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedTraffic:
    """Rows and totals of clients on Spark. ``facts_source``: the traffic as far as it can be known without its clients."""

    rows: SparkRows[pa.RecordBatch]
    clients: DataFrame
    """``client_totals.SCHEMA``, kept by Spark."""
    sums: KeptRows | None
    """What the rows add up to, ``client_seconds.SCHEMA``, where whole seconds are judged; ``None``: the rows are read again."""
    facts_source: SecondsTraffic
    series: int
    unnamed: int
    """Series of which not everything is known that decides which quota applies."""

    @property
    def has_topics(self) -> bool:
        """Whether mutations are there topic by topic."""
        return self.facts_source.of_requests

    def close(self) -> None:
        """Release what Spark keeps; safe to call twice."""
        self.clients.unpersist()
        if self.sums is not None:
            self.sums.close()
        self.facts_source.close()


def open_sharded(
    traffic: Traffic,
    spark: SparkSession,
    reading: Reading,
    *,
    max_unreadable: float = DEFAULT_MOST,
) -> ShardedTraffic | None:
    """``None``: it has metrics, or is not rows that Spark's workers read, so that all clients have to come to the driver.

    Raises ``TrafficError`` when nothing can be used, or more than the share ``max_unreadable`` cannot be read.
    """
    check_zone(reading.log_timezone)
    chosen = traffic.listed(lambda: spark)
    if isinstance(chosen, DayTotals):
        days = chosen.rows_on(spark, reading)
        return _opened(days, lambda _, counted: open_days(days, chosen.files, counted), max_unreadable)
    if not chosen.has_rows:
        return None
    # Sums are kept below, without the rows.
    rows = rows_for_workers(chosen, spark, replace(reading, by_seconds=False))

    def make(converted: SparkRows[pa.RecordBatch], counted: pa.Table) -> SecondsTraffic:
        kind = SecondsTraffic if chosen.semantics == DELTA or converted is not rows else RequestTraffic
        return kind(converted, source=chosen.source, files=chosen.files, columns=chosen.own_columns, counted=counted)

    # Rows of text are kept already.
    opened = _opened(rows, make, max_unreadable, by_seconds=reading.by_seconds and not rows.is_kept)
    if opened is not None:
        facts = opened.facts_source.facts
        opened.facts_source.facts = replace(facts, gaps=chosen.gaps())
    return opened


def open_sharded_frame(
    frame: DataFrame, *, mapping: TrafficMapping | None, between: Between | None, max_unreadable: float
) -> ShardedTraffic:
    """The same of the rows of a frame, as ``open_frame`` has them. Raises ``UsageError`` for metrics."""
    rows, kind, source = rows_of_session(frame, mapping, between)

    def make(converted: SparkRows[pa.RecordBatch], counted: pa.Table) -> SecondsTraffic:
        judged_as = kind if converted is rows else SecondsTraffic
        return judged_as(converted, source=source, files=(FRAME_NAME,), counted=counted)

    opened = _opened(rows, make, max_unreadable)
    if opened is None:
        raise UsageError("in_shards is for requests and sums of seconds, and this traffic has metrics: leave in_shards out")
    return opened


def _opened(
    rows: SparkRows[pa.RecordBatch],
    make: Callable[[SparkRows[pa.RecordBatch], pa.Table], SecondsTraffic],
    max_unreadable: float,
    *,
    by_seconds: bool = False,
) -> ShardedTraffic | None:
    sums = keep_sums(rows) if by_seconds else None
    clients = _kept(rows, CLIENT_TOTALS) if sums is None else _kept(sums, ONE_PASS[0])
    try:
        counted = _in_brief(clients)
        lines = statuses(counted)
        converted = rows
        if lines.get(SECOND_SUM):
            clients.unpersist()
            if sums is not None:
                sums.close()
            sums = None
            converted = rows.map(charge_batches, ("status",))
            clients = _kept(converted, CLIENT_TOTALS)
            counted = _in_brief(clients)
            lines = statuses(counted)
        if any(lines.get(status) for status in OF_METRICS):
            _forget(clients, sums, rows)
            return None
        recorded = make(converted, counted)
        series, unnamed = _series(clients)
        of_series = (replace(known, series=series) for known in recorded.facts.observations)
        recorded.facts = replace(recorded.facts, observations=tuple(of_series))
        require_usable(recorded, max_unreadable)
    except BaseException:
        _forget(clients, sums, rows)
        raise
    return ShardedTraffic(rows=converted, clients=clients, sums=sums, facts_source=recorded, series=series, unnamed=unnamed)


def _kept(rows: SparkRows[pa.RecordBatch], work: Totals[pa.RecordBatch]) -> DataFrame:
    return rows.totals_frame(work, few=False).persist(StorageLevel.MEMORY_AND_DISK)


def _forget(clients: DataFrame, *kept: SparkRows[pa.RecordBatch] | None) -> None:
    clients.unpersist()
    for rows in kept:
        if rows is not None:
            rows.close()


def _in_brief(clients: DataFrame) -> pa.Table:
    """``client_totals.SCHEMA`` without the names of clients."""
    folds = [_SPARK_FOLDS[fold](name).alias(name) for name, fold in FOLDS.items()]
    others = [F.lit(None).cast("string").alias(name) for name in NAMES if name not in _IN_BRIEF]
    with logged_stages(_log, clients.sparkSession, "clients added up") as event:
        counted = collect_table(clients.groupBy(*_IN_BRIEF).agg(*folds).select(*_IN_BRIEF, *others, *FOLDS))
        event["results"] = counted.num_rows
    return counted.select(SCHEMA.names).cast(SCHEMA)


def _series(clients: DataFrame) -> tuple[int, int]:
    """How many there are, and how many of them lack a name."""
    lacks = F.when(F.col("kind") == Kind.CONNECTION.value, F.col("ip").isNull())
    unnamed = lacks.otherwise(F.col("user").isNull() | F.col("client_id").isNull())
    chosen = clients.where(F.col("status") == CHARGED)
    row: Any = chosen.agg(F.count("*"), F.sum(unnamed.cast("long"))).collect()[0]
    return int(row[0]), int(row[1] or 0)
