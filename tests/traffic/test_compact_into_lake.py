"""compact into an address as a user runs it: days, each of one run's traffic, that backtest judges as it does the logs."""

from __future__ import annotations

import datetime
import gzip
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from reconciler.formats.shapes import load_schema
from tests.support.command import Command, Done
from tests.support.lake_days import compact_process, days_in, days_of_parquet, kill_when, log_of, rows_of
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


def lake(work: Path, name: str = "lake") -> str:
    return f"file://{work}/{name}"


def test_the_dataset_is_judged_as_the_folder_and_the_log_are(work: Path, warm_command: Command) -> None:
    logs = work / "logs"
    logs.mkdir()
    (logs / "kafka-request.log.1").write_bytes(b"".join(LINES[: len(LINES) // 2]))
    (logs / "kafka-request.log").write_bytes(b"".join(LINES[len(LINES) // 2 :]))
    written = compact(warm_command, work, "--traffic", "7=logs", "--folder", lake(work))
    folder = warm_command("compact", "--traffic", "7=logs", "--folder", "folder", "--format", "json", cwd=work).json()
    assert (written["requests"], written["copies"]) == (folder["requests"], folder["copies"])

    of_days, of_folder = report_of(warm_command, work, lake(work)), report_of(warm_command, work, "folder")
    assert of_days.pop("provenance")["coverage"] == of_folder["provenance"]["coverage"]
    provenance = of_folder.pop("provenance")
    assert of_days == of_folder
    assert of_days["summary"]["changed"]["throttled"] >= 1

    # Whole seconds of the logs themselves, with bounds from whole seconds.
    since = datetime.datetime.fromisoformat(provenance["coverage"][0]["from"]).replace(microsecond=0) + datetime.timedelta(
        seconds=5
    )
    until = since + datetime.timedelta(seconds=30)
    options = ("--since", since.isoformat(), "--until", until.isoformat())
    part, of_logs = (report_of(warm_command, work, traffic, *options) for traffic in (lake(work), f"7=file://{work}/logs"))
    assert changed(part) == changed(of_logs)
    assert len(changed(part)) == 3
    assert part["provenance"]["requests"] == of_logs["provenance"]["requests"] < provenance["requests"]


def changed(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdicts of changed limits from whole seconds. Of single requests, there are others too."""
    return [row for row in document["verdicts"] if row["changed"] and row["key"] != "controller_mutation_rate"]


def test_a_second_run_changes_nothing_and_others_add_days(work: Path, warm_command: Command) -> None:
    days_of_parquet(work / "traffic", 2)
    first = compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work))
    assert (first["days"], first["requests"]) == (["2026-11-20", "2026-11-21"], 380)
    before = rows_of(work / "lake")
    again = compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work))
    assert (again["days"], rows_of(work / "lake")) == (first["days"], before)

    days_of_parquet(work / "traffic", 3)
    options = ("--since", "2026-11-22T00:00Z", "--until", "2026-11-23T00:00Z")
    third = compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work), *options)
    assert (third["days"], third["requests"]) == (["2026-11-22"], 190)
    assert days_in(work / "lake") == ["2026-11-20", "2026-11-21", "2026-11-22"]
    assert [row for row in rows_of(work / "lake") if row["ts"].day != 22] == before
    assert report_of(warm_command, work, lake(work))["verdicts"][0]["verdict"] == "throttled"


def test_a_day_of_which_the_traffic_has_less_stays_until_it_is_replaced(work: Path, warm_command: Command) -> None:
    days_of_parquet(work / "traffic", 2)
    days_of_parquet(work / "traffic", 1, user="carol", file="late")
    compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work))
    before = rows_of(work / "lake")
    (work / "traffic" / "dt=2026-11-20" / "late.parquet").unlink()
    done = warm_command("compact", "--traffic", "traffic", "--folder", lake(work), "--master", "local[2]", cwd=work)
    assert (done.code, done.out) == (1, "")
    assert "2026-11-20 has 300 requests of kind produce for broker 1 already, and this traffic has 150." in done.err
    assert rows_of(work / "lake") == before

    replaced = compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work), "--replace")
    assert replaced["days"] == ["2026-11-20", "2026-11-21"]
    compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work, "at-once"))
    assert rows_of(work / "lake") == rows_of(work / "at-once") != before


def test_another_broker_does_not_make_up_for_one_that_is_missing(work: Path, warm_command: Command) -> None:
    (work / "1-request.log").write_bytes(log_of("2026-11-20 08:00:00,000"))
    (work / "2-request.log").write_bytes(log_of("2026-11-20 08:00:00,000", "2026-11-20 09:00:00,000", port=53413))
    compact(warm_command, work, "--traffic", "1=1-request.log", "--folder", lake(work))
    other = ("--traffic", "2=2-request.log", "--folder", lake(work), "--master", "local[2]")
    assert "for broker 1 already, and this traffic has 0." in warm_command("compact", *other, cwd=work).err
    both = ("--traffic", "1=1-request.log", "--traffic", "2=2-request.log")
    assert compact(warm_command, work, *both, "--folder", lake(work))["days"] == ["2026-11-20"]


@pytest.mark.large
def test_a_killed_run_can_be_repeated(work: Path, warm_command: Command) -> None:
    days_of_parquet(work / "traffic", 3)
    compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work, "whole"))
    shutil.copytree(work / "whole", work / "lake")
    with compact_process(work, "--traffic", "traffic", "--folder", lake(work)) as process:
        kill_when(process, lambda: any((work / "lake").glob(".spark-staging-*/**/*.parquet")))
    compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work))
    assert rows_of(work / "lake") == rows_of(work / "whole")


def test_a_stretch_of_time_reads_its_days_only(work: Path, warm_command: Command, spark: SparkSession) -> None:
    from reconciler.traffic.seconds.days import day_rows, open_days
    from reconciler.traffic.sources.log_files import Dataset
    from reconciler.traffic.sources.parquet_parts import Between

    days_of_parquet(work / "traffic", 3)
    compact(warm_command, work, "--traffic", "traffic", "--folder", lake(work))
    begin = round(datetime.datetime(2026, 11, 21, 8, tzinfo=datetime.UTC).timestamp())
    between = Between(after_us=begin * 1_000_000, until_us=(begin + 30) * 1_000_000)
    rows = day_rows(spark, [Dataset(name=lake(work))], between)
    plan = rows.frame._jdf.queryExecution().executedPlan().toString()
    filters = plan.partition("PartitionFilters: [")[2].partition("]")[0]
    assert ">= 2026-11-21" in filters
    assert "<= 2026-11-21" in filters
    assert "GreaterThanOrEqual(ts,2026-11-21" in plan
    assert open_days(rows, ["lake"]).facts.requests == 85
