"""Judging on Spark: rows to their groups with one broadcast join, one shuffle, and one sort by a single number.

The workers run the same functions that judge in this process. Only this module of the package needs pyspark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciler.model import Waiting
from reconciler.traffic.judging.by_seconds import SCHEMA as VERDICTS
from reconciler.traffic.judging.by_seconds import Limits, judge_cells, verdicts_of
from reconciler.traffic.judging.exact import (
    RESULT_SCHEMA,
    ExactResult,
    Work,
    batch_of,
    judge_batches,
    limits_of,
    numbers_of,
    result_of,
    sampled_groups,
)
from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.judging.rate_series import SCHEMA as POINTS
from reconciler.traffic.judging.rate_series import Lines, Points, by_group, points_of
from reconciler.traffic.judging.requests import ALSO, ORDER, REQUEST_SCHEMA, judge_requests, limited_groups
from reconciler.traffic.judging.tokens import judge_topics, topics_as_requests
from reconciler.traffic.judging.waiting import CONNECTION_KEY, Player, waiting_of
from reconciler.traffic.judging.waiting import SCHEMA as WAITING
from reconciler.traffic.kernels.exact_batch import MICRO_BITS, ORDER_BITS, TIME_BITS, Batch
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.merge import merge_blocks
from reconciler.traffic.sources.normal_form import IDENTITY, series_key
from reconciler.traffic.sources.row_status import CHARGED

_PLACES: Final = pa.schema(
    [
        ("series_key", pa.int64()), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()),
        ("client_id", pa.string()), ("series", pa.int32()), ("group", pa.int32()),
    ]
)  # fmt: skip


def judged_by_seconds(placed: DataFrame, groups: Sequence[Group], era: Rule) -> dict[int, GroupVerdict]:
    """Verdicts by group, with the sides before and after.

    ``placed``: columns ``group``, ``second`` and ``amount``; several rows of one group and second add up.
    """
    limits = Limits.of(groups, era)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield judge_cells(((numbers_of(batch, "key"), numbers_of(batch, "amount")) for batch in batches), limits)

    key = F.shiftleft(F.col("group").cast("long"), SECOND_BITS).bitwiseOR(F.col("second").cast("long"))
    keyed = placed.select(key.alias("key"), F.col("amount").cast("long").alias("amount"))
    # Keys are shuffled by their group and sorted as one number, which Spark does by radix.
    ordered = keyed.repartition(F.shiftright("key", SECOND_BITS)).sortWithinPartitions("key")
    return {verdict.group: verdict for verdict in verdicts_of(ordered.mapInArrow(judge, VERDICTS).toArrow())}


def blocks_by_seconds(blocks: DataFrame, groups: Sequence[Group], era: Rule) -> dict[int, GroupVerdict]:
    """The same from keys, as ``second_sums.keys_of`` packs groups and seconds, and amounts, ``shuffle_by_group``."""
    limits = Limits.of(groups, era)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield judge_cells(((key, amount) for key, amount in merge_blocks(batches)), limits)

    return {verdict.group: verdict for verdict in verdicts_of(blocks.mapInArrow(judge, VERDICTS).toArrow())}


def judged_rows_by_seconds(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], era: Rule
) -> dict[int, GroupVerdict]:
    """The same from single requests (columns of ``request_log``)."""
    return judged_by_seconds(summed_rows(rows, series, grouping, groups), grouping.groups, era)


def summed_rows(rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Single requests (columns of ``request_log``) as columns ``group``, ``second`` and ``amount``, one row each."""
    charged = with_groups(rows.where(F.col("status") == CHARGED), series, grouping, groups)
    second = F.floor(F.col("ts_us") / 1_000_000).alias("second")
    return charged.groupBy("group", second).agg(F.sum(F.col("records") + F.col("overhead")).alias("amount"))


def judged_exactly(rows: DataFrame, series: Sequence[Series], grouping: Grouping, window: Window) -> ExactResult:
    """Judge every charged row of ``rows`` (columns of ``request_log``) that a sampled rate limits."""
    return judged_placed(placed(rows, series, grouping, sampled_groups(grouping)), grouping, window)


def judged_placed(requests: DataFrame, grouping: Grouping, window: Window) -> ExactResult:
    """The same from requests as ``placed`` orders them."""
    work = Work.of(grouping.groups, window)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield judge_batches((batch_of(batch, numbers_of(batch, "series")) for batch in batches), work)

    return result_of(requests.mapInArrow(judge, RESULT_SCHEMA).toArrow())


def blocks_exactly(blocks: DataFrame, grouping: Grouping, window: Window) -> ExactResult:
    """The same from requests as ``columns.requests`` has them, ``shuffle_by_group``."""
    work = Work.of(grouping.groups, window)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield judge_batches((Batch(*columns) for columns in merge_blocks(batches)), work)

    return result_of(blocks.mapInArrow(judge, RESULT_SCHEMA).toArrow())


def judged_tokens(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], window: Window
) -> ExactResult:
    """Verdicts of these groups, which must be of mutations. ``window``: the controller's own settings."""
    limits = limits_of(grouping.groups)

    def judge(table: pa.Table) -> pa.Table:
        return judge_topics(table, limits, window)

    found = asked_topics(rows, series, grouping, groups).groupBy("group")
    return result_of(found.applyInArrow(judge, RESULT_SCHEMA).toArrow())


def judged_topics(rows: DataFrame, series: Sequence[Series], grouping: Grouping, window: Window) -> DataFrame:
    """One row a topic under the proposed quotas, of ``REQUEST_SCHEMA``, in no order. ``rows`` must hold the identity columns.

    There is no rate; a throttle is that of a topic's own moment.
    """
    after = limits_of(grouping.groups)[1]

    def judge(table: pa.Table) -> pa.Table:
        return topics_as_requests(table, after, window)

    groups = limited_groups(grouping, mutations=True)
    return asked_topics(rows, series, grouping, groups, also=ALSO).groupBy("group").applyInArrow(judge, REQUEST_SCHEMA)


