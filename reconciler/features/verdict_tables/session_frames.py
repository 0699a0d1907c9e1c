"""A backtest on the Spark session of its caller: frames in, frames out, and nothing of the session changed.

The table of seconds (``model.SECONDS_SCHEMA``) has judged seconds, and the quota groups that they belong to.
"""

from __future__ import annotations

import contextlib
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
from reconciler.features.verdict_tables.verdict_rows import arrow_schema, recommendation_batches, verdict_batches
from reconciler.model import (
    RECOMMENDATIONS_SCHEMA,
    SECONDS_SCHEMA,
    VERDICTS_SCHEMA,
    BacktestReport,
    FrameColumn,
    FrameSchema,
    escaped,
)
from reconciler.traffic import (
    DEFAULT_WINDOW,
    DELTA,
    NEEDED,
    SAMPLED,
    SECOND_BITS,
    Backtest,
    ColumnMapping,
    Columns,
    Doubles,
    Flags,
    GroupIndex,
    Grouping,
    GroupWork,
    Integers,
    Kind,
    LocalRows,
    Pieces,
    RequestTraffic,
    SecondsLimits,
    SecondsTraffic,
    SecondStream,
    Series,
    Source,
    SparkRows,
    Window,
    frame_of_table,
    keyed_seconds,
    limits_of,
    most_certain,
    proves,
    raise_as_sentences,
    require_usable,
    rows_of_frame,
    rows_of_groups,
    seconds_over,
)
from reconciler.traffic import spark_reason as reason
from reconciler.workflows import BacktestOptions, Proposal, apply_rules, backtest_request, failing_rows, read_trusted_mapping

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
    grouping, groups = run.groups.grouping, frozenset(run.groups.reported_targets)
    index = GroupIndex.of(recorded.series, grouping, groups)
    work: GroupWork[pa.RecordBatch] = seconds_work(
        recorded.series, grouping, groups, windows, send=lambda batches: keyed_seconds(batches, index), columns=NEEDED
    )
    targets = _frame(rows.spark, [target_rows(grouping, groups)], TARGETS)
    return publish_seconds(rows.judged_frame(work).join(targets, "group"))


Item = TypeVar("Item")
_SECOND: Final = (1 << SECOND_BITS) - 1
SECONDS: Final = pa.schema(
    [
        *(pa.field(name, pa.int64(), nullable=False) for name in ("group", "second")),
        pa.field("amount", pa.float64(), nullable=False),
        *((name, pa.float64()) for name in ("rate_low", "rate", "rate_high")),
        *((name, pa.bool_()) for name in ("over_before", "certain", "over", "possible")),
    ]
)
"""One row a second (since 1970) of a group; amounts and rates in the unit of the key. What is not known is null."""
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


def second_rows(
    cells: Iterable[tuple[Integers, Integers]], units: Doubles, limits: SecondsLimits | None, most_certain: Integers
) -> Iterator[pa.RecordBatch]:
    """``SECONDS`` from batches of keys and amounts in rising order of their keys.

    ``units``: by group number how many amounts are one unit of its key. Without ``limits``, rates are not known.
    ``most_certain``: by group how many of its seconds can be certainly over: 0, 1 for the first one, or more for all.
    """
    has_certain, stream = -1, SecondStream(DEFAULT_WINDOW if limits is None else limits.window)
    before, after = (None, None) if limits is None else limits.throttled()
    for keys, amounts in stream.whole(cells):
        groups = keys >> SECOND_BITS
        unit = units[groups]
        columns = [pa.array(groups), pa.array(keys & _SECOND), pa.array(amounts / unit)]
        if before is None or after is None:
            columns += [pa.nulls(len(keys), field.type) for field in list(SECONDS)[3:]]
        else:
            bounded = stream.bounds(np.stack((keys, amounts)))
            columns += [pa.array(rate / unit) for rate in (bounded.lower, bounded.expected, bounded.upper)]
            certain, *others = bounded.over(after.at(groups))
            most = np.where(groups == has_certain, most_certain[groups] - 1, most_certain[groups])
            certain &= most > 0
            places = np.flatnonzero(certain)
            first = places[np.unique(groups[places], return_index=True)[1]]
            certain &= (most > 1) | np.isin(np.arange(len(certain)), first)
            has_certain = int(groups[first[-1]]) if len(first) else has_certain
            columns += [pa.array(flags) for flags in (bounded.over(before.at(groups))[1], certain, *others)]
        yield pa.RecordBatch.from_arrays(columns, schema=SECONDS)


def backtest_in_session(
    spark: Any, traffic: object, proposal: Proposal, options: BacktestOptions, *, in_shards: bool
) -> tuple[BacktestReport, SessionFrames]:
    """Judge ``traffic``, a frame of Spark or the name of a table, with Spark as the program has configured it.

    ``in_shards``: workers judge quota groups in shards and keep their rows: no list of clients comes to the driver.
    Raises ``UsageError`` for arguments that cannot work, ``TrafficError`` for traffic that cannot be used, and
    ``MissingDependencyError`` without the packages.
    """
    from reconciler.features.verdict_tables.sharded import ShardedBacktest, open_sharded_frame

    question = backtest_request(proposal, options)
    mapping = read_trusted_mapping(options.mapping, proposal.trusted)
    if mapping is not None and mapping.metrics:
        raise UsageError("The mapping has metrics of a server. For a DataFrame, write spec.columns")
    with raise_as_sentences("this session"), contextlib.ExitStack() as stack:
        frame = frame_of(spark, traffic)
        if not in_shards:
            recorded = open_frame(frame, mapping=mapping, max_unreadable=options.max_unreadable)
            _require_requests(options, of_requests=recorded.of_requests)
            run = Backtest(recorded, question)
            report = apply_rules(run.report(), proposal)
            return report, frames_of_report(report, recorded, run, (question.broker.window, question.broker.controller_window))
        sharded = open_sharded_frame(frame, mapping=mapping, max_unreadable=options.max_unreadable)
        stack.callback(sharded.close)
        _require_requests(options, of_requests=sharded.has_topics)
        shards = ShardedBacktest(sharded, question, failing_rows(proposal), advises=True)
        stack.callback(shards.close)
        report = apply_rules(shards.report(), proposal)
        # On the way without an error, Spark keeps the rows until the caller closes them.
        kept = stack.pop_all()
        return report, SessionFrames(
            verdicts=shards.verdicts, seconds=shards.seconds, recommendations=shards.recommendations, close=kept.close
        )


def _require_requests(options: BacktestOptions, *, of_requests: bool) -> None:
    if options.exact and not of_requests:
        raise UsageError("exact needs single requests, and this traffic has none: leave exact out")
