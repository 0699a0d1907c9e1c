"""Rows in shares, and the two things done with all of them: add up by name, and judge group by group after a shuffle.

``Rows`` is the interface of an engine. ``LocalRows`` is the one in this process, ``on_spark`` has the others. The functions that
read, send and judge are the same for each of them. ``ConvertedRows`` changes the rows of any of them on their
way.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.logs import timed_event
from reconciler.traffic.kernels.exact_totals import group_of
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.block import Columns, cut_into_pieces, sort_by_key

_log: Final = logging.getLogger(__name__)
_MOST_HELD: Final = 500_000
"""Rows of partial sums that are kept before they are added up."""
Item = TypeVar("Item")
Pieces = Iterable[list[Integers]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals(Generic[Item]):
    """Rows added up by ``keys``. ``count`` gives partial sums of ``schema`` for a share.

    ``name``: what is added up, for the log. ``columns``: those of an item that ``count`` reads. ``folds``: ``sum``, ``min`` or
    ``max`` of each other column.
    """

    name: str
    columns: tuple[str, ...]
    count: Callable[[Iterable[Item]], Iterable[pa.RecordBatch]]
    schema: pa.Schema
    keys: tuple[str, ...]
    folds: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork(Generic[Item]):
    """Rows judged group by group. ``name``: what is made of them, for the log.

    ``send`` makes columns of a share whose first column has keys: a group's number above ``bits`` bits of a time. ``judge`` gets
    whole groups in the order of keys, in pieces of some 2^16 rows, and gives batches of ``schema``. ``rows``: the expected rows
    of each group, by its number. ``columns``: those of an item that ``send`` reads. ``send_sums``: makes the same of batches of
    ``client_seconds.SCHEMA``, for works to which only the amounts of whole seconds matter.
    """

    name: str
    columns: tuple[str, ...]
    send: Callable[[Iterable[Item]], Iterable[Columns]]
    judge: Callable[[Pieces], Iterable[pa.RecordBatch]]
    schema: pa.Schema
    rows: Sequence[int]
    bits: int
    send_sums: Callable[[Iterable[pa.RecordBatch]], Iterable[Columns]] | None = None


class Rows(Protocol[Item]):
    """Rows somewhere, which can be gone through more than once."""

    def total(self, work: Totals[Item]) -> pa.Table:
        """One row for each combination of keys, with the columns of ``work.schema``, in no order."""
        ...

    def judge(self, work: GroupWork[Item]) -> pa.Table:
        """What ``work.judge`` gives of all groups, in no order."""
        ...

    def judge_in_order(self, works: Sequence[GroupWork[Item]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of several works of one schema, sorted by columns."""
        ...

    def in_slices(self) -> Sequence[tuple[float, Rows[Item]]]:
        """Stretches of time to be judged one after the other, with the share of each; none where ``judge`` needs no such help."""
        ...

    def close(self) -> None:
        """Release what is kept; safe to call twice."""
        ...


def whole_groups(pieces: Pieces) -> Iterator[list[Integers]]:
    """The columns of one group after the other."""
    held: list[list[Integers]] = []
    for piece in pieces:
        groups = group_of(piece[0])
        cuts = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
        for begin, end in itertools.pairwise(cuts):
            part = [column[begin:end] for column in piece]
            if held and group_of(held[-1][0][:1])[0] != groups[begin]:
                yield [np.concatenate(columns) for columns in zip(*held, strict=True)]
                held = []
            held.append(part)
    if held:
        yield [np.concatenate(columns) for columns in zip(*held, strict=True)]


def names_of(works: Sequence[Totals[Item]]) -> str:
    """What is added up in one pass, for the log."""
    return ", ".join(work.name for work in works)


def columns_of(works: Sequence[Totals[Item]]) -> tuple[str, ...]:
    """The columns of an item that one of these reads, each once."""
    return tuple(dict.fromkeys(name for work in works for name in work.columns))


