"""Clients and charged rows on their way to the worker that judges their shard.

Rows are whole numbers: a client is the number of its names and its broker. Names travel once for each client, with its totals.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.traffic.client_seconds import summed_seconds
from reconciler.traffic.client_totals import FOLDS, NAMES
from reconciler.traffic.client_totals import SCHEMA as TOTALS
from reconciler.traffic.columns import ChargedRows, charged_rows, client_seconds
from reconciler.traffic.judging.sharding import ClientNodes, Shards, ids_of_names, ids_of_series
from reconciler.traffic.kernels.exact_totals import MICRO_BITS, ORDER_BITS
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.request_traffic import topic_columns
from reconciler.traffic.shuffle.block import SCHEMA, cut_by_partition, unpack_columns
from reconciler.traffic.shuffle.rows import add_up, tables_of

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
            packed = [pack_table(ordered.slice(begin, count)) for begin, count in sizes]
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


def pack_table(table: pa.Table) -> bytes:
    """A table as a compressed stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


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
