"""Two writers of one dataset, and a writer that is killed: every day is there once and whole, as if one run had written it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.command import Command
from tests.support.lake_days import compact_process, days_of_parquet, kill_when, log_of, manifest, parts_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NOW = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)


def written_at_once(spark: SparkSession, out: Path, traffic: list[list[str]]) -> list[str]:
    """Each element by a writer of its own, all begun at the same time; what those said that gave up."""
    from reconciler.traffic.lake_compaction import LakeRequest, compact_days
    from reconciler.traffic.seconds.day_folders import ChangedMeanwhileError
    from reconciler.traffic.traffic_files import find_traffic

    begin = threading.Barrier(len(traffic))

    def write(arguments: list[str]) -> str:
        begin.wait()
        try:
            compact_days(spark, find_traffic(arguments), LakeRequest(out=str(out), now=NOW))
        except ChangedMeanwhileError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(len(traffic)) as pool:
        return [refused for refused in pool.map(write, traffic) if refused]


def test_two_writers_of_different_days_both_succeed(spark: SparkSession, tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 3)
    days = [[str(folder)] for folder in sorted((tmp_path / "traffic").iterdir())]
    assert written_at_once(spark, tmp_path / "lake", days) == []
    assert [day["date"] for day in manifest(tmp_path / "lake")["days"]] == ["2026-11-20", "2026-11-21", "2026-11-22"]
    written_at_once(spark, tmp_path / "one", [[str(tmp_path / "traffic")]])
    assert rows_of(tmp_path / "lake") == rows_of(tmp_path / "one")


def test_two_writers_of_one_day_count_each_source_once(spark: SparkSession, tmp_path: Path) -> None:
    logs = [tmp_path / f"{number}-request.log" for number in range(3)]
    for number, log in enumerate(logs):
        log.write_bytes(log_of(f"2026-11-20 08:00:0{number},000", "2026-11-20 08:00:09,000", port=50_000 + number))
    # The third writer has the sources of both others.
    arguments = [[f"1={logs[0]}"], [f"1={logs[1]}"], [f"1={log}" for log in logs]]
    assert written_at_once(spark, tmp_path / "lake", arguments) == []
    (day,) = manifest(tmp_path / "lake")["days"]
    assert (day["sources"], day["requests"]) == (3, 12)
    written_at_once(spark, tmp_path / "one", [[f"1={log}" for log in logs]])
    assert rows_of(tmp_path / "lake") == rows_of(tmp_path / "one")
    folders = [path.relative_to(tmp_path / "lake") for path in (tmp_path / "lake").glob("date=*/run=*")]
    superseded = {part["folder"] for part in manifest(tmp_path / "lake")["superseded"]}
    assert {str(folder) for folder in folders} == {*parts_of(tmp_path / "lake"), *superseded}
    assert not list((tmp_path / "lake" / "_kafka-quotas" / "staging").iterdir())


def test_a_manifest_of_one_number_is_created_once(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.traffic.seconds.lake_files import LakeFiles

    files = LakeFiles(f"file://{tmp_path}/lake")
    begin = threading.Barrier(8)

    def create(number: int) -> bool:
        begin.wait()
        return files.create("_kafka-quotas/manifests/0000000001.json", str(number).encode())

    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(create, range(8)))
    assert created.count(True) == 1
    content = (tmp_path / "lake" / "_kafka-quotas" / "manifests" / "0000000001.json").read_text()
    assert content == str(created.index(True))
    assert len(list((tmp_path / "lake" / "_kafka-quotas" / "manifests").iterdir())) == 1


def staged(out: Path) -> Callable[[], bool]:
    return lambda: any((out / "_kafka-quotas" / "staging").glob("*/*"))


def moved(out: Path) -> Callable[[], bool]:
    return lambda: any(out.glob("date=2026-11-22/run=*"))


@pytest.mark.large
@pytest.mark.parametrize("moment", [moved, staged])
def test_a_killed_run_leaves_the_days_as_they_were_and_can_be_repeated(
    tmp_path: Path, warm_command: Command, moment: Callable[[Path], Callable[[], bool]]
) -> None:
    lake = tmp_path / "lake"
    days_of_parquet(tmp_path / "traffic", 2)
    first = warm_command("compact", "--traffic", "traffic", "--out", "lake", "--master", "local[2]", cwd=tmp_path)
    assert first.code == 0, first.err
    before, rows = manifest(lake), rows_of(lake)
    days_of_parquet(tmp_path / "traffic", 3)
    days_of_parquet(tmp_path / "traffic", 1, user="carol", file="late")
    with compact_process(tmp_path, "--traffic", "traffic", "--out", "lake") as process:
        kill_when(process, moment(lake))
    if manifest(lake) == before:
        assert rows_of(lake) == rows
    for out in ("lake", "one"):
        done = warm_command("compact", "--traffic", "traffic", "--out", out, "--master", "local[2]", cwd=tmp_path)
        assert done.code == 0, done.err
    assert rows_of(lake) == rows_of(tmp_path / "one") != rows
