"""Which client is in which groups, as workers look it up, and charged rows keyed by the group in which they are judged.

Rows become sums of seconds, or stay single requests. The samples of one moment are added up only where a group has several
series. All other groups are counted row by row (``count_lone_samples``), in any order, without bringing their rows together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.columns.charged import ChargedRows, charged_rows, fold_by_code, sum_by_code
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.exact_totals import MICRO_BITS, ORDER_BITS, pack
from reconciler.traffic.kernels.sample_counts import NEVER, SCHEMA
from reconciler.traffic.kernels.sampled_rate import Doubles, Flags, Integers
from reconciler.traffic.kernels.second_sums import keys_of
from reconciler.traffic.sources.normal_form import GAUGE


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
        """By place in ``series``. Raises ``OverflowError`` for more names than there are numbers."""
        rows = [(client.user, client.client_id, client.ip, client.kind.value, client.broker) for client in series]
        types = (pa.string(), pa.string(), pa.string(), pa.string(), pa.int64())
        columns = zip(*rows, strict=True) if rows else [()] * len(types)
        names = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
        pools = tuple(column.unique() for column in names)
        if np.prod([float(len(pool)) for pool in pools]) >= float(2**62):
            raise OverflowError("too many different names")
        numbers = _numbers([_place(column, pool) for column, pool in zip(names, pools, strict=True)], pools)
        order = np.argsort(numbers, kind="stable")
        return cls(pools, numbers[order], order)

    def of_names(self, *names: pa.Array) -> Integers:
        """For each client its number, -1 for one that is not known. ``names``: columns in the order of ``pools``."""
        if not len(self.numbers):
            return np.full(len(names[0]), -1, dtype=np.int64)
        places = [_place(column, pool) for column, pool in zip(names, self.pools, strict=True)]
        numbers = _numbers(places, self.pools)
        where = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        known = (self.numbers[where] == numbers) & np.logical_and.reduce([place >= 0 for place in places])
        return np.where(known, self.which[where], -1)


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
        """For each client of ``rows`` its series, and for each slot its group, -1 for none; no slots when none has a group."""
        return self.of_names(rows.user, rows.client_id, rows.ip, rows.kind, pa.array(rows.broker))

    def of_names(self, *names: pa.Array) -> tuple[Integers, tuple[Integers, ...]]:
        """The same for columns in the order of ``KnownClients.pools``."""
        which = self.clients.of_names(*names)
        known = which >= 0
        return (
            np.where(known, self.series[which], -1) if len(self.series) else which,
            tuple(np.where(known, slot[which], -1) for slot in self.slots),
        )


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The same for clients that are known by the key of their series, as in per-second totals.

    ``keys`` rise. ``slots``: as ``slots_of`` makes them.
    """

    keys: Integers
    slots: tuple[Integers, ...]

    @classmethod
    def of(cls, series: Iterable[Series], grouping: Grouping, groups: Collection[int]) -> KeyIndex:
        """Series that are in one of ``groups``."""
        groups_of: dict[int, list[int]] = {}
        for client, of_one in zip(series, grouping.groups_of_series, strict=True):
            for group in of_one:
                if group in groups:
                    groups_of.setdefault(client.key, []).append(group)
        keys = np.asarray(sorted(groups_of), dtype=np.int64)
        return cls(keys, slots_of([groups_of[key] for key in keys.tolist()]))

    def keyed(self, cells: Iterable[tuple[Integers, Integers, Integers]]) -> Iterator[tuple[Integers, Integers]]:
        """Keys (``second_sums.keys_of``) and amounts, in no order. ``cells``: keys of series, seconds and amounts."""
        for series, seconds, amounts in cells if len(self.keys) else ():
            where = np.minimum(np.searchsorted(self.keys, series), len(self.keys) - 1)
            known = self.keys[where] == series
            for group_of in self.slots:
                group = group_of[where]
                grouped = known & (group >= 0)
                yield keys_of(group[grouped], seconds[grouped]), amounts[grouped]


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


def _numbers(places: Sequence[Integers], pools: Sequence[pa.Array]) -> Integers:
    number = np.zeros(len(places[0]), dtype=np.int64)
    for place, pool in zip(places, pools, strict=True):
        number = number * len(pool) + place
    return number


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
    """Key (``exact_batch.pack``), order, records, overhead, series, and ``more``; a row of two groups is there twice.

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


def keyed_samples(batches: Iterable[pa.RecordBatch], groups: GroupIndex) -> Iterator[tuple[Integers, Integers]]:
    """Keys (``exact_totals.pack``) and amounts of the gauges of groups."""
    for batch in batches:
        rows = charged_rows(batch, GAUGE)
        _, slots = groups.of_rows(rows)
        for of_client in slots:
            group = of_client[rows.of]
            chosen = group >= 0
            yield pack(group[chosen], rows.ts_us[chosen] // 1000), rows.amount[chosen]


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


def lone_groups(series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> set[int]:
    """Those of some groups in which all series have one identity."""
    identities: dict[int, set[object]] = defaultdict(set)
    for client, of_one in zip(series, grouping.groups_of_series, strict=True):
        for group in of_one:
            identities[group].add(client.sort_key)
    return {group for group in groups if len(identities[group]) == 1}


def count_lone_samples(
    batches: Iterable[pa.RecordBatch], groups: GroupIndex, before: Doubles, after: Doubles
) -> Iterator[pa.RecordBatch]:
    """Rows of ``sample_counts.SCHEMA``, one or more for each group. ``batches``: with the columns ``NEEDED``.

    ``before``, ``after``: limits by group number, NaN for none.
    """
    for batch in batches:
        rows = charged_rows(batch, GAUGE)
        _, slots = groups.of_rows(rows)
        for group_of in slots:
            yield _count(rows, group_of, before, after)


def _count(rows: ChargedRows, group_of: Integers, before: Doubles, after: Doubles) -> pa.RecordBatch:
    """``group_of``: the group of each client, -1 for none."""
    of, amount = rows.of, rows.amount
    limits = [np.where(group_of >= 0, limit[group_of], np.nan) for limit in (before, after)]
    over_before, over = (amount > limit[of] for limit in limits)
    figures: list[tuple[np.ufunc, Integers]] = [
        (np.add, np.ones(len(of), dtype=np.int64)), (np.add, over.astype(np.int64)), (np.add, over_before.astype(np.int64)),
        (np.maximum, amount), (np.minimum, np.where(over, rows.ts_us // 1000, NEVER)),
    ]  # fmt: skip
    if rows.begins is not None:
        figures = [(fold, fold.reduceat(values, rows.begins)) for fold, values in figures]
        of = of[rows.begins]
    counted = [fold_by_code(fold, of, values, rows.clients) for fold, values in figures]
    known = group_of >= 0
    columns = [group_of[known], *(values[known] for values in counted)]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)
