"""Controller mutations: each quota group whole, since they are few, topic by topic in the order of charging."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.model import CONTROLLER
from reconciler.traffic.judging.exact import count_into, limits_of, numbers_of, rows_of
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Doubles, Integers
from reconciler.traffic.kernels.token_bucket import Topics, effects, judge_bucket, judge_seconds, throttle_band, topic_order
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS

_NO_CELLS: Final = (tuple(np.empty(0, dtype=np.int64) for _ in range(3)),)


def judge_topics(table: pa.Table, limits: tuple[Doubles, Doubles], window: Window) -> pa.Table:
    """The verdict of one group, as ``exact.rows_of`` has it. ``window``: the controller's own settings.

    ``table``: one row a topic, in no order, with ``group``, ``ts_ms``, ``order_``, ``amount``, ``strict``, ``part`` and
    ``series``. ``limits``: by group, before and after.
    """
    group = int(table.column("group")[0].as_py())
    topics = topics_of(table)
    topics = topics.part(topic_order(topics, numbers_of(table, "part")))
    verdict, judged = judge_bucket(group, topics, (float(limits[0][group]), float(limits[1][group])), window)
    counts: dict[int, Integers] = {}
    count_into(counts, judged)
    return pa.Table.from_batches([rows_of(verdict, counts)])


def topics_as_requests(table: pa.Table, limits: Doubles, window: Window) -> pa.Table:
    """The same topics as rows of ``REQUESTS``, under the limits after the change, of a ``table`` with the identity columns.

    There is no rate; a throttle is that of a topic's own moment.
    """
    table = table.take(pa.array(topic_order(topics_of(table), numbers_of(table, "part"))))
    topics, limit = topics_of(table), float(limits[int(table.column("group")[0].as_py())])
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


def topics_of(table: pa.Table) -> Topics:
    """The columns of ``judge_topics``."""
    times, order, amounts, series = (numbers_of(table, name) for name in ("ts_ms", "order_", "amount", "series"))
    strict = np.asarray(table.column("strict").to_numpy(zero_copy_only=False), dtype=np.bool_)
    return Topics(times, order, amounts, strict, series)


def drop_duplicate_accounting(series: Sequence[Series], grouping: Grouping) -> frozenset[int]:
    """The targets to leave out: of the two accounts the one that has fewer topics, of equal ones that of the brokers.

    Each account is judged by itself, so nothing is charged twice; this is only about saying it once.
    """
    mutations = [number for number, target in enumerate(grouping.targets) if target.kind is Kind.MUTATION]
    accounts: dict[bool, list[int]] = {True: [], False: []}
    for number in mutations:
        accounts[grouping.targets[number].broker == CONTROLLER].append(number)
    topics = {by: sum(series[m].requests for n in found for m in grouping.targets[n].members) for by, found in accounts.items()}
    if not all(topics.values()):
        return frozenset()
    return frozenset(accounts[topics[True] <= topics[False]])
