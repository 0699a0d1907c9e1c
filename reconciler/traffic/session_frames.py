"""A backtest on the Spark session of its caller: frames in, frames out, and nothing of the session changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from reconciler.errors import TrafficError, UsageError
from reconciler.model import (
    RECOMMENDATIONS_SCHEMA,
    SECONDS_SCHEMA,
    VERDICTS_SCHEMA,
    BacktestReport,
    FrameColumn,
    FrameSchema,
    escaped,
)
from reconciler.traffic.backtest import Backtest
from reconciler.traffic.columns.charged import NEEDED
from reconciler.traffic.columns.group_index import GroupIndex, keyed_seconds
from reconciler.traffic.judging.by_seconds import SECONDS, BothLimits, second_rows
from reconciler.traffic.judging.grouping import Grouping, rows_of_groups
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS, proves
from reconciler.traffic.kinds import SAMPLED
from reconciler.traffic.request_traffic import RequestTraffic, SecondsTraffic
from reconciler.traffic.shuffle.on_spark import SparkRows
from reconciler.traffic.shuffle.rows import GroupWork, Pieces
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import DELTA
from reconciler.traffic.sources.on_spark import rows_of_frame
from reconciler.traffic.sources.parquet_parts import Between
from reconciler.traffic.spark_jobs import reason
from reconciler.traffic.traffic_files import require_usable
from reconciler.traffic.traffic_source import Source
from reconciler.traffic.verdict_rows import arrow_schema, recommendation_batches, verdict_batches

FRAME_NAME: Final = "DataFrame"
"""The file of the report."""
_OF_RATES: Final = ("rate", "rate_low", "rate_high", "certain", "over", "possible")
_OF_TARGETS: Final = ("key", "broker", "user", "client_id", "tags", "limit_before", "limit_after")
_TARGETS: Final = FrameSchema(
    name="targets",
    version="1.0",
    columns=(
        FrameColumn(name="group", type="bigint", nullable=False, meaning="the number of the target"),
        FrameColumn(name="has_rate", type="boolean", nullable=False, meaning="a sampled rate limits the key"),
        FrameColumn(name="has_before", type="boolean", nullable=False, meaning="the clients shared the same limit before"),
        *(column for column in SECONDS_SCHEMA.columns if column.name in _OF_TARGETS),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFrames:
    """The tables of a backtest, on the session of its traffic."""

    verdicts: DataFrame
    seconds: DataFrame
    recommendations: DataFrame


def frame_of(spark: SparkSession, traffic: object) -> DataFrame:
    """The frame itself, or the table of this name. Raises ``UsageError`` for anything else, ``TrafficError`` without a table."""
    if not isinstance(spark, SparkSession):
        raise UsageError(f"spark takes a SparkSession, not {type(spark).__name__}")
    if isinstance(traffic, str):
        try:
            return spark.read.table(traffic)
        except AnalysisException as error:
            raise TrafficError(f"recorded traffic {escaped(traffic)} cannot be read: {escaped(reason(str(error)))}") from None
    if not isinstance(traffic, DataFrame):
        raise UsageError(f"traffic takes a DataFrame of Spark or the name of a table, not {type(traffic).__name__}")
    if traffic.isStreaming:
        raise UsageError("traffic is a stream. Pass the table that the stream writes")
    return traffic


def open_frame(
    frame: DataFrame, *, mapping: TrafficMapping | None, between: Between | None, max_unreadable: float
) -> SecondsTraffic:
    """The rows of a frame, which Spark reads anew for each pass.

    Raises ``TrafficError`` for a column that is missing or has another type, and when nothing can be used.
    """
    rows = rows_of_frame(frame, mapping, between, where=FRAME_NAME)
    kind = SecondsTraffic if mapping is not None and mapping.semantics == DELTA else RequestTraffic
    source = Source.NORMAL_FORM if mapping is None else Source.MAPPED
    return require_usable(kind(rows, source=source, files=(FRAME_NAME,)), max_unreadable)


def frames_of_report(report: BacktestReport, recorded: SecondsTraffic, run: Backtest, window: Window) -> SessionFrames:
    """The tables of a report of ``run`` on ``recorded``, which comes from ``open_frame``."""
    rows = recorded.rows
    assert isinstance(rows, SparkRows)
    return SessionFrames(
        verdicts=_frame(rows.spark, verdict_batches(report.verdicts), VERDICTS_SCHEMA),
        seconds=_seconds(rows, recorded, run, window),
        recommendations=_frame(rows.spark, recommendation_batches(report.verdicts), RECOMMENDATIONS_SCHEMA),
    )


def _frame(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: FrameSchema) -> DataFrame:
    table = pa.Table.from_batches(batches, arrow_schema(schema))
    return spark.createDataFrame(table, StructType.fromJson(schema.to_spark()))


def _seconds(rows: SparkRows[pa.RecordBatch], recorded: SecondsTraffic, run: Backtest, window: Window) -> DataFrame:
    """Spark reads the traffic once more for each action on it."""
    grouping, groups = run.grouping, frozenset(run.reported_targets)
    index = GroupIndex.of(recorded.series, grouping, groups)
    units = np.asarray([group.kind.amounts_a_unit for group in grouping.groups], dtype=np.float64)
    limits = BothLimits.of(grouping, window) if proves(window) else None

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        return second_rows(((key, amount) for key, amount in pieces), units, limits)

    work: GroupWork[pa.RecordBatch] = GroupWork(
        name="seconds of quota groups",
        columns=NEEDED,
        send=lambda batches: keyed_seconds(batches, index),
        judge=judge,
        schema=SECONDS,
        rows=rows_of_groups(recorded.series, grouping, groups),
        bits=SECOND_BITS,
    )
    targets = pa.RecordBatch.from_pylist([_target(grouping, number) for number in sorted(groups)], arrow_schema(_TARGETS))
    whole = rows.judged_frame(work).join(_frame(rows.spark, [targets], _TARGETS), "group")
    made = {name: F.when(F.col("has_rate"), F.col(name)) for name in _OF_RATES}
    made |= {"over_before": F.when(F.col("has_rate") & F.col("has_before"), F.col("over_before"))}
    made |= {"second": F.timestamp_seconds("second")}
    return whole.select(*(made.get(column.name, F.col(column.name)).alias(column.name) for column in SECONDS_SCHEMA.columns))


def _target(grouping: Grouping, number: int) -> dict[str, Any]:
    target, before = grouping.targets[number], grouping.groups[number].before
    return {
        "group": number,
        "has_rate": target.kind in SAMPLED,
        "has_before": before is not None,
        "key": target.kind.key.value,
        "broker": target.broker,
        "user": target.bucket.user or None,
        "client_id": target.bucket.client_id or None,
        "tags": list(target.bucket.other),
        "limit_before": None if before is None else before.limit,
        "limit_after": target.after.value,
    }
