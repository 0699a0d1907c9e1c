"""A day to which batches add parts is, for every reader and every later run, the day that one run writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command
from tests.support.lake_days import compact_process, kill_when, log_of, manifest, parts_of, rows_of
from tests.support.manifests import quotas

pytestmark = pytest.mark.spark
MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "1KiB"}), ({"user": "bob"}, {"producer_byte_rate": "2KiB"}))
FOLLOW = ("--follow", "--traffic", "1=logs", "--out", "lake", "--checkpoint", "checkpoint")
DAY = "2026-11-20"


def rotate_in(work: Path, number: int) -> None:
    """A log whose requests are in the same seconds as those of the logs before."""
    made = work / f"made-{number}"
    lines = log_of(*(f"{DAY} 08:00:0{second},{number:02}0" for second in (1, 2, 3)), user="bob", port=50_000 + number)
    made.write_bytes(lines + log_of(f"{DAY} 08:00:02,{number:02}9", user="alice", port=51_000 + number))
    (work / "logs").mkdir(exist_ok=True)
    made.rename(work / "logs" / f"kafka-request.log.{number}")


def run(command: Command, work: Path, *arguments: str) -> dict[str, Any]:
    done = command(*arguments, "--master", "local[2]", "--format", "json", cwd=work)
    assert done.code in {0, 3}, done.err
    document: dict[str, Any] = done.json()
    return document


@pytest.fixture
def work(tmp_path: Path, warm_command: Command) -> Path:
    """With a day of three parts in ``lake``, and of one in ``at-once``."""
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    for number in range(3):
        rotate_in(tmp_path, number)
        run(warm_command, tmp_path, "compact", *FOLLOW, "--once")
    run(warm_command, tmp_path, "compact", "--traffic", "1=logs", "--out", "at-once")
    assert [len(day["parts"]) for day in manifest(tmp_path / "lake")["days"]] == [3]
    assert [len(day["parts"]) for day in manifest(tmp_path / "at-once")["days"]] == [1]
    return tmp_path


def test_every_reader_has_the_same_result_as_of_one_part(work: Path, warm_command: Command) -> None:
    rows = rows_of(work / "lake")
    assert rows == rows_of(work / "at-once")
    assert manifest(work / "lake")["days"][0]["rows"] > len(rows)
    since = ("--since", f"{DAY}T08:00:02Z", "--until", f"{DAY}T08:00:04Z")
    questions = (
        ("backtest", "quotas.yaml"),
        ("backtest", "quotas.yaml", *since),
        ("backtest", "quotas.yaml", "--out", "parquet=verdicts-of-{out}"),
        ("backtest", "quotas.yaml", "--brokers", "3"),
    )
    for question in questions:
        of_parts, of_one = (
            json.dumps(run(warm_command, work, *(word.format(out=out) for word in question), "--traffic", out)).replace(
                out, "OUT"
            )
            for out in ("lake", "at-once")
        )
        assert of_parts == of_one


def test_a_daily_run_makes_the_day_one_part(work: Path, warm_command: Command) -> None:
    before = parts_of(work / "lake")
    assert run(warm_command, work, "compact", "--traffic", "1=logs", "--out", "lake")["compacted"] == []
    assert parts_of(work / "lake") == before
    rotate_in(work, 3)
    more = run(warm_command, work, "compact", "--traffic", "1=logs", "--out", "lake")
    assert (more["days"], more["requests"]) == ([DAY], 8)
    (part,) = parts_of(work / "lake")
    assert {replaced["folder"] for replaced in manifest(work / "lake")["superseded"]} == {*before}
    # Readers that have begun go on.
    assert all(any((work / "lake" / folder).glob("*.parquet")) for folder in (part, *before))
    run(warm_command, work, "compact", "--traffic", "1=logs", "--out", "at-once", "--replace")
    assert rows_of(work / "lake") == rows_of(work / "at-once")


def test_replace_and_retention_take_all_parts(work: Path, warm_command: Command) -> None:
    before = parts_of(work / "lake")
    run(warm_command, work, "compact", "--traffic", "1=logs", "--out", "lake", "--replace")
    assert len(parts_of(work / "lake")) == 1
    assert rows_of(work / "lake") == rows_of(work / "at-once")
    rotate_in(work, 3)
    run(warm_command, work, "compact", *FOLLOW, "--once")
    before += parts_of(work / "lake")
    assert len(before) == 5
    (work / "other-request.log").write_bytes(log_of("2026-11-23 08:00:00,000", port=53_000))
    gone = run(warm_command, work, "compact", "--traffic", "1=other-request.log", "--out", "lake", "--keep", "1d")
    assert gone["removed_days"] == [DAY]
    assert {replaced["folder"] for replaced in manifest(work / "lake")["superseded"]} == {*before}


def test_a_dataset_with_one_folder_a_day_is_read_and_added_to(work: Path, warm_command: Command) -> None:
    newest = max((work / "at-once" / "_kafka-quotas" / "manifests").glob("*.json"))
    document = json.loads(newest.read_text())
    for day in document["days"]:
        ((part,), day["folder"]) = (day["parts"], day["parts"][0]["folder"])
        assert part["rows"] == day["rows"]
        del day["parts"]
    newest.write_text(json.dumps(document | {"format_version": "1.0"}))
    question = ("backtest", "quotas.yaml", "--traffic")
    assert run(warm_command, work, *question, "at-once")["verdicts"] == run(warm_command, work, *question, "lake")["verdicts"]
    rotate_in(work, 3)
    follow = ("--follow", "--traffic", "1=logs", "--out", "at-once", "--checkpoint", "later", "--once")
    assert run(warm_command, work, "compact", *follow)["requests"] == 8
    assert len(parts_of(work / "at-once")) == 2
    run(warm_command, work, "compact", *FOLLOW, "--once")
    assert rows_of(work / "at-once") == rows_of(work / "lake")


@pytest.mark.large
@pytest.mark.parametrize("earlier", [2, 7])
def test_a_batch_that_was_killed_before_its_manifest_counts_once(tmp_path: Path, warm_command: Command, earlier: int) -> None:
    """The batch adds a part, or takes seven others in."""
    lake = tmp_path / "lake"
    for number in range(earlier):
        rotate_in(tmp_path, number)
        run(warm_command, tmp_path, "compact", *FOLLOW, "--once")
    before, rows = manifest(lake), rows_of(lake)
    assert len(parts_of(lake)) == earlier
    rotate_in(tmp_path, earlier)
    with compact_process(tmp_path, *FOLLOW, "--every", "0.2") as process:
        kill_when(process, lambda: len(list(lake.glob(f"date={DAY}/run=*"))) > earlier)
    if manifest(lake) == before:
        assert rows_of(lake) == rows
    run(warm_command, tmp_path, "compact", *FOLLOW, "--once")
    run(warm_command, tmp_path, "compact", "--traffic", "1=logs", "--out", "at-once")
    assert rows_of(lake) == rows_of(tmp_path / "at-once") != rows
    assert len(parts_of(lake)) == (earlier + 1 if earlier < 7 else 1)
    assert run(warm_command, tmp_path, "compact", *FOLLOW, "--once")["requests"] == 0
