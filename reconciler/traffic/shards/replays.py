"""Quota groups with more requests than one worker has room for, replayed outside their shard: a task for each group on a broker.

Each broker applies quotas on its own, so the requests of a group on one broker decide nothing on another. Those on one broker
decide about each other. They stay in one task, which gets them in the order of time and keeps few of them at once. The verdicts
of these tasks travel to the shard of the group, where its clients are.
"""

from __future__ import annotations

import itertools
import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.traffic.client_totals import sorted_series
from reconciler.traffic.columns import NEEDED, charged_rows
from reconciler.traffic.judging.exact import SCHEMA as EXACT
from reconciler.traffic.judging.exact import Work, judge_requests_of
from reconciler.traffic.judging.grouping import Series, group_series
from reconciler.traffic.judging.sharding import NO_NODE, ClientNodes, LargeReplays, Shards, large_groups, replay_keys
from reconciler.traffic.kernels.exact_totals import pack
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shards.blocks import (
    RowForm,
    ShardBlocks,
    clients_of_names,
    pack_table,
    request_columns,
    require_known,
    series_numbers,
)
from reconciler.traffic.shuffle.block import ROWS_A_PARTITION, SCHEMA, cut_by_partition, merge_blocks
from reconciler.traffic.shuffle.rows import tables_of
from reconciler.traffic.spark_jobs import logged_stages
from reconciler.traffic.spark_versions import collect_table, repartition_by_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from reconciler.traffic.shards.worker import ShardPlan, ShardRules
    from reconciler.traffic.shuffle.on_spark import Shipped, SparkRows

_log: Final = logging.getLogger(__name__)
ROOM: Final = 4 * ROWS_A_PARTITION
"""Requests of a shard that a worker keeps at once, in some 600 MB. Of a shard with more, large groups are replayed outside."""
_LEAST: Final = 16
"""Such a group has more than this part of the room: smaller ones are not worth a task."""
_MOST_ROWS: Final = 1 << 20
"""Rows of a task that are cut into blocks at a time."""
_MOST_REPLAYS: Final = 1 << 14
_CLIENTS: Final = -1
"""In place of a first time: blocks of clients come before those of requests."""
_NAMES: Final = ("kind", "user", "client_id", "ip")
_COUNTS: Final = pa.schema([("key", pa.int64()), ("shard", pa.int64()), ("broker", pa.int64()), ("lines", pa.int64())])
_KEYS: Final = ("key", "shard", "broker")
REPLAYED: Final = EXACT.append(pa.field("key", pa.int64())).append(pa.field("broker", pa.int64()))
"""Numbers are of the series of this broker in their order. ``key``: from ``replay_keys``."""


