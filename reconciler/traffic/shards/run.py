"""A backtest in shards: verdicts stay with Spark's workers, and the driver gets the worst ones and what a report counts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.errors import UsageError
from reconciler.logs import log_event
from reconciler.model import (
    VERDICTS_SCHEMA,
    BacktestReport,
    BucketVerdict,
    Form,
    GroupCounts,
    Provenance,
    Verdict,
)
from reconciler.traffic.backtest import Backtest, BacktestRequest, WholeTraffic, is_exact, provenance_of
from reconciler.traffic.columns.charged import NEEDED
from reconciler.traffic.judging.findings import hit_findings, reason_findings, unkept_findings
from reconciler.traffic.judging.grouping import Series, Tables, quota_tables, resolve_series
from reconciler.traffic.judging.history_gaps import add_gaps, holes_of
from reconciler.traffic.judging.judged_quotas import (
    Quota,
    changed_quotas,
    changes_without_traffic,
    judged_by_states,
    unjudged_findings,
    unused_by,
)
from reconciler.traffic.judging.mutations import smaller_account
from reconciler.traffic.judging.recommendations import fits_from
from reconciler.traffic.judging.report_parts import ReportParts
from reconciler.traffic.judging.sharding import NO_NODE, ClientNodes, Shards, ids_of_names
from reconciler.traffic.judging.verdicts import worst_first
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kinds import KEY_OF_KIND, Kind
from reconciler.traffic.recording_gaps import gap_minutes
from reconciler.traffic.shards.blocks import ShardSender, shards_in
from reconciler.traffic.shards.opening import ShardedTraffic
from reconciler.traffic.shards.source import ShardRequests, ShardSeconds
from reconciler.traffic.shuffle.block import ROWS_A_PARTITION, SCHEMA
from reconciler.traffic.shuffle.on_spark import least_tasks
from reconciler.traffic.shuffle.shipped import Shipped, pack, unpack
from reconciler.traffic.sources.normal_form import CHARGED
from reconciler.traffic.spark_jobs import logged_stages
from reconciler.traffic.traffic_source import Facts
from reconciler.traffic.verdict_rows import arrow_schema, verdict_batches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_log: Final = logging.getLogger(__name__)
MOST_ROWS: Final = 1_000
"""Of the worst rows, so many are in the report."""
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
_PARTS: Final = "kafka_quotas_parts"
_ROW: Final = "kafka_quotas_row"
_FAILS: Final = "kafka_quotas_fails"
Failing: TypeAlias = Callable[[Sequence[BucketVerdict]], Sequence[BucketVerdict]]
"""The rows that a rule of the policy does not allow. It travels to the workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The quotas, in the form that every task needs."""

    question: BacktestRequest
    tables: tuple[Tables | None, Tables]
    nodes: ClientNodes

    @classmethod
    def of(cls, question: BacktestRequest) -> _Rules:
        """Of quotas and what is asked about them."""
        tables = quota_tables(question.current, question.proposed, question.rule, ())
        return cls(question=question, tables=tables, nodes=ClientNodes(*tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a worker needs to judge a shard, beside the quotas."""

    shards: Shards
    facts: Facts
    provenance: Provenance
    undecided: tuple[Series, ...]
    smaller_account: bool | None
    changed: frozenset[Quota]
    failing: Failing | None


