"""``backtest --out parquet=``: all rows of verdicts as a table, beside the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from reconciler import client
from reconciler.model import VERDICTS_SCHEMA
from tests.support import all_kinds
from tests.support.command import Command, Done
from tests.support.manifests import cluster, quotas, snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LIMITS = (
    ({"user": "alice"}, {"producer_byte_rate": "8KiB", "request_percentage": 12}),
    ({"user": "ops"}, {"controller_mutation_rate": 4}),
    ({"ip": "10.0.0.7"}, {"connection_creation_rate": 2}),
)
CURRENT = {client.entity(user="alice"): {"producer_byte_rate": 20_000.0}}
ON_SPARK = ("--master", "local[2]")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "quotas.yaml").write_text(quotas(*LIMITS), "utf-8")
    rules = {"backtest": {"history": {"hours": 0}, "fail": [{"verdicts": ["throttled"], "match": {"user": "alice"}}]}}
    (tmp_path / "quotas" / "cluster.yaml").write_text(cluster(**rules), "utf-8")
    (tmp_path / "now.json").write_text(snapshot(CURRENT), "utf-8")
    all_kinds.write(tmp_path / "traffic.parquet", all_kinds.rows())
    return tmp_path


def judge(command: Command, work: Path, *options: str, traffic: str = "traffic.parquet") -> Done:
    arguments = ("--current", "now.json", "--traffic", traffic, "--format", "json", *options)
    return command("backtest", "quotas", *arguments, cwd=work)


def rows_in(folder: Path) -> list[str]:
    return sorted(map(repr, pq.read_table(folder).to_pylist()))


def test_this_process_and_workers_write_equal_rows_and_reports(work: Path, warm_command: Command) -> None:
    plain = judge(warm_command, work)
    here = judge(warm_command, work, "--out", "parquet=here")
    spark = judge(warm_command, work, "--out", "parquet=there", *ON_SPARK)

    assert (plain.code, here.code, spark.code) == (1, 1, 1), spark.err
    assert here.out == plain.out
    assert without_place(spark.json()) == without_place(plain.json())
    assert rows_in(work / "here") == rows_in(work / "there")
    assert len(rows_in(work / "here")) == plain.json()["summary"]["rows"] == len(plain.json()["verdicts"])


def without_place(document: Mapping[str, Any]) -> dict[str, Any]:
    provenance = {name: value for name, value in document["provenance"].items() if name != "spark"}
    return {**document, "provenance": provenance}


def test_a_table_gets_the_rows_and_the_next_run_replaces_them(spark: SparkSession, work: Path, warm_command: Command) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS judged")
    try:
        for _ in range(2):
            done = judge(warm_command, work, "--out", "parquet=table:judged.rows", *ON_SPARK)
            assert done.code == 1, done.err
            assert done.json()["summary"]["rows"], done.err  # what could not be written has the same exit code
        table = spark.read.table("judged.rows")
        assert table.columns == [column.name for column in VERDICTS_SCHEMA.columns]
        assert table.count() == done.json()["summary"]["rows"]
        assert table.schema["verdict"].metadata["comment"]

        spark.sql("CREATE TABLE judged.foreign AS SELECT 1 AS number")
        done = judge(warm_command, work, "--out", "parquet=table:judged.foreign", *ON_SPARK)
        assert done.code == 64
        assert "other columns than those of verdicts" in done.err
    finally:
        spark.sql("DROP DATABASE judged CASCADE")


def test_a_folder_with_files_is_refused_at_once(work: Path, warm_command: Command) -> None:
    (work / "rows").mkdir()
    (work / "rows" / "mine.txt").write_text("mine", "utf-8")

    done = judge(warm_command, work, "--out", "parquet=rows", *ON_SPARK, traffic="missing.parquet")

    assert done.code == 64
    assert "the folder is not empty" in done.err
    assert [path.name for path in (work / "rows").iterdir()] == ["mine.txt"]