def count_together(works: Sequence[Totals[Item]], items: Iterable[Item]) -> dict[str, pa.Table]:
    """The totals of a share by name, in one pass."""
    if len(works) == 1:
        (work,) = works
        return {work.name: add_up(pa.Table.from_batches(work.count(items), schema=work.schema), work.keys, work.folds)}
    sums = [PartialSums(work.schema, work.keys, work.folds) for work in works]
    for item in items:
        for work, partial in zip(works, sums, strict=True):
            partial.add(pa.Table.from_batches(work.count([item]), schema=work.schema))
    return {work.name: partial.table() for work, partial in zip(works, sums, strict=True)}


class LocalRows(Generic[Item]):
    """Rows in this process. ``items`` reads all of them, with these columns at least; it is called for each pass.

    ``together``: totals that the first one asked for computes in the same pass, because reading takes most of the time.
    ``slices``: read the rows of stretches of time, with the number of rows of each; no two have rows of one millisecond.
    """

    def __init__(
        self,
        items: Callable[[Sequence[str]], Iterable[Item]],
        together: Sequence[Totals[Item]] = (),
        slices: Sequence[tuple[int, Callable[[Sequence[str]], Iterable[Item]]]] = (),
    ) -> None:
        self._items = items
        self._slices = slices
        self._together = together
        self._known: dict[str, pa.Table] = {}

    def total(self, work: Totals[Item]) -> pa.Table:
        """As ``Rows.total``."""
        if work in self._together and self._known:
            return self._known[work.name]
        works = self._together if work in self._together else (work,)
        with timed_event(_log, "rows added up", what=names_of(works), engine="this process") as event:
            totals = count_together(works, self._items(columns_of(works)))
            event["results"] = totals[work.name].num_rows
        if work in self._together:
            self._known = totals
        return totals[work.name]

    def judge(self, work: GroupWork[Item]) -> pa.Table:
        """As ``Rows.judge``."""
        with timed_event(_log, "groups judged", what=work.name, engine="this process") as event:
            parts = [list(columns) for columns in work.send(self._items(work.columns)) if len(columns[0])]
            pieces = cut_into_pieces(sort_by_key(parts)) if parts else iter(())
            results = pa.Table.from_batches(work.judge(pieces), schema=work.schema)
            event |= {"rows": sum(len(part[0]) for part in parts), "results": results.num_rows}
        return results

    def in_slices(self) -> Sequence[tuple[float, Rows[Item]]]:
        """As ``Rows.in_slices``, in the order of time. One slice where the source does not know more."""
        whole = sum(rows for rows, _ in self._slices)
        return [(rows / whole, LocalRows(items)) for rows, items in self._slices] or [(1.0, self)]

    def judge_in_order(self, works: Sequence[GroupWork[Item]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """As ``Rows.judge_in_order``."""
        table = pa.concat_tables([self.judge(work) for work in works]).sort_by([(name, "ascending") for name in by])
        for batch in table.to_batches(1 << 16):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def close(self) -> None:
        """Nothing is kept."""


class RowsWithTotals(Generic[Item]):
    """``rows`` of which some totals are known: ``stored``, for all of them but ``rest``."""

    def __init__(self, rows: Rows[Item], rest: Rows[Item] | None, stored: Sequence[tuple[Totals[Item], pa.Table]]) -> None:
        self._rows = rows
        self._rest = rest
        self._stored = stored

    def total(self, work: Totals[Item]) -> pa.Table:
        """As ``Rows.total``."""
        stored = next((table for known, table in self._stored if known == work), None)
        if stored is None:
            return self._rows.total(work)
        read = [self._rest.total(work)] if self._rest is not None else []
        return add_up(pa.concat_tables([stored, *read]), work.keys, work.folds)

    def judge(self, work: GroupWork[Item]) -> pa.Table:
        """As ``Rows.judge``."""
        return self._rows.judge(work)

    def judge_in_order(self, works: Sequence[GroupWork[Item]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """As ``Rows.judge_in_order``."""
        return self._rows.judge_in_order(works, by)

    def in_slices(self) -> Sequence[tuple[float, Rows[Item]]]:
        """As ``Rows.in_slices``."""
        return self._rows.in_slices()

    def close(self) -> None:
        """As ``Rows.close``."""
        self._rows.close()


_ROWS_TOGETHER: Final = 1 << 20


def tables_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together, some 2^20 rows at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _ROWS_TOGETHER:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


class PartialSums:
    """Adds up tables of one schema by keys. Memory does not grow with their number."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str], folds: Mapping[str, str]) -> None:
        """``keys`` and ``folds``: as ``add_up``."""
        self._keys, self._folds = keys, folds
        self._held: list[pa.Table] = [schema.empty_table()]
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Add the rows of ``table``."""
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows > _MOST_HELD:
            self._held = [self.table()]
            self._rows = 0

    def table(self) -> pa.Table:
        """One row for each combination of keys."""
        return add_up(pa.concat_tables(self._held), self._keys, self._folds)


def add_up(table: pa.Table, keys: Sequence[str], folds: Mapping[str, str]) -> pa.Table:
    """One row for each combination of ``keys``, in the schema of ``table``."""
    grouped = table.group_by(list(keys), use_threads=False).aggregate(list(folds.items()))
    columns = [grouped.column(f"{name}_{folds[name]}" if name in folds else name) for name in table.schema.names]
    return pa.table([column.cast(field.type) for column, field in zip(columns, table.schema, strict=True)], schema=table.schema)


T = TypeVar("T")
_TIME: Final = "ts_us"


class ConvertedRows:
    """Rows of ``rows`` as ``convert`` makes them of batches that have these columns beside those that a work reads."""

    def __init__(
        self,
        rows: Rows[pa.RecordBatch],
        convert: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        columns: Sequence[str],
    ) -> None:
        self._rows = rows
        self._convert = convert
        self._columns = columns

    def total(self, work: Totals[pa.RecordBatch]) -> pa.Table:
        """As ``Rows.total``."""
        return self._rows.total(replace(work, columns=self._with_columns(work.columns), count=self._converted(work.count)))

    def judge(self, work: GroupWork[pa.RecordBatch]) -> pa.Table:
        """As ``Rows.judge``."""
        return self._rows.judge(self._converted_work(work))

    def judge_in_order(self, works: Sequence[GroupWork[pa.RecordBatch]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """As ``Rows.judge_in_order``."""
        return self._rows.judge_in_order([self._converted_work(work) for work in works], by)

    def in_slices(self) -> Sequence[tuple[float, Rows[pa.RecordBatch]]]:
        """As ``Rows.in_slices``."""
        return [(share, ConvertedRows(rows, self._convert, self._columns)) for share, rows in self._rows.in_slices()]

    def close(self) -> None:
        """As ``Rows.close``."""
        self._rows.close()

    def _converted_work(self, work: GroupWork[pa.RecordBatch]) -> GroupWork[pa.RecordBatch]:
        return replace(work, columns=self._with_columns(work.columns), send=self._converted(work.send), send_sums=None)

    def _with_columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*columns, *self._columns)))

    def _converted(self, read: Callable[[Iterable[pa.RecordBatch]], T]) -> Callable[[Iterable[pa.RecordBatch]], T]:
        # Workers of Spark get the function, and not these rows.
        convert = self._convert
        return lambda batches: read(convert(batches))


class RowsBetween(ConvertedRows):
    """Rows of ``rows`` whose time (microseconds since 1970) is ``start_us`` or later, and before ``end_us``."""

    def __init__(self, rows: Rows[pa.RecordBatch], start_us: int, end_us: int) -> None:
        super().__init__(rows, functools.partial(_between, start_us=start_us, end_us=end_us), (_TIME,))

    def close(self) -> None:
        """The rows belong to the source of all of them."""


def _between(batches: Iterable[pa.RecordBatch], start_us: int, end_us: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time = batch.column(_TIME)
        yield batch.filter(pc.and_(pc.greater_equal(time, start_us), pc.less(time, end_us)))
