"""Per-second totals by day in a real HDFS, behind a real S3 endpoint, and in an Iceberg table are those of a local folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Done, environment, run
from tests.support.hdfs_server import HdfsServer, hdfs_server
from tests.support.lake_days import days_of_parquet
from tests.support.lake_tables import iceberg_tables, pyspark_variables
from tests.support.manifests import quotas
from tests.support.s3_server import S3Server, s3_server

pytestmark = pytest.mark.interop

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"}))
DAY = ("--since", "2026-11-21T00:00Z", "--until", "2026-11-22T00:00Z")
PROGRAM = """
import datetime, json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from reconciler.traffic.lake_compaction import LakeRequest, compact_days, open_store
from reconciler.traffic.seconds.day_ledger import expired_days
from reconciler.traffic.seconds.day_traffic import open_days
from reconciler.traffic.session import SessionOptions, spark_session
from reconciler.traffic.sources.datasets import Dataset, parse_dataset
from reconciler.traffic.sources.parquet_parts import Between
from reconciler.traffic.traffic_files import find_traffic
out, settings, work = json.loads(sys.argv[1])
now = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)
with spark_session(SessionOptions(master="local[2]", settings=tuple(map(tuple, settings)))) as spark:
    def write(*traffic, **more):
        done = compact_days(spark, find_traffic(traffic), LakeRequest(out=out, now=now, **more)).written
        return [len(done.read), list(done.dates), done.requests, done.added_late, list(done.removed)]
    def at_once(*elements):
        begin = threading.Barrier(len(elements))
        def one(traffic):
            begin.wait()
            return write(traffic)
        with ThreadPoolExecutor(len(elements)) as pool:
            return list(pool.map(one, elements))
    days = sorted(str(folder) for folder in (Path(work) / "traffic").iterdir())
    store = open_store(spark, out)
    result = {"first": write(days[0]), "again": write(days[0]), "days": at_once(*days[1:])}
    more = sorted(str(folder) for folder in (Path(work) / "more").iterdir())
    result["one_day"] = at_once(more[0], str(Path(work) / "other"))
    ledger = store.load()
    result["ledger"] = [[day.date, day.requests, day.late, len(day.shares)] for day in ledger.days.values()]
    begin = round(datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC).timestamp() * 1e6)
    traffic = open_days(spark, [parse_dataset(out)], Between(after_us=begin, until_us=begin + 86400 * 10**6))
    plan = traffic.day_rows.totals._jdf.queryExecution().executedPlan().toString()
    result["plan"], result["files"] = plan, traffic.day_rows.totals.inputFiles()
    result["replaced"] = write(days[0], replace=True)
    result["kept"] = write(days[2], keep_days=2)
    result["left"] = sorted(store.load().days)
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


class Place:
    """Where ``--out`` is, and what Spark needs to reach it."""

    def __init__(self, out: str, properties: Path | None = None, env: dict[str, str] | None = None) -> None:
        self.out, self.properties, self.env = out, properties, env

    @property
    def options(self) -> tuple[str, ...]:
        return ("--master", "local[2]") if self.properties is None else (
            "--master", "local[2]", "--properties-file", str(self.properties)
        )  # fmt: skip

    def settings(self) -> list[list[str]]:
        """Those of the properties file."""
        if self.properties is None:
            return []
        pairs = (line.partition("=") for line in self.properties.read_text().splitlines())
        return [[key, value] for key, _, value in pairs]


@pytest.fixture(params=["hdfs", "s3", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "hdfs":
        hdfs: HdfsServer = request.getfixturevalue("hdfs")
        return Place(f"{hdfs.address}/lake/seconds")
    if request.param == "s3":
        s3: S3Server = request.getfixturevalue("s3")
        return Place(f"{s3.address}/lake/seconds", s3.properties)
    tables = iceberg_tables(tmp_path / "warehouse")
    tables.write_properties(tmp_path / "spark.properties")
    return Place("table:lake.db.seconds", tmp_path / "spark.properties", pyspark_variables())


def report_of(work: Path, traffic: str, place: Place, *options: str) -> dict[str, Any]:
    done = run(
        "backtest", "quotas.yaml", "--traffic", traffic, "--format", "json", *place.options, *options, cwd=work, env=place.env
    )
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json()
    return document


def compacted(work: Path, place: Place, *arguments: str) -> Done:
    done = run("compact", *arguments, "--format", "json", *place.options, cwd=work, env=place.env)
    assert done.code == 0, done.err
    return done


def test_days_there_are_those_of_a_local_folder(place: Place, tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    days_of_parquet(tmp_path / "traffic", 2)
    compacted(tmp_path, place, "--traffic", "traffic", "--out", f"{place.out}")
    days_of_parquet(tmp_path / "traffic", 3)
    more = compacted(tmp_path, place, "--traffic", "traffic", "--out", place.out).json()
    assert (more["days"], len(more["known"])) == (["2026-11-22"], 2)
    compacted(tmp_path, place, "--traffic", "traffic", "--out", "local")
    assert report_of(tmp_path, place.out, place) == report_of(tmp_path, "local", place)
    part = report_of(tmp_path, place.out, place, *DAY)
    assert part == report_of(tmp_path, "local", place, *DAY)
    assert part["provenance"]["requests"] == 190


def test_writers_meet_there_and_every_source_counts_once(place: Place, tmp_path: Path) -> None:
    days_of_parquet(tmp_path / "traffic", 3)
    days_of_parquet(tmp_path / "more", 1, user="carol")
    days_of_parquet(tmp_path / "other", 1, user="dave")
    out = f"{place.out}_met"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([out, place.settings(), str(tmp_path)])],
        cwd=tmp_path,
        env=environment({"PYTHONPATH": str(Path(__file__).parents[2]), **(place.env or {})}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["first"][:3], result["again"][:2]) == ([1, ["2026-11-20"], 190], [0, []])
    assert sorted(day for written in result["days"] for day in written[1]) == ["2026-11-21", "2026-11-22"]
    assert result["ledger"] == [["2026-11-20", 570, 380, 3], ["2026-11-21", 190, 0, 1], ["2026-11-22", 190, 0, 1]]
    if place.out.startswith("table:"):
        # Of an Iceberg table, Spark's plan has the filter by which whole files are left out.
        assert "ts >= " in result["plan"].partition("filters=")[2]
    else:
        (file,) = result["files"]
        assert "/date=2026-11-21/run=" in file
    assert result["replaced"][1:3] == [["2026-11-20"], 190]
    assert (result["kept"][4], result["left"]) == (["2026-11-20"], ["2026-11-21", "2026-11-22"])
