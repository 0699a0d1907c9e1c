"""Controller mutations: each quota group whole, since they are few, topic by topic in the order of charging."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.model import CONTROLLER
from reconciler.traffic.judging.exact import count_into, limits_of, rows_of
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.exact_totals import group_of, time_of
from reconciler.traffic.kernels.sampled_rate import Doubles, Integers, Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.token_bucket import Topics, effects, judge_bucket, judge_seconds, topic_order
from reconciler.traffic.kinds import Kind

_PART: Final = 6
"""The place of ``part`` among the columns of a topic."""
_NO_CELLS: Final = (tuple(np.empty(0, dtype=np.int64) for _ in range(3)),)


def judge_topics(columns: Sequence[Integers], limits: tuple[Doubles, Doubles], window: Window) -> pa.RecordBatch:
    """The verdict of one group, as ``exact.rows_of`` has it. ``window``: the controller's own settings.

    ``columns``: one item a topic, in no order: key, order, records, overhead, series, strict and part; others are not read.
    ``limits``: by group, before and after.
    """
    group, topics, _ = _in_order(columns)
    verdict, judged = judge_bucket(group, topics, (float(limits[0][group]), float(limits[1][group])), window)
    counts: dict[int, Integers] = {}
    count_into(counts, judged)
    return rows_of(verdict, counts)


def topics_as_requests(
    columns: Sequence[Integers], identity: Mapping[str, pa.Array], limits: Doubles, window: Window
) -> pa.RecordBatch:
    """The same topics with the columns of ``REQUESTS``, under the limits after the change. ``identity``: those that it copies.

    The rate is null, and a throttle is that of a topic's own moment.
    """
    group, topics, places = _in_order(columns)
    limit, count = float(limits[group]), len(places)
    judged = effects(topics, limit, window)
    return pa.RecordBatch.from_pydict(
        {
            **{name: column.take(pa.array(places)) for name, column in identity.items()},
            "order_": topics.order,
            "series": topics.series,
            "amount": topics.amounts,
            "rate": pa.nulls(count, pa.float64()),
            "limit": pa.array(np.full(count, limit), from_pandas=True),
            "throttle_ms": judged.throttle,
            "part": columns[_PART][places],
            "refused": judged.refused,
        }
    )


def _in_order(columns: Sequence[Integers]) -> tuple[int, Topics, Integers]:
    """The group, its topics in the order of charging, and their places in the columns."""
    key, order, records, overhead, series, strict, part = columns[: _PART + 1]
    topics = Topics(time_of(key), order, records + overhead, strict != 0, series)
    places = topic_order(topics, part)
    return int(group_of(key[:1])[0]), topics.part(places), places


def tokens_by_seconds(
    cells: Iterable[tuple[Integers, Integers, Integers]],
    series: Sequence[Series],
    grouping: Grouping,
    groups: Collection[int],
    window: Window,
) -> dict[int, GroupVerdict]:
    """The same as bounds from sums of seconds. ``cells``: batches of series keys, seconds and amounts, in any order."""
    of_series, seconds, amounts = (np.concatenate(column) for column in zip(*_NO_CELLS, *cells, strict=True))
    order = np.argsort(of_series, kind="stable")
    of_series = of_series[order]
    before, after = limits_of(grouping.groups)
    members: dict[int, list[int]] = {}
    for index, client in enumerate(series):
        for group in grouping.groups_of_series[index]:
            if group in groups:
                members.setdefault(group, []).append(client.key)
    verdicts = {}
    for group, keys in sorted(members.items()):
        begins, ends = (np.searchsorted(of_series, keys, side=side) for side in ("left", "right"))
        rows = np.concatenate([order[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)])
        verdicts[group] = judge_seconds(group, seconds[rows], amounts[rows], (before[group], after[group]), window)
    return verdicts


def smaller_account(series: Iterable[Series]) -> bool | None:
    """Whether the controller's account of mutations is the one to leave out. ``None``: at most one side counted mutations.

    It is the one that has fewer topics, of equal ones that of the brokers. Each account is judged by itself, so nothing is
    counted twice. This only keeps the report from listing it twice.
    """
    topics = {True: 0, False: 0}
    for client in series:
        if client.kind is Kind.MUTATION:
            topics[client.broker == CONTROLLER] += client.requests
    return topics[True] <= topics[False] if all(topics.values()) else None


def targets_of_account(grouping: Grouping, *, of_controller: bool | None) -> frozenset[int]:
    """The targets of mutations in one account, by number; none of ``None``."""
    return frozenset(
        number
        for number, target in enumerate(grouping.targets)
        if target.kind is Kind.MUTATION and (target.broker == CONTROLLER) is of_controller
    )
