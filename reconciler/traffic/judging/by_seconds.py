"""The judgement from one-second sums on Spark: cells to their groups, one row a group to the driver.

Amounts are integers and sums do not depend on their order, so neither does the result on how rows are partitioned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from reconciler.traffic.judging.exact import numbers_of
from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.judging.placing import with_groups
from reconciler.traffic.kernels.sampled_rate import Era
from reconciler.traffic.kernels.second_sums import SECOND_BITS
from reconciler.traffic.kernels.seconds_judge import GroupVerdict, SecondsJudge, SideVerdict
from reconciler.traffic.kernels.timeline import Doubles
from reconciler.traffic.sources.request_log import CHARGED

_SCHEMA: Final = "number int, counts array<bigint>, peaks array<double>, bins array<bigint>"
_ARROW: Final = pa.schema(
    [
        ("number", pa.int32()), ("counts", pa.list_(pa.int64())), ("peaks", pa.list_(pa.float64())),
        ("bins", pa.list_(pa.int64())),
    ]
)  # fmt: skip
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Limits:
    """By group number, NaN unlimited, on both sides; and the era that is modelled. Small, since it travels with the code."""

    before: Doubles
    after: Doubles
    era: Era

    @classmethod
    def of(cls, groups: Sequence[Group], era: Era) -> Limits:
        """A group that is not of a side is unlimited there."""
        sides = ([g.before for g in groups], [g.after for g in groups])
        before, after = (
            np.asarray([np.nan if s is None or s.limit is None else s.limit for s in side], dtype=np.float64) for side in sides
        )
        return cls(before, after, era)


def judged_by_seconds(placed: DataFrame, groups: Sequence[Group], era: Era) -> dict[int, GroupVerdict]:
    """Verdicts by group, with the sides before and after.

    ``placed``: columns ``group``, ``second`` and ``amount``; several rows of one group and second add up.
    """
    limits = Limits.of(groups, era)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        judge = SecondsJudge((limits.before, limits.after), limits.era)
        for batch in batches:
            judge.feed(numbers_of(batch, "key"), numbers_of(batch, "amount"))
        yield pa.RecordBatch.from_pylist([row_of(verdict) for verdict in judge.verdicts()], schema=_ARROW)

    key = F.shiftleft(F.col("group").cast("long"), SECOND_BITS).bitwiseOR(F.col("second").cast("long"))
    keyed = placed.select(key.alias("key"), F.col("amount").cast("long").alias("amount"))
    ordered = keyed.repartition(F.shiftright("key", SECOND_BITS)).sortWithinPartitions("key")
    return {row.number: verdict_of(row) for row in ordered.mapInArrow(judge, _SCHEMA).collect()}


def judged_rows_by_seconds(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], era: Era
) -> dict[int, GroupVerdict]:
    """The same from single requests (columns of ``request_log``)."""
    charged = with_groups(rows.where(F.col("status") == CHARGED), series, grouping, groups)
    second = F.floor(F.col("ts_us") / 1_000_000).alias("second")
    summed = charged.groupBy("group", second).agg(F.sum(F.col("records") + F.col("overhead")).alias("amount"))
    return judged_by_seconds(summed, grouping.groups, era)


def row_of(verdict: GroupVerdict) -> dict[str, object]:
    """A verdict as a row of plain numbers."""
    counts = [verdict.active, verdict.amount]
    for side in verdict.sides:
        firsts = (_NONE if first is None else first for first in (side.first_certain, side.first_possible, side.longest_from))
        counts += [side.certain, side.expected, side.possible, side.longest_s, *firsts]
    return {
        "number": verdict.group,
        "counts": counts,
        "peaks": [verdict.peak_upper, verdict.peak_expected],
        "bins": [number for both in verdict.histogram for number in both],
    }


def verdict_of(row: Row) -> GroupVerdict:
    """The inverse of ``row_of``."""
    active, amount, *sides = row.counts
    return GroupVerdict(
        group=row.number,
        active=active,
        amount=amount,
        peak_upper=row.peaks[0],
        peak_expected=row.peaks[1],
        histogram=tuple(zip(row.bins[::2], row.bins[1::2], strict=True)),
        sides=tuple(_side(sides[start : start + 7]) for start in range(0, len(sides), 7)),
    )


def _side(counts: Sequence[int]) -> SideVerdict:
    certain, expected, possible, longest, *firsts = counts
    first_certain, first_possible, since = (None if first == _NONE else first for first in firsts)
    return SideVerdict(
        certain=certain,
        expected=expected,
        possible=possible,
        first_certain=first_certain,
        first_possible=first_possible,
        longest_s=longest,
        longest_from=since,
    )
