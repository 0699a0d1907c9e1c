"""Which traffic is read in the command's own process, without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.traffic import find_traffic
from reconciler.traffic.spark_setup import SessionOptions


def file_of(path: Path, rows: int, semantics: str) -> Path:
    names = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int8), [semantics]).cast(pa.string())
    pq.write_table(pa.table({"semantics": names}), path)
    return path


@pytest.mark.parametrize(
    ("rows", "semantics", "here"),
    [(10_000_000, "event", True), (10_000_001, "event", False), (10_000_001, "gauge", True)],
)
def test_parquet_of_up_to_ten_million_requests_needs_no_spark(tmp_path: Path, rows: int, semantics: str, here: bool) -> None:
    traffic = find_traffic([str(file_of(tmp_path / "rows.parquet", rows, semantics))])
    assert traffic.stays_here(SessionOptions()) is here
    assert traffic.stays_here(SessionOptions(), compacting=True) is (semantics == "gauge")
    assert not traffic.stays_here(SessionOptions(master="local[2]"))


@pytest.mark.parametrize(("size", "here"), [(64 * 1024 * 1024, True), (64 * 1024 * 1024 + 1, False)])
def test_request_logs_of_up_to_64_mib_need_no_spark(tmp_path: Path, size: int, here: bool) -> None:
    log = tmp_path / "broker-1" / "kafka-request.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(size)
    assert find_traffic([str(log.parent)]).stays_here(SessionOptions()) is here
