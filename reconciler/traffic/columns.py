"""Charged rows of the canonical traffic schema (``normal_form.ROWS``) as arrays, with clients as numbers, and their groups.

Distinct values are numbered without sorting where a table is small enough. Which client is in which groups travels with the code
to workers. Rows become sums of seconds, or stay single requests, keyed by the group in which they are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.exact_totals import MICRO_BITS, ORDER_BITS, pack
from reconciler.traffic.kernels.sampled_rate import Flags, Integers
from reconciler.traffic.kernels.second_sums import keys_of
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
        """The charged amount of each row."""
        return self.records + self.overhead

    def numbers(self, batch: pa.RecordBatch, name: str) -> Integers:
        """A column of whole numbers or flags of the batch that these rows are of, 0 where it is null or missing."""
        if name not in batch.schema.names:
            return np.zeros(len(self.of), dtype=np.int64)
        values = integers(batch.column(name))
        return values if self.rows is None else values[self.rows]

    def nulls(self, batch: pa.RecordBatch, name: str) -> int:
        """Count the rows in which a column of the batch is null or missing."""
        if name not in batch.schema.names:
            return len(self.of)
        column = batch.column(name)
        if not column.null_count or self.rows is None:
            return int(column.null_count)
        return int(np.count_nonzero(~are_known(column)[self.rows]))


def charged_rows(batch: pa.RecordBatch, status: str = CHARGED) -> ChargedRows:
    """The rows of one status as arrays, those of requests if no other is given. ``batch`` has the columns ``NEEDED``."""
    codes, statuses = _codes(batch, "status", None)
    counts = zip(statuses.to_pylist(), np.bincount(codes, minlength=len(statuses)).tolist(), strict=True)
    others = {name: count for name, count in counts if count and name != status}
    is_chosen = np.asarray([name == status for name in statuses.to_pylist()], dtype=np.bool_)
    rows = np.flatnonzero(is_chosen[codes]) if others else None
    names = {name: _codes(batch, name, rows) for name in ("user", "client_id", "ip", "kind") if name in batch.schema.names}
    broker, ts_us, records, overhead = (
        values if rows is None else values[rows]
        for values in (integers(batch.column(name)) for name in ("broker", "ts_us", "records", "overhead"))
    )
    begins = run_begins([broker, *(codes for codes, _ in names.values())]) if len(broker) > _FIRST_ROWS else None
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
    its_kind, its_broker = np.divmod(of_client[-1], max(1, len(brokers)))
    nameless = pa.nulls(len(its_kind), NAME_CODES)
    made = {name: names_at(names[name][1], place[name] - 1) for name in place}
    return ChargedRows(
        of=of if begins is None else np.repeat(of, np.diff(begins, append=len(broker))),
        ts_us=ts_us,
        records=records,
        overhead=overhead,
        broker=brokers[its_broker] + lowest,
        kind=names_at(kinds, its_kind),
        user=made.get("user", nameless),
        client_id=made.get("client_id", nameless),
        ip=made.get("ip", nameless),
        rows=rows,
        others=others,
        begins=begins,
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


@dataclass(frozen=True, slots=True)
class KnownClients:
    """Clients by their names; made to be small, since it travels with the code.

    A client's number is made of the places of its names in ``pools``: users, client ids, addresses, kinds and brokers.
    ``numbers`` rise, and ``which`` has for each the index of its client.
    """

    pools: tuple[pa.Array, ...]
    numbers: Integers
    which: Integers

    @classmethod
    def of(cls, series: Sequence[Series]) -> KnownClients:
        """Number clients by their place in ``series``. Raises ``OverflowError`` for more names than there are numbers."""
        rows = [(client.user, client.client_id, client.ip, client.kind.value, client.broker) for client in series]
        types = (pa.string(), pa.string(), pa.string(), pa.string(), pa.int64())
        columns = zip(*rows, strict=True) if rows else [()] * len(types)
        names = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
        pools = tuple(column.unique() for column in names)
        if np.prod([float(len(pool)) for pool in pools]) >= float(2**62):
            raise OverflowError("too many different names")
        numbers, _ = _numbers(names, pools)
        order = np.argsort(numbers, kind="stable")
        return cls(pools, numbers[order], order)

    def of_names(self, *names: pa.Array) -> Integers:
        """Return the number of each client, -1 for one that is not known. ``names``: columns in the order of ``pools``."""
        if not len(self.numbers):
            return np.full(len(names[0]), -1, dtype=np.int64)
        numbers, known = _numbers(names, self.pools)
        where = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(known & (self.numbers[where] == numbers), self.which[where], -1)


@dataclass(frozen=True, slots=True)
class GroupIndex:
    """In which groups known clients are; small, since it travels with the code.

    ``series``: the index of each client's series. ``slots``: as ``slots_of`` makes them.
    """

    clients: KnownClients
    series: Integers
    slots: tuple[Integers, ...]

    @classmethod
    def of(cls, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> GroupIndex:
        """Clients that are in one of ``groups``. Raises ``OverflowError`` as ``KnownClients``."""
        groups_of = [tuple(group for group in of_one if group in groups) for of_one in grouping.groups_of_series]
        indexes = [index for index, numbers in enumerate(groups_of) if numbers]
        slots = slots_of([groups_of[index] for index in indexes])
        return cls(KnownClients.of([series[index] for index in indexes]), np.asarray(indexes, dtype=np.int64), slots)

    def of_rows(self, rows: ChargedRows) -> tuple[Integers, tuple[Integers, ...]]:
        """Return the series of each client of ``rows``, and for each slot its group, -1 for none. Slots need a group."""
        return self.of_names(rows.user, rows.client_id, rows.ip, rows.kind, pa.array(rows.broker))

    def of_names(self, *names: pa.Array) -> tuple[Integers, tuple[Integers, ...]]:
        """The same for columns in the order of ``KnownClients.pools``."""
        which = self.clients.of_names(*names)
        known = which >= 0
        return (
            np.where(known, self.series[which], -1) if len(self.series) else which,
            tuple(np.where(known, slot[which], -1) for slot in self.slots),
        )


def slots_of(groups: Sequence[Sequence[int]]) -> tuple[Integers, ...]:
    """The first group of each client, then the second of each, and so on; -1 where there is none.

    A client whose bucket changes is in one group of each side.
    """
    return tuple(
        np.asarray([of_one[slot] if slot < len(of_one) else -1 for of_one in groups], dtype=np.int64)
        for slot in range(max(map(len, groups), default=0))
    )


def _place(column: pa.Array, pool: pa.Array) -> Integers:
    if pa.types.is_dictionary(column.type):
        # The last place is that of null, which has the index -1.
        places_of = np.concatenate([_place(names, pool) for names in (column.dictionary, pa.nulls(1, pool.type))])
        return places_of[np.asarray(pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)]
    places = pc.fill_null(pc.index_in(column, value_set=pool), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def _numbers(names: Sequence[pa.Array], pools: Sequence[pa.Array]) -> tuple[Integers, Flags]:
    """The number of each client, and whether all of its names are in their pools."""
    number, known = np.zeros(len(names[0]), dtype=np.int64), np.ones(len(names[0]), dtype=np.bool_)
    for column, pool in zip(names, pools, strict=True):
        place = _place(column, pool)
        number, known = number * len(pool) + place, known & (place >= 0)
    return number, known


More: TypeAlias = Callable[[ChargedRows, pa.RecordBatch], Sequence[Integers]]
"""Further columns of the charged rows of a batch."""


def keyed_seconds(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """Keys (``second_sums.keys_of``) and amounts of seconds of groups; a key can come again."""
    for batch in batches:
        rows = charged_rows(batch)
        _, slots = groups.of_rows(rows)
        if not slots:
            continue
        yield from grouped_seconds(slots, *client_seconds(rows, np.logical_or.reduce([group >= 0 for group in slots])))


def grouped_seconds(
    slots: Sequence[Integers], client: Integers, second: Integers, amount: Integers
) -> Iterator[tuple[Integers, Integers]]:
    """Keys and amounts of the seconds of clients that are in a group. ``slots``: for each slot the group of each client."""
    for of_client in slots:
        group = of_client[client]
        grouped = group >= 0
        if grouped.all():
            yield keys_of(group, second), amount
        else:
            yield keys_of(group[grouped], second[grouped]), amount[grouped]


def keyed_requests(
    batches: Iterable[pa.RecordBatch], groups: GroupIndex, more: More | None = None
) -> Iterator[Sequence[Integers]]:
    """Key (``exact_totals.pack``), order, records, overhead, series, and ``more``; a row of two groups is there twice.

    The order decides between requests of one ms: the microseconds within it, then a hash of what identifies the request.
    """
    for batch in batches:
        rows = charged_rows(batch)
        series, slots = groups.of_rows(rows)
        if not slots:
            continue
        milli, micros = np.divmod(rows.ts_us, 1000)
        rest = rows.numbers(batch, "tie") & (1 << ORDER_BITS - MICRO_BITS) - 1
        order = micros << ORDER_BITS - MICRO_BITS | rest
        columns = [order, rows.records, rows.overhead, series[rows.of], *(more(rows, batch) if more else ())]
        for of_client in slots:
            group = of_client[rows.of]
            grouped = group >= 0
            if grouped.all():
                yield [pack(group, milli), *columns]
            elif grouped.any():
                yield [pack(group[grouped], milli[grouped]), *(column[grouped] for column in columns)]


def client_seconds(rows: ChargedRows, wanted: Flags) -> tuple[Integers, Integers, Integers]:
    """Client, second and amount, one item each, rising; of the clients that are ``wanted``."""
    of, ts_us, amount = rows.of, rows.ts_us, rows.amount
    if not wanted.all():
        chosen = wanted[of]
        of, ts_us, amount = of[chosen], ts_us[chosen], amount[chosen]
    if not len(of):
        return of, ts_us, amount
    codes = ts_us // 1_000_000
    first = int(codes.min())
    span = int(codes.max()) - first + 1
    codes += of * span
    codes -= first
    distinct, total = sum_by_code(codes, rows.clients * span, amount)
    return distinct // span, distinct % span + first, total
