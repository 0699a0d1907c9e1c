"""compact --out as a user runs it: days of a dataset that grow by what is new, and that backtest judges as it does the logs."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from reconciler.formats.schema_check import load_schema
from tests.support.command import Command, Done
from tests.support.lake_days import days_of_parquet, log_of, manifest, rows_of
from tests.support.manifests import quotas
from tests.traffic.conftest import RECORDINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LINES = gzip.decompress((RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz").read_bytes()).splitlines(keepends=True)
MANIFEST = quotas(
    ({"user": "alice"}, {"producer_byte_rate": "50KiB", "consumer_byte_rate": "200KiB", "request_percentage": "1"}),
    ({"user": "bob"}, {"controller_mutation_rate": "1"}),
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    return tmp_path


def compact(command: Command, work: Path, *arguments: str) -> dict[str, Any]:
    done = tried(command, work, *arguments)
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json()
    jsonschema.Draft202012Validator(load_schema("compact")).validate(document)
    return document


def tried(command: Command, work: Path, *arguments: str) -> Done:
    return command("compact", *arguments, "--master", "local[2]", "--format", "json", cwd=work)


def report_of(command: Command, work: Path, traffic: str, *options: str) -> dict[str, Any]:
    done = command(
        "backtest", "quotas.yaml", "--traffic", traffic, "--master", "local[2]", "--format", "json", *options, cwd=work
    )
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json()
    return document


def test_the_dataset_is_judged_as_the_folder_and_the_log_are(work: Path, warm_command: Command) -> None:
    logs = work / "logs"
    logs.mkdir()
    (logs / "kafka-request.log.1").write_bytes(b"".join(LINES[: len(LINES) // 2]))
    (logs / "kafka-request.log").write_bytes(b"".join(LINES[len(LINES) // 2 :]))
    written = compact(warm_command, work, "--traffic", "7=logs", "--out", "lake")
    folder = warm_command("compact", "--traffic", "7=logs", "--folder", "folder", "--format", "json", cwd=work).json()
    assert (written["requests"], written["copies"]) == (folder["requests"], folder["copies"])

    of_days, of_folder = report_of(warm_command, work, "lake"), report_of(warm_command, work, "folder")
    assert of_days == of_folder
    assert of_days["summary"]["changed"]["throttled"] >= 1
    assert of_days == report_of(warm_command, work, f"file://{work}/lake")

    # Whole seconds of the logs themselves, with bounds from whole seconds.
    since = datetime.datetime(2026, 11, 21, 13, 0, 20, tzinfo=datetime.UTC)
    first = of_folder["provenance"]["coverage"][0]["from"]
    since = datetime.datetime.fromisoformat(first).replace(microsecond=0) + datetime.timedelta(seconds=5)
    until = since + datetime.timedelta(seconds=30)
    options = ("--since", since.isoformat(), "--until", until.isoformat())
    part, of_logs = (report_of(warm_command, work, traffic, *options) for traffic in ("lake", f"7=file://{work}/logs"))
    assert changed(part) == changed(of_logs)
    assert len(changed(part)) == 3
    assert part["provenance"]["requests"] == of_logs["provenance"]["requests"] < of_days["provenance"]["requests"]


def changed(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdicts of changed limits from whole seconds. Of single requests, there are others too."""
    return [row for row in document["verdicts"] if row["changed"] and row["key"] != "controller_mutation_rate"]


def test_days_grow_by_new_files_and_a_second_run_changes_nothing(work: Path, warm_command: Command) -> None:
    days_of_parquet(work / "traffic", 2)
    first = compact(warm_command, work, "--traffic", "traffic", "--out", "lake")
    assert (first["days"], first["requests"], first["late"]) == (["2026-11-20", "2026-11-21"], 380, [])
    before = manifest(work / "lake")
    again = compact(warm_command, work, "--traffic", "traffic", "--out", "lake")
    assert (again["compacted"], len(again["known"]), again["days"]) == ([], 2, [])
    assert manifest(work / "lake") == before

    days_of_parquet(work / "traffic", 3)
    days_of_parquet(work / "traffic", 1, user="carol", file="late")
    more = compact(warm_command, work, "--traffic", "traffic", "--out", "lake")
    assert more["days"] == ["2026-11-20", "2026-11-22"]
    assert (more["requests"], more["added_late"]) == (380, 190)
    days = {day["date"]: day for day in manifest(work / "lake")["days"]}
    assert [(day["requests"], day["late"], day["sources"]) for day in days.values()] == [(380, 190, 2), (190, 0, 1), (190, 0, 1)]

    # The same bytes as if all had been compacted at once.
    compact(warm_command, work, "--traffic", "traffic", "--out", "at-once")
    assert rows_of(work / "lake") == rows_of(work / "at-once")
    assert report_of(warm_command, work, "lake") == report_of(warm_command, work, "at-once")
    assert report_of(warm_command, work, "lake")["verdicts"][0]["verdict"] == "throttled"


