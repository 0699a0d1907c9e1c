"""A backtest on the Spark session of its caller: frames in, frames out, and nothing of the session changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from reconciler.errors import TrafficError, UsageError
from reconciler.model import (
    RECOMMENDATIONS_SCHEMA,
    VERDICTS_SCHEMA,
    BacktestReport,
    FrameSchema,
    escaped,
)
from reconciler.traffic.backtest import Backtest
from reconciler.traffic.columns.charged import NEEDED
from reconciler.traffic.columns.group_index import GroupIndex, keyed_seconds
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.request_traffic import RequestTraffic, SecondsTraffic
from reconciler.traffic.second_frames import TARGETS, publish_seconds, seconds_work, target_rows
from reconciler.traffic.shuffle.on_spark import SparkRows
from reconciler.traffic.shuffle.rows import GroupWork
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import DELTA
from reconciler.traffic.sources.on_spark import rows_of_frame
from reconciler.traffic.sources.parquet_parts import Between
from reconciler.traffic.spark_jobs import reason
from reconciler.traffic.spark_versions import frame_of_table
from reconciler.traffic.traffic_files import require_usable
from reconciler.traffic.traffic_source import Source
from reconciler.traffic.verdict_rows import arrow_schema, recommendation_batches, verdict_batches

FRAME_NAME: Final = "DataFrame"
"""The file of the report."""


def keep_nothing() -> None:
    """Spark keeps nothing for the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFrames:
    """The tables of a backtest, on the session of its traffic. ``close`` releases what Spark keeps for them."""

    verdicts: DataFrame
    seconds: DataFrame
    recommendations: DataFrame
    close: Callable[[], None] = keep_nothing


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
    rows, kind, source = rows_of_session(frame, mapping, between)
    return require_usable(kind(rows, source=source, files=(FRAME_NAME,)), max_unreadable)


def rows_of_session(
    frame: DataFrame, mapping: TrafficMapping | None, between: Between | None
) -> tuple[SparkRows[pa.RecordBatch], type[SecondsTraffic], Source]:
    """The rows of a frame, as which traffic they are judged, and the word for their source. Raises ``TrafficError``."""
    kind = SecondsTraffic if mapping is not None and mapping.semantics == DELTA else RequestTraffic
    source = Source.NORMAL_FORM if mapping is None else Source.MAPPED
    return rows_of_frame(frame, mapping, between, where=FRAME_NAME), kind, source


def frames_of_report(
    report: BacktestReport, recorded: SecondsTraffic, run: Backtest, windows: tuple[Window, Window]
) -> SessionFrames:
    """The tables of a report of ``run`` on ``recorded``, which comes from ``open_frame``."""
    rows = recorded.rows
    assert isinstance(rows, SparkRows)
    return SessionFrames(
        verdicts=_frame(rows.spark, verdict_batches(report.verdicts), VERDICTS_SCHEMA),
        seconds=_seconds(rows, recorded, run, windows),
        recommendations=_frame(rows.spark, recommendation_batches(report.verdicts), RECOMMENDATIONS_SCHEMA),
    )


def _frame(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: FrameSchema) -> DataFrame:
    table = pa.Table.from_batches(batches, arrow_schema(schema))
    return frame_of_table(spark, table, StructType.fromJson(schema.to_spark()))


def _seconds(
    rows: SparkRows[pa.RecordBatch], recorded: SecondsTraffic, run: Backtest, windows: tuple[Window, Window]
) -> DataFrame:
    """Spark reads the traffic once more for each action on it."""
    grouping, groups = run.grouping, frozenset(run.reported_targets)
    index = GroupIndex.of(recorded.series, grouping, groups)
    work: GroupWork[pa.RecordBatch] = seconds_work(
        recorded.series, grouping, groups, windows, send=lambda batches: keyed_seconds(batches, index), columns=NEEDED
    )
    targets = _frame(rows.spark, [target_rows(grouping, groups)], TARGETS)
    return publish_seconds(rows.judged_frame(work).join(targets, "group"))
