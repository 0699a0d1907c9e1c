"""Per-second totals by day: Spark adds up the traffic and writes the days that it has into folders or a table."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F

from reconciler.errors import TrafficError, UsageError
from reconciler.features.compacting.compact import CompactResult
from reconciler.logs import log_event
from reconciler.model import GAUGE, escaped
from reconciler.text import count_of
from reconciler.traffic import (
    CHARGED,
    CLIENT_FOLDS,
    CLIENT_NAMES,
    CLIENT_SCHEMA,
    CLUSTER,
    COUNTED,
    DATE,
    DAY_COLUMNS,
    DAY_SCHEMA,
    DUPLICATE,
    REQUESTS,
    SOURCE,
    TIME,
    UNCHARGED,
    UNREADABLE,
    UNSTATED,
    Between,
    ChargedRows,
    Dataset,
    Integers,
    Kind,
    Reading,
    Source,
    SparkRows,
    Totals,
    Traffic,
    are_known,
    charge_second_sums,
    charged_rows,
    count_charged,
    count_uncharged,
    has_days,
    integers,
    logged_stages,
    number_codes,
    require_one,
    require_readable,
    rows_for_workers,
    spark_reason,
    tables_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.features.compacting.command import CompactArguments

_log: Final = logging.getLogger(__name__)
_MISSING: Final = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "TABLE_OR_VIEW_NOT_FOUND")
_CONFLICTS: Final = ("ValidationException", "CommitFailedException", "Found conflicting files", "TABLE_OR_VIEW_ALREADY_EXISTS")
_ORDER: Final = (DATE, "kind", "broker", "user", "client_id", "ip", TIME)
_Counts: TypeAlias = Mapping[tuple[datetime.date, int, str], int]
"""Charged requests by day, broker and kind."""


def write_days(spark: SparkSession, traffic: Traffic, out: Dataset, options: CompactArguments) -> CompactResult:
    """Bring the days of this traffic up to date. Raises ``TrafficError``, and ``UsageError`` for traffic without requests."""
    between = _between(options)
    if traffic.datasets or traffic.source is Source.NORMAL_FORM:
        traffic = replace(traffic, between=between)
    traffic = traffic.listed(lambda: spark)
    traffic.require_rows()
    clusters = traffic.clusters(spark)
    require_one(dict.fromkeys(clusters, f"the column {CLUSTER}"))
    rows = rows_for_workers(traffic, spark, Reading(log_timezone=options.log_timezone, kinds=tuple(Kind)))
    totals = None
    try:
        if CLUSTER in traffic.own_columns:
            clusters |= frozenset(rows.total(_CLUSTERS).column(CLUSTER).to_pylist())
        totals = _totals(rows).persist(StorageLevel.MEMORY_AND_DISK)
        charged, statuses = _count(spark, totals)
        _require_usable(statuses, traffic.files, options.max_unreadable)
        now = {key: lines for key, lines in charged.items() if between is None or between.may_cut(_span_us(key[0]))}
        earlier = _earlier(spark, out, sorted({day for day, _, _ in now}))
        before: _Counts = {}
        if earlier is not None:
            before, clusters = _charged(earlier), clusters | _clusters_of(earlier)
        require_one(dict.fromkeys(clusters, "of this traffic, or of these days so far"))
        if not options.replace:
            _require_whole_days(before, now)
        days = tuple(sorted({day for day, _, _ in now}))
        if days:
            chosen = totals.where(F.col(DATE).isin(*days)).withColumnRenamed("lines", REQUESTS)
            chosen = chosen.withColumn(CLUSTER, F.lit(next(iter(clusters), None)).cast("string"))
            with logged_stages(_log, spark, "days written", what=str(out), days=len(days)):
                _write(out, chosen.withColumn(SOURCE, F.lit(traffic.source.value)).select(*DAY_COLUMNS))
    finally:
        if totals is not None:
            totals.unpersist()
        rows.close()
    return CompactResult(compacted=traffic.files, requests=sum(now.values()), copies=statuses.get(DUPLICATE, 0), days=days)


def _between(options: CompactArguments) -> Between | None:
    """The time of the days to write, whose ends are midnights: the first microsecond of a day belongs to it."""
    if options.since is None and options.until is None:
        return None
    between = Between.of(options.since, options.until or datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    return Between(after_us=between.after_us - 1, until_us=between.until_us - 1)


def _span_us(day: datetime.date) -> tuple[int, int]:
    first = (day - datetime.date(1970, 1, 1)).days * _DAY_S * _SECOND_US
    return first, first + _DAY_S * _SECOND_US - 1


def _require_usable(statuses: Mapping[str, int], files: Sequence[str], max_unreadable: float) -> None:
    """Raise ``TrafficError`` for too many rows that cannot be read, ``UsageError`` for samples of metrics."""
    if statuses.get(GAUGE):
        raise UsageError(
            f"{escaped(files[0])} has samples of metrics, of which no totals of seconds can be made. Keep the files, and "
            "give them to backtest as they are"
        )
    lines = sum(count for status, count in statuses.items() if status != UNSTATED)
    require_readable(statuses.get(UNREADABLE, 0), lines, max_unreadable, files=files)


def _totals(rows: SparkRows[pa.RecordBatch]) -> DataFrame:
    """``DAY_SCHEMA``, each second of a client once. The seconds of a client are in one partition, and so in one file of a day."""
    partial = rows.made_of_shares(DAY_TOTALS.count, DAY_TOTALS.columns, DAY_TOTALS.schema, few=False)
    folds = [getattr(F, fold)(name).alias(name) for name, fold in DAY_TOTALS.folds.items()]
    return partial.repartition(DATE, *CLIENT_NAMES).groupBy(*DAY_TOTALS.keys).agg(*folds)


def _count(spark: SparkSession, totals: DataFrame) -> tuple[_Counts, Mapping[str, int]]:
    """Return the charged requests, and all lines by what they are."""
    with logged_stages(_log, spark, "rows added up", what=DAY_TOTALS.name) as event:
        rows = totals.groupBy(DATE, "status", "broker", "kind").agg(F.sum("lines").alias("lines")).collect()
        event["results"] = len(rows)
    statuses: dict[str, int] = {}
    for row in rows:
        statuses[row["status"]] = statuses.get(row["status"], 0) + row["lines"]
    charged = {(row[DATE], row["broker"], row["kind"]): row["lines"] for row in rows if row["status"] == CHARGED and row["lines"]}
    return charged, statuses


def _charged(earlier: DataFrame) -> _Counts:
    counted = earlier.where(F.col("status") == CHARGED).groupBy(DATE, "broker", "kind").agg(F.sum(REQUESTS).alias(REQUESTS))
    return {(row[DATE], row["broker"], row["kind"]): row[REQUESTS] for row in counted.collect()}


def _require_whole_days(before: _Counts, now: _Counts) -> None:
    """Raise ``TrafficError`` for a day of which the dataset has more requests of a broker and kind than the traffic."""
    for (day, broker, kind), requests in sorted(before.items()):
        left = now.get((day, broker, kind), 0)
        if left < requests:
            raise TrafficError(
                f"{day.isoformat()} has {count_of(requests, 'request')} of kind {kind} for broker {broker} already, and this "
                f"traffic has {left:,}. Give all traffic of the day, choose other days with --since and --until, or --replace it"
            )


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
    """Return the rows of these days, ``None`` where there is no dataset yet. Raises ``TrafficError`` for a foreign one."""
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
        log_event(_log, "table not written", table=out.name, error=spark_reason(str(error)))
        raise


_SECOND_US: Final = 1_000_000
_DAY_S: Final = 86_400


def count_days(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``DAY_SCHEMA`` of some million rows at a time. ``batches``: with the columns ``COUNTED``."""
    for table in tables_of(batches):
        for batch in table.unify_dictionaries().combine_chunks().to_batches():
            yield from _count_batch(charge_second_sums(batch)).to_batches()