def asked_topics(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], *, also: Sequence[str] = ()
) -> DataFrame:
    """One row a topic, in no order. A source that does not say which API version asked is taken to be refused."""
    asked = rows.where((F.col("kind") == Kind.MUTATION.value) & (F.col("status") == CHARGED))
    joined = with_groups(asked, series, grouping, groups)
    return joined.select(
        "group",
        F.floor(F.col("ts_us") / 1000).alias("ts_ms"),
        order_of().alias("order_"),
        (F.col("records") + F.col("overhead")).alias("amount"),
        F.coalesce(_known(joined, "strict", "boolean"), F.lit(True)).alias("strict"),
        F.coalesce(_known(joined, "part", "int"), F.lit(0)).alias("part"),
        "series",
        *also,
    )


def _known(rows: DataFrame, name: str, kind: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None).cast(kind)


def judged_requests(rows: DataFrame, series: Sequence[Series], grouping: Grouping, window: Window) -> DataFrame:
    """One row a charged request that a sampled rate limits. ``rows`` must hold the identity columns."""
    work = Work.of(grouping.groups, window)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return judge_requests(batches, work)

    found = placed(rows, series, grouping, limited_groups(grouping, mutations=False), also=ALSO)
    return found.mapInArrow(judge, REQUEST_SCHEMA)


def in_order_of_charging(requests: DataFrame) -> DataFrame:
    """In the order of charging, whoever judged them."""
    return requests.orderBy(*ORDER)


def waiting_on_spark(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Sequence[int], window: Window
) -> dict[int, Waiting]:
    """By group, which are targets. ``rows`` have the column ``CONNECTION_KEY``."""
    work = Player.of(grouping, groups, window)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work.rows(batches)

    found = placed(rows, series, grouping, set(groups), also=(CONNECTION_KEY,)).mapInArrow(judge, WAITING)
    return waiting_of(found.toArrow())


def points_on_spark(placed: DataFrame, lines: Lines) -> dict[int, Points]:
    """By group. ``placed``: columns ``group``, ``second`` and ``amount``; several rows of one group and second add up."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield points_of(((numbers_of(b, "key"), numbers_of(b, "amount")) for b in batches), lines)

    key = F.shiftleft(F.col("group").cast("long"), SECOND_BITS).bitwiseOR(F.col("second").cast("long"))
    keyed = placed.select(key.alias("key"), F.col("amount").cast("long").alias("amount"))
    ordered = keyed.repartition(F.shiftright("key", SECOND_BITS)).sortWithinPartitions("key")
    return by_group(ordered.mapInArrow(judge, POINTS).toArrow(), lines.grid)


def points_of_blocks(blocks: DataFrame, lines: Lines) -> dict[int, Points]:
    """The same from keys, as ``second_sums.keys_of`` packs groups and seconds, and amounts, ``shuffle_by_group``."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield points_of(((key, amount) for key, amount in merge_blocks(batches)), lines)

    return by_group(blocks.mapInArrow(judge, POINTS).toArrow(), lines.grid)


def placed(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], *, also: Sequence[str] = ()
) -> DataFrame:
    """Columns ``key``, ``order_``, ``records``, ``overhead``, ``series`` and ``also``; each group whole in one partition, sorted.

    ``key`` is as ``exact_batch.pack`` makes it. A row whose bucket changes is there once for each of its groups.
    """
    joined = with_groups(rows.where(F.col("status") == CHARGED), series, grouping, groups)
    key = F.shiftleft(F.col("group").cast("long"), TIME_BITS).bitwiseOR(F.floor(F.col("ts_us") / 1000))
    found = joined.select(key.alias("key"), order_of().alias("order_"), "records", "overhead", "series", *also)
    return found.repartition(F.shiftright("key", TIME_BITS)).sortWithinPartitions("key")


def with_groups(rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Rows that have the columns ``IDENTITY``, with ``series`` (its index) and ``group``; those of no group are gone."""
    table = [
        (s.key, s.broker, s.kind.value, s.user, s.client_id, index, group)
        for index, s in enumerate(series)
        for group in grouping.groups_of_series[index]
        if group in groups
    ]
    columns = zip(*table, strict=True) if table else [()] * len(_PLACES)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _PLACES, strict=True)]
    places = rows.sparkSession.createDataFrame(pa.Table.from_arrays(arrays, schema=_PLACES))
    if len({one.key for one in series}) < len(series):
        # Names that are not known are null, and equal here.
        known = F.broadcast(places.drop("series_key").withColumnsRenamed({name: f"its_{name}" for name in IDENTITY}))
        same = [rows[name].eqNullSafe(known[f"its_{name}"]) for name in IDENTITY]
        return rows.join(known, reduce(Column.__and__, same)).drop(*(f"its_{name}" for name in IDENTITY))
    # Joining on one number takes a third of the time of joining on three strings.
    return rows.withColumn("series_key", series_key()).join(F.broadcast(places.drop(*IDENTITY)), "series_key")


def order_of() -> Column:
    """What decides between requests of one ms: microseconds within the ms, then a hash of what identifies the request."""
    rest = (1 << ORDER_BITS - MICRO_BITS) - 1
    micros = F.shiftleft(F.pmod(F.col("ts_us"), F.lit(1000)).cast("long"), ORDER_BITS - MICRO_BITS)
    return micros.bitwiseOR(F.col("tie").bitwiseAND(F.lit(rest).cast("long")))
