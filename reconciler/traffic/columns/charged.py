"""The charged rows of a batch of the canonical traffic schema (``normal_form.ROWS``) as arrays, with clients as numbers.

Distinct values are numbered without sorting where a table is small enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.traffic.kernels.sampled_rate import Flags, Integers
from reconciler.traffic.sources.normal_form import CHARGED, are_known, integers

NEEDED: Final = ("status", "broker", "kind", "user", "client_id", "ip", "ts_us", "records", "overhead")
"""The columns that ``charged_rows`` reads. Rows of request logs have no ``ip``."""
NAME_CODES: Final = pa.dictionary(pa.int32(), pa.string())
"""The type of names: each distinct one once, and its place for each client."""


@dataclass(frozen=True, slots=True)
class ChargedRows:
    """One item a charged row in ``of``, ``ts_us``, ``records`` and ``overhead``; one a client in the five names.

    ``of``: the number of each row's client, an index into the names; two clients can have the same names. ``rows``: the places
    of the rows in their batch, ``None`` for all of it. ``others``: how many rows are not charged, by status.
    """

    of: Integers
    ts_us: Integers
    records: Integers
    overhead: Integers
    broker: Integers
    kind: pa.DictionaryArray
    user: pa.DictionaryArray
    client_id: pa.DictionaryArray
    ip: pa.DictionaryArray
    rows: Integers | None
    others: Mapping[str, int]
    begins: Integers | None = None
    """Where runs of rows of one client begin, if they are long: figures of runs take less time than those of rows."""

    @property
    def clients(self) -> int:
        """The number of clients."""
        return len(self.broker)

    @property
    def names(self) -> tuple[pa.DictionaryArray, ...]:
        """Kind, user, client-id and address of each client."""
        return self.kind, self.user, self.client_id, self.ip

    @property
    def amount(self) -> Integers:
        """What each row is charged."""
        return self.records + self.overhead

    def numbers(self, batch: pa.RecordBatch, name: str) -> Integers:
        """A column of whole numbers or flags of the batch that these rows are of, 0 where it is null or missing."""
        if name not in batch.schema.names:
            return np.zeros(len(self.of), dtype=np.int64)
        values = integers(batch.column(name))
        return values if self.rows is None else values[self.rows]

    def nulls(self, batch: pa.RecordBatch, name: str) -> int:
        """In how many of these rows a column of the batch is null or missing."""
        if name not in batch.schema.names:
            return len(self.of)
        column = batch.column(name)
        if not column.null_count or self.rows is None:
            return int(column.null_count)
        return int(np.count_nonzero(~are_known(column)[self.rows]))


def charged_rows(batch: pa.RecordBatch, status: str = CHARGED) -> ChargedRows:
    """The rows of one status as arrays, those of requests if no other is given. ``batch`` has the columns ``NEEDED``."""
    rows, others = _of_status(batch, status)
    names = {name: _codes(batch, name, rows) for name in ("user", "client_id", "ip", "kind") if name in batch.schema.names}
    broker, ts_us, records, overhead = (
        values if rows is None else values[rows]
        for values in (integers(batch.column(name)) for name in ("broker", "ts_us", "records", "overhead"))
    )
    begins = run_begins([broker, *(codes for codes, _ in names.values())])
    if begins is not None:
        names = {name: (codes[begins], pool) for name, (codes, pool) in names.items()}
    of_run = broker if begins is None else broker[begins]
    lowest = int(of_run.min()) if len(of_run) else 0
    brokers, number = number_codes(of_run - lowest, int(of_run.max()) - lowest + 1 if len(of_run) else 0)
    kind, kinds = names.pop("kind")
    # A name that is not known is a name of its own. A column without any name distinguishes no clients.
    named = {name: (codes + 1, len(pool) + 1) for name, (codes, pool) in names.items() if len(pool)}
    of_client, of = _number_combinations([*named.values(), (kind * len(brokers) + number, len(kinds) * len(brokers))])
    place = dict(zip(named, of_client, strict=False))
    _require_usual({name: (names[name][1], place[name]) for name in named}, len(of_client[0]))
    its_kind, its_broker = np.divmod(of_client[-1], max(1, len(brokers)))

    def names_of(name: str) -> pa.DictionaryArray:
        return names_at(names[name][1], place[name] - 1) if name in place else pa.nulls(len(its_kind), NAME_CODES)

    return ChargedRows(
        of=of if begins is None else np.repeat(of, np.diff(begins, append=len(broker))),
        ts_us=ts_us,
        records=records,
        overhead=overhead,
        broker=brokers[its_broker] + lowest,
        kind=names_at(kinds, its_kind),
        user=names_of("user"),
        client_id=names_of("client_id"),
        ip=names_of("ip"),
        rows=rows,
        others=others,
        begins=begins,
    )


_MOST_BYTES: Final = 64 * 1024 * 1024
_USUAL_BYTES: Final = 1000
"""Of all names of one client, on average: names of real clients have a tenth of it."""


def _require_usual(names: Mapping[str, tuple[pa.Array, Integers]], clients: int) -> None:
    """Raise ``TrafficError`` when names of clients would fill the memory, although a file has each of them once.

    ``names``: pools of names, and for each client the place of its name in the pool after one that is not known.
    """
    lengths = {name: np.asarray(pc.fill_null(pc.binary_length(pool), 0)).astype(np.int64) for name, (pool, _) in names.items()}
    require_usual_names(sum(int(np.append(0, lengths[name])[place].sum()) for name, (_, place) in names.items()), clients)


def require_usual_names(size: int, clients: int) -> None:
    """Raise ``TrafficError`` for names of so many bytes in all, where they are too many and too long."""
    if size > _MOST_BYTES and size > _USUAL_BYTES * clients:
        raise TrafficError(
            f"recorded traffic: the names of {clients:,} clients have {size // clients:,} bytes each, on average, and would fill "
            "the memory. Usual names have less than 100: take out the rows with long names"
        )


_SHORTEST_RUN: Final = 8
_FIRST_ROWS: Final = 4096


def run_begins(columns: Sequence[Integers]) -> Integers | None:
    """The first row of each run of rows that are equal in all columns; ``None`` where runs are too short to be of use."""
    begins = _begins([column[:_FIRST_ROWS] for column in columns])
    if len(begins) * _SHORTEST_RUN > min(_FIRST_ROWS, len(columns[0])):
        return None
    if len(columns[0]) > _FIRST_ROWS:
        begins = _begins(columns)
    return begins if len(begins) and len(begins) * _SHORTEST_RUN <= len(columns[0]) else None


def _begins(columns: Sequence[Integers]) -> Integers:
    is_other = np.zeros(len(columns[0]), dtype=np.bool_)
    is_other[:1] = True
    for column in columns:
        is_other[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_other)


def moments(batch: pa.RecordBatch) -> tuple[Integers, Integers]:
    """Microseconds since 1970 and brokers of the rows, charged or not, that have both."""
    ts_us, broker = batch.column("ts_us"), batch.column("broker")
    located = are_known(ts_us) & are_known(broker)
    return integers(ts_us)[located], integers(broker)[located]


def _of_status(batch: pa.RecordBatch, status: str) -> tuple[Integers | None, dict[str, int]]:
    codes, names = _codes(batch, "status", None)
    counts = np.bincount(codes, minlength=len(names)).tolist()
    others = {name: count for name, count in zip(names.to_pylist(), counts, strict=True) if count and name != status}
    if not others:
        return None, others
    return np.flatnonzero(_one_of(codes, names, status)), others


def _one_of(codes: Integers, names: pa.Array, wanted: str) -> Flags:
    return np.asarray([name == wanted for name in names.to_pylist()], dtype=np.bool_)[codes]


def _codes(batch: pa.RecordBatch, name: str, rows: Integers | None) -> tuple[Integers, pa.Array]:
    """A column of names: for each row the place of its name, -1 where it is null; and the names."""
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    places = pc.fill_null(column.indices, -1) if column.null_count else column.indices
    codes = np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)
    return codes if rows is None else codes[rows], column.dictionary


def names_at(names: pa.Array, places: Integers) -> pa.DictionaryArray:
    """``names`` at these places, null at those below 0."""
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32), mask=places < 0), names)


_TABLE: Final = 16
"""A table may have so many places for each value."""
_EXACT: Final = float(2**53)
"""Doubles represent every whole number up to this."""


def number_codes(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """The distinct ones of ``codes`` (0 to ``size`` - 1), rising, and for each code its place among them."""
    if size > _TABLE * len(codes):
        distinct, places = np.unique(codes, return_inverse=True)
        return distinct, np.asarray(places, dtype=np.int64)
    present = np.zeros(size, dtype=np.bool_)
    present[codes] = True
    distinct = np.flatnonzero(present)
    place = np.empty(size, dtype=np.int32)
    place[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, place[codes].astype(np.int64)


def _number_combinations(columns: Sequence[tuple[Integers, int]]) -> tuple[list[Integers], Integers]:
    """Number the combinations of columns of codes, each from 0 to below its size.

    Returns the codes of each combination, one array a column, and for each row the number of its combination.
    """
    (number, size), *others = columns
    codes_of = [np.arange(size, dtype=np.int64)]
    for codes, width in others or [(np.zeros(len(number), dtype=np.int64), 1)]:
        distinct, number = number_codes(number * width + codes, size * width)
        codes_of = [*(known[distinct // max(1, width)] for known in codes_of), distinct % max(1, width)]
        size = len(distinct)
    return codes_of[: len(columns)], number


def sum_by_code(codes: Integers, size: int, amounts: Integers) -> tuple[Integers, Integers]:
    """The distinct ones of ``codes``, rising, and the sum of the amounts (0 or more) of each."""
    if not len(codes):
        return codes, amounts
    if size > _TABLE * len(codes) or float(amounts.max()) * len(amounts) >= _EXACT:
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        return ordered[first], np.add.reduceat(amounts[order], first)
    present = np.zeros(size, dtype=np.bool_)
    present[codes] = True
    distinct = np.flatnonzero(present)
    return distinct, np.bincount(codes, weights=amounts, minlength=size)[distinct].astype(np.int64)


def fold_by_code(fold: np.ufunc, codes: Integers, values: Integers, size: int) -> Integers:
    """Sums, minima or maxima of the values of each code, 0 to ``size`` - 1; of a code without values the neutral one."""
    if fold is np.add:
        return np.bincount(codes, weights=values, minlength=size).astype(np.int64) if values.any() else np.zeros(size, np.int64)
    limits = np.iinfo(np.int64)
    extremes = np.full(size, limits.max if fold is np.minimum else limits.min, dtype=np.int64)
    fold.at(extremes, codes, values)
    return extremes
