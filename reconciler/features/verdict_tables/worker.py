"""What a worker does with its shards: rows of verdicts, and each shard's parts of the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.collector import pause_collector
from reconciler.features.verdict_tables.blocks import (
    ClientNodes,
    RowForm,
    ShardBlocks,
    Shards,
    require_known,
    series_numbers,
    shards_in,
)
from reconciler.features.verdict_tables.session_frames import judge_seconds_here, seconds_work, target_rows
from reconciler.features.verdict_tables.typed_values import TypedValues
from reconciler.features.verdict_tables.verdict_rows import arrow_schema, pack_recommendations, verdict_batches
from reconciler.model import VERDICTS_SCHEMA, BucketVerdict, Provenance, Verdict
from reconciler.traffic import EXACT_SCHEMA as EXACT
from reconciler.traffic import (
    BacktestRequest,
    ExactResult,
    Grouping,
    GroupJudge,
    GroupVerdict,
    Integers,
    KeyIndex,
    Kind,
    LocalRows,
    Pieces,
    QuotaGroups,
    ReportParts,
    Series,
    Tables,
    Window,
    cut_into_pieces,
    judge_requests_of,
    judge_seconds,
    judge_topics,
    limits_of,
    quota_tables,
    request_verdicts,
    resolve_series,
    result_of,
    rows_of_groups,
    sampled_groups,
    seconds_verdicts,
    sort_by_key,
    sorted_series,
    tokens_by_seconds,
    whole_groups,
)
from reconciler.traffic import ReplayWork as Work
from reconciler.traffic import key_of_time as pack

MOST_ROWS: Final = 1_000
"""Of the worst rows, so many are in the report."""
PARTS: Final = "kafka_quotas_parts"
ROW: Final = "kafka_quotas_row"
FAILS: Final = "kafka_quotas_fails"
ADVICE: Final = "kafka_quotas_advice"
OUT: Final = pa.schema(
    [
        *(pa.field(field.name, field.type) for field in arrow_schema(VERDICTS_SCHEMA)),
        (PARTS, pa.binary()),
        (ROW, pa.binary()),
        (FAILS, pa.bool_()),
        (ADVICE, pa.binary()),
    ]
)
"""Rows of verdicts; and a row with the parts of each shard's report and its recommendations, without a verdict."""
PACKED_PARTS: Final = TypedValues(ReportParts)
PACKED_ROW: Final = TypedValues(BucketVerdict)
Failing: TypeAlias = Callable[[Sequence[BucketVerdict]], Sequence[BucketVerdict]]
"""The rows that a rule of the policy does not allow. It travels to the workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRules:
    """The quotas, in the form that every task needs."""

    question: BacktestRequest
    tables: tuple[Tables | None, Tables]
    nodes: ClientNodes

    @classmethod
    def of(cls, question: BacktestRequest) -> ShardRules:
        """Prepare the quotas and what is asked about them."""
        tables = quota_tables(question.current, question.proposed, question.broker.rule, ())
        return cls(question=question, tables=tables, nodes=ClientNodes(*tables))

    def is_undecided(self, client: Series) -> bool:
        """Whether the proposed quota of a client depends on a name that the history lacks."""
        limits: Any = self.tables[1][client.kind.key]
        return resolve_series(limits, client) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPlan:
    """What a worker needs to judge a shard, beside the quotas: facts of all traffic.

    ``undecided``: series of any shard whose quotas are not decided. ``smaller_account``: as ``smaller_account`` has it.
    ``advises``: rows of recommendations are wanted. ``states_throttles``: as ``GroupJudge`` has it.
    """

    shards: Shards
    provenance: Provenance
    undecided: tuple[Series, ...]
    smaller_account: bool | None
    failing: Failing | None
    advises: bool
    states_throttles: bool

    def keep(self) -> ShardPlan:
        """Return the plan as it is: workers need no other form of it."""
        return self


def judge_shards(
    batches: Iterable[pa.RecordBatch], rules: ShardRules, plan: ShardPlan, *, of_requests: bool
) -> Iterator[pa.RecordBatch]:
    """``OUT`` of the shards of a task."""
    kind = ShardRequests if of_requests else ShardSeconds
    for blocks in shards_in(batches):
        source = kind(blocks, states_throttles=plan.states_throttles)
        yield from _rows_of_shard(*judge_shard(source, rules, plan), plan)


def seconds_of_shards(batches: Iterable[pa.RecordBatch], rules: ShardRules, plan: ShardPlan) -> Iterator[pa.RecordBatch]:
    """``session_frames.OF_GROUPS`` of the shards of a task, whose rows are all sums of whole seconds."""
    windows = rules.question.broker.window, rules.question.broker.controller_window
    for blocks in shards_in(batches):
        source = ShardSeconds(blocks, states_throttles=plan.states_throttles)
        groups = _groups_of(source, rules, plan)
        yield from source.seconds(groups.grouping, groups.reported_targets, windows).to_batches()


def _groups_of(source: GroupJudge, rules: ShardRules, plan: ShardPlan) -> QuotaGroups:
    undecided = _others(plan.undecided, source.series)
    return QuotaGroups(source, *rules.tables, undecided=undecided, of_controller=plan.smaller_account)


@pause_collector()
def judge_shard(source: GroupJudge, rules: ShardRules, plan: ShardPlan) -> tuple[tuple[BucketVerdict, ...], ReportParts]:
    """The rows of a shard, worst first, and its parts of the report, without means and plots."""
    groups = _groups_of(source, rules, plan)
    verdicts = groups.judge(rules.question, plan.provenance)
    return verdicts, ReportParts.of(verdicts, groups, rules.question, {})


def _rows_of_shard(verdicts: tuple[BucketVerdict, ...], parts: ReportParts, plan: ShardPlan) -> Iterator[pa.RecordBatch]:
    failing = {id(verdict) for verdict in plan.failing(verdicts)} if plan.failing is not None else set[int]()
    shown = [verdict for verdict in verdicts if verdict.changed or verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]
    kept = {id(verdict) for verdict in shown[:MOST_ROWS]} | failing
    begin = 0
    for batch in verdict_batches(verdicts):
        some = verdicts[begin : begin + batch.num_rows]
        begin += batch.num_rows
        packed = [PACKED_ROW.pack(verdict) if id(verdict) in kept else None for verdict in some]
        flags = [id(verdict) in failing for verdict in some]
        nothing = pa.nulls(len(some), pa.binary())
        columns = [*batch.columns, nothing, pa.array(packed, pa.binary()), pa.array(flags, pa.bool_()), nothing]
        yield pa.RecordBatch.from_arrays(columns, schema=OUT)
    empty = [pa.nulls(1, field.type) for field in OUT]
    empty[OUT.get_field_index(PARTS)] = pa.array([PACKED_PARTS.pack(parts)], pa.binary())
    if plan.advises:
        empty[OUT.get_field_index(ADVICE)] = pa.array([pack_recommendations(verdicts)], pa.binary())
    yield pa.RecordBatch.from_arrays(empty, schema=OUT)


def _others(undecided: Sequence[Series], own: Sequence[Series]) -> tuple[Series, ...]:
    """Return the undecided series of other shards."""
    if not undecided:
        return ()
    known = {client.sort_key for client in own}
    return tuple(client for client in undecided if client.sort_key not in known)


def series_of_row(row: dict[str, Any]) -> Series:
    """A client of ``client_totals.SCHEMA`` without its totals."""
    kind = Kind(row["kind"])
    return Series(
        broker=row["broker"], kind=kind, user=row["user"], client_id=row["client_id"], ip=row["ip"], requests=0, amount=0
    )


class ShardSeconds:
    """Sums of whole seconds of the clients of a shard: a ``GroupJudge``."""

    def __init__(self, blocks: ShardBlocks, *, states_throttles: bool) -> None:
        """Raises ``TrafficError`` for rows of unknown clients, which no change of the traffic during the run explains."""
        self.states_throttles = states_throttles
        totals = blocks.totals()
        numbers = series_numbers(totals)
        self.series: tuple[Series, ...] = sorted_series(totals, numbers.tolist())
        self._rows = blocks.rows
        known = np.sort(numbers)
        for parts in self._rows.values():
            for ids, *_ in parts:
                require_known(ids, known)

    def by_seconds(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, GroupVerdict]:
        """Implement ``GroupJudge.by_seconds``."""
        index, expected = KeyIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)
        return judge_seconds(LocalRows(lambda _: self._second_rows), index.keyed, expected, grouping.groups, window)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """Implement ``GroupJudge.mutations``, from whole seconds."""
        keyed = KeyIndex.of(self.series, grouping, groups).keyed(self._second_rows)
        judged = tokens_by_seconds(keyed, grouping, groups, window)
        return seconds_verdicts(judged, self.series, grouping, window, stated=self.states_throttles)

    def seconds(self, grouping: Grouping, groups: Collection[int], windows: tuple[Window, Window]) -> pa.Table:
        """``session_frames.OF_GROUPS`` of these targets."""
        index = KeyIndex.of(self.series, grouping, groups)
        work = seconds_work(self.series, grouping, groups, windows, send=index.keyed)
        return judge_seconds_here(work, self._second_rows, target_rows(grouping, groups))

    @property
    def _second_rows(self) -> Sequence[tuple[Integers, Integers, Integers]]:
        return [(ids, seconds, amounts) for ids, seconds, amounts in self._rows[RowForm.SECONDS]]

    def _keyed(self, form: RowForm, grouping: Grouping, groups: Collection[int]) -> Pieces:
        """Key (``exact_totals.pack``), order, records, overhead, index of the series, and what else the rows have."""
        index = KeyIndex.of(self.series, grouping, groups)
        keys = np.asarray([client.key for client in self.series], dtype=np.int64)
        order = np.argsort(keys)
        parts = []
        for ids, milli, *columns in self._rows[form] if len(index.keys) else ():
            series = order[np.searchsorted(keys[order], ids)]
            where = np.minimum(np.searchsorted(index.keys, ids), len(index.keys) - 1)
            known = index.keys[where] == ids
            whole = [milli, *columns[:3], series, *columns[3:]]
            for group_of in index.slots:
                group = group_of[where]
                chosen = known & (group >= 0)
                if chosen.any():
                    time, *others = (column[chosen] for column in whole)
                    parts.append([pack(group[chosen], time), *others])
        return cut_into_pieces(sort_by_key(parts)) if parts else ()


class ShardRequests(ShardSeconds):
    """Single requests, or sums of whole seconds that were made of them. Mutations are there topic by topic."""

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """Implement ``GroupJudge.mutations``, topic by topic."""
        limits = limits_of(grouping.groups)
        topics = whole_groups(self._keyed(RowForm.TOPICS, grouping, groups))
        judged = pa.Table.from_batches((judge_topics(columns, limits, window) for columns in topics), schema=EXACT)
        return request_verdicts(result_of(judged), self.series, grouping, stated=self.states_throttles)

    def exactly(self, grouping: Grouping, window: Window) -> ExactResult:
        """Implement ``ReplayJudge.exactly``."""
        pieces = self._keyed(RowForm.REQUESTS, grouping, sampled_groups(grouping))
        judge = judge_requests_of(Work.of(grouping.groups, window))
        return result_of(pa.Table.from_batches(judge(pieces), schema=EXACT))
