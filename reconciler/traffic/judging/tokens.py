"""Controller mutations on Spark: each bucket whole in one worker, since they are few, topic by topic in the order of charging."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciler.traffic.judging.exact import RESULT_SCHEMA, ExactResult, count_into, limits_of, numbers_of, result_of, rows_of
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.placing import order_of, with_groups
from reconciler.traffic.judging.requests import ALSO, REQUEST_SCHEMA
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kernels.topic_seconds import judge_seconds
from reconciler.traffic.kernels.topics import Topics, effects, judge_bucket, throttle_band, topic_order
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.request_log import CHARGED, IDENTITY_COLUMNS

_NO_CELLS: Final = (tuple(np.empty(0, dtype=np.int64) for _ in range(3)),)


def judged_tokens(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], window: Window
) -> ExactResult:
    """Verdicts of these groups, which must be of mutations. ``window``: the controller's own settings."""
    limits = limits_of(grouping.groups)

    def judge(table: pa.Table) -> pa.Table:
        group = int(table.column("group")[0].as_py())
        topics = topics_of(table)
        topics = topics.part(topic_order(topics, numbers_of(table, "part")))
        verdict, judged = judge_bucket(group, topics, (float(limits[0][group]), float(limits[1][group])), window)
        counts: dict[int, Integers] = {}
        count_into(counts, judged)
        return pa.Table.from_batches([rows_of(verdict, counts)])

    found = asked_topics(rows, series, grouping, groups).groupBy("group")
    return result_of(found.applyInArrow(judge, RESULT_SCHEMA).toArrow())


def tokens_by_seconds(
    cells: Iterable[tuple[Integers, Integers, Integers]],
    series: Sequence[Series],
    grouping: Grouping,
    groups: Collection[int],
    window: Window,
) -> dict[int, GroupVerdict]:
    """The same, as far as sums of seconds can tell. ``cells``: batches of series keys, seconds and amounts, in any order."""
    of_series, seconds, amounts = (np.concatenate(column) for column in zip(*_NO_CELLS, *cells, strict=True))
    order = np.argsort(of_series, kind="stable")
    of_series = of_series[order]
    before, after = limits_of(grouping.groups)
    members: dict[int, list[int]] = {}
    for index, one in enumerate(series):
        for group in grouping.groups_of_series[index]:
            if group in groups:
                members.setdefault(group, []).append(one.key)
    found = {}
    for group, keys in sorted(members.items()):
        begins, ends = (np.searchsorted(of_series, keys, side=side) for side in ("left", "right"))
        mine = np.concatenate([order[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)])
        found[group] = judge_seconds(group, seconds[mine], amounts[mine], (before[group], after[group]), window)
    return found


def judged_topics(rows: DataFrame, series: Sequence[Series], grouping: Grouping, window: Window) -> DataFrame:
    """One row a topic under the proposed quotas, of ``REQUEST_SCHEMA``, in no order. ``rows`` must hold the identity columns.

    There is no rate; a throttle is that of a topic's own moment.
    """
    after = limits_of(grouping.groups)[1]
    groups = {index for index, group in enumerate(grouping.groups) if group.after is not None and group.kind is Kind.MUTATION}

    def judge(table: pa.Table) -> pa.Table:
        table = table.take(pa.array(topic_order(topics_of(table), numbers_of(table, "part"))))
        topics, limit = topics_of(table), float(after[int(table.column("group")[0].as_py())])
        found = effects(topics, limit, window)
        low, high = throttle_band(topics, limit, window)
        columns = {
            "ts_us": table.column("ts_us"),
            "order_": topics.order,
            "series": table.column("series"),
            "amount": topics.amounts,
            "rate": pa.nulls(len(table), pa.float64()),
            "limit": pa.array(np.full(len(table), limit), from_pandas=True),
            "throttle_ms": found.throttle,
            "low": low,
            "high": high,
            **{name: table.column(name) for name in IDENTITY_COLUMNS},
            "part": table.column("part"),
            "refused": found.refused,
        }
        return pa.table(columns)

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


def topics_of(table: pa.Table) -> Topics:
    """The columns of ``asked_topics``."""
    times, order, amounts, series = (numbers_of(table, name) for name in ("ts_ms", "order_", "amount", "series"))
    strict = np.asarray(table.column("strict").to_numpy(zero_copy_only=False), dtype=np.bool_)
    return Topics(times, order, amounts, strict, series)


def _known(rows: DataFrame, name: str, kind: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None).cast(kind)