class ShardedBacktest:
    """One run on Spark. ``report`` judges; ``verdicts`` then has all rows as a frame, until ``close``."""

    def __init__(self, traffic: ShardedTraffic, question: BacktestRequest, failing: Failing | None = None) -> None:
        """Raises ``UsageError`` for ``exact`` with sums of seconds."""
        if question.rule.callback is not None:
            raise UsageError("--out parquet= judges quota groups on workers, where no quota callback runs: leave one of both out")
        if question.exact and not traffic.facts_source.of_requests:
            raise UsageError("--exact needs single requests, and this traffic has sums of seconds: leave --exact out")
        self._traffic, self._question, self._failing = traffic, question, failing
        self._spark = traffic.rows.spark
        self._exact = traffic.facts_source.of_requests and is_exact(question)
        self._rules = Shipped(self._spark, question, _Rules.of)
        log_event(_log, "quotas broadcast", bytes=self._rules.size, entities=len(question.proposed))
        self._judged: DataFrame | None = None
        self._rows = 0

    def report(self) -> BacktestReport:
        """As ``Backtest.report``, with the worst rows only, and without plots and waiting clients."""
        question, facts = self._question, self._traffic.facts_source
        form = Form.EXACT if self._exact else Form.SECONDS
        holes = holes_of(facts.facts.coverage, facts.minutes(), gap_minutes(facts.facts.gaps))

        def provenance(*, is_unlimited: bool) -> Provenance:
            whole = provenance_of(question, facts, form, series=self._traffic.series, is_unlimited=is_unlimited)
            return replace(whole, coverage=add_gaps(whole.coverage, holes))

        self._judge(provenance(is_unlimited=False))
        parts = self._parts()
        self._rows = parts.rows
        unused = unused_by(parts.used, question.declared)
        quotas = question.current, question.proposed if question.current is not None else question.declared
        kinds = {client.kind for client in facts.series}
        unjudged = changes_without_traffic(parts.limiting.get, quotas, unused, kinds)
        sources = question.sources
        return BacktestReport(
            provenance=provenance(is_unlimited=parts.is_unlimited),
            verdicts=self._worst(),
            group_counts=GroupCounts(
                changed={verdict: parts.groups.get((True, verdict), 0) for verdict in Verdict},
                unchanged={verdict: parts.groups.get((False, verdict), 0) for verdict in Verdict},
                rows=parts.rows,
            ),
            unjudged=unjudged,
            judged=judged_by_states(self._changed, parts.states, unjudged),
            unused=unused,
            findings=(
                *hit_findings(parts.hits, sources, of_requests=facts.of_requests),
                *unkept_findings(parts.unkept, sources),
                *reason_findings(parts.reasons, parts.capacity),
                *unjudged_findings(unjudged, sources),
            ),
            fits=fits_from(parts.limited, source=facts.facts.source),
            capacity=parts.capacity,
        )

    @property
    def rows(self) -> int:
        """How many rows of verdicts there are, when ``report`` is done."""
        return self._rows

    @property
    def verdicts(self) -> DataFrame:
        """All rows, with the columns of ``VERDICTS_SCHEMA``, in no order."""
        assert self._judged is not None
        columns = [
            F.col(column.name).alias(column.name, metadata={"comment": column.meaning}) for column in VERDICTS_SCHEMA.columns
        ]
        rows = self._judged.where(F.col(_PARTS).isNull()).select(*columns)
        return rows.coalesce(-(-self._rows // _ROWS_A_FILE)) if self._rows else rows

    def close(self) -> None:
        """Release what Spark keeps; safe to call twice."""
        if self._judged is not None:
            self._judged.unpersist()
        self._rules.close()

    @cached_property
    def _changed(self) -> frozenset[Quota]:
        question = self._question
        after = question.declared if question.current is None else question.proposed
        return frozenset(changed_quotas(question.current, after))

    @property
    def _clients(self) -> DataFrame:
        return self._traffic.clients.where(F.col("status") == CHARGED)

    def _judge(self, provenance: Provenance) -> None:
        traffic, rules, exact, has_topics = self._traffic, self._rules, self._exact, self._traffic.has_topics
        lines = traffic.facts_source.facts.requests
        busy = min(least_tasks(self._spark), lines // _FEW_ROWS)
        count = max(busy, lines // ROWS_A_PARTITION, traffic.series // _SERIES_A_SHARD, 1)
        plan = _Plan(
            shards=Shards.of(self._links(), min(count, _MOST_SHARDS)),
            facts=traffic.facts_source.facts,
            provenance=provenance,
            undecided=self._undecided(),
            smaller_account=smaller_account(traffic.facts_source.series),
            changed=self._changed,
            failing=self._failing,
        )
        shipped = Shipped(self._spark, plan, _same)
        log_event(_log, "shuffle planned", what="shards", groups=traffic.series, partitions=plan.shards.count)

        def sender() -> ShardSender:
            return ShardSender(rules.built().nodes, shipped.built().shards, exact=exact, has_topics=has_topics)

        def send_totals(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sender().totals(batches)

        def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return sender().rows(batches)

        def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return judge_shards(batches, rules.built(), shipped.built(), of_requests=has_topics)

        needed = (*NEEDED, "tie", "strict", "part") if has_topics else NEEDED
        sent = traffic.rows.made_of_shares(send, needed, SCHEMA, few=False)
        names = self._clients.mapInArrow(send_totals, from_arrow_schema(SCHEMA))
        met = sent.unionAll(names).repartitionById(plan.shards.count, "partition").sortWithinPartitions("partition", "first")
        self._judged = met.mapInArrow(judge, from_arrow_schema(_OUT)).persist(StorageLevel.MEMORY_AND_DISK)

    def _links(self) -> Integers:
        """Pairs of groups, after and before, that share a client."""
        if self._question.current is None:
            return np.empty((0, 2), dtype=np.int64)
        rules = self._rules

        def link(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                names = [batch.column(name) for name in ("kind", "user", "client_id", "ip")]
                kind, user, client_id, ip = names
                nodes = rules.built().nodes.of(ids_of_names(*names), kind, user, client_id, ip)
                other = np.unique(nodes[(nodes[:, 1] != NO_NODE) & (nodes[:, 0] != nodes[:, 1])], axis=0)
                yield pa.RecordBatch.from_arrays([pa.array(other[:, 0]), pa.array(other[:, 1])], schema=_LINKS)

        with logged_stages(_log, self._spark, "quota groups linked") as event:
            linked = self._clients.mapInArrow(link, from_arrow_schema(_LINKS)).distinct().toArrow()
            event["results"] = linked.num_rows
        return np.stack([np.asarray(column.to_numpy(), dtype=np.int64) for column in linked.columns], axis=1)

    def _undecided(self) -> tuple[Series, ...]:
        """Series whose quotas depend on a name that the history lacks."""
        if not self._traffic.unnamed:
            return ()
        rules = self._rules

        def choose(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                chosen = [row for row in batch.select(_UNDECIDED.names).to_pylist() if _is_undecided(row, rules.built())]
                yield pa.RecordBatch.from_pylist(chosen, schema=_UNDECIDED)

        unnamed = self._clients.where("user is null or client_id is null")
        rows = unnamed.mapInArrow(choose, from_arrow_schema(_UNDECIDED)).toArrow().to_pylist()
        return tuple(map(_series_of, rows))

    def _parts(self) -> ReportParts:
        assert self._judged is not None
        with logged_stages(_log, self._spark, "shards judged") as event:
            packed = self._judged.where(F.col(_PARTS).isNotNull()).select(_PARTS).toArrow().column(0)
            event["results"] = len(packed)
        return ReportParts.join(unpack(part.as_py()) for part in packed)

    def _worst(self) -> tuple[BucketVerdict, ...]:
        """The worst rows of the report, and those that fail a rule."""
        assert self._judged is not None
        chosen = self._judged.where(F.col(_ROW).isNotNull()).orderBy(*_worst_columns())
        rows = chosen.limit(MOST_ROWS).select(_ROW).toArrow().column(0).to_pylist()
        if self._failing is not None:
            rows += chosen.where(F.col(_FAILS)).limit(MOST_FAILING).select(_ROW).toArrow().column(0).to_pylist()
        verdicts = {packed: unpack(packed) for packed in rows}
        return tuple(sorted(verdicts.values(), key=worst_first))


_OUT: Final = pa.schema(
    [
        *(pa.field(field.name, field.type) for field in arrow_schema(VERDICTS_SCHEMA)),
        (_PARTS, pa.binary()),
        (_ROW, pa.binary()),
        (_FAILS, pa.bool_()),
    ]
)
"""Rows of verdicts; and a row with the parts of each shard's report, without a verdict."""
_RANKS: Final = (Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR)


def _worst_columns() -> list[Column]:
    """``worst_first`` in Spark."""
    rank = F.array_position(F.array(*(F.lit(verdict.value) for verdict in _RANKS)), F.col("verdict"))
    names = [F.col(name).asc_nulls_first() for name in ("key", "user", "client_id", "broker")]
    return [rank.asc(), F.col("changed").desc(), F.col("share_over").desc(), F.col("seconds_over").desc(), *names]


def judge_shards(batches: Iterable[pa.RecordBatch], rules: _Rules, plan: _Plan, *, of_requests: bool) -> Iterator[pa.RecordBatch]:
    """``_OUT`` of the shards of a task."""
    for blocks in shards_in(batches):
        source = (ShardRequests if of_requests else ShardSeconds)(blocks, plan.facts)
        whole = WholeTraffic(
            tables=rules.tables,
            provenance=plan.provenance,
            undecided=_others(plan.undecided, source.series),
            smaller_account=plan.smaller_account,
        )
        yield from _rows_of_shard(Backtest(source, rules.question, whole), plan)


def _rows_of_shard(run: Backtest, plan: _Plan) -> Iterator[pa.RecordBatch]:
    verdicts, parts = run.shard(plan.changed)
    failing = {id(verdict) for verdict in plan.failing(verdicts)} if plan.failing is not None else set[int]()
    shown = [verdict for verdict in verdicts if verdict.changed or verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]
    kept = {id(verdict) for verdict in shown[:MOST_ROWS]} | failing
    begin = 0
    for batch in verdict_batches(verdicts):
        some = verdicts[begin : begin + batch.num_rows]
        begin += batch.num_rows
        packed = [pack(verdict) if id(verdict) in kept else None for verdict in some]
        flags = [id(verdict) in failing for verdict in some]
        columns = [*batch.columns, pa.nulls(len(some), pa.binary()), pa.array(packed, pa.binary()), pa.array(flags, pa.bool_())]
        yield pa.RecordBatch.from_arrays(columns, schema=_OUT)
    empty = [pa.nulls(1, field.type) for field in _OUT]
    empty[_OUT.get_field_index(_PARTS)] = pa.array([pack(parts)], pa.binary())
    yield pa.RecordBatch.from_arrays(empty, schema=_OUT)


def _others(undecided: Sequence[Series], own: Sequence[Series]) -> tuple[Series, ...]:
    """Those of other shards."""
    if not undecided:
        return ()
    known = {client.sort_key for client in own}
    return tuple(client for client in undecided if client.sort_key not in known)


def _is_undecided(row: dict[str, Any], rules: _Rules) -> bool:
    client = _series_of(row)
    limits: Any = rules.tables[1][KEY_OF_KIND[client.kind]]
    return resolve_series(limits, client) is None


def _series_of(row: dict[str, Any]) -> Series:
    kind = Kind(row["kind"])
    return Series(
        broker=row["broker"], kind=kind, user=row["user"], client_id=row["client_id"], ip=row["ip"], requests=0, amount=0
    )


def _same(plan: _Plan) -> _Plan:
    return plan
