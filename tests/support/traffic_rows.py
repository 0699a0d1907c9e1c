"""Rows of recorded traffic, for tests that look at single rows: read in this process, whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

from reconciler.traffic import Reading, Traffic
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.parquet_traffic import CanonicalFiles
from reconciler.traffic.sources.log_files import BrokerFiles
from reconciler.traffic.traffic_files import RequestLogs


def traffic_rows(
    traffic: Traffic, *, log_timezone: str = "UTC", also: Sequence[str] = (), kinds: Collection[Kind] = BYTES
) -> list[SimpleNamespace]:
    """Each row with its columns as attributes, in the order of the files."""
    batches = traffic.batches(Reading(log_timezone=log_timezone, also=tuple(also), kinds=kinds))
    return [SimpleNamespace(**row) for batch in batches for row in batch.to_pylist()]


def log_rows(
    path: Path, *, broker: int = 1, log_timezone: str = "UTC", also: Sequence[str] = (), kinds: Collection[Kind] = BYTES
) -> list[SimpleNamespace]:
    """The rows of one request log."""
    logs = (BrokerFiles(broker=broker, files=(str(path),)),)
    return traffic_rows(RequestLogs(logs=logs), log_timezone=log_timezone, also=also, kinds=kinds)


def normal_form_batches(files: Iterable[str | Path], *, with_file: bool = False) -> list[pa.RecordBatch]:
    """The rows of Parquet files in the normal form."""
    traffic = CanonicalFiles(parquet=tuple(map(str, files)))
    return list(traffic.batches(Reading(also=("file",) if with_file else ())))
