"""Days of per-second totals in a lake as recorded traffic: only the days that are judged are read, by Spark's own readers."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.model import BucketVerdict, escaped
from reconciler.traffic.client_totals import CLIENT_TOTALS, MINUTE_TOTALS
from reconciler.traffic.client_totals import FOLDS as TOTAL_FOLDS
from reconciler.traffic.columns.group_index import KnownClients
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.judging.mutations import tokens_by_seconds
from reconciler.traffic.judging.verdicts import seconds_verdicts
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kinds import Kind
from reconciler.traffic.request_traffic import SecondsTraffic
from reconciler.traffic.seconds.day_columns import FOLDS, KEYS, NAMES, SECOND_US
from reconciler.traffic.seconds.day_folders import day_frame, read_ledger
from reconciler.traffic.seconds.day_ledger import LOG, LakeDay, LakeLedger
from reconciler.traffic.seconds.day_table import DayTable, is_own
from reconciler.traffic.seconds.folder import MINUTE_US
from reconciler.traffic.shuffle.on_spark import SparkRows, scan_frame
from reconciler.traffic.sources.datasets import Dataset
from reconciler.traffic.sources.normal_form import CHARGED, IDENTITY, ROWS, UNCHARGED, UNREADABLE
from reconciler.traffic.sources.parquet_parts import Between
from reconciler.traffic.spark_jobs import reason
from reconciler.traffic.spark_versions import collect_table
from reconciler.traffic.traffic_source import Facts, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic.shuffle.rows import Totals

_LOGS: Final = frozenset({".gz", ".log"})
"""Of single files. Some stores answer with an error when something is looked for below one."""
_SPARK_FOLDS: Final = {"sum": F.sum, "max": F.max, "min": F.min}
_TEXTS: Final = ("kind", "user", "client_id", "ip", "status")


class DayRows(SparkRows[pa.RecordBatch]):
    """Rows of ``day_columns.NAMES``. Spark adds up clients and minutes itself, since each row is many requests."""

    def __init__(self, spark: SparkSession, frame: DataFrame, *, has_uncharged: bool = True) -> None:
        """``frame``: those of the time to judge. ``has_uncharged``: rows of clients that are not charged may be among them."""
        super().__init__(spark, scan_frame(frame, lambda _: NAMES, lambda batch, columns: (_canonical(batch, columns),)))
        self.totals = frame
        self._has_uncharged = has_uncharged

    def total(self, work: Totals[pa.RecordBatch]) -> pa.Table:
        """As ``Rows.total``."""
        if work is CLIENT_TOTALS:
            return collect_table(self.totals_frame(work)).cast(work.schema)
        if work is MINUTE_TOTALS:
            minute = F.floor(F.unix_micros("ts") / MINUTE_US).cast("long").alias("minute")
            return collect_table(self.totals.select("broker", minute).distinct()).cast(work.schema)
        return super().total(work)

    def totals_frame(self, work: Totals[pa.RecordBatch], *, few: bool = True) -> DataFrame:
        """As ``SparkRows.totals_frame``."""
        return self._clients() if work is CLIENT_TOTALS else super().totals_frame(work, few=few)

    def _clients(self) -> DataFrame:
        charged = F.col("status") == CHARGED
        names = [F.when(charged, F.col(name)).alias(name) for name in IDENTITY]
        begin = F.unix_micros("ts")
        figures = self.totals.select(
            "status", *names, F.col("requests").alias("lines"), "amount", "largest", "throttled",
            (begin + F.col("first_us")).alias("start_us"), (begin + F.col("last_us")).alias("end_us"),
            *(F.lit(0).alias(name) for name in UNCHARGED.values()),
        )  # fmt: skip
        if self._has_uncharged:
            figures = figures.unionByName(self._uncharged())
        folds = {name: _SPARK_FOLDS[fold](name).alias(name) for name, fold in TOTAL_FOLDS.items()}
        return figures.groupBy("status", *IDENTITY).agg(*folds.values())

    def _uncharged(self) -> DataFrame:
        """The clients of rows that are not charged, and how many each has."""
        limits = np.iinfo(np.int64)
        nothing = {"largest": limits.min, "start_us": limits.max, "end_us": limits.min}
        counts = {name: F.when(F.col("status") == status, F.col("requests")).otherwise(0) for status, name in UNCHARGED.items()}
        figures = {name: counts.get(name, F.lit(nothing.get(name, 0))) for name in TOTAL_FOLDS}
        rows = self.totals.where(F.col("status").isin(*UNCHARGED) & F.col("kind").isNotNull())
        return rows.select(
            F.lit(CHARGED).alias("status"), *IDENTITY, *(column.cast("long").alias(name) for name, column in figures.items())
        )

    def mutations(self) -> DataFrame:
        """The charged seconds of mutations, which are few."""
        return self.totals.where((F.col("status") == CHARGED) & (F.col("kind") == Kind.MUTATION.value))


class DaysTraffic(SecondsTraffic):
    """Days of a dataset of ``compact --out``."""

    has_topics: ClassVar[bool] = False

    def __init__(self, rows: DayRows, days: Sequence[LakeDay], counted: pa.Table | None = None) -> None:
        """``counted``: as ``SecondsTraffic``. Raises ``TrafficError`` when no request is in the time."""
        shares = [share for day in days for share in day.shares]
        files = sorted({share.source.name.rpartition("/")[2] for share in shares})
        of_logs = any(share.source.kind == LOG for share in shares)
        super().__init__(rows, source=Source.LOG_CELLS if of_logs else Source.CELLS, files=files, counted=counted)
        self.day_rows, self._days = rows, tuple(days)
        facts = _with_undated(self.facts, [share.undated for share in shares])
        # Of other sources, totals do not keep which requests state a throttle.
        self.facts = replace(facts, states_throttles=all(share.source.kind == LOG for share in shares))

    @property
    def rows(self) -> DayRows:
        """Each second of a client once, for callers that divide amounts: the parts of an amount round differently."""
        if all(len(day.parts) <= 1 for day in self._days):
            return self.day_rows
        totals = self.day_rows.totals
        folded = totals.groupBy(*KEYS).agg(*(_SPARK_FOLDS[fold](name).alias(name) for name, fold in FOLDS.items()))
        return DayRows(totals.sparkSession, folded.select(*NAMES))

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """As ``GroupJudge.mutations``, from whole seconds."""
        rows = collect_table(self.day_rows.mutations().select("user", "client_id", "ip", "kind", "broker", "ts", "amount"))
        judged = tokens_by_seconds(self._seconds(rows), self.series, grouping, groups, window)
        return seconds_verdicts(judged, self.series, grouping, window, stated=self.states_throttles)

    def between(self, start_us: int, end_us: int) -> DaysTraffic:
        """The whole seconds of this time."""
        frame = self.day_rows.totals.where(_inside(start_us // SECOND_US, -(-end_us // SECOND_US)))
        return DaysTraffic(DayRows(self.day_rows.totals.sparkSession, frame), self._days)

    def _seconds(self, rows: pa.Table) -> Iterator[tuple[Integers, Integers, Integers]]:
        if not rows.num_rows:
            return
        names = [rows.column(name).combine_chunks() for name in ("user", "client_id", "ip", "kind", "broker")]
        which = KnownClients.of(self.series).of_names(*names[:4], names[4].cast(pa.int64()))
        keys = np.asarray([client.key for client in self.series], dtype=np.int64)
        second = np.asarray(rows.column("ts").cast(pa.int64()).to_numpy(), dtype=np.int64) // SECOND_US
        yield keys[which], second, np.asarray(rows.column("amount").to_numpy(), dtype=np.int64)


def open_days(spark: SparkSession, datasets: Sequence[Dataset], between: Between | None) -> DaysTraffic | None:
    """``find_days`` as recorded traffic. Raises ``TrafficError`` also when no request is in the time."""
    known = find_days(spark, datasets, between)
    return None if known is None else DaysTraffic(*known)


def find_days(
    spark: SparkSession, datasets: Sequence[Dataset], between: Between | None
) -> tuple[DayRows, Sequence[LakeDay]] | None:
    """The totals that the first of these has, in a stretch of whole seconds; ``None`` when it is something else.

    Raises ``TrafficError`` when no day of it is in that time.
    """
    dataset, *others = datasets
    where = escaped(str(dataset))
    ledger: LakeLedger | None
    if dataset.is_table:
        table = DayTable(spark=spark, name=dataset.name)
        if not is_own(table.columns()):
            return None
        ledger = table.load()
    elif PurePosixPath(dataset.name).suffix in _LOGS:
        return None
    else:
        try:
            ledger = read_ledger(spark, dataset.name.rstrip("/"))
        except (PySparkException, Py4JError) as error:
            raise TrafficError(f"recorded traffic {where} cannot be read: {escaped(reason(str(error)))}") from None
    if ledger is None:
        return None
    if others:
        raise TrafficError(f"--traffic names {where}, which has per-second totals, and something else: give it alone")
    span = seconds_of(between)
    days = days_of(ledger, span)
    if not days:
        raise TrafficError(f"recorded traffic {where} has no day in this time. It has {_days_text(ledger)}")
    if dataset.is_table:
        frame = DayTable(spark=spark, name=dataset.name).totals_from(ledger, days[0].date, days[-1].date)
    else:
        frame = day_frame(spark, dataset.name.rstrip("/"), days)
    narrowed = frame if span is None else frame.where(_inside(*span))
    has_uncharged = any(status in UNCHARGED for day in days for share in day.shares for status in share.statuses)
    return DayRows(spark, narrowed.select(*NAMES), has_uncharged=has_uncharged), days


def seconds_of(between: Between | None) -> tuple[int, int] | None:
    """The first whole second of a stretch of time, and the one behind its last."""
    if between is None:
        return None
    return -(-between.after_us // SECOND_US), -(-between.until_us // SECOND_US)


def days_of(ledger: LakeLedger, span: tuple[int, int] | None) -> list[LakeDay]:
    """The days that have seconds of this time, in order."""
    if span is None:
        return [day for _, day in sorted(ledger.days.items())]
    first, last = (datetime.datetime.fromtimestamp(second, datetime.UTC).date().isoformat() for second in (span[0], span[1] - 1))
    return [day for date, day in sorted(ledger.days.items()) if first <= date <= last]


def _inside(first: int, end: int) -> Any:
    return (F.col("ts") >= F.timestamp_seconds(F.lit(first))) & (F.col("ts") < F.timestamp_seconds(F.lit(end)))


def _days_text(ledger: LakeLedger) -> str:
    return f"{min(ledger.days)} to {ledger.newest}" if ledger.days else "none yet: run compact, and read its output"


def _with_undated(facts: Facts, undated: Iterable[Mapping[str, int]]) -> Facts:
    """With the rows that have no time, and so are in no row of the dataset."""
    counts: dict[str, int] = {}
    for statuses in undated:
        for status, rows in statuses.items():
            counts[status] = counts.get(status, 0) + rows
    unreadable = facts.unreadable + counts.pop(UNREADABLE, 0)
    others = dict(facts.not_charged)
    for status, rows in counts.items():
        others[status] = others.get(status, 0) + rows
    return replace(facts, unreadable=unreadable, not_charged=dict(sorted(others.items())))


def _canonical(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Columns of ``ROWS``: each second as one row."""
    rows = batch.num_rows
    made: dict[str, Any] = {
        **{name: batch.column(name) for name in (*_TEXTS, "broker")},
        "ts_us": batch.column("ts").cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
        "records": batch.column("amount"),
        "overhead": pa.array(np.zeros(rows, dtype=np.int64)),
    }
    types = {field.name: field.type for field in ROWS}
    arrays = [made[name].cast(types[name]) if name in made else pa.nulls(rows, types[name]) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
