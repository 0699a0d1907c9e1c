"""Verdicts of traffic that is divided among brokers: a total travels once, and is divided where its quota groups are judged.

One bucket has a quota group on each broker. All of them are judged in one place, each by a judge of its own, so a total that goes
to many brokers is shuffled and sorted as one row. Divided before, it would be one row for each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.traffic.judging.by_seconds import SCHEMA, SecondsLimits, batch_of_verdicts, verdicts_of
from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.kernels.exact_totals import first_places
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kernels.second_sums import SECOND_BITS, GroupVerdict, Rule, keys_of
from reconciler.traffic.kinds import Kind
from reconciler.traffic.relocation import KeyMoves
from reconciler.traffic.shuffle.rows import GroupWork, Pieces, Rows

_ENOUGH_ROWS: Final = 1 << 20
_ENOUGH_SECONDS: Final = 1 << 15
"""Rows, and seconds of buckets, that are divided at a time: enough for each judge, and close to a processor's caches."""
_SECOND: Final = (1 << SECOND_BITS) - 1


@dataclass(frozen=True, slots=True)
class SpreadGroups:
    """Where the totals of recorded clients go; small, since it travels with the code.

    ``keys``: of the recorded clients, rising. A route is one bucket that gets totals of one client. ``slots``: the first route of
    each client, then the second, -1 for none. ``buckets`` and ``clients`` (places in ``moves.sources``): of each route.
    ``columns``: for each share of a client, by route, the column of ``groups``; one behind the last for what is not judged.
    ``groups``: of each bucket the quota groups, one a broker; -1 for none.
    """

    moves: KeyMoves
    keys: Integers
    slots: tuple[Integers, ...]
    buckets: Integers
    clients: Integers
    columns: Integers
    groups: Integers

    @classmethod
    def of(cls, series: Sequence[Series], grouping: Grouping, groups: Collection[int], moves: KeyMoves) -> SpreadGroups:
        """``series``: after the moves, with the keys of ``moves.targets``. Those in one of ``groups`` count."""
        bucket_of, columns_of, table = _columns_of_buckets(series, grouping, groups, alone=moves.targets.shape[1] == 1)
        bucket_of, columns_of = np.append(bucket_of, -1), np.append(columns_of, table.shape[1])
        routes = [
            route
            for group_of in _groups_by_slot(series, grouping, groups)
            for route in _routes(group_of[moves.targets], bucket_of, columns_of)
        ]
        clients = [np.empty(0, dtype=np.int64), *(clients for clients, _, _ in routes)]
        wanted = np.unique(np.concatenate(clients))
        begins = np.cumsum([len(rows) for rows in clients])
        slots = np.full((len(routes), len(wanted)), -1, dtype=np.int64)
        for slot, rows, begin in zip(slots, clients[1:], begins, strict=False):
            slot[np.searchsorted(wanted, rows)] = np.arange(begin, begin + len(rows))
        return cls(
            moves=moves,
            keys=moves.sources[wanted],
            slots=tuple(slots),
            buckets=np.concatenate([np.empty(0, dtype=np.int64), *(buckets for _, buckets, _ in routes)]),
            clients=np.concatenate(clients),
            columns=np.concatenate([np.empty((moves.targets.shape[1], 0), dtype=np.int64), *(c for _, _, c in routes)], axis=1),
            groups=table,
        )

    def judge(
        self, rows: Rows[tuple[Integers, Integers, Integers]], groups: Sequence[Group], era: Rule
    ) -> dict[int, GroupVerdict]:
        """Verdicts by group, as those of ``judge_seconds``. ``rows``: the recorded totals of ``keys``, and of others."""
        limits = SecondsLimits.of(groups, era)

        def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
            yield from self._judged(pieces, limits)

        expected = np.zeros(len(self.groups), dtype=np.int64)
        np.add.at(expected, self.buckets, self.moves.requests[self.clients])
        work = GroupWork(
            name="verdicts by seconds", columns=(), send=self._routed, judge=judge, schema=SCHEMA, rows=expected.tolist(),
            bits=SECOND_BITS,
        )  # fmt: skip
        return {verdict.group: verdict for verdict in verdicts_of(rows.judge(work))}

    def _routed(self, totals: Iterable[tuple[Integers, Integers, Integers]]) -> Iterator[list[Integers]]:
        """Keys of buckets and seconds, routes and amounts."""
        for series, seconds, amounts in totals if len(self.keys) else ():
            where = np.minimum(np.searchsorted(self.keys, series), len(self.keys) - 1)
            known = self.keys[where] == series
            for slot in self.slots:
                route = slot[where]
                routed = known & (route >= 0)
                if routed.all():
                    yield [keys_of(self.buckets[route], seconds), route, amounts]
                else:
                    yield [keys_of(self.buckets[route[routed]], seconds[routed]), route[routed], amounts[routed]]

    def _judged(self, pieces: Pieces, limits: SecondsLimits) -> Iterator[pa.RecordBatch]:
        """Rows of ``by_seconds.SCHEMA``. ``pieces``: as ``_routed`` makes them, in the order of keys."""
        judges = [limits.of_groups(column).judge() for column in self.groups.T]
        for keys, routes, amounts in self._joined(pieces):
            for judge, sums in zip(judges, self._divided(keys, routes, amounts), strict=True):
                judge.feed(*sums)
        for column, judge in zip(self.groups.T, judges, strict=True):
            verdicts = judge.columns()
            yield batch_of_verdicts(replace(verdicts, groups=column[verdicts.groups]))

    def _joined(self, pieces: Pieces) -> Iterator[list[Integers]]:
        """Fewer and larger pieces: each is fed to as many judges as there are brokers."""
        held: list[list[Integers]] = []
        rows = seconds = 0
        for piece in pieces:
            held.append(piece)
            rows += len(piece[0])
            seconds += int(np.count_nonzero(piece[0][1:] != piece[0][:-1]))
            if rows >= _ENOUGH_ROWS or seconds >= _ENOUGH_SECONDS:
                yield [np.concatenate(columns) for columns in zip(*held, strict=True)]
                held, rows, seconds = [], 0, 0
        if held:
            yield [np.concatenate(columns) for columns in zip(*held, strict=True)]

    def _divided(self, keys: Integers, routes: Integers, amounts: Integers) -> Iterator[tuple[Integers, Integers]]:
        """For each column of ``groups`` its keys, rising, and their amounts. Of a single column, equal keys follow each other."""
        parts_of = self.moves.divided(self.clients[routes], keys & _SECOND, amounts)
        if len(self.columns) == 1:
            whole = np.empty_like(amounts)
            for rows, _, parts in parts_of:
                whole[rows] = parts
            yield keys, whole
            return
        first = first_places(keys)
        cells, count = keys[first], len(first)
        cell = np.repeat(np.arange(count), np.diff(first, append=len(keys)))
        sums = np.zeros((self.groups.shape[1] + 1) * count, dtype=np.int64)
        is_known = np.zeros(len(sums), dtype=np.bool_)
        begins = self.columns * count
        for rows, place, parts in parts_of:
            target = begins[place][routes[rows]] + cell[rows]
            np.add.at(sums, target, parts)
            is_known[target] = True
        for begin in range(0, len(sums) - count, count):
            known = is_known[begin : begin + count]
            yield cells[known], sums[begin : begin + count][known]


