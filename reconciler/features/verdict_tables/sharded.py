"""A backtest in shards: clients and verdicts stay with Spark's workers, the driver gets totals, counts and the worst rows."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from reconciler.errors import UsageError
from reconciler.features.verdict_tables.blocks import NO_NODE, Shards, ShardSender
from reconciler.features.verdict_tables.session_frames import FRAME_NAME, OF_GROUPS, publish_seconds, rows_of_session
from reconciler.features.verdict_tables.worker import (
    ADVICE,
    FAILS,
    MOST_ROWS,
    OUT,
    PACKED_PARTS,
    PACKED_ROW,
    PARTS,
    ROW,
    Failing,
    ShardPlan,
    ShardRules,
    judge_shards,
    seconds_of_shards,
    series_of_row,
)
from reconciler.logs import log_event
from reconciler.model import (
    RECOMMENDATIONS_SCHEMA,
    VERDICTS_SCHEMA,
    BacktestReport,
    BucketVerdict,
    Form,
    Provenance,
    Verdict,
)
from reconciler.traffic import BLOCK_SCHEMA as SCHEMA
from reconciler.traffic import (
    CHARGED,
    CLIENT_TOTALS,
    DEFAULT_MOST,
    DELTA,
    NEEDED,
    OF_METRICS,
    ROWS_A_PARTITION,
    SECOND_SUM,
    BacktestRequest,
    DayTotals,
    Integers,
    KeptRows,
    Kind,
    Reading,
    ReportParts,
    RequestTraffic,
    SecondsTraffic,
    Series,
    Shipped,
    SparkRows,
    Totals,
    Traffic,
    charge_batches,
    check_zone,
    collect_table,
    form_of,
    keep_sums,
    least_tasks,
    logged_stages,
    open_days,
    provenance_of,
    recording_holes,
    repartition_by_number,
    report_of,
    require_usable,
    rows_for_workers,
    smaller_account,
    statuses,
    worst_first,
)
from reconciler.traffic import CLIENT_FOLDS as FOLDS
from reconciler.traffic import CLIENT_NAMES as NAMES
from reconciler.traffic import CLIENT_SCHEMA as TOTALS
from reconciler.traffic import SUM_COLUMNS as KEYED
from reconciler.traffic import TOTALS_OF_SUMS as ONE_PASS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_log: Final = logging.getLogger(__name__)
MOST_FAILING: Final = 10_000
"""Of rows that fail a rule, so many."""
_SERIES_A_SHARD: Final = 10_000
"""A series and its verdict take some 8 KB of a worker's Python."""
_FEW_ROWS: Final = 20_000
"""Of traffic: fewer are not worth a shard of their own."""
_MOST_SHARDS: Final = 1 << 14
_ROWS_A_FILE: Final = 500_000
"""Of verdicts."""
_LINKS: Final = pa.schema([("after", pa.int64()), ("before", pa.int64())])
_UNDECIDED: Final = pa.schema([("broker", pa.int32()), *((name, pa.string()) for name in ("kind", "user", "client_id", "ip"))])


