"""Which clients are judged together when there are too many for one process: shards, each with all clients of its quota groups.

A client is in one quota group before the change and in one after it. Groups that share a client are linked, and linked groups are
in one shard. So a shard is judged like a traffic of its own, and no other shard has rows of its groups, on any broker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
from pandas.util import hash_array

from reconciler.resolution import Resolved
from reconciler.traffic.judging.grouping import Series, Tables, resolve_series
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kinds import Kind

NO_NODE: Final = np.iinfo(np.int64).min
"""In place of a group where there is none."""
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ABSENT: Final = np.uint64(0x5851F42D4C957F2D)


def ids_of_names(*names: pa.Array) -> Integers:
    """A number for each row of columns of names, the same in every process. A name that is null differs from every name."""
    number = np.zeros(len(names[0]), dtype=np.uint64)
    for column in names:
        hashed = np.full(len(column), _ABSENT, dtype=np.uint64)
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        if known.any():
            texts = column.drop_null().cast(pa.string()).to_numpy(zero_copy_only=False)
            hashed[known] = hash_array(np.asarray(texts, dtype=object), categorize=False)
        number = _mixed(number ^ hashed)
    return number.view(np.int64)


def ids_of_series(names: Integers, brokers: Integers) -> Integers:
    """The same of clients on brokers. ``names``: from ``ids_of_names``."""
    return _mixed(names.view(np.uint64) + brokers.astype(np.uint64) * _GOLDEN).view(np.int64)


def _mixed(numbers: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    numbers = numbers + _GOLDEN
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX[1]
    return numbers ^ (numbers >> np.uint64(31))


class ClientNodes:
    """The groups of clients as numbers, after and before the change. Each client is looked up once."""

    def __init__(self, before: Tables | None, after: Tables) -> None:
        self._before, self._after = before, after
        self._ids = np.empty(0, dtype=np.int64)
        self._nodes = np.empty((0, 2), dtype=np.int64)

    def of_names(self, kind: pa.Array, user: pa.Array, client_id: pa.Array, ip: pa.Array) -> Integers:
        """Return the same as ``of``."""
        return self.of(ids_of_names(kind, user, client_id, ip), kind, user, client_id, ip)

    def of(self, ids: Integers, kind: pa.Array, user: pa.Array, client_id: pa.Array, ip: pa.Array) -> Integers:
        """Shape ``(clients, 2)``: the group after, and the group before, ``NO_NODE`` where there is none."""
        where, known = self._places(ids)
        if not known.all():
            _, first = np.unique(ids, return_index=True)
            new = first[~known[first]]
            # Of dictionaries, to_pylist takes ten times as long.
            names = (column.take(pa.array(new)).cast(pa.string()).to_pylist() for column in (kind, user, client_id, ip))
            nodes = [self._of_client(Kind(row[0]), *row[1:]) for row in zip(*names, strict=True)]
            whole = np.concatenate((self._ids, ids[new]))
            order = np.argsort(whole, kind="stable")
            self._ids = whole[order]
            self._nodes = np.concatenate((self._nodes, np.asarray(nodes, dtype=np.int64).reshape(-1, 2)))[order]
            where, _ = self._places(ids)
        return self._nodes[where]

    def _places(self, ids: Integers) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        if not len(self._ids):
            return np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.bool_)
        where = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return where, self._ids[where] == ids

    def _of_client(self, kind: Kind, user: str | None, client_id: str | None, ip: str | None) -> tuple[int, int]:
        client = Series(broker=0, kind=kind, user=user, client_id=client_id, ip=ip, requests=0, amount=0)
        after, before = self._resolved(self._after, client), self._resolved(self._before, client)
        own = _number(kind, "undecided", user, client_id) if after is None else _node(kind, after)
        return own, NO_NODE if before is None else _node(kind, before)

    def _resolved(self, tables: Tables | None, client: Series) -> Resolved | None:
        if tables is None:
            return None
        limits = tables[client.kind.key]
        # Limits that differ by broker are a callback's, and those are not judged in shards.
        assert hasattr(limits, "resolve")
        return resolve_series(limits, client)


def _node(kind: Kind, resolved: Resolved) -> int:
    bucket = resolved.bucket
    return _number(kind, bucket.user, bucket.client_id, *(part for tag in bucket.other for part in tag))


def _number(kind: Kind, *parts: str | None) -> int:
    text = repr((kind.value, *parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class Shards:
    """``count`` shards. ``nodes``: groups whose clients change, rising; ``roots``: of each the one that stands for all linked."""

    count: int
    nodes: Integers
    roots: Integers

    @classmethod
    def of(cls, links: Sequence[tuple[int, int]] | Integers, count: int) -> Self:
        """``links``: pairs of groups that share a client. One that is paired with itself has clients that it had not before."""
        pairs = np.asarray(links, dtype=np.int64).reshape(-1, 2)
        nodes, places = np.unique(pairs, return_inverse=True)
        after, before = places.reshape(-1, 2).T
        return cls(count, nodes, nodes[_smallest_linked(after, before, len(nodes))])

    def numbers(self, nodes: Integers) -> Integers:
        """The shard of each group."""
        if len(self.nodes):
            places = _places_of(nodes, self.nodes)
            nodes = np.where(places >= 0, self.roots[places], nodes)
        return (nodes.view(np.uint64) % np.uint64(self.count)).astype(np.int64)


def _smallest_linked(first: Integers, second: Integers, count: int) -> Integers:
    """Return, for each of ``count`` places, the smallest one that it is linked to, directly or through others.

    Each round links the smallest places of both ends, and then follows them one step further, so rounds grow with the logarithm.
    """
    smallest = np.arange(count, dtype=np.int64)
    while True:
        low = np.minimum(smallest[first], smallest[second])
        for ends in (smallest[first], smallest[second]):
            np.minimum.at(smallest, ends, low)
        further = smallest[smallest]
        if (further == smallest).all() and (smallest[first] == smallest[second]).all():
            return smallest
        smallest = further


def _places_of(numbers: Integers, rising: Integers) -> Integers:
    """The place of each number in ``rising``; -1 where there is none."""
    if not len(rising):
        return np.full(numbers.shape, -1, dtype=np.int64)
    where = np.minimum(np.searchsorted(rising, numbers), len(rising) - 1)
    return np.asarray(np.where(rising[where] == numbers, where, -1), dtype=np.int64)
