"""Parquet and CSV with columns of their own, read through a mapping file."""

from __future__ import annotations

import datetime
import gzip
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.errors import ManifestError, TrafficError

COLUMNS = "time,host,principal,client,what,kb"
HEADER = "apiVersion: kafka-quotas/v1\nkind: TrafficMapping\nspec:\n"
PLAIN = """
  columns:
    ts: {column: time}
    broker: {column: host, pattern: 'kafka-(\\d+)'}
    user: {column: principal, pattern: "(?:User:)?(.*)"}
    client_id: {column: client}
    kind: {column: what, values: {Produce: produce, Fetch: fetch}}
    amount: {column: kb, unit: KiB}
"""


def mapped(tmp_path: Path, spec: str) -> Any:
    from reconciler.workflows.traffic_inputs import read_trusted_mapping

    path = tmp_path / "mapping.yaml"
    path.write_text(HEADER + spec.lstrip("\n"), encoding="utf-8")
    return read_trusted_mapping(path, None)


def rows_of(tmp_path: Path, spec: str, *files: Path) -> list[SimpleNamespace]:
    from reconciler.traffic import find_traffic
    from tests.support.traffic_rows import traffic_rows

    traffic = find_traffic([str(file) for file in files], mapped(tmp_path, spec))
    traffic.look("UTC")
    found = traffic_rows(traffic)
    return sorted(found, key=lambda row: (row.ts_us or 0, row.records or 0))


def micros(clock: str) -> int:
    """Of a time of the day of these tests, in UTC."""
    moment = datetime.datetime.fromisoformat(f"2026-11-21T{clock}+00:00")
    return round(moment.timestamp() * 1_000_000)


def test_csv_becomes_charged_rows_whatever_the_order_of_its_columns(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv.gz"
    first.write_text(
        "time,host,principal,client,what,kb\n"
        '2026-11-21 13:00:00.5,kafka-3.example,User:alice,"a,b",Produce,2\n'
        "2026-11-21T13:00:01+01:00,kafka-3.example,CN=x,,Fetch,0.5\n"
        "2026-11-21 13:00:02,kafka-3.example,User:alice,a,Metadata,1\n"
        "yesterday,kafka-3.example,User:alice,a,Produce,1\n",
        encoding="utf-8",
    )
    second.write_bytes(gzip.compress(b"kb,what,client,principal,host,time\n7,Fetch,a,User:bob,kafka-12,2026-11-21 13:00:03\n"))

    rows = rows_of(tmp_path, PLAIN, first, second)

    found = [(r.status, r.broker, r.kind, r.user, r.client_id, r.records) for r in rows]
    assert found == [
        ("unreadable", 3, "produce", "alice", "a", 1024),
        ("charged", 3, "fetch", "CN=x", None, 512),
        ("charged", 3, "produce", "alice", "a,b", 2048),
        ("unreadable", 3, None, "alice", "a", 1024),
        ("charged", 12, "fetch", "bob", "a", 7168),
    ]
    assert [r.ts_us for r in rows][1:3] == [micros("12:00:01"), micros("13:00:00.5")]


def test_counters_of_whole_seconds_count_and_longer_ones_do_not(tmp_path: Path) -> None:
    spec = """
  semantics: delta
  columns:
    ts: {column: t, unit: ms}
    interval: {column: length, unit: ms}
    broker: {constant: 4}
    user: {column: user}
    client_id: {column: client}
    kind: {constant: produce}
    amount: {column: bytes}
"""
    second = micros("13:00:00") // 1000
    lines = [
        f"{second},1000,CN=x+y,,10",
        f"{second + 1500},500,u,c,20",
        f"{second + 2500},1000,u,c,30",
        f"{second + 60000},60000,u,c,40",
        f"{second + 70000},1000,u,c,",
    ]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["t,length,user,client,bytes", *lines, ""]), encoding="utf-8")

    rows = rows_of(tmp_path, spec, file)

    assert [r.status for r in rows] == ["charged", "charged", "unclear-time", "unclear-time", "unreadable"]
    assert [(r.user, r.client_id, r.ts_us) for r in rows[:2]] == [
        ("CN=x+y", None, second * 1000 - 1),
        ("u", "c", (second + 1500) * 1000 - 1),
    ]


def test_parquet_whose_files_have_different_columns_is_one_history(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    moment = datetime.datetime(2026, 11, 21, 13, tzinfo=datetime.UTC)
    common = {"when": pa.array([moment], pa.timestamp("us", "UTC")), "who.is": ["alice"], "n": pa.array([5], pa.int32())}
    pq.write_table(pa.table({**common, "broker": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({**common, "broker": [2], "app": ["x"], "file": ["y"]}), tmp_path / "b.parquet")
    spec = """
  columns:
    ts: {column: when}
    broker: {column: broker}
    user: {column: who.is}
    client_id: {column: app}
    kind: {constant: fetch}
    amount: {column: n}
"""
    rows = rows_of(tmp_path, spec, tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert {(r.status, r.broker, r.user, r.client_id, r.records) for r in rows} == {
        ("charged", 1, "alice", None, 5),
        ("charged", 2, "alice", "x", 5),
    }
    with pytest.raises(TrafficError, match="names the column 'gone', and the files have app, broker"):
        rows_of(tmp_path, spec.replace("column: n}", "column: gone}"), tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", f"{COLUMNS}\n".encode("utf-16"), "its first line is not in UTF-8"),
        ("a.csv", f"{COLUMNS},kb\n".encode(), "it has several columns 'kb'"),
        ("a.parquet", [[2]], "the column 'kb' is list<element: int64>, and a mapping reads numbers, text and times"),
        ("a.parquet", [datetime.timedelta(seconds=1)], "the column 'kb' is duration"),
    ],
    ids=["encoding", "twice", "list", "duration"],
)
def test_a_column_that_no_mapping_reads_is_refused_by_its_name(tmp_path: Path, name: str, content: Any, said: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        pq.write_table(pa.table({column: ["x"] for column in COLUMNS.split(",")[:-1]} | {"kb": content}), tmp_path / name)
    with pytest.raises(TrafficError, match=f"{re.escape(str(tmp_path / name))}: {re.escape(said)}"):
        rows_of(tmp_path, PLAIN, tmp_path / name)


@pytest.mark.parametrize(
    ("spec", "place", "said"),
    [
        ("  columns: {ts: {column: t}, broker: {constant: 1}, kind: {constant: produce}}\n", "4:12", "amount"),
        (PLAIN.replace("unit: KiB", "unit: kibi"), "10:", "kibi"),
        (
            PLAIN.replace("{column: client}", "{column: client, constant: x}"),
            "8:16",
            "'client_id' needs either column or constant",
        ),
        (PLAIN.replace("'kafka-(\\d+)'", "'kafka-\\d+'"), "6:28", "no group"),
        ("  semantics: gauge\n" + PLAIN.lstrip("\n"), "4:3", "columns.interval"),
        ("  columns: {\n", "", "mapping.yaml"),
    ],
    ids=["missing", "unit", "both", "pattern", "interval", "yaml"],
)
def test_a_wrong_mapping_is_told_with_its_place(tmp_path: Path, spec: str, place: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        mapped(tmp_path, spec)
    assert f"mapping.yaml:{place}" in str(caught.value)
    assert said in str(caught.value)
    assert all(finding.span for finding in caught.value.findings)
