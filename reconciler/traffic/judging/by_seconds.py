"""The judgement from one-second sums: cells of groups in, one row a group out, of every worker or of this process.

Amounts are integers and sums do not depend on their order, so neither does the result on how rows are partitioned.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from reconciler.traffic.judging.exact import limits_of
from reconciler.traffic.judging.grouping import Group
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Flags, Rule
from reconciler.traffic.kernels.seconds_judge import SIDE_FIELDS, GroupVerdict, SecondsJudge, VerdictColumns
from reconciler.traffic.kernels.timeline import Doubles, Integers
from reconciler.traffic.shuffle.rows import GroupWork, Pieces, Rows

Item = TypeVar("Item")
_WIDTH: Final = len(SIDE_FIELDS)
_WHOLE: Final = ("number", "active", "amount", *(f"{name}_{side}" for side in ("before", "after") for name in SIDE_FIELDS))
_RATES: Final = ("peak_upper", "peak_expected", "p999")
SCHEMA: Final = pa.schema([*((name, pa.int64()) for name in _WHOLE), *((name, pa.float64()) for name in _RATES)])


@dataclass(frozen=True, slots=True)
class SecondsLimits:
    """By group number, NaN unlimited, on both sides; and the broker that is modelled. Small, since it travels with the code.

    ``capped``: whether Kafka caps the throttles of a group.
    """

    before: Doubles
    after: Doubles
    capped: Flags
    era: Rule

    @classmethod
    def of(cls, groups: Sequence[Group], era: Rule) -> SecondsLimits:
        """A group that is not of a side is unlimited there."""
        before, after = limits_of(groups)
        return cls(before, after, np.asarray([group.kind.is_capped for group in groups], dtype=np.bool_), era)

    def judge(self) -> SecondsJudge:
        """A judge of the cells of these groups."""
        return SecondsJudge((self.before, self.after), self.era, capped=self.capped)


def judge_seconds(
    rows: Rows[Item],
    send: Callable[[Iterable[Item]], Iterable[tuple[Integers, Integers]]],
    expected: Sequence[int],
    groups: Sequence[Group],
    era: Rule,
    *,
    columns: tuple[str, ...] = (),
) -> dict[int, GroupVerdict]:
    """Verdicts by group, on both sides. ``send`` gives keys (``second_sums.keys_of``) and amounts; equal keys add up.

    ``expected``: about how many rows each group has. ``columns``: those that ``send`` reads.
    """
    limits = SecondsLimits.of(groups, era)

    def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
        yield judge_cells(((key, amount) for key, amount in pieces), limits)

    work = GroupWork(columns=columns, send=send, judge=judge, schema=SCHEMA, rows=expected, bits=SECOND_BITS)
    return {verdict.group: verdict for verdict in verdicts_of(rows.judge(work))}


def judge_cells(cells: Iterable[tuple[Integers, Integers]], limits: SecondsLimits) -> pa.RecordBatch:
    """Verdicts, as ``batch_of_verdicts`` has them. ``cells``: keys (``second_sums.keys_of``), rising, and amounts."""
    judge = limits.judge()
    for keys, amounts in cells:
        judge.feed(keys, amounts)
    return batch_of_verdicts(judge.columns())


def batch_of_verdicts(found: VerdictColumns) -> pa.RecordBatch:
    """Verdicts for both sides, as columns of plain numbers."""
    columns = [found.groups, *found.whole, *(row for side in found.sides for row in side), *found.rates]
    return pa.RecordBatch.from_arrays([pa.array(c, type=f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def verdicts_of(table: pa.Table) -> Iterator[GroupVerdict]:
    """The inverse of ``batch_of_verdicts``."""
    groups, *rest = (column.to_numpy(zero_copy_only=False) for column in table.columns)
    whole, before, after, rates = (
        np.stack(rest[begin:end]) for begin, end in itertools.pairwise((0, 2, 2 + _WIDTH, 2 + 2 * _WIDTH, len(rest)))
    )
    return VerdictColumns(groups, whole, rates, (before, after)).verdicts()
