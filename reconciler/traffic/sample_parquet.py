"""Samples of clients' rates as Parquet in the canonical schema: pages of a metrics server, and the files of ``record``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.sources.metric_layouts import MetricSeries
from reconciler.traffic.sources.normal_form import GAUGE

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


def sample_table(rows: SampleRows, clients: Sequence[MetricSeries]) -> pa.Table:
    """The rows in the columns of the canonical schema."""
    has_interval = (rows.interval_ms > 0) & (rows.interval_ms <= MOST_INTERVAL_MS)
    brokers = np.asarray([client.broker for client in clients], dtype=np.int32)
    semantics = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows.count, dtype=np.int32)), pa.array([GAUGE]))
    return pa.Table.from_arrays(
        [
            pa.array(rows.ts_us).view(_SCHEMA.field("ts").type),
            pa.array(np.where(has_interval, rows.interval_ms, 0).astype(np.int32), mask=~has_interval),
            pa.array(brokers[rows.clients]),
            _names((client.user for client in clients), rows.clients),
            _names((client.client_id for client in clients), rows.clients),
            _names((client.kind.value for client in clients), rows.clients),
            pa.array(rows.amounts),
            semantics,
            pa.array(rows.throttled == 1, mask=rows.throttled == UNKNOWN),
            _names((client.ip for client in clients), rows.clients),
        ],
        schema=_SCHEMA,
    )


def _names(of_clients: Iterable[str | None], clients: Integers) -> pa.DictionaryArray:
    numbers: dict[str, int] = {}
    each = [UNKNOWN if name is None else numbers.setdefault(name, len(numbers)) for name in of_clients]
    rows = np.asarray(each, dtype=np.int32)[clients]
    return pa.DictionaryArray.from_arrays(pa.array(rows, mask=rows == UNKNOWN), pa.array(list(numbers), pa.string()))