@pytest.mark.large
def test_a_log_that_has_grown_makes_its_days_anew_and_only_from_all_sources(work: Path, warm_command: Command) -> None:
    logs = work / "logs"
    logs.mkdir()
    (logs / "a-request.log").write_bytes(log_of("2026-11-20 23:59:58,000", "2026-11-20 23:59:59,500"))
    other = log_of("2026-11-20 08:00:00,000", port=53413)
    (logs / "b-request.log").write_bytes(other)
    compact(warm_command, work, "--traffic", "1=logs", "--out", "lake")
    whole = ("2026-11-20 23:59:58,000", "2026-11-20 23:59:59,500", "2026-11-20 23:59:59,700", "2026-11-21 00:00:01,000")
    (logs / "a-request.log").write_bytes(log_of(*whole))
    # The same log under another name, and compressed, is the same log.
    (logs / "b-request.log").rename(work / "b-request.log")
    left_out = compact(warm_command, work, "--traffic", "1=logs", "--out", "lake")
    assert left_out["days"] == ["2026-11-21"]
    (late,) = left_out["late"]
    assert (late["date"], late["requests"], [Path(name).name for name in late["missing"]]) == ("2026-11-20", 2, ["b-request.log"])

    (logs / "b-request.log.1.gz").write_bytes(gzip.compress(other))
    healed = compact(warm_command, work, "--traffic", "1=logs", "--out", "lake")
    assert (healed["days"], healed["late"]) == (["2026-11-20"], [])
    compact(warm_command, work, "--traffic", "1=logs", "--out", "at-once")
    assert rows_of(work / "lake") == rows_of(work / "at-once")


@pytest.mark.large
def test_a_day_whose_files_were_written_again_is_replaced_when_that_is_asked_for(work: Path, warm_command: Command) -> None:
    days_of_parquet(work / "traffic", 2)
    compact(warm_command, work, "--traffic", "traffic", "--out", "lake")
    (work / "traffic" / "dt=2026-11-20" / "part-0.parquet").unlink()
    days_of_parquet(work / "traffic", 1, user="alicia", file="part-1")
    before = rows_of(work / "lake")
    left_out = compact(warm_command, work, "--traffic", "traffic", "--out", "lake")
    assert [(late["date"], Path(late["missing"][0]).name) for late in left_out["late"]] == [("2026-11-20", "part-0.parquet")]
    assert rows_of(work / "lake") == before

    replaced = compact(warm_command, work, "--traffic", "traffic", "--out", "lake", "--replace")
    assert replaced["days"] == ["2026-11-20", "2026-11-21"]
    compact(warm_command, work, "--traffic", "traffic", "--out", "at-once")
    assert rows_of(work / "lake") == rows_of(work / "at-once") != before


def test_old_days_go_and_nothing_else(work: Path, warm_command: Command) -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    for days_ago in (2, 500):
        at = f"{today - datetime.timedelta(days=days_ago)} 08:00:00,000"
        (work / f"{days_ago}-request.log").write_bytes(log_of(at))
    compact(warm_command, work, "--traffic", "1=2-request.log", "--traffic", "1=500-request.log", "--out", "lake")
    foreign = work / "lake" / "date=2001-01-01"
    foreign.mkdir()
    (foreign / "of-others.parquet").write_bytes(b"")
    kept = compact(warm_command, work, "--traffic", "1=2-request.log", "--out", "lake", "--keep", "400d")
    assert kept["removed_days"] == [str(today - datetime.timedelta(days=500))]
    document = manifest(work / "lake")
    assert [day["date"] for day in document["days"]] == [str(today - datetime.timedelta(days=2))]
    assert [part["folder"].partition("/")[0] for part in document["superseded"]] == [f"date={kept['removed_days'][0]}"]
    assert (foreign / "of-others.parquet").exists()
    again = compact(
        warm_command, work, "--traffic", "1=2-request.log", "--traffic", "1=500-request.log", "--out", "lake", "--keep", "400d"
    )
    assert (again["days"], again["removed_days"]) == ([], [])


def test_a_stretch_of_time_reads_its_days_only(work: Path, warm_command: Command, spark: SparkSession) -> None:
    from reconciler.traffic.seconds.day_traffic import open_days
    from reconciler.traffic.sources.datasets import Dataset
    from reconciler.traffic.sources.parquet_parts import Between

    days_of_parquet(work / "traffic", 3)
    compact(warm_command, work, "--traffic", "traffic", "--out", "lake")
    begin = round(datetime.datetime(2026, 11, 21, 8, tzinfo=datetime.UTC).timestamp())
    between = Between(after_us=begin * 1_000_000, until_us=(begin + 30) * 1_000_000)
    traffic = open_days(spark, [Dataset(name=f"file://{work}/lake")], between)
    assert traffic is not None
    frame = traffic.day_rows.totals
    plan = frame._jdf.queryExecution().executedPlan().toString()
    (file,) = frame.inputFiles()
    assert "/date=2026-11-21/run=" in file
    assert "InMemoryFileIndex(1 paths)" in plan
    assert "GreaterThanOrEqual(ts,2026-11-21" in plan
    assert traffic.facts.requests == 85
