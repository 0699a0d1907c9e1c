"""Samples of quota groups against their limits: how many moments there are, and in how many the rate is above a limit.

The gauges of one group at one moment are added up: a client has two series when its quota moved to another level, and each of
its requests is in exactly one of them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.exact_totals import first_places, group_of, time_of
from reconciler.traffic.kernels.sampled_rate import Doubles, Integers

SCHEMA: Final = pa.schema(
    [(name, pa.int64()) for name in ("group", "moments", "over", "over_before", "highest", "first_over_ms")]
)
FOLDS: Final = {"moments": "sum", "over": "sum", "over_before": "sum", "highest": "max", "first_over_ms": "min"}
NEVER: Final = np.iinfo(np.int64).max
"""As ``first_over_ms``: at no moment."""


def count_samples(pieces: Iterable[Sequence[Integers]], before: Doubles, after: Doubles) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``, one or more for each group. A piece has keys (``exact_totals.pack``), which rise, and amounts.

    ``before``, ``after``: limits by group number, NaN for none.
    """
    kept = np.empty((2, 0), dtype=np.int64)
    for piece in pieces:
        rows = np.concatenate((kept, np.stack(piece[:2]).astype(np.int64)), axis=1)
        # The last moment may go on in the next piece.
        cut = int(np.searchsorted(rows[0], rows[0, -1])) if rows.size else 0
        kept = rows[:, cut:]
        if cut:
            yield _counted(rows[:, :cut], before, after)
    if kept.size:
        yield _counted(kept, before, after)


def _counted(rows: Integers, before: Doubles, after: Doubles) -> pa.RecordBatch:
    first = first_places(rows[0])
    moments, totals = rows[0, first], np.add.reduceat(rows[1], first)
    group = group_of(moments)
    begin = first_places(group)
    over = totals > after[group]
    columns = (
        group[begin],
        np.diff(begin, append=len(group)),
        np.add.reduceat(over.astype(np.int64), begin),
        np.add.reduceat((totals > before[group]).astype(np.int64), begin),
        np.maximum.reduceat(totals, begin),
        np.minimum.reduceat(np.where(over, time_of(moments), NEVER), begin),
    )
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCounts:
    """The gauges of one quota group, those of one moment added up. ``highest``: amounts a second."""

    moments: int
    over: int
    over_before: int
    highest: int
    first_over_ms: int

    @property
    def first(self) -> datetime.datetime | None:
        """The first moment over the limit after the change."""
        return None if self.first_over_ms == NEVER else datetime.datetime.fromtimestamp(self.first_over_ms / 1000, datetime.UTC)


def counts_by_group(table: pa.Table) -> dict[int, SampleCounts]:
    """Return the counts by group. ``table``: rows of ``SCHEMA``, one for each."""
    return {row.pop("group"): SampleCounts(**row) for row in table.to_pylist()}
