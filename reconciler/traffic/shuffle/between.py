"""A part of rows: those of a stretch of time, added up and judged by the same engine as all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.shuffle.rows import GroupWork, Rows, Totals

T = TypeVar("T")
_TIME: Final = "ts_us"


class RowsBetween:
    """Rows of ``rows`` whose time (microseconds since 1970) is ``start_us`` or later, and before ``end_us``."""

    def __init__(self, rows: Rows[pa.RecordBatch], start_us: int, end_us: int) -> None:
        self._rows = rows
        self._start_us = start_us
        self._end_us = end_us

    def total(self, work: Totals[pa.RecordBatch]) -> pa.Table:
        """As ``Rows.total``."""
        return self._rows.total(replace(work, columns=_with_time(work.columns), count=self._narrowed(work.count)))

    def judge(self, work: GroupWork[pa.RecordBatch]) -> pa.Table:
        """As ``Rows.judge``."""
        return self._rows.judge(self._narrowed_work(work))

    def judge_in_order(self, works: Sequence[GroupWork[pa.RecordBatch]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """As ``Rows.judge_in_order``."""
        return self._rows.judge_in_order([self._narrowed_work(work) for work in works], by)

    def close(self) -> None:
        """The rows belong to the source of all of them."""

    def _narrowed_work(self, work: GroupWork[pa.RecordBatch]) -> GroupWork[pa.RecordBatch]:
        return replace(work, columns=_with_time(work.columns), send=self._narrowed(work.send))

    def _narrowed(self, read: Callable[[Iterable[pa.RecordBatch]], T]) -> Callable[[Iterable[pa.RecordBatch]], T]:
        # Workers of Spark get the two numbers, and not these rows.
        start_us, end_us = self._start_us, self._end_us
        return lambda batches: read(_between(batches, start_us, end_us))


def _with_time(columns: tuple[str, ...]) -> tuple[str, ...]:
    return columns if _TIME in columns else (*columns, _TIME)


def _between(batches: Iterable[pa.RecordBatch], start_us: int, end_us: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time = batch.column(_TIME)
        yield batch.filter(pc.and_(pc.greater_equal(time, start_us), pc.less(time, end_us)))
