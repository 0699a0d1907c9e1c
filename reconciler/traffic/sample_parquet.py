"""Samples of clients' rates as Parquet in the canonical schema: pages of a metrics server, and the files of ``record``.

The footer of a file has the totals of its samples, so that a backtest need not add them up.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.traffic.client_totals import CLIENT_TOTALS, MEAN_TOTALS, MINUTE_TOTALS, means_of_rows, minutes_of_rows
from reconciler.traffic.columns.charged import NAME_CODES, ChargedRows, run_begins
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import PartialSums, Totals
from reconciler.traffic.sources.metric_layouts import MetricSeries
from reconciler.traffic.sources.normal_form import GAUGE, is_in_time

UNKNOWN: Final = -1
"""Of ``throttled``, beside 0 and 1."""
MOST_INTERVAL_MS: Final = 2**31 - 1
_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
_SCHEMA: Final = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", _NAMES),
        ("client_id", _NAMES), ("kind", _NAMES), ("amount", pa.int64()), ("semantics", _NAMES), ("throttled", pa.bool_()),
        ("ip", _NAMES),
    ]
)  # fmt: skip
_WITH_STATISTICS: Final = ("ts", "broker", "kind", "semantics")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRows:
    """One item a sample. ``clients``: places in a sequence of series, whose names the rows get.

    ``interval_ms``: since the sample before of the same client, 0 or less when that is not known. ``throttled``: 1 for a client
    that the broker throttled in the last minute, 0 for one that it did not, ``UNKNOWN``.
    """

    ts_us: Integers
    interval_ms: Integers
    clients: Integers
    amounts: Integers
    throttled: Integers

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.ts_us)


def join_rows(parts: Sequence[SampleRows]) -> SampleRows:
    """The rows one part after the other; there is one part at least."""
    return SampleRows(
        ts_us=np.concatenate([part.ts_us for part in parts]),
        interval_ms=np.concatenate([part.interval_ms for part in parts]),
        clients=np.concatenate([part.clients for part in parts]),
        amounts=np.concatenate([part.amounts for part in parts]),
        throttled=np.concatenate([part.throttled for part in parts]),
    )


def open_samples(sink: Path | pa.NativeFile) -> pq.ParquetWriter:
    """A file for ``sample_table``. The caller closes it."""
    # The digits of rates are noise: compression at the first level, and differences instead of a table of amounts.
    return pq.ParquetWriter(
        sink,
        _SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in _SCHEMA.names if name != "amount"],
        column_encoding={"amount": "DELTA_BINARY_PACKED"},
        write_statistics=list(_WITH_STATISTICS),
    )


class SampledClients:
    """The names of clients as columns, which many tables of their rows share."""

    def __init__(self, clients: Sequence[MetricSeries]) -> None:
        self.count = len(clients)
        self.brokers = np.asarray([client.broker for client in clients], dtype=np.int64)
        words = {kind: kind.value for kind in Kind}
        self._users = _encode(client.user for client in clients)
        self._client_ids = _encode(client.client_id for client in clients)
        self._kinds = _encode(words[client.kind] for client in clients)
        self._ips = _encode(client.ip for client in clients)

    def user(self, rows: Integers) -> pa.DictionaryArray:
        """The name of the user, by row. ``rows``: the client of each."""
        return _decode(self._users, rows)

    def client_id(self, rows: Integers) -> pa.DictionaryArray:
        """The client-id."""
        return _decode(self._client_ids, rows)

    def kind(self, rows: Integers) -> pa.DictionaryArray:
        """What is counted."""
        return _decode(self._kinds, rows)

    def ip(self, rows: Integers) -> pa.DictionaryArray:
        """The address, of connections."""
        return _decode(self._ips, rows)


_Encoded: TypeAlias = tuple[Integers, pa.Array]
"""Places among distinct names, ``UNKNOWN`` without one, and the names."""


def _encode(of_clients: Iterable[str | None]) -> _Encoded:
    numbers: dict[str, int] = {}
    places = [UNKNOWN if name is None else numbers.setdefault(name, len(numbers)) for name in of_clients]
    return np.asarray(places, dtype=np.int32), pa.array(list(numbers), pa.string())


def _decode(encoded: _Encoded, clients: Integers) -> pa.DictionaryArray:
    places, names = encoded
    rows = places[clients]
    return pa.DictionaryArray.from_arrays(pa.array(rows, mask=rows == UNKNOWN), names)


def sample_table(rows: SampleRows, clients: SampledClients) -> pa.Table:
    """The rows in the columns of the canonical schema."""
    has_interval = (rows.interval_ms > 0) & (rows.interval_ms <= MOST_INTERVAL_MS)
    semantics = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows.count, dtype=np.int32)), pa.array([GAUGE]))
    return pa.Table.from_arrays(
        [
            pa.array(rows.ts_us).view(_SCHEMA.field("ts").type),
            pa.array(np.where(has_interval, rows.interval_ms, 0).astype(np.int32), mask=~has_interval),
            pa.array(clients.brokers.astype(np.int32)[rows.clients]),
            clients.user(rows.clients),
            clients.client_id(rows.clients),
            clients.kind(rows.clients),
            pa.array(rows.amounts),
            semantics,
            pa.array(rows.throttled == 1, mask=rows.throttled == UNKNOWN),
            clients.ip(rows.clients),
        ],
        schema=_SCHEMA,
    )


_STORED: Final[tuple[Totals[pa.RecordBatch], ...]] = (CLIENT_TOTALS, MEAN_TOTALS, MINUTE_TOTALS)
_KEY: Final = b"kafka-quotas.totals.1."
"""The number changes with what the totals mean. The name of the totals follows."""


StoredTotals: TypeAlias = tuple[tuple[Totals[pa.RecordBatch], pa.Table], ...]
"""Of each work its rows, as ``Rows.total`` gives them."""


class SampleTotals:
    """Adds up the gauges of one file while it is written."""

    def __init__(self) -> None:
        self._means = PartialSums(MEAN_TOTALS.schema, MEAN_TOTALS.keys, MEAN_TOTALS.folds)
        self._minutes = PartialSums(MINUTE_TOTALS.schema, MINUTE_TOTALS.keys, MINUTE_TOTALS.folds)
        self._rows = 0
        self._is_usable = True

    def add(self, rows: SampleRows, clients: SampledClients) -> None:
        """Rows of the file; ``clients`` as ``sample_table`` takes them."""
        if not is_in_time(rows.ts_us).all():
            self._is_usable = False
        self._rows += rows.count
        if not self._is_usable:
            return
        charged = _charged(rows, clients)
        interval_us = np.maximum(rows.interval_ms, 0) * 1000
        self._means.add(means_of_rows(charged, interval_us, (rows.throttled == 1).astype(np.int64), GAUGE))
        self._minutes.add(minutes_of_rows(rows.ts_us, charged.broker[rows.clients]))

    def metadata(self) -> dict[bytes, bytes]:
        """For the footer; nothing where a time is not one of recorded traffic."""
        if not self._is_usable:
            return {}
        lines = pa.Table.from_pylist([{"status": GAUGE, "lines": self._rows}] * bool(self._rows), schema=CLIENT_TOTALS.schema)
        tables = {CLIENT_TOTALS.name: lines, MEAN_TOTALS.name: self._means.table(), MINUTE_TOTALS.name: self._minutes.table()}
        return {_KEY + name.encode(): _packed(table) for name, table in tables.items()}


def stored_totals(footer: pq.FileMetaData) -> StoredTotals | None:
    """The totals that a footer has of all rows of its file; ``None`` without them."""
    metadata: Mapping[bytes, bytes] = footer.metadata or {}
    texts = [metadata.get(_KEY + work.name.encode()) for work in _STORED]
    try:
        tables = [_unpacked(text) for text in texts if text is not None]
    except (binascii.Error, ValueError, pa.ArrowInvalid, OSError):
        return None
    if [table.schema for table in tables] != [work.schema for work in _STORED]:
        return None
    if (pc.sum(tables[0].column("lines")).as_py() or 0) != footer.num_rows:
        return None
    return tuple(zip(_STORED, tables, strict=True))


def join_totals(files: Iterable[StoredTotals]) -> StoredTotals:
    """The totals of several files, not added up by client."""
    return tuple((same[0][0], pa.concat_tables(table for _, table in same)) for same in zip(*files, strict=True))


def _charged(rows: SampleRows, clients: SampledClients) -> ChargedRows:
    every = np.arange(clients.count)
    return ChargedRows(
        of=rows.clients,
        ts_us=rows.ts_us,
        records=rows.amounts,
        overhead=np.zeros(rows.count, dtype=np.int64),
        broker=clients.brokers,
        kind=clients.kind(every).cast(NAME_CODES),
        user=clients.user(every).cast(NAME_CODES),
        client_id=clients.client_id(every).cast(NAME_CODES),
        ip=clients.ip(every).cast(NAME_CODES),
        rows=None,
        others={},
        begins=run_begins([rows.clients]),
    )


def _packed(table: pa.Table) -> bytes:
    """As text, because readers of Parquet take these values as UTF-8."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table.combine_chunks())
    return base64.b64encode(sink.getvalue())


def _unpacked(text: bytes) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(text, validate=True)) as stream:
        return stream.read_all()