def _groups_by_slot(series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> Iterable[Integers]:
    """By key of a series its first group of ``groups``, then the second; -1 for none, also behind the last key."""
    size = max((client.key for client in series), default=-1) + 2
    by_slot = np.full((max(map(len, grouping.groups_of_series), default=0), size), -1, dtype=np.int64)
    for client, of_one in zip(series, grouping.groups_of_series, strict=True):
        for slot, group in enumerate(of_one):
            by_slot[slot, client.key] = group if group in groups else -1
    return by_slot


def _routes(targets: Integers, bucket_of: Integers, columns_of: Integers) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Clients, the bucket of each and its columns by share. ``targets``: groups by client and share, -1 for none.

    A bucket has all its columns in one route of a client.
    """
    while (targets >= 0).any():
        buckets = bucket_of[targets]
        chosen = buckets.max(axis=1)
        same = (targets >= 0) & (buckets == chosen[:, None])
        clients = np.flatnonzero(chosen >= 0)
        yield clients, chosen[clients], columns_of[np.where(same, targets, -1)][clients].T
        targets = np.where(same, -1, targets)


def _columns_of_buckets(
    series: Sequence[Series], grouping: Grouping, groups: Collection[int], *, alone: bool
) -> tuple[Integers, Integers, Integers]:
    """The bucket of each group, its column, and by bucket the group of each column; -1 for none.

    ``alone``: each group is a bucket of its own, as no total is divided.
    """
    numbers: dict[tuple[object, ...], int] = {}
    bucket_of = np.full(len(grouping.groups), -1, dtype=np.int64)
    targets = len(grouping.targets)
    for client, of_one, before in zip(series, grouping.groups_of_series, grouping.before_of_series, strict=True):
        for group in of_one:
            if group in groups and bucket_of[group] < 0:
                bucket_of[group] = numbers.setdefault(
                    (group,) if alone else _bucket(grouping, group, client.kind, before and before.bucket, targets), len(numbers)
                )
    chosen = np.flatnonzero(bucket_of >= 0)
    ordered = chosen[np.argsort(bucket_of[chosen], kind="stable")]
    buckets = bucket_of[ordered]
    columns_of = np.full(len(bucket_of), -1, dtype=np.int64)
    columns_of[ordered] = np.arange(len(ordered)) - np.searchsorted(buckets, buckets)
    table = np.full((len(numbers), int(columns_of.max(initial=-1)) + 1), -1, dtype=np.int64)
    table[buckets, columns_of[ordered]] = ordered
    return bucket_of, columns_of, table


def _bucket(grouping: Grouping, group: int, kind: Kind, before: object, targets: int) -> tuple[object, ...]:
    """What the groups of one bucket on all brokers have in common: that of a target, or of clients before the change."""
    return (True, kind, grouping.targets[group].bucket) if group < targets else (False, kind, before)
