"""A backtest on the Spark session of its caller: frames in, frames out, and nothing of the session changed.

The table of seconds (``model.SECONDS_SCHEMA``) has judged seconds, and the quota groups that they belong to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

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
from reconciler.traffic.columns import NEEDED, GroupIndex, keyed_seconds
from reconciler.traffic.judging.by_seconds import SECONDS, SecondsLimits, second_rows
from reconciler.traffic.judging.exact import limits_of
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.judging.verdicts import most_certain
from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers, Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS, proves
from reconciler.traffic.kernels.token_bucket import seconds_over
from reconciler.traffic.kinds import SAMPLED, ColumnMapping, Kind
from reconciler.traffic.request_traffic import RequestTraffic, SecondsTraffic
from reconciler.traffic.shuffle.block import Columns
from reconciler.traffic.shuffle.on_spark import SparkRows
from reconciler.traffic.shuffle.rows import GroupWork, LocalRows, Pieces
from reconciler.traffic.sources.normal_form import DELTA
from reconciler.traffic.sources.on_spark import rows_of_frame
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


def open_frame(frame: DataFrame, *, mapping: ColumnMapping | None, max_unreadable: float) -> SecondsTraffic:
    """The rows of a frame, which Spark reads anew for each pass.

    Raises ``TrafficError`` for a column that is missing or has another type, and when nothing can be used.
    """
    rows, kind, source = rows_of_session(frame, mapping)
    return require_usable(kind(rows, source=source, files=(FRAME_NAME,)), max_unreadable)


def rows_of_session(
    frame: DataFrame, mapping: ColumnMapping | None
) -> tuple[SparkRows[pa.RecordBatch], type[SecondsTraffic], Source]:
    """The rows of a frame, as which traffic they are judged, and the word for their source. Raises ``TrafficError``."""
    kind = SecondsTraffic if mapping is not None and mapping.semantics == DELTA else RequestTraffic
    source = Source.NORMAL_FORM if mapping is None else Source.MAPPED
    return rows_of_frame(frame, mapping, None, where=FRAME_NAME), kind, source


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


Item = TypeVar("Item")
_OF_RATES: Final = ("rate", "rate_low", "rate_high")
_OF_TARGETS: Final = ("key", "broker", "user", "client_id", "tags", "limit_before", "limit_after")
TARGETS: Final = FrameSchema(
    name="targets",
    version="1.0",
    columns=(
        FrameColumn(name="group", type="bigint", nullable=False, meaning="the number of the target"),
        FrameColumn(name="has_rate", type="boolean", nullable=False, meaning="a sampled rate limits the key"),
        FrameColumn(name="has_before", type="boolean", nullable=False, meaning="the clients shared the same limit before"),
        *(column for column in SECONDS_SCHEMA.columns if column.name in _OF_TARGETS),
    ),
)
OF_GROUPS: Final = pa.schema([*SECONDS, *(pa.field(f.name, f.type) for f in arrow_schema(TARGETS) if f.name != "group")])
"""``SECONDS`` with the columns of ``TARGETS``."""


def seconds_work(
    series: Sequence[Series],
    grouping: Grouping,
    groups: Collection[int],
    windows: tuple[Window, Window],
    send: Callable[[Iterable[Item]], Iterable[Columns]],
    columns: tuple[str, ...] = (),
) -> GroupWork[Item]:
    """Judges each second of these targets: ``SECONDS``. ``send`` and ``columns``: as ``GroupWork`` has them.

    ``windows``: the brokers' settings, and the controller's, by which mutations are judged.
    """
    window, controller_window = windows
    units = np.asarray([group.kind.amounts_a_unit for group in grouping.groups], dtype=np.float64)
    limits = SecondsLimits.of(grouping.groups, window) if proves(window) else None
    of_tokens = np.asarray([group.kind is Kind.MUTATION for group in grouping.groups], dtype=np.bool_)
    certain = np.full(len(grouping.groups), np.iinfo(np.int64).max, dtype=np.int64)
    for number, target in enumerate(grouping.targets):
        most = most_certain(target, series, window)
        certain[number] = certain[number] if most is None else most
    both = limits_of(grouping.groups)

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        mutations: list[tuple[Integers, Integers]] = []
        yield from second_rows(_sampled(pieces, of_tokens, mutations), units, limits, certain)
        yield from _token_rows(mutations, both, controller_window)

    return GroupWork(
        name="seconds of quota groups",
        columns=columns,
        send=send,
        judge=judge,
        schema=SECONDS,
        rows=rows_of_groups(series, grouping, groups),
        bits=SECOND_BITS,
    )


def _sampled(pieces: Pieces, of_tokens: Flags, mutations: list[tuple[Integers, Integers]]) -> Iterator[tuple[Integers, Integers]]:
    """Keys and amounts of groups that a sampled rate limits. Those of ``of_tokens``, by group, go to ``mutations``."""
    for key, amount in pieces:
        tokens = of_tokens[key >> SECOND_BITS]
        if tokens.any():
            mutations.append((key[tokens], amount[tokens]))
        yield key[~tokens], amount[~tokens]


def _token_rows(
    mutations: Sequence[tuple[Integers, Integers]], limits: tuple[Doubles, Doubles], window: Window
) -> Iterator[pa.RecordBatch]:
    """``SECONDS`` of the groups of mutations, which have no rate. ``limits``: by group, before and after."""
    if not mutations:
        return
    keys, place = np.unique(np.concatenate([key for key, _ in mutations]), return_inverse=True)
    amounts = np.bincount(place, weights=np.concatenate([amount for _, amount in mutations])).astype(np.int64)
    groups, seconds = keys >> SECOND_BITS, keys & (1 << SECOND_BITS) - 1
    for begin, end in itertools.pairwise([*np.flatnonzero(np.diff(groups, prepend=-1)).tolist(), len(groups)]):
        group, some, of_some = int(groups[begin]), seconds[begin:end], amounts[begin:end]
        _, before, _ = seconds_over(some, of_some, float(limits[0][group]), window)
        flags = (before, *seconds_over(some, of_some, float(limits[1][group]), window))
        rates = [pa.nulls(len(some), pa.float64()) for _ in range(3)]
        columns = [
            pa.array(groups[begin:end]),
            pa.array(some),
            pa.array(of_some.astype(np.float64)),
            *rates,
            *map(pa.array, flags),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SECONDS)


def target_rows(grouping: Grouping, groups: Collection[int]) -> pa.RecordBatch:
    """``TARGETS``, rising by number."""
    return pa.RecordBatch.from_pylist([_target(grouping, number) for number in sorted(groups)], arrow_schema(TARGETS))


def judge_seconds_here(work: GroupWork[Item], items: Iterable[Item], targets: pa.RecordBatch) -> pa.Table:
    """``OF_GROUPS``: each judged second with its target. ``targets``: from ``target_rows``."""
    judged = LocalRows(lambda _: items).judge(work)
    place = np.searchsorted(targets.column("group").to_numpy(), judged.column("group").to_numpy())
    chosen = pa.Table.from_batches([targets]).take(pa.array(place))
    columns = [*judged.columns, *(chosen.column(name) for name in OF_GROUPS.names[len(SECONDS) :])]
    return pa.table(columns, schema=OF_GROUPS)


def publish_seconds(judged: DataFrame) -> DataFrame:
    """The columns of ``SECONDS_SCHEMA``. ``judged``: with those of ``OF_GROUPS``."""
    made = {name: F.when(F.col("has_rate"), F.col(name)) for name in _OF_RATES}
    made |= {"over_before": F.when(F.col("has_before"), F.col("over_before"))}
    made |= {"second": F.timestamp_seconds("second")}
    return judged.select(*(made.get(column.name, F.col(column.name)).alias(column.name) for column in SECONDS_SCHEMA.columns))


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
