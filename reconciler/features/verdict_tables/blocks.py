"""Shards of clients that are judged together, and clients and charged rows on their way to the worker that judges one.

A client is in one quota group before the change and in one after it. Groups that share a client are linked, and linked groups are
in one shard. So a shard is judged like a traffic of its own, and no other shard has rows of its groups, on any broker.
Rows are whole numbers: a client is the number of its names and its broker. Names travel once for each client, with its totals.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pandas.util import hash_array

from reconciler.errors import TrafficError
from reconciler.resolution import Resolved
from reconciler.traffic import BLOCK_SCHEMA as SCHEMA
from reconciler.traffic import CLIENT_FOLDS as FOLDS
from reconciler.traffic import CLIENT_NAMES as NAMES
from reconciler.traffic import CLIENT_SCHEMA as TOTALS
from reconciler.traffic import (
    MICRO_BITS,
    ORDER_BITS,
    ChargedRows,
    Integers,
    Kind,
    Series,
    Tables,
    add_up,
    charged_rows,
    cut_by_partition,
    pack_rows,
    resolve_series,
    summed_seconds,
    tables_of,
    topic_columns,
    unpack_columns,
)
from reconciler.traffic import sum_seconds as client_seconds

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


_MOST_ROWS: Final = 1 << 20
"""Rows of a task that are cut into blocks at a time."""
_NAMES: Final = ("kind", "user", "client_id", "ip")


class RowForm(enum.IntEnum):
    """What the rows of a block are. In their order a worker gets them."""

    TOTALS = 0
    """Clients with their names and totals."""
    SECONDS = 1
    """Client, second since 1970, and amount."""
    REQUESTS = 2
    """Client, millisecond since 1970, order, records, and overhead."""
    TOPICS = 3
    """The same with ``strict`` and ``part``."""


class ShardSender:
    """Makes blocks of one task. ``exact``: of single requests. ``has_topics``: mutations are topic by topic."""

    def __init__(self, nodes: ClientNodes, shards: Shards, *, exact: bool, has_topics: bool) -> None:
        self._nodes, self._shards = nodes, shards
        self._exact, self._has_topics = exact, has_topics

    def totals(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of clients. ``batches``: ``client_totals.SCHEMA``, of charged rows only."""
        for table in tables_of(batches):
            names = [table.column(name).combine_chunks() for name in _NAMES]
            shards = self._shards.numbers(self._nodes.of_names(*names)[:, 0])
            ordered = table.take(pa.array(np.argsort(shards, kind="stable")))
            numbers, counts = np.unique(shards, return_counts=True)
            ends = np.cumsum(counts)
            sizes = zip((ends - counts).tolist(), counts.tolist(), strict=True)
            packed = [pack_rows(ordered.slice(begin, count), "lz4") for begin, count in sizes]
            columns = [numbers, np.full(len(numbers), int(RowForm.TOTALS)), packed]
            arrays = [pa.array(column, type=field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of charged rows. ``batches``: with the columns that ``keyed_requests`` and topics need."""
        held: dict[RowForm, list[tuple[Integers, list[Integers]]]] = {}
        for batch in batches:
            rows = charged_rows(batch)
            if not len(rows.of):
                continue
            nodes, ids = clients_of_names(self._nodes, rows.names, rows.broker)
            shards = self._shards.numbers(nodes[:, 0])
            for form, of, columns in self._forms(rows, batch):
                if len(of):
                    held.setdefault(form, []).append((shards[of], [ids[of], *columns]))
            for form, parts in held.items():
                if sum(len(part[0]) for part in parts) >= _MOST_ROWS:
                    yield _cut(form, parts)
                    parts.clear()
        yield from (_cut(form, parts) for form, parts in held.items() if parts)

    def sums(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of seconds. ``batches``: ``client_seconds.SCHEMA``."""
        for batch in batches:
            clients, of, *columns = summed_seconds(batch)
            if len(of):
                names, brokers = [clients.column(name) for name in _NAMES], clients.column("broker").to_numpy()
                nodes, ids = clients_of_names(self._nodes, names, brokers)
                yield _cut(RowForm.SECONDS, [(self._shards.numbers(nodes[:, 0])[of], [ids[of], *columns])])

    def _forms(self, rows: ChargedRows, batch: pa.RecordBatch) -> Iterator[tuple[RowForm, Integers, list[Integers]]]:
        """Form, client of each row, and the columns behind it."""
        of_topics = np.zeros(rows.clients, dtype=np.bool_)
        if self._has_topics:
            of_topics = np.asarray(pc.equal(rows.kind, Kind.MUTATION.value).to_numpy(zero_copy_only=False), dtype=np.bool_)
        if of_topics.any():
            chosen = np.flatnonzero(of_topics[rows.of])
            columns = [*request_columns(rows, batch), *topic_columns(rows, batch)]
            yield RowForm.TOPICS, rows.of[chosen], [column[chosen] for column in columns]
        if not self._exact:
            of, second, total = client_seconds(rows, ~of_topics)
            yield RowForm.SECONDS, of, [second, total]
        elif of_topics.any():
            chosen = np.flatnonzero(~of_topics[rows.of])
            yield RowForm.REQUESTS, rows.of[chosen], [column[chosen] for column in request_columns(rows, batch)]
        else:
            yield RowForm.REQUESTS, rows.of, request_columns(rows, batch)


def clients_of_names(nodes: ClientNodes, names: Sequence[pa.Array], brokers: Integers) -> tuple[Integers, Integers]:
    """The groups, as ``ClientNodes`` has them, and the number of each client. ``names``: kind, user, client-id and address."""
    texts = [column.cast(pa.string()) for column in names]
    return nodes.of_names(*texts), ids_of_series(ids_of_names(*texts), brokers)


def request_columns(rows: ChargedRows, batch: pa.RecordBatch) -> list[Integers]:
    """Millisecond since 1970, order, records, and overhead of each row."""
    milli, micros = np.divmod(rows.ts_us, 1000)
    rest = rows.numbers(batch, "tie") & (1 << ORDER_BITS - MICRO_BITS) - 1
    return [milli, micros << ORDER_BITS - MICRO_BITS | rest, rows.records, rows.overhead]


def _cut(form: RowForm, parts: Sequence[tuple[Integers, list[Integers]]]) -> pa.RecordBatch:
    columns = [np.concatenate(column) for column in zip(*(columns for _, columns in parts), strict=True)]
    return cut_by_partition(np.concatenate([shards for shards, _ in parts]), columns, first=int(form))


class ShardBlocks:
    """What a worker has of one shard: its clients, and rows by their form, with the numbers of clients first."""

    def __init__(self) -> None:
        self._totals: list[pa.Table] = []
        self.rows: dict[RowForm, list[list[Integers]]] = {form: [] for form in RowForm}

    def add(self, form: RowForm, block: pa.Buffer) -> None:
        """One block."""
        if form is RowForm.TOTALS:
            with pa.ipc.open_stream(block) as stream:
                self._totals.append(stream.read_all())
        else:
            self.rows[form].append([column.astype(np.int64) for column in unpack_columns(block)])

    def totals(self) -> pa.Table:
        """``client_totals.SCHEMA``, a row for each client."""
        return add_up(pa.concat_tables([TOTALS.empty_table(), *(table.cast(TOTALS) for table in self._totals)]), NAMES, FOLDS)


def series_numbers(totals: pa.Table) -> Integers:
    """The number of each row of ``client_totals.SCHEMA``. Raises ``TrafficError`` when two clients have one."""
    names = [totals.column(name).combine_chunks() for name in _NAMES]
    brokers = np.asarray(totals.column("broker").to_numpy(), dtype=np.int64)
    numbers = ids_of_series(ids_of_names(*names), brokers)
    if len(np.unique(numbers)) < len(numbers):
        raise TrafficError("two clients of the recorded traffic have the same number: leave --out parquet= out")
    return numbers


def shards_in(batches: Iterable[pa.RecordBatch]) -> Iterator[ShardBlocks]:
    """One shard after the other. ``batches``: ``SCHEMA``, sorted by partition."""
    rows = ((*row, block) for batch in batches for *row, block in _rows_of(batch))
    for _, of_shard in itertools.groupby(rows, key=lambda row: row[0]):
        blocks = ShardBlocks()
        for _, form, block in of_shard:
            blocks.add(RowForm(form), block)
        yield blocks


def _rows_of(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.Buffer]]:
    partitions, forms, blocks = batch.columns
    yield from zip(partitions.to_pylist(), forms.to_pylist(), (block.as_buffer() for block in blocks), strict=True)


def require_known(ids: Integers, known: Integers) -> None:
    """Raise ``TrafficError`` for a number that is not in ``known``, which rises."""
    where = np.minimum(np.searchsorted(known, ids), len(known) - 1) if len(known) else np.zeros(len(ids), dtype=np.int64)
    if len(ids) and (not len(known) or not (known[where] == ids).all()):
        raise TrafficError("the recorded traffic has other clients than when it was read first: it changed during the run")
