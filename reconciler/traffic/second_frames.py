"""Rows of the published table of seconds (``model.SECONDS_SCHEMA``): judged seconds, and the quota groups that they belong to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from reconciler.model import SECONDS_SCHEMA, FrameColumn, FrameSchema
from reconciler.traffic.judging.by_seconds import SECONDS, BothLimits, second_rows
from reconciler.traffic.judging.exact import limits_of
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.judging.verdicts import most_certain
from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers, Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS, proves
from reconciler.traffic.kernels.token_bucket import seconds_over
from reconciler.traffic.kinds import SAMPLED, Kind
from reconciler.traffic.shuffle.block import Columns
from reconciler.traffic.shuffle.rows import GroupWork, LocalRows, Pieces
from reconciler.traffic.verdict_rows import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Item = TypeVar("Item")
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
    limits = BothLimits.of(grouping, window) if proves(window) else None
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
    from pyspark.sql import functions as F

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
