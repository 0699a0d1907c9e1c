"""The exact judgement: every request of every bucket in, one row a bucket and a series out, of every worker or of this process.

Results do not depend on how rows are partitioned: sums are integers, and requests are put in one order that only their content
decides (charge time, then a hash of connection and correlation id).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.judging.grouping import Group, Grouping
from reconciler.traffic.kernels.exact_sides import GroupLimits
from reconciler.traffic.kernels.exact_stream import ExactStream, JudgedBatch
from reconciler.traffic.kernels.exact_totals import Batch, ExactColumns, ExactVerdict
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.timeline import Doubles, Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import Pieces

SCHEMA: Final = pa.schema(
    [
        ("of_series", pa.bool_()), ("number", pa.int32()), ("counts", pa.list_(pa.int64())), ("peak", pa.float64()),
        ("p999", pa.float64()), ("safe", pa.float64()),
    ]
)  # fmt: skip
BEFORE: Final = 0
AFTER: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesCounts:
    """One client's part: its throttled requests on both sides, and its amount in the seconds that are over after the change."""

    throttled_before: int = 0
    throttled_after: int = 0
    amount_over: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactResult:
    """Verdicts by group, counts by series; the sides of a verdict are before and after."""

    groups: Mapping[int, ExactVerdict]
    series: Mapping[int, SeriesCounts]


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
    """Those that a sampled rate limits."""
    return frozenset(number for number, group in enumerate(grouping.groups) if group.kind is not Kind.MUTATION)


def result_of(table: pa.Table) -> ExactResult:
    """What the workers found, put together. ``table``: what ``rows_of`` gave, of any number of workers."""
    counted = table.filter(pc.field("of_series"))
    counts: dict[int, SeriesCounts] = {}
    for number, numbers in zip(counted.column("number").to_pylist(), counted.column("counts").to_pylist(), strict=True):
        counts[number] = _added(counts.get(number), numbers)
    judged = table.filter(~pc.field("of_series"))
    if not judged.num_rows:
        return ExactResult(groups={}, series=counts)
    flat = np.asarray(pc.list_flatten(judged.column("counts")).to_numpy(), dtype=np.int64)
    columns = (judged.column(name).to_numpy() for name in ("number", "peak", "p999", "safe"))
    groups, *rates = columns
    found = ExactColumns(groups, flat.reshape(judged.num_rows, -1).T, *rates)
    return ExactResult(groups={verdict.group: verdict for verdict in found.verdicts()}, series=counts)


def batch_of(table: pa.Table | pa.RecordBatch, rows: Integers) -> Batch:
    """The columns ``key``, ``order_``, ``records`` and ``overhead``."""
    key, order, records, overhead = (numbers_of(table, name) for name in ("key", "order_", "records", "overhead"))
    return Batch(key, order, records, overhead, rows)


def numbers_of(table: pa.Table | pa.RecordBatch, name: str) -> Integers:
    """A column of whole numbers."""
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False), dtype=np.int64)


def limits_of(groups: Sequence[Group]) -> tuple[Doubles, Doubles]:
    """By group number, before and after, in amounts a second; NaN is unlimited, and so is a side that a group is not of."""
    units = [group.kind.amounts_a_unit for group in groups]
    sides = ([group.before for group in groups], [group.after for group in groups])
    before, after = (
        np.asarray(
            [np.nan if one is None or one.limit is None else one.limit * unit for one, unit in zip(side, units, strict=True)],
            dtype=np.float64,
        )
        for side in sides
    )
    return before, after


def judge_requests_of(work: Work) -> Callable[[Pieces], Iterator[pa.RecordBatch]]:
    """A judge of the columns of ``Batch``, whose last one is the series; it gives batches of ``SCHEMA``."""

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        yield judge_batches((Batch(*columns) for columns in pieces), work)

    return judge


def judge_batches(batches: Iterable[Batch], work: Work) -> pa.RecordBatch:
    """What ``rows_of`` gives. ``batches``: in the order of their keys, of at most some 2^16 requests; ``rows`` are series."""
    stream = ExactStream((work.before, work.after), work.window)
    counts: dict[int, Integers] = {}
    for batch in batches:
        count_into(counts, stream.feed(batch))
    count_into(counts, stream.finish())
    return rows_of(stream.totals(), counts)


def rows_of(found: ExactColumns, counts: Mapping[int, Integers]) -> pa.RecordBatch:
    """What a worker sends to the driver; counts are by series."""
    width, of_series = len(found.counts), np.stack(list(counts.values())) if counts else np.empty((0, 0), dtype=np.int64)
    lengths = np.repeat((width, of_series.shape[1]), (len(found.groups), len(of_series)))
    lists = pa.ListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(lengths)), type=pa.int32()),
        pa.array(np.concatenate((found.counts.T.ravel(), of_series.ravel()))),
    )
    nothing = np.zeros(len(of_series))
    columns = [
        pa.array(np.repeat((False, True), (len(found.groups), len(of_series)))),
        pa.array(np.concatenate((found.groups, np.fromiter(counts, dtype=np.int64))), type=pa.int32()),
        lists,
        *(pa.array(np.concatenate((values, nothing))) for values in (found.peaks, found.p999, found.safe)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def count_into(counts: dict[int, Integers], judged: JudgedBatch | None) -> None:
    """Add what is throttled, and charged in seconds over, to its series; those of which nothing is are left out."""
    if judged is None:
        return
    of_series = judged.requests.rows
    before, after = (side.throttle > 0 for side in judged.sides)
    over = judged.over[AFTER]
    told = np.flatnonzero(before | over)
    numbers, places = np.unique(of_series[told], return_inverse=True)
    # Sums of doubles are exact here: an amount is below 2^31 (a minute of nanoseconds: 2^36), and a batch has some 2^16 requests.
    weights = (before[told], after[told], np.where(over[told], judged.sides[AFTER].amount[told], 0))
    found = np.stack([np.bincount(places, weights=weight, minlength=len(numbers)) for weight in weights], axis=1)
    for series, row in zip(numbers.tolist(), found.astype(np.int64), strict=True):
        counts[series] = counts[series] + row if series in counts else row


def _added(known: SeriesCounts | None, counts: Sequence[int]) -> SeriesCounts:
    known = known or SeriesCounts()
    return SeriesCounts(
        throttled_before=known.throttled_before + counts[0],
        throttled_after=known.throttled_after + counts[1],
        amount_over=known.amount_over + counts[2],
    )
