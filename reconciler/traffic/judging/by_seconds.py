"""The judgement from one-second sums on Spark: cells to their groups, one row a group to the driver.

Amounts are integers and sums do not depend on their order, so neither does the result on how rows are partitioned.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reconciler.traffic.judging.exact import limits_of, numbers_of
from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.judging.placing import with_groups
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import SIDE_FIELDS, GroupVerdict, SecondsJudge, VerdictColumns
from reconciler.traffic.kernels.timeline import Doubles, Integers
from reconciler.traffic.parcels.merging import merged
from reconciler.traffic.sources.request_log import CHARGED

_WIDTH: Final = len(SIDE_FIELDS)
_WHOLE: Final = ("number", "active", "amount", *(f"{name}_{side}" for side in ("before", "after") for name in SIDE_FIELDS))
_RATES: Final = ("peak_upper", "peak_expected", "p999")
_ARROW: Final = pa.schema([*((name, pa.int64()) for name in _WHOLE), *((name, pa.float64()) for name in _RATES)])
_SCHEMA: Final = ", ".join((*(f"{name} bigint" for name in _WHOLE), *(f"{name} double" for name in _RATES)))


@dataclass(frozen=True, slots=True)
class Limits:
    """By group number, NaN unlimited, on both sides; and the broker that is modelled. Small, since it travels with the code."""

    before: Doubles
    after: Doubles
    era: Rule

    @classmethod
    def of(cls, groups: Sequence[Group], era: Rule) -> Limits:
        """A group that is not of a side is unlimited there."""
        before, after = limits_of(groups)
        return cls(before, after, era)


def judged_by_seconds(placed: DataFrame, groups: Sequence[Group], era: Rule) -> dict[int, GroupVerdict]:
    """Verdicts by group, with the sides before and after.

    ``placed``: columns ``group``, ``second`` and ``amount``; several rows of one group and second add up.
    """
    limits = Limits.of(groups, era)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _judged(((numbers_of(batch, "key"), numbers_of(batch, "amount")) for batch in batches), limits)

    key = F.shiftleft(F.col("group").cast("long"), SECOND_BITS).bitwiseOR(F.col("second").cast("long"))
    keyed = placed.select(key.alias("key"), F.col("amount").cast("long").alias("amount"))
    # Keys are shuffled by their group and sorted as one number, which Spark does by radix.
    ordered = keyed.repartition(F.shiftright("key", SECOND_BITS)).sortWithinPartitions("key")
    return {verdict.group: verdict for verdict in verdicts_of(ordered.mapInArrow(judge, _SCHEMA).toArrow())}


def judged_parcels(parcels: DataFrame, groups: Sequence[Group], era: Rule) -> dict[int, GroupVerdict]:
    """The same from keys, as ``second_sums.keys_of`` packs groups and seconds, and amounts, ``brought_together``."""
    limits = Limits.of(groups, era)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _judged(((key, amount) for key, amount in merged(batches)), limits)

    return {verdict.group: verdict for verdict in verdicts_of(parcels.mapInArrow(judge, _SCHEMA).toArrow())}


def _judged(cells: Iterable[tuple[Integers, Integers]], limits: Limits) -> pa.RecordBatch:
    judge = SecondsJudge((limits.before, limits.after), limits.era)
    for keys, amounts in cells:
        judge.feed(keys, amounts)
    return batch_of_verdicts(judge.columns())


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


def batch_of_verdicts(found: VerdictColumns) -> pa.RecordBatch:
    """Verdicts for both sides, as columns of plain numbers."""
    columns = [found.groups, *found.whole, *(row for side in found.sides for row in side), *found.rates]
    return pa.RecordBatch.from_arrays([pa.array(c, type=f.type) for c, f in zip(columns, _ARROW, strict=True)], schema=_ARROW)


def verdicts_of(table: pa.Table) -> Iterator[GroupVerdict]:
    """The inverse of ``batch_of_verdicts``."""
    groups, *rest = (column.to_numpy(zero_copy_only=False) for column in table.columns)
    whole, before, after, rates = (
        np.stack(rest[begin:end]) for begin, end in itertools.pairwise((0, 2, 2 + _WIDTH, 2 + 2 * _WIDTH, len(rest)))
    )
    return VerdictColumns(groups, whole, rates, (before, after)).verdicts()