DAY_TOTALS: Final[Totals[pa.RecordBatch]] = Totals(
    name="seconds of clients",
    columns=COUNTED,
    count=count_days,
    schema=DAY_SCHEMA,
    keys=(DATE, TIME, *CLIENT_NAMES),
    folds=CLIENT_FOLDS,
)


def _count_batch(batch: pa.RecordBatch) -> pa.Table:
    charged, second = _by_second(charged_rows(batch))
    parts = [_timed(count_charged(charged, batch), second), _others(batch)]
    for status in UNCHARGED:
        if status in charged.others:
            uncharged, second = _by_second(charged_rows(batch, status))
            parts.append(_timed(count_uncharged(uncharged, status), second))
            # With their amounts, too: what they can have been is judged by itself.
            of_status = pa.repeat(status, uncharged.clients)
            parts.append(_timed(count_charged(uncharged, batch).set_column(0, "status", of_status), second))
    return pa.concat_tables(parts)


def _by_second(rows: ChargedRows) -> tuple[ChargedRows, Integers]:
    """The same rows with each second of a client as a client, and which second that is."""
    if not len(rows.of):
        return rows, rows.of[:0]
    second = rows.ts_us // _SECOND_US
    begin = int(second.min())
    span = int(second.max()) - begin + 1
    distinct, number = number_codes(rows.of * span + second - begin, rows.clients * span)
    client, names = distinct // span, ("kind", "user", "client_id", "ip")
    chosen = {name: getattr(rows, name).take(pa.array(client)) for name in names}
    return replace(rows, of=number, broker=rows.broker[client], begins=None, **chosen), distinct % span + begin


