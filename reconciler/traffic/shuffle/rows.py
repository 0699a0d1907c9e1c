"""Rows in shares, and the two things done with all of them: add up by name, and judge group by group after a shuffle.

Rows are lazy: each pass reads them anew, by a scan that gives some columns of each share. ``Rows.map`` changes them on their way.
``Rows.with_totals`` and ``Rows.with_sums`` state what need not be read. Two engines make passes: ``LocalRows`` in this process,
and ``on_spark.SparkRows``. The functions that read, send and judge are the same for both.
"""

from __future__ import annotations

import copy
import functools
import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.logs import timed_event
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.block import Columns, cut_into_pieces, sort_by_key

if TYPE_CHECKING:
    from reconciler.traffic.columns import KnownClients

_log: Final = logging.getLogger(__name__)
_MOST_HELD: Final = 500_000
"""Rows of partial sums that are kept before they are added up."""
Item = TypeVar("Item")
AnyRows = TypeVar("AnyRows", bound="Rows[Any]")
Pieces = Iterable[list[Integers]]
Read: TypeAlias = Callable[[Sequence[str]], Iterable[Item]]
"""Reads rows, with these columns at least."""
Convert: TypeAlias = Callable[[Iterable[Item]], Iterator[Item]]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums(Generic[Item]):
    """What rows add up to. ``rows``: the sums, with the columns ``columns``. ``totals``: of the first, the second one is made."""

    rows: Rows[Any]
    columns: tuple[str, ...]
    totals: Sequence[tuple[Totals[Item], Totals[Any]]]


