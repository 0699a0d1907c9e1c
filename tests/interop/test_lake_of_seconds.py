"""Per-second totals by day in a real HDFS, behind a real S3 endpoint, and in an Iceberg table are those of a local folder."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Done, environment, run
from tests.support.hdfs_server import HadoopStore
from tests.support.lake_days import days_of_parquet
from tests.support.lake_tables import iceberg_tables, pyspark_variables
from tests.support.manifests import quotas

pytestmark = pytest.mark.interop

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"}))
DAY = ("--since", "2026-11-21T00:00Z", "--until", "2026-11-22T00:00Z")
READER = """
import json, sys, threading
from types import SimpleNamespace
from reconciler.traffic.session import spark_session
from reconciler.traffic.spark_setup import SessionOptions
out, settings, traffic = json.loads(sys.argv[1])
with spark_session(SessionOptions(master="local[2]", settings=tuple(map(tuple, settings)))) as spark:
    from reconciler.features.compacting.days import write_days
    from reconciler.traffic import find_traffic, parse_dataset
    where, counts, over = parse_dataset(out), set(), threading.Event()
    options = SimpleNamespace(since=None, until=None, replace=False, log_timezone="UTC", max_unreadable=1.0)
    write_days(spark, find_traffic([traffic]), where, options)
    def read():
        while not over.is_set():
            charged = spark.read.table(where.name).where("status = 'charged'")
            counts.add(charged.selectExpr("sum(requests)").collect()[0][0])
    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        write_days(spark, find_traffic([traffic]), where, options)
    over.set()
    reader.join()
print(json.dumps(sorted(counts)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where ``--out`` is, and the options and variables with which Spark reaches it."""

    out: str
    options: tuple[str, ...]
    env: dict[str, str] | None = None


@pytest.fixture(params=["hdfs", "s3", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param != "iceberg":
        store: HadoopStore = request.getfixturevalue(request.param)
        return Place(out=f"{store.address}/lake/seconds", options=("--master", "local[2]", *store.options))
    iceberg_tables(tmp_path / "warehouse").write_properties(tmp_path / "spark.properties")
    options = ("--master", "local[2]", "--properties-file", str(tmp_path / "spark.properties"))
    return Place(out="table:lake.db.seconds", options=options, env=pyspark_variables())


def report_of(work: Path, traffic: str, place: Place, *options: str) -> dict[str, Any]:
    done = run(
        "backtest", "quotas.yaml", "--traffic", traffic, "--format", "json", *place.options, *options, cwd=work, env=place.env
    )
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json()
    document["provenance"].pop("files")
    return document


def compacted(work: Path, place: Place, *arguments: str) -> Done:
    done = run("compact", *arguments, "--format", "json", *place.options, cwd=work, env=place.env)
    assert done.code == 0, done.err
    return done


def test_days_there_are_those_of_a_local_folder(place: Place, tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    days_of_parquet(tmp_path / "traffic", 2)
    first = compacted(tmp_path, place, "--traffic", "traffic", "--folder", place.out).json()
    assert compacted(tmp_path, place, "--traffic", "traffic", "--folder", place.out).json() == first
    days_of_parquet(tmp_path / "traffic", 3)
    last = ("--since", "2026-11-22T00:00Z")
    more = compacted(tmp_path, place, "--traffic", "traffic", "--folder", place.out, *last).json()
    assert more["days"] == ["2026-11-22"]
    compacted(tmp_path, place, "--traffic", "traffic", "--folder", f"file://{tmp_path}/local")
    assert report_of(tmp_path, place.out, place) == report_of(tmp_path, f"file://{tmp_path}/local", place)
    part = report_of(tmp_path, place.out, place, *DAY)
    assert part == report_of(tmp_path, f"file://{tmp_path}/local", place, *DAY)
    assert part["provenance"]["requests"] == 190


def test_a_reader_of_a_table_sees_whole_days_while_they_are_written_again(tmp_path: Path) -> None:
    tables = iceberg_tables(tmp_path / "warehouse")
    days_of_parquet(tmp_path / "traffic", 2)
    done = subprocess.run(
        [sys.executable, "-c", READER, json.dumps(["table:lake.db.seconds", tables.settings, str(tmp_path / "traffic")])],
        cwd=tmp_path,
        env=environment({"PYTHONPATH": str(Path(__file__).parents[2]), **pyspark_variables()}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [380]