class ShardedBacktest:
    """One run on Spark. ``report`` judges; ``verdicts`` then has all rows as a frame, until ``close``."""

    def __init__(
        self,
        traffic: ShardedTraffic,
        question: BacktestRequest,
        failing: Failing | None = None,
        *,
        advises: bool = False,
    ) -> None:
        """``advises``: rows of recommendations are wanted. Raises ``UsageError`` for ``exact`` with sums of seconds."""
        if question.calls_back:
            raise UsageError(
                "--out parquet= and in_shards judge quota groups on workers, where no quota callback runs: leave one of both out"
            )
        self._traffic, self._question, self._failing = traffic, question, failing
        self._spark = traffic.rows.spark
        self._form = form_of(question, has_requests=traffic.facts_source.of_requests)
        self._rules = Shipped(self._spark, question, ShardRules.of)
        log_event(_log, "quotas broadcast", bytes=self._rules.size, entities=len(question.proposed))
        self._advises = advises
        self._plan: Shipped[ShardPlan, ShardPlan] | None = None
        self._judged: DataFrame | None = None
        self._count = self._rows = 0

    def report(self) -> BacktestReport:
        """Judge, and return the report with the worst rows only, and without plots."""
        question, recorded = self._question, self._traffic.facts_source
        provenance = provenance_of(question, recorded, self._form, recording_holes(recorded))
        self._judge(provenance)
        parts = self._parts()
        self._rows = parts.rows
        return report_of(question, recorded, provenance, parts, self._worst())

    @property
    def rows(self) -> int:
        """The number of rows of verdicts, when ``report`` is done."""
        return self._rows

    @property
    def verdicts(self) -> DataFrame:
        """All rows, with the columns of ``VERDICTS_SCHEMA``, in no order."""
        assert self._judged is not None
        columns = [
            F.col(column.name).alias(column.name, metadata={"comment": column.meaning}) for column in VERDICTS_SCHEMA.columns
        ]
        rows = self._judged.where(F.col(PARTS).isNull()).select(*columns)
        return rows.coalesce(-(-self._rows // _ROWS_A_FILE)) if self._rows else rows

    @property
    def recommendations(self) -> DataFrame:
        """A row for each quota group, with the columns of ``RECOMMENDATIONS_SCHEMA``, in no order, where that was wanted."""
        assert self._judged is not None

        def unpack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for packed in (value for batch in batches for value in batch.column(0)):
                with pa.ipc.open_stream(packed.as_buffer()) as stream:
                    yield from stream

        chosen = self._judged.where(F.col(ADVICE).isNotNull()).select(ADVICE)
        return chosen.mapInArrow(unpack_rows, StructType.fromJson(RECOMMENDATIONS_SCHEMA.to_spark()))

    @property
    def seconds(self) -> DataFrame:
        """A row for each second of a quota group on a broker, with the columns of ``SECONDS_SCHEMA``.

        Each action on it reads the traffic once more.
        """
        rules, shipped = self._rules, self._plan
        assert shipped is not None

        def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return seconds_of_shards(batches, rules.built(), shipped.built())

        return publish_seconds(self._met(exact=False, has_topics=False).mapInArrow(judge, from_arrow_schema(OF_GROUPS)))

    def close(self) -> None:
        """Release what Spark keeps; safe to call twice."""
        if self._judged is not None:
            self._judged.unpersist()
        if self._plan is not None:
            self._plan.close()
        self._rules.close()

    @property
    def _clients(self) -> DataFrame:
        return self._traffic.clients.where(F.col("status") == CHARGED)

    def _judge(self, provenance: Provenance) -> None:
        traffic = self._traffic
        lines = traffic.facts_source.facts.requests
        busy = min(least_tasks(self._spark), lines // _FEW_ROWS)
        count = max(busy, lines // ROWS_A_PARTITION, traffic.series // _SERIES_A_SHARD, 1)
        plan = ShardPlan(
            shards=Shards.of(self._links(), min(count, _MOST_SHARDS)),
            provenance=provenance,
            undecided=self._undecided(),
            smaller_account=smaller_account(traffic.facts_source.series),
            failing=self._failing,
            states_throttles=self._traffic.facts_source.states_throttles,
            advises=self._advises,
        )
        self._plan = Shipped(self._spark, plan, ShardPlan.keep)
        self._count = plan.shards.count
        log_event(_log, "shuffle planned", what="shards", groups=traffic.series, partitions=self._count)
        rules, shipped, of_requests = self._rules, self._plan, traffic.has_topics

        def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return judge_shards(batches, rules.built(), shipped.built(), of_requests=of_requests)

        met = self._met(exact=self._form is Form.EXACT, has_topics=traffic.has_topics)
        self._judged = met.mapInArrow(judge, from_arrow_schema(OUT)).persist(StorageLevel.MEMORY_AND_DISK)

    def _met(self, *, exact: bool, has_topics: bool) -> DataFrame:
        """Blocks of clients and of their rows, those of a shard together. ``exact`` and ``has_topics``: as ``ShardSender``."""
        rules, plan = self._rules, self._plan
        assert plan is not None

        def sender() -> ShardSender:
            return ShardSender(rules.built().nodes, plan.built().shards, exact=exact, has_topics=has_topics)

        def send_totals(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sender().totals(batches)

        def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sender().rows(batches)

        def send_sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sender().sums(batches)

        sums = self._traffic.sums
        topics = has_topics and any(client.kind is Kind.MUTATION for client in self._traffic.facts_source.series)
        if sums is not None and not exact and not topics:
            sent = sums.made_of_shares(send_sums, KEYED, SCHEMA, few=False)
        else:
            needed = (*NEEDED, "tie", "strict", "part") if has_topics else NEEDED
            sent = self._traffic.rows.made_of_shares(send, needed, SCHEMA, few=False)
        blocks = sent.unionAll(self._clients.mapInArrow(send_totals, from_arrow_schema(SCHEMA)))
        return repartition_by_number(blocks, self._count, "partition").sortWithinPartitions("partition", "first")

    def _links(self) -> Integers:
        """Pairs of groups, after and before, that share a client."""
        if self._question.current is None:
            return np.empty((0, 2), dtype=np.int64)
        rules = self._rules

        def link(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                names = (batch.column(name) for name in ("kind", "user", "client_id", "ip"))
                after, before = rules.built().nodes.of_names(*names).T
                # A client whose earlier group is not known is in a group that it was perhaps not in before.
                pairs = np.stack((after, np.where(before == NO_NODE, after, before)), axis=1)
                other = np.unique(pairs[after != before], axis=0)
                yield pa.RecordBatch.from_arrays([pa.array(other[:, 0]), pa.array(other[:, 1])], schema=_LINKS)

        with logged_stages(_log, self._spark, "quota groups linked") as event:
            linked = collect_table(self._clients.mapInArrow(link, from_arrow_schema(_LINKS)).distinct())
            event["results"] = linked.num_rows
        return np.stack([np.asarray(column.to_numpy(), dtype=np.int64) for column in linked.columns], axis=1)

    def _undecided(self) -> tuple[Series, ...]:
        """Series whose quotas depend on a name that the history lacks."""
        if not self._traffic.unnamed:
            return ()
        rules = self._rules

        def choose(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                chosen = [
                    row for row in batch.select(_UNDECIDED.names).to_pylist() if rules.built().is_undecided(series_of_row(row))
                ]
                yield pa.RecordBatch.from_pylist(chosen, schema=_UNDECIDED)

        unnamed = self._clients.where("user is null or client_id is null")
        rows = collect_table(unnamed.mapInArrow(choose, from_arrow_schema(_UNDECIDED))).to_pylist()
        return tuple(map(series_of_row, rows))

    def _parts(self) -> ReportParts:
        assert self._judged is not None
        with logged_stages(_log, self._spark, "shards judged") as event:
            packed = collect_table(self._judged.where(F.col(PARTS).isNotNull()).select(PARTS)).column(0)
            event["results"] = len(packed)
        return ReportParts.merge(PACKED_PARTS.unpack(part.as_py()) for part in packed)

    def _worst(self) -> tuple[BucketVerdict, ...]:
        """The worst rows of the report, and those that fail a rule."""
        assert self._judged is not None
        chosen = self._judged.where(F.col(ROW).isNotNull()).orderBy(*_worst_columns())
        rows = collect_table(chosen.limit(MOST_ROWS).select(ROW)).column(0).to_pylist()
        if self._failing is not None:
            rows += collect_table(chosen.where(F.col(FAILS)).limit(MOST_FAILING).select(ROW)).column(0).to_pylist()
        verdicts = {packed: PACKED_ROW.unpack(packed) for packed in rows}
        return tuple(sorted(verdicts.values(), key=worst_first))


_RANKS: Final = (Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR)


def _worst_columns() -> list[Column]:
    """``worst_first`` in Spark."""
    ranks = ", ".join(f"'{verdict.value}'" for verdict in _RANKS)
    rank = F.expr(f"array_position(array({ranks}), verdict)")
    names = [F.col(name).asc_nulls_first() for name in ("key", "user", "client_id", "broker")]
    return [rank.asc(), F.col("changed").desc(), F.col("share_over").desc(), F.col("seconds_over").desc(), *names]


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic import ColumnMapping

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
    close: Callable[[], None]
    """Releases what Spark keeps; safe to call twice."""

    @property
    def has_topics(self) -> bool:
        """Whether mutations are there topic by topic."""
        return self.facts_source.of_requests


def open_sharded(
    traffic: Traffic,
    spark: SparkSession,
    reading: Reading,
    *,
    max_unreadable: float = DEFAULT_MOST,
) -> ShardedTraffic | None:
    """Open rows for shards. ``None``: it has metrics, or no rows that workers read, so that all clients come to the driver.

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
        opened.facts_source.facts = chosen.with_remarks(opened.facts_source.facts)
    return opened


def open_sharded_frame(frame: DataFrame, *, mapping: ColumnMapping | None, max_unreadable: float) -> ShardedTraffic:
    """The same of the rows of a frame, as ``open_frame`` has them. Raises ``UsageError`` for metrics."""
    rows, kind, source = rows_of_session(frame, mapping)

    def make(converted: SparkRows[pa.RecordBatch], counted: pa.Table) -> SecondsTraffic:
        judged_as = kind if converted is rows else SecondsTraffic
        return judged_as(converted, source=source, files=(FRAME_NAME,), counted=counted)

    opened = _opened(rows, make, max_unreadable)
    if opened is None:
        raise UsageError("in_shards is for requests and per-second totals, and this traffic has metrics: leave in_shards out")
    return opened


def _opened(
    rows: SparkRows[pa.RecordBatch],
    make: Callable[[SparkRows[pa.RecordBatch], pa.Table], SecondsTraffic],
    max_unreadable: float,
    *,
    by_seconds: bool = False,
) -> ShardedTraffic | None:
    def kept(rows: SparkRows[pa.RecordBatch], work: Totals[pa.RecordBatch]) -> DataFrame:
        totals = rows.totals_frame(work, few=False).persist(StorageLevel.MEMORY_AND_DISK)
        stack.callback(totals.unpersist)
        return totals

    with contextlib.ExitStack() as stack:
        stack.callback(rows.close)
        sums, converted = None, rows
        if by_seconds:
            sums = keep_sums(rows)
            stack.callback(sums.close)
        clients = kept(rows, CLIENT_TOTALS) if sums is None else kept(sums, ONE_PASS[0])
        counted = _in_brief(clients)
        if statuses(counted).get(SECOND_SUM):
            sums, converted = None, rows.map(charge_batches, ("status",))
            clients = kept(converted, CLIENT_TOTALS)
            counted = _in_brief(clients)
        lines = statuses(counted)
        if any(lines.get(status) for status in OF_METRICS):
            return None
        recorded = make(converted, counted)
        series, unnamed = _series(clients)
        of_series = (replace(known, series=series) for known in recorded.facts.observations)
        recorded.facts = replace(recorded.facts, observations=tuple(of_series))
        require_usable(recorded, max_unreadable)
        return ShardedTraffic(
            rows=converted,
            clients=clients,
            sums=sums,
            facts_source=recorded,
            series=series,
            unnamed=unnamed,
            close=stack.pop_all().close,
        )


def _in_brief(clients: DataFrame) -> pa.Table:
    """``client_totals.SCHEMA`` without the names of clients."""
    folds = [_SPARK_FOLDS[fold](name).alias(name) for name, fold in FOLDS.items()]
    others = [F.lit(None).cast("string").alias(name) for name in NAMES if name not in _IN_BRIEF]
    with logged_stages(_log, clients.sparkSession, "clients added up") as event:
        counted = collect_table(clients.groupBy(*_IN_BRIEF).agg(*folds).select(*_IN_BRIEF, *others, *FOLDS))
        event["results"] = counted.num_rows
    return counted.select(TOTALS.names).cast(TOTALS)


def _series(clients: DataFrame) -> tuple[int, int]:
    """Count the series, and those of them that lack a name."""
    lacks = F.when(F.col("kind") == Kind.CONNECTION.value, F.col("ip").isNull())
    unnamed = lacks.otherwise(F.col("user").isNull() | F.col("client_id").isNull())
    chosen = clients.where(F.col("status") == CHARGED)
    row: Any = chosen.agg(F.count("*"), F.sum(unnamed.cast("long"))).collect()[0]
    return int(row[0]), int(row[1] or 0)
