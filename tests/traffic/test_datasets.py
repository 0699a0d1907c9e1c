"""Traffic that Spark finds gives the answers of the same files given by their paths."""

from __future__ import annotations

import datetime
import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.command import Command, Done, invoke, run
from tests.support.manifests import quotas
from tests.support.recorded_parquet import START, Flow, write_traffic
from tests.support.tools import ROOT
from tests.traffic.conftest import RECORDINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"}), ({"user": "bob"}, {"consumer_byte_rate": "5MiB"}))
LOG = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
FLOWS = (
    Flow(user="alice", amount=90_000, every_s=0.5),
    Flow(user="alice", broker=2, amount=4_000),
    Flow(user="bob", client_id="", kind="fetch", amount=700_000, begin_s=20),
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "quotas.yaml").write_text(MANIFEST, "utf-8")
    return tmp_path


def report_of(command: Command, work: Path, traffic: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """The document on traffic at an address, without where it lay and what read it."""
    return document(backtest(command, work, "--traffic", traffic, *options, "--format", "json"))


def report_here(work: Path, traffic: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """The same on files of this machine, which needs no Spark."""
    return document(invoke("backtest", "quotas", "--traffic", traffic, *options, "--format", "json", cwd=work))


def document(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    report: dict[str, Any] = json.loads(done.out)
    for place in ("files", "spark"):
        report["provenance"].pop(place, None)
    return report


def backtest(command: Command, work: Path, *arguments: str) -> Done:
    return command("backtest", "quotas", "--master", "local[2]", *arguments, cwd=work)


def days_of(work: Path) -> Path:
    """The rows of ``FLOWS`` in folders of a Hive layout, whose files have the columns in another order and more of them."""
    table = pq.read_table(write_traffic(work / "all.parquet", FLOWS))
    for number, day in enumerate(("2026-11-20", "2026-11-21")):
        folder = work / "lake" / f"dt={day}"
        folder.mkdir(parents=True)
        part = table.slice(number * 100, 100 if number == 0 else None)
        if number:
            part = part.append_column("overhead", pa.nulls(part.num_rows, pa.int64()))
        pq.write_table(part.select(part.column_names[::-1]), folder / "part-0.parquet")
    (work / "lake" / "_SUCCESS").touch()
    return work / "lake"


@pytest.mark.spark
@pytest.mark.parametrize("exact", [False, True])
def test_an_address_of_a_hive_layout_gives_the_report_of_the_file(work: Path, warm_command: Command, exact: bool) -> None:
    lake, options = days_of(work), ("--exact",) if exact else ()
    of_address = report_of(warm_command, work, lake.as_uri(), options)
    assert of_address == report_here(work, "all.parquet", options)
    assert of_address["summary"]["changed"]["throttled"] == 1


@pytest.mark.spark
def test_since_and_until_give_the_report_of_the_rows_between(work: Path, warm_command: Command) -> None:
    table = pq.read_table(write_traffic(work / "all.parquet", FLOWS))
    (work / "lake").mkdir()
    pq.write_table(table, work / "lake" / "a.parquet")
    since, until = START + datetime.timedelta(seconds=10), START + datetime.timedelta(seconds=30)
    inside = pc.and_(pc.greater(table["ts"], pa.scalar(since)), pc.less_equal(table["ts"], pa.scalar(until)))
    pq.write_table(table.filter(inside), work / "part.parquet")
    options = ("--since", since.isoformat(), "--until", until.isoformat())
    found = report_of(warm_command, work, (work / "lake").as_uri(), options)
    assert found == report_here(work, "part.parquet")


@pytest.mark.spark
def test_request_logs_at_an_address_give_the_report_of_the_files(work: Path, warm_command: Command) -> None:
    lines = gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)
    half = len(lines) // 2
    for number, part in enumerate((lines[:half], lines[half:]), start=1):
        folder = work / "logs" / f"broker-{number}"
        folder.mkdir(parents=True)
        (folder / "kafka-request.log").write_bytes(b"".join(part))
    with gzip.open(work / "logs" / "broker-2" / "kafka-request.log.1.gz", "wb") as stream:
        stream.writelines(lines[half - 50 : half])
    options = ("--exact", "--requests", "requests.jsonl")
    of_paths = report_here(work, "logs", options)
    written = (work / "requests.jsonl").read_bytes()
    assert report_of(warm_command, work, (work / "logs").as_uri(), options) == of_paths
    assert (work / "requests.jsonl").read_bytes() == written
    assert written


@pytest.mark.spark
def test_a_view_of_the_documentation_gives_other_columns_as_traffic(
    work: Path, warm_command: Command, spark: SparkSession
) -> None:
    frame = spark.read.parquet(str(write_traffic(work / "all.parquet", FLOWS)))
    other = "unix_millis(ts) AS at, broker AS node, initcap(kind) AS type, amount AS size, 'User:' || user AS principal"
    frame.selectExpr(*other.split(", "), "client_id AS app").write.saveAsTable("lake_requests")
    text = (ROOT / "docs" / "traffic.md").read_text("utf-8")
    (view,) = re.findall(r"```sql\n(.*?);\n```", text, re.DOTALL)
    spark.sql(view.replace("lake.db.requests", "lake_requests").replace("lake.db.traffic", "lake_traffic"))
    try:
        found = report_of(warm_command, work, "table:lake_traffic")
    finally:
        spark.sql("DROP VIEW lake_traffic")
        spark.sql("DROP TABLE lake_requests")
    assert found == report_here(work, "all.parquet")


@pytest.mark.spark
def test_a_folder_of_a_table_is_refused_because_replaced_rows_lie_in_it(work: Path, warm_command: Command) -> None:
    lake = days_of(work)
    (lake / "_delta_log").mkdir()
    (lake / "_delta_log" / "00000000000000000000.json").write_text("{}", "utf-8")
    done = backtest(warm_command, work, "--traffic", lake.as_uri())
    assert (done.code, done.out) == (1, "")
    assert "is a Delta table" in done.err
    assert "table:CATALOG.DATABASE.TABLE" in done.err


@pytest.mark.spark
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("file:///no/such/place", "/no/such/place"),
        ("table:no_such_table", "no_such_table"),
        ("{here}/empty", "there are no files"),
        ("{here}/text", "no request log and no Parquet"),
        ("{here}/wrong", "needs the column 'ts'"),
    ],
)
def test_an_address_without_traffic_is_a_sentence(work: Path, warm_command: Command, argument: str, message: str) -> None:
    (work / "empty").mkdir()
    (work / "text").mkdir()
    (work / "text" / "notes.txt").write_text("hello", "utf-8")
    (work / "wrong").mkdir()
    pq.write_table(pa.table({"time": [datetime.datetime(2026, 11, 20)]}), work / "wrong" / "a.parquet")
    done = backtest(warm_command, work, "--traffic", argument.format(here=work.as_uri()))
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        (("table:a", "table:b"), "one table at a time"),
        (("s3a://bucket/a", "local.parquet"), "paths of this machine or addresses, not both"),
        (("table:",), "write the name of a table"),
    ],
)
def test_arguments_that_contradict_are_refused_before_spark_starts(work: Path, traffic: tuple[str, ...], message: str) -> None:
    arguments = [part for argument in traffic for part in ("--traffic", argument)]
    done = backtest(run, work, *arguments)
    assert (done.code, done.out) == (64, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--conf", "hive.metastore.uris=x"), "begins with spark."),
        (("--conf", "spark.app.name"), "KEY=VALUE"),
        (("--properties-file", "none.properties"), "none.properties cannot be read"),
        (("--properties-file", "other.properties"), "other.properties: the key 'password'"),
    ],
)
def test_settings_of_spark_are_checked(work: Path, options: tuple[str, ...], message: str) -> None:
    (work / "other.properties").write_text("password=geheim\n", "utf-8")
    done = backtest(run, work, "--traffic", "table:recorded", *options)
    assert done.code != 0
    assert message in done.err
    assert "geheim" not in done.err


@pytest.mark.spark
def test_settings_reach_spark(work: Path, spark: SparkSession, warm_command: Command) -> None:
    (work / "spark.properties").write_text("spark.sql.catalog.lake=no.such.Catalog\n", "utf-8")
    done = backtest(warm_command, work, "--traffic", "table:lake.traffic", "--properties-file", "spark.properties")
    assert (done.code, done.out) == (1, "")
    assert "no.such.Catalog" in done.err
    assert spark.conf.get("spark.sql.catalog.lake", "none") == "none"
