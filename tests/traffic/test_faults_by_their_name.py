"""What is wrong with recorded traffic is said of its own form: the column and its value, or the log that is given twice."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.traffic.log_lines import line

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"}))
ROW: dict[str, Any] = {
    "ts": datetime.datetime(2026, 11, 20, 8, tzinfo=datetime.UTC), "interval_ms": 0, "broker": 1, "user": "alice",
    "client_id": "app", "kind": "produce", "amount": 5, "semantics": "event",
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "PRODUCE"}, "column 'kind' has 'PRODUCE', which is none of produce, fetch, request, mutation, connection"),
        ({"kind": None}, "column 'kind' has no value"),
        ({"amount": -1}, "column 'amount' has '-1', which is not a number from 0"),
        ({"ts": datetime.datetime(1999, 1, 1, tzinfo=datetime.UTC)}, "column 'ts' has '1999-01-01 00:00:00"),
        ({"broker": None}, "column 'broker' has no value"),
    ],
)
@pytest.mark.parametrize("good", [0, 1])
def test_a_wrong_row_of_parquet_names_its_column_and_value(tmp_path: Path, wrong: dict[str, Any], words: str, good: int) -> None:
    table = pa.Table.from_pylist([*([ROW] * good), ROW | wrong, ROW | wrong])
    types = {"broker": pa.int32(), "interval_ms": pa.int32(), "kind": pa.string(), "ts": pa.timestamp("us", "UTC")}
    table = table.cast(pa.schema([(field.name, types.get(field.name, field.type)) for field in table.schema]))
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    done = invoke("backtest", "quotas.yaml", "--traffic", "t.parquet", cwd=tmp_path)
    assert done.code == 1
    assert words in done.err
    assert f"2 of {2 + good} rows cannot be read" in done.err
    assert "request line" not in done.err


@pytest.mark.parametrize(("logs", "source", "verdict"), [(True, "log-cells", "inconclusive"), (False, "cells", "clear")])
def test_totals_have_the_faults_of_what_they_were_made_of(tmp_path: Path, logs: bool, source: str, verdict: str) -> None:
    text = quotas(({"user": "alice"}, {"request_percentage": 1000})) + "---\n" + cluster(backtest={"history": {"hours": 0}})
    (tmp_path / "quotas.yaml").write_text(text, "utf-8")
    if logs:
        lines = [line(correlation_id=number, at=f"2026-11-21 13:00:0{number},123") for number in range(5)]
        (tmp_path / "kafka-request.log").write_text("\n".join(lines) + "\n", "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist([ROW | {"kind": "request"}] * 5), tmp_path / "t.parquet")
    done = invoke(*("compact", "--traffic", "1=kafka-request.log" if logs else "t.parquet", "--folder", "cells"), cwd=tmp_path)
    assert done.code == 0, done.err
    done = invoke("backtest", "quotas.yaml", "--traffic", "cells", "--format", "json", cwd=tmp_path)
    document = done.json()
    assert document["provenance"]["source"] == source
    assert [row["verdict"] for row in document["verdicts"] if row["key"] == "request_percentage"] == [verdict]
