"""The exact judgement: every request of every quota group in, verdicts or single judged requests out, of any worker.

Results do not depend on how rows are partitioned: sums are integers, and requests are put in one order that only their content
decides (charge time, then a hash of connection and correlation id).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.model import CONTROLLER
from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.kernels.exact_stream import ExactStream, GroupLimits, JudgedBatch
from reconciler.traffic.kernels.exact_totals import MICRO_BITS, ORDER_BITS, Batch, GroupVerdict, VerdictColumns, group_of, time_of
from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers, Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS
from reconciler.traffic.kernels.token_bucket import Topics, judge_bucket, judge_seconds, play, topic_order
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import Pieces, whole_groups

SCHEMA: Final = pa.schema(
    [
        ("of_series", pa.bool_()), ("number", pa.int32()), ("counts", pa.list_(pa.int64())), ("peak", pa.float64()),
        ("safe", pa.float64()),
    ]
)  # fmt: skip
BEFORE: Final = 0
AFTER: Final = 1


class SeriesCounts(NamedTuple):
    """One client's part: requests throttled before the change, and its amount in the seconds that are over after it."""

    throttled_before: int = 0
    amount_over: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedGroups:
    """Verdicts by group, whose sides are before and after; of a replay also counts by series, with a count or more."""

    groups: Mapping[int, GroupVerdict]
    series: Mapping[int, SeriesCounts] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What every worker needs; small, since it travels with the code."""

    before: GroupLimits
    after: GroupLimits
    window: Window

    @classmethod
    def of(cls, groups: Sequence[Group], window: Window) -> Work:
        """The limits on both sides; a group that is not of a side is unlimited there."""
        unrecords = np.asarray([group.kind.refuses for group in groups], dtype=np.bool_)
        capped = np.asarray([group.kind.is_capped for group in groups], dtype=np.bool_)
        before, after = limits_of(groups)
        return cls(GroupLimits(before, unrecords, capped), GroupLimits(after, unrecords, capped), window)


def sampled_groups(grouping: Grouping) -> frozenset[int]:
    """Return the groups that a sampled rate limits."""
    return frozenset(number for number, group in enumerate(grouping.groups) if group.kind is not Kind.MUTATION)


def result_of(table: pa.Table) -> JudgedGroups:
    """Put the results of workers together. ``table``: the rows that ``rows_of`` gave, of any number of workers."""
    counted = table.filter(pc.field("of_series"))
    counts: dict[int, SeriesCounts] = {}
    for number, more in zip(counted.column("number").to_pylist(), counted.column("counts").to_pylist(), strict=True):
        counts[number] = SeriesCounts(*map(operator.add, counts.get(number, SeriesCounts()), more))
    judged = table.filter(~pc.field("of_series"))
    if not judged.num_rows:
        return JudgedGroups(groups={}, series=counts)
    flat = np.asarray(pc.list_flatten(judged.column("counts")).to_numpy(), dtype=np.int64)
    columns = (judged.column(name).to_numpy() for name in ("number", "peak", "safe"))
    groups, *rates = columns
    columns_of_groups = VerdictColumns(groups, flat.reshape(judged.num_rows, -1).T, *rates)
    return JudgedGroups(groups={verdict.group: verdict for verdict in columns_of_groups.verdicts()}, series=counts)


def numbers_of(table: pa.Table | pa.RecordBatch, name: str) -> Integers:
    """A column of whole numbers."""
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False), dtype=np.int64)


def limits_of(groups: Sequence[Group]) -> tuple[Doubles, Doubles]:
    """Return limits by group number, before and after, in amounts a second. NaN: unlimited, or the group is not of that side."""
    units = [group.kind.amounts_a_unit for group in groups]
    sides = ([group.before for group in groups], [group.after for group in groups])
    before, after = (
        np.asarray(
            [
                np.nan if quota is None or quota.limit is None else quota.limit * unit
                for quota, unit in zip(side, units, strict=True)
            ],
            dtype=np.float64,
        )
        for side in sides
    )
    return before, after


NEAR: Final = 0.9
"""Of a limit: what a throttled client's rate does not fall far below. From there on, a second is near its limit."""


