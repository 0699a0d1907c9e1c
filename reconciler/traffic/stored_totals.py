"""Totals of a file of samples in its own footer, so that a backtest need not add the samples up."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.traffic.client_totals import CLIENT_TOTALS, MEAN_TOTALS, MINUTE_TOTALS, means_of_rows, minutes_of_rows
from reconciler.traffic.columns.charged import ChargedRows, run_begins
from reconciler.traffic.sample_parquet import SampleRows
from reconciler.traffic.shuffle.rows import PartialSums, Totals
from reconciler.traffic.sources.metric_layouts import MetricSeries
from reconciler.traffic.sources.normal_form import GAUGE, is_in_time

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

    def add(self, rows: SampleRows, clients: Sequence[MetricSeries]) -> None:
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


def _charged(rows: SampleRows, clients: Sequence[MetricSeries]) -> ChargedRows:
    return ChargedRows(
        of=rows.clients,
        ts_us=rows.ts_us,
        records=rows.amounts,
        overhead=np.zeros(rows.count, dtype=np.int64),
        broker=np.asarray([client.broker for client in clients], dtype=np.int64),
        kind=pa.array([client.kind.value for client in clients], pa.string()),
        user=pa.array([client.user for client in clients], pa.string()),
        client_id=pa.array([client.client_id for client in clients], pa.string()),
        ip=pa.array([client.ip for client in clients], pa.string()),
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