def find_large(clients: DataFrame, rules: Shipped[Any, ShardRules], shards: Shards, room: int) -> LargeReplays:
    """The groups that are replayed outside their shards. ``clients``: ``client_totals.SCHEMA``, of charged rows only."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nodes = rules.built().nodes
        return (count_replays(batch, nodes, shards) for batch in batches)

    counted = clients.where(F.col("kind") != Kind.MUTATION.value).mapInArrow(count, from_arrow_schema(_COUNTS))
    whole = counted.groupBy(*_KEYS).agg(F.sum("lines").alias("lines")).where(F.col("lines") > room // _LEAST)
    with logged_stages(_log, clients.sparkSession, "requests of quota groups counted") as event:
        large = choose_large(collect_table(whole), room)
        event["large"] = len(large)
    return large


def count_replays(batch: pa.RecordBatch, nodes: ClientNodes, shards: Shards) -> pa.RecordBatch:
    """``_COUNTS`` of clients: how many requests are replayed, for each group on a broker, after and before the change."""
    of_clients = nodes.of_names(*(batch.column(name) for name in _NAMES))
    broker, lines = (np.asarray(batch.column(name).to_numpy(), dtype=np.int64) for name in ("broker", "lines"))
    keys = replay_keys(of_clients, broker, shards).T.ravel()
    columns = (keys, *(np.tile(column, 2) for column in (shards.numbers(of_clients[:, 0]), broker, lines)))
    are_replays = keys != NO_NODE
    return pa.RecordBatch.from_arrays([pa.array(column[are_replays]) for column in columns], schema=_COUNTS)


def choose_large(counted: pa.Table, room: int) -> LargeReplays:
    """Those of shards for which there is no room. ``counted``: ``_COUNTS`` of groups that are worth a task, each once."""
    of_shard = counted.group_by("shard").aggregate([("lines", "sum")])
    crowded = of_shard.filter(pc.greater(of_shard.column("lines_sum"), room)).column("shard")
    chosen = counted.filter(pc.is_in(counted.column("shard"), value_set=crowded.combine_chunks()))
    chosen = chosen.sort_by([("lines", "descending"), ("key", "ascending")]).slice(0, _MOST_REPLAYS).sort_by("key")
    return LargeReplays(*(np.asarray(chosen.column(name).to_numpy(), dtype=np.int64) for name in _KEYS))


class ReplaySender:
    """Makes blocks of one task for replays. The number of a partition is the place of its replay in ``large``."""

    def __init__(self, nodes: ClientNodes, shards: Shards, large: LargeReplays) -> None:
        self._nodes, self._shards, self._large = nodes, shards, large

    def totals(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of the clients of a shard on a broker, for each replay there: who else is in a group decides its limits.

        ``batches``: ``client_totals.SCHEMA``, of charged rows only.
        """
        large = self._large
        for table in tables_of(batches):
            names = [table.column(name).combine_chunks() for name in _NAMES]
            shards = self._shards.numbers(self._nodes.of_names(*names)[:, 0])
            brokers = np.asarray(table.column("broker").to_numpy(), dtype=np.int64)
            for shard, broker in np.unique(np.stack((large.shards, large.brokers)), axis=1).T.tolist():
                chosen = np.flatnonzero((shards == shard) & (brokers == broker))
                if len(chosen):
                    places = np.flatnonzero((large.shards == shard) & (large.brokers == broker))
                    packed = pack_table(table.take(pa.array(chosen)))
                    columns = [places, np.full(len(places), _CLIENTS), [packed] * len(places)]
                    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, SCHEMA, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of requests: millisecond, order, records, overhead and the number of the client, by first millisecond."""
        held: list[tuple[Integers, list[Integers]]] = []
        for batch in batches:
            rows = charged_rows(batch)
            if not len(rows.of):
                continue
            nodes, ids = clients_of_names(self._nodes, rows.names, rows.broker)
            places = self._large.places(replay_keys(nodes, rows.broker, self._shards))
            for of_side in places.T:
                chosen = np.flatnonzero(of_side[rows.of] >= 0)
                if len(chosen):
                    client = rows.of[chosen]
                    held.append((of_side[client], [*(column[chosen] for column in request_columns(rows, batch)), ids[client]]))
            if sum(len(part[0]) for part in held) >= _MOST_ROWS:
                yield _cut(held)
                held = []
        if held:
            yield _cut(held)


def _cut(parts: Sequence[tuple[Integers, list[Integers]]]) -> pa.RecordBatch:
    columns = [np.concatenate(column) for column in zip(*(columns for _, columns in parts), strict=True)]
    return cut_by_partition(np.concatenate([places for places, _ in parts]), columns)


def replay_large(batches: Iterable[pa.RecordBatch], rules: ShardRules, plan: ShardPlan) -> Iterator[pa.RecordBatch]:
    """Blocks for shards, with what came of the replays of a task. ``batches``: blocks, sorted by partition and first time."""
    rows = (batch.slice(row, 1) for batch in batches for row in range(batch.num_rows))
    for place, blocks in itertools.groupby(rows, key=lambda block: int(block.column(0)[0].as_py())):
        key, shard, broker = (int(column[place]) for column in (plan.large.keys, plan.large.shards, plan.large.brokers))
        table = pa.Table.from_batches(_replay(key, blocks, rules, plan), schema=EXACT)
        for name, value in (("key", key), ("broker", broker)):
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), table.num_rows))
        columns = [[shard], [int(RowForm.REPLAYED)], [pack_table(table)]]
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _replay(key: int, blocks: Iterator[pa.RecordBatch], rules: ShardRules, plan: ShardPlan) -> Iterator[pa.RecordBatch]:
    """``judging.exact.SCHEMA`` of one replay. ``blocks``: rows of ``SCHEMA``, one each, those of clients first."""
    clients, requests = ShardBlocks(), blocks
    for block in blocks:
        if block.column(1)[0].as_py() != _CLIENTS:
            requests = itertools.chain([block], blocks)
            break
        clients.add(RowForm.TOTALS, block.column(2)[0].as_buffer())
    totals = clients.totals()
    series = sorted_series(totals, series_numbers(totals).tolist(), requests="lines")
    grouping = group_series(series, *rules.tables)
    group = large_groups(series, grouping, rules.nodes, plan.shards, plan.large).get(key)
    if group is None:
        return
    keys = np.asarray([client.key for client in series], dtype=np.int64)
    order = np.argsort(keys)
    rising = keys[order]

    def pieces() -> Iterator[list[Integers]]:
        for milli, *columns, ids in merge_blocks(requests):
            require_known(ids, rising)
            yield [pack(np.full(len(milli), group), milli), *columns, order[np.searchsorted(rising, ids)]]

    yield from judge_requests_of(Work.of(grouping.groups, rules.question.broker.window))(pieces())


def replayed_blocks(
    rows: SparkRows[pa.RecordBatch],
    clients: DataFrame,
    rules: Shipped[Any, ShardRules],
    plan: Shipped[Any, ShardPlan],
    count: int,
) -> DataFrame:
    """Blocks for shards with what came of all ``count`` replays. ``clients``: ``client_totals.SCHEMA``, of charged rows only."""

    def sender() -> ReplaySender:
        return ReplaySender(rules.built().nodes, plan.built().shards, plan.built().large)

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sender().rows(batches)

    def send_totals(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return sender().totals(batches)

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_large(batches, rules.built(), plan.built())

    schema = from_arrow_schema(SCHEMA)
    sent = rows.made_of_shares(send, (*NEEDED, "tie"), SCHEMA, few=False).unionAll(clients.mapInArrow(send_totals, schema))
    met = repartition_by_number(sent, count, "partition").sortWithinPartitions("partition", "first")
    return met.mapInArrow(replay, schema)


def add_replayed(blocks: Sequence[pa.Table], series: Sequence[Series], groups: Mapping[int, int]) -> pa.Table:
    """``judging.exact.SCHEMA`` by the numbers of a shard. ``blocks``: ``REPLAYED``. ``groups``: from ``large_groups``."""
    brokers = [client.broker for client in series]
    tables = [EXACT.empty_table()]
    for block in blocks:
        if block.num_rows:
            key, broker = block.column("key")[0].as_py(), block.column("broker")[0].as_py()
            # Series of a broker are in one piece, in the same order.
            first = bisect_left(brokers, broker)
            number = pc.if_else(block.column("of_series"), pc.add(block.column("number"), first), groups[key])
            place = EXACT.get_field_index("number")
            tables.append(block.select(EXACT.names).set_column(place, EXACT.field(place), number.cast(pa.int32())))
    return pa.concat_tables(tables)