def judge_requests_of(work: Work) -> Callable[[Pieces], Iterator[pa.RecordBatch]]:
    """A judge of the columns of ``Batch``, whose last one is the series, in pieces of at most some 2^16 requests.

    It gives batches of ``SCHEMA``.
    """

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        before = work.before.limits
        stream = ExactStream((work.before, work.after), work.window, near=np.where(before > 0, NEAR * before, np.nan))
        counts: dict[int, Integers] = {}
        for columns in pieces:
            count_into(counts, stream.feed(Batch(*columns)))
        count_into(counts, stream.finish())
        yield rows_of(stream.totals(), counts)

    return judge


def rows_of(judged: VerdictColumns, counts: Mapping[int, Integers]) -> pa.RecordBatch:
    """Make the batch that a worker sends to the driver. ``counts``: by series."""
    width, of_series = len(judged.counts), np.stack(list(counts.values())) if counts else np.empty((0, 0), dtype=np.int64)
    lengths = np.repeat((width, of_series.shape[1]), (len(judged.groups), len(of_series)))
    lists = pa.ListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(lengths)), type=pa.int32()),
        pa.array(np.concatenate((judged.counts.T.ravel(), of_series.ravel()))),
    )
    nothing = np.zeros(len(of_series))
    columns = [
        pa.array(np.repeat((False, True), (len(judged.groups), len(of_series)))),
        pa.array(np.concatenate((judged.groups, np.fromiter(counts, dtype=np.int64))), type=pa.int32()),
        lists,
        *(pa.array(np.concatenate((values, nothing))) for values in (judged.peaks, judged.safe)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def count_into(counts: dict[int, Integers], judged: JudgedBatch | None) -> None:
    """Add what is throttled, and charged in seconds over, to its series; those of which nothing is are left out."""
    if judged is None:
        return
    of_series = judged.requests.rows
    before, over = judged.sides[BEFORE].throttle > 0, judged.over[AFTER]
    counted = np.flatnonzero(before | over)
    numbers, places = np.unique(of_series[counted], return_inverse=True)
    # Sums of doubles are exact here: an amount is below 2^31 (a minute of nanoseconds: 2^36), and a batch has some 2^16 requests.
    weights = (before[counted], np.where(over[counted], judged.sides[AFTER].amount[counted], 0))
    sums = np.stack([np.bincount(places, weights=weight, minlength=len(numbers)) for weight in weights], axis=1)
    for series, row in zip(numbers.tolist(), sums.astype(np.int64), strict=True):
        counts[series] = counts[series] + row if series in counts else row


class JudgedRequest(NamedTuple):
    """One charged request or topic under the proposed quotas; a rate of ``None`` is a topic's, a limit of ``None`` unlimited.

    ``part`` and ``refused`` are of mutations: the topic's place in its request, and whether it is not done.
    """

    ts_us: int
    order_: int
    series: int
    amount: int
    rate: float | None
    limit: float | None
    throttle_ms: int
    connection: str | None
    correlation_id: int | None
    recorded_throttle_ms: int | None
    part: int | None
    refused: bool | None


_REQUEST_TYPES: Final = (
    pa.int64(), pa.int64(), pa.int32(), pa.int64(), pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.int32(), pa.int64(),
    pa.int32(), pa.bool_(),
)  # fmt: skip
REQUESTS: Final = pa.schema([*zip(JudgedRequest._fields, _REQUEST_TYPES, strict=True)])
NULL: Final = np.iinfo(np.int64).min
"""Of the columns that identify a request, a number that is not known."""
ORDER: Final = ("ts_us", "order_", "series", "part", "amount")
"""The order of charging, in this process and on Spark."""


def limited_groups(grouping: Grouping, *, mutations: bool) -> frozenset[int]:
    """Return the groups after the change: those of mutations, or all others."""
    return frozenset(
        number
        for number, group in enumerate(grouping.groups)
        if group.after is not None and (group.kind is Kind.MUTATION) is mutations
    )


def judge_requests(pieces: Pieces, work: Work) -> Iterator[pa.RecordBatch]:
    """Rows of ``REQUESTS``, of every request that a sampled rate limits.

    ``pieces``: key, order, records, overhead, series and the ``IDENTITY_COLUMNS``, in the order of their keys.
    """
    stream, held, first = ExactStream([work.after], work.window), list[Integers](), 0
    for piece in itertools.chain(pieces, [None]):
        if piece is None:
            judged = stream.finish()
        else:
            begin = first + len(held[0]) if held else first
            held = [np.concatenate(columns) for columns in zip(held, piece, strict=True)] if held else piece
            key, order, records, overhead = piece[:4]
            judged = stream.feed(Batch(key, order, records, overhead, np.arange(begin, begin + len(key))))
        if judged is None:
            continue
        # What is decided are the leading rows.
        columns = [column[judged.requests.rows - first] for column in held]
        side, count = judged.sides[0], len(judged.requests)
        limits = work.after.limits[group_of(columns[0])]
        made = {"amount": side.amount, "rate": side.rate, "throttle_ms": np.maximum(side.throttle, 0)}
        yield _as_requests(columns, columns[5:], made | {"limit": pa.array(limits, from_pandas=True)})
        held, first = [column[count:] for column in held], first + count


def _as_requests(
    columns: Sequence[Integers], identity: Sequence[Integers], made: Mapping[str, Integers | Doubles | Flags | pa.Array]
) -> pa.RecordBatch:
    """Rows of ``REQUESTS``: ``columns`` as those of ``judge_requests``, and what was ``made``. What neither has is null."""
    connection, correlation, throttle = identity
    known = {
        "ts_us": time_of(columns[0]) * 1000 + (columns[1] >> ORDER_BITS - MICRO_BITS),
        "order_": columns[1],
        "series": columns[4],
        "connection": pa.array(connection, pa.string()),
        "correlation_id": pa.array(correlation, mask=correlation == NULL),
        "recorded_throttle_ms": pa.array(throttle, mask=throttle == NULL),
        **made,
    }
    arrays = [
        pa.array(known[field.name]).cast(field.type) if field.name in known else pa.nulls(len(connection), field.type)
        for field in REQUESTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=REQUESTS)


_PART: Final = 6
"""The place of ``part`` among the columns of a topic."""


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


def topics_as_requests(columns: Sequence[Integers], limits: Doubles, window: Window) -> pa.RecordBatch:
    """Rows of ``REQUESTS`` of one group's topics, under the limits after the change. A throttle is that of a topic's own moment.

    ``columns``: as ``judge_topics``, and then the ``IDENTITY_COLUMNS``.
    """
    group, topics, places = _in_order(columns)
    limit = float(limits[group])
    judged = play(topics.times_ms, topics.amounts, topics.strict, limit, window)
    made = {"amount": topics.amounts, "throttle_ms": judged.throttle, "refused": judged.refused}
    made |= {"limit": pa.array(np.full(len(places), limit), from_pandas=True), "part": columns[_PART][places]}
    ordered = [column[places] for column in columns]
    return _as_requests(ordered, ordered[_PART + 1 :], made)


def _in_order(columns: Sequence[Integers]) -> tuple[int, Topics, Integers]:
    """The group, its topics in the order of charging, and their places in the columns."""
    key, order, records, overhead, series, strict, part = columns[: _PART + 1]
    topics = Topics(time_of(key), order, records + overhead, strict != 0, series)
    places = topic_order(topics, part)
    return int(group_of(key[:1])[0]), topics.part(places), places


def judge_tokens_of(limits: tuple[Doubles, Doubles], window: Window) -> Callable[[Pieces], Iterator[pa.RecordBatch]]:
    """A judge of the seconds of mutations: keys (``second_sums.keys_of``) and amounts. It gives batches of ``SCHEMA``.

    ``limits``: by group, before and after. ``window``: the controller's own settings.
    """

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        for keys, amounts in whole_groups(pieces, SECOND_BITS):
            group = int(keys[0] >> SECOND_BITS)
            sides = tuple(float(side[group]) for side in limits)
            yield rows_of(judge_seconds(group, keys & (1 << SECOND_BITS) - 1, amounts, sides, window), {})

    return judge


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


def targets_of_account(grouping: Grouping, *, of_controller: bool) -> frozenset[int]:
    """Return the numbers of the targets of mutations in one account."""
    return frozenset(
        number
        for number, target in enumerate(grouping.targets)
        if target.kind is Kind.MUTATION and (target.broker == CONTROLLER) is of_controller
    )