class Rows(ABC, Generic[Item]):
    """Rows somewhere, which can be gone through more than once.

    ``together``: totals that the first of them computes in the same pass, because reading takes most of the time.
    """

    def __init__(self, together: Sequence[Totals[Item]] = ()) -> None:
        self._together = tuple(together)
        self._known: dict[str, pa.Table] = {}
        self._stored: Sequence[tuple[Totals[Item], pa.Table]] = ()
        self._rest: Rows[Item] | None = None
        self._sums: Sums[Item] | None = None
        self._source: Rows[Item] | None = None

    def total(self, work: Totals[Item]) -> pa.Table:
        """One row for each combination of keys, with the columns of ``work.schema``, in no order."""
        if self._sums is not None:
            for of_rows, of_sums in self._sums.totals:
                if of_rows == work:
                    return self._sums.rows.total(of_sums)
        for known, table in self._stored:
            if known == work:
                read = [self._rest.total(work)] if self._rest is not None else []
                return add_up(pa.concat_tables([table, *read]), work.keys, work.folds)
        if self._known and work in self._together:
            return self._known[work.name]
        works = self._together if work in self._together[:1] else (work,)
        tables = self._count(works)
        if works is self._together:
            self._known = tables
        return tables[work.name]

    def judge(self, work: GroupWork[Item]) -> pa.Table:
        """Return what ``work.judge`` gives of all groups, in no order."""
        if self._sums is not None and work.send_sums is not None:
            return self._sums.rows.judge(replace(work, send=work.send_sums, columns=self._sums.columns))
        return self._judge(work)

    @abstractmethod
    def judge_in_order(self, works: Sequence[GroupWork[Item]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of several works of one schema, sorted by columns."""

    def in_slices(self) -> Sequence[tuple[float, Rows[Item]]]:
        """Stretches of time to be judged one after the other, with the share of each; none where ``judge`` needs no such help."""
        return ()

    def only(self, clients: KnownClients) -> Self:
        """The same rows. Those of other clients may be left out where that saves reading them."""
        del clients
        return self

    def map(self, convert: Convert[Item], columns: Sequence[str]) -> Self:
        """The rows as ``convert`` makes them of batches that have these columns beside those that a work reads.

        ``convert`` is sent to workers. Closing the new rows closes these, too.
        """
        return copy_rows(self._mapped(convert, columns), _source=self)

    def between(self, start_us: int, end_us: int) -> Self:
        """The rows whose time (microseconds since 1970) is ``start_us`` or later, and before ``end_us``. They close nothing."""
        return self._mapped(functools.partial(_between, start_us=start_us, end_us=end_us), (_TIME,))

    def with_totals(self, stored: Sequence[tuple[Totals[Item], pa.Table]], rest: Rows[Item] | None) -> Self:
        """The same rows. ``stored``: totals that are known, for all of them but ``rest``."""
        return copy_rows(self, _stored=stored, _rest=rest)

    def with_sums(self, sums: Sums[Item]) -> Self:
        """The same rows. Totals, and judgements for which sums suffice, are made of ``sums``."""
        return copy_rows(self, _sums=sums)

    def close(self) -> None:
        """Release what is kept; safe to call twice."""
        if self._sums is not None:
            self._sums.rows.close()
        if self._source is not None:
            self._source.close()

    @abstractmethod
    def _mapped(self, convert: Convert[Item], columns: Sequence[str]) -> Self: ...

    @abstractmethod
    def _count(self, works: Sequence[Totals[Item]]) -> dict[str, pa.Table]:
        """The totals of one pass, by name."""

    @abstractmethod
    def _judge(self, work: GroupWork[Item]) -> pa.Table: ...


def whole_groups(pieces: Pieces, bits: int) -> Iterator[list[Integers]]:
    """The columns of one group after the other. ``bits``: as ``GroupWork`` has it."""
    held: list[list[Integers]] = []
    for piece in pieces:
        groups = piece[0] >> bits
        cuts = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
        for begin, end in itertools.pairwise(cuts):
            part = [column[begin:end] for column in piece]
            if held and held[-1][0][0] >> bits != groups[begin]:
                yield [np.concatenate(columns) for columns in zip(*held, strict=True)]
                held = []
            held.append(part)
    if held:
        yield [np.concatenate(columns) for columns in zip(*held, strict=True)]


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


class LocalRows(Rows[Item]):
    """Rows in this process. ``read`` reads all of them, and is called for each pass.

    ``slices``: read the rows of stretches of time, with the number of rows of each; no two have rows of one millisecond.
    ``progress``: gets the judged rows. What ``read`` reads, it counts itself.
    """

    def __init__(
        self,
        read: Read[Item],
        together: Sequence[Totals[Item]] = (),
        slices: Sequence[tuple[int, Read[Item]]] = (),
        progress: Progress = NO_PROGRESS,
    ) -> None:
        super().__init__(together)
        self.read = read
        self._slices, self._progress = slices, progress

    def in_slices(self) -> Sequence[tuple[float, Rows[Item]]]:
        """Implement ``Rows.in_slices``, in the order of time. One slice where the source does not know more."""
        whole = sum(rows for rows, _ in self._slices)
        return [(rows / whole, LocalRows(read, progress=self._progress)) for rows, read in self._slices] or [(1.0, self)]

    def judge_in_order(self, works: Sequence[GroupWork[Item]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Implement ``Rows.judge_in_order``."""
        table = pa.concat_tables([self.judge(work) for work in works]).sort_by([(name, "ascending") for name in by])
        for batch in table.to_batches(1 << 16):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def _mapped(self, convert: Convert[Item], columns: Sequence[str]) -> LocalRows[Item]:
        def converted(read: Read[Item]) -> Read[Item]:
            return lambda names: convert(read(joined_names(names, columns)))

        slices = [(rows, converted(read)) for rows, read in self._slices]
        return LocalRows(converted(self.read), slices=slices, progress=self._progress)

    def _count(self, works: Sequence[Totals[Item]]) -> dict[str, pa.Table]:
        with timed_event(_log, "rows added up", what=", ".join(work.name for work in works), engine="this process") as event:
            totals = count_together(works, self.read(columns_of(works)))
            event["results"] = totals[works[0].name].num_rows
        return totals

    def _judge(self, work: GroupWork[Item]) -> pa.Table:
        with timed_event(_log, "groups judged", what=work.name, engine="this process") as event:
            parts = [list(columns) for columns in work.send(self.read(work.columns)) if len(columns[0])]
            rows = sum(len(part[0]) for part in parts)
            pieces = cut_into_pieces(sort_by_key(parts)) if parts else iter(())
            results = pa.Table.from_batches(work.judge(self._counted(pieces, rows)), schema=work.schema)
            event |= {"rows": rows, "results": results.num_rows}
        return results

    def _counted(self, pieces: Pieces, rows: int) -> Iterator[list[Integers]]:
        done = 0
        for piece in pieces:
            self._progress.count(done, rows, "rows")
            yield piece
            done += len(piece[0])


def count_rows(batches: Iterable[pa.RecordBatch], progress: Progress, total: int | None) -> Iterator[pa.RecordBatch]:
    """The same batches, counted as they come. ``total``: the rows of all, where they are known."""
    done = 0
    for batch in batches:
        progress.count(done, total, "rows")
        yield batch
        done += batch.num_rows


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


_TIME: Final = "ts_us"


def copy_rows(rows: AnyRows, **attributes: Any) -> AnyRows:
    """The same rows with other attributes."""
    made = copy.copy(rows)
    vars(made).update(attributes)
    return made


def joined_names(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys((*names, *others)))


def _between(batches: Iterable[Any], start_us: int, end_us: int) -> Iterator[Any]:
    for batch in batches:
        time = batch.column(_TIME)
        yield batch.filter(pc.and_(pc.greater_equal(time, start_us), pc.less(time, end_us)))