def _others(batch: pa.RecordBatch) -> pa.Table:
    """Rows of no client, and charged rows that do not state a throttle once more as ``UNSTATED``."""
    status = batch.column("status").cast(pa.string())
    charged = pc.equal(status, CHARGED)
    unstated = batch.column("throttled").is_null() if "throttled" in batch.schema.names else charged
    status = pc.if_else(pc.and_(charged, unstated), UNSTATED, status)
    wanted = pc.invert(pc.is_in(status, pa.array([CHARGED, *UNCHARGED])))
    rows, status = batch.select(["ts_us", "broker"]).filter(wanted), status.filter(wanted)
    second, broker = integers(rows.column("ts_us")) // _SECOND_US, integers(rows.column("broker"))
    unknown = ~(are_known(rows.column("ts_us")) & are_known(rows.column("broker")))
    table = pa.table({"status": status, "second": pa.array(second, mask=unknown), "broker": pa.array(broker, mask=unknown)})
    counted = table.group_by(["status", "second", "broker"], use_threads=False).aggregate([([], "count_all")])
    nothing = pa.nulls(counted.num_rows, pa.int64())
    known = {"status": counted.column("status"), "broker": counted.column("broker"), "lines": counted.column("count_all")}
    columns = [known.get(field.name, nothing).cast(field.type) for field in CLIENT_SCHEMA]
    return _timed(pa.table(columns, schema=CLIENT_SCHEMA), counted.column("second"))


def _timed(counted: pa.Table, second: Integers | pa.ChunkedArray) -> pa.Table:
    """``DAY_SCHEMA`` of rows of ``client_totals.SCHEMA``."""
    seconds = second if isinstance(second, pa.ChunkedArray) else pa.chunked_array([pa.array(second, pa.int64())])
    date = pc.cast(pc.divide(seconds, _DAY_S), pa.int32()).cast(pa.date32())
    time = pc.multiply(seconds, _SECOND_US).cast(DAY_SCHEMA.field(TIME).type)
    return pa.table([date, time, *counted.columns], schema=DAY_SCHEMA)
