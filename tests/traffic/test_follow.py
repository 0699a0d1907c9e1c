"""compact --follow: new files reach the dataset once, whenever the job is killed, and a checkpoint belongs to one job."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.lake_days import compact_process, has_manifest, kill_when, log_of, manifest, rows_of
from tests.support.polling import wait_until

pytestmark = pytest.mark.spark
FOLLOW = ("--follow", "--traffic", "1=logs", "--out", "lake", "--checkpoint", "checkpoint")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def rotate_in(logs: Path, number: int) -> None:
    """A whole file, by a rename. Each has requests of two days."""
    made = logs.parent / f"made-{number}"
    second = f"{number:02}"
    made.write_bytes(log_of(f"2026-11-20 23:59:{second},000", f"2026-11-21 00:00:{second},500", port=50_000 + number))
    made.rename(logs / f"kafka-request.log.{number}")


def once(command: Command, work: Path) -> dict[str, object]:
    done = command("compact", *FOLLOW, "--once", "--master", "local[2]", "--format", "json", cwd=work)
    assert done.code == 0, done.err
    document: dict[str, object] = done.json()
    return document


def in_one_run(command: Command, work: Path) -> list[dict[str, object]]:
    done = command("compact", "--traffic", "1=logs", "--out", "at-once", "--master", "local[2]", cwd=work)
    assert done.code == 0, done.err
    return rows_of(work / "at-once")


def test_what_is_there_is_added_once_and_a_daily_run_finds_nothing_more(
    logs: Path, tmp_path: Path, warm_command: Command
) -> None:
    for number in range(3):
        rotate_in(logs, number)
    assert (once(warm_command, tmp_path)["batches"], once(warm_command, tmp_path)["batches"]) == (1, 0)
    rotate_in(logs, 3)
    # A copy under another name, as of a retry, and a file that is no log.
    (logs / "kafka-request.log.again").write_bytes((logs / "kafka-request.log.1").read_bytes())
    (logs / "notes.txt").write_text("no traffic")
    more = once(warm_command, tmp_path)
    assert (more["batches"], more["requests"], more["added_late"]) == (1, 4, 2)
    assert rows_of(tmp_path / "lake") == in_one_run(warm_command, tmp_path)
    daily = warm_command(
        "compact", "--traffic", "1=logs", "--out", "lake", "--master", "local[2]", "--format", "json", cwd=tmp_path
    )
    assert daily.json()["compacted"] == []


def written(tmp_path: Path, sources: int) -> bool:
    return has_manifest(tmp_path / "lake") and manifest(tmp_path / "lake")["days"][0]["sources"] >= sources


@pytest.mark.large
def test_a_killed_stream_loses_and_doubles_nothing(logs: Path, tmp_path: Path, warm_command: Command) -> None:
    rotate_in(logs, 0)
    with compact_process(tmp_path, *FOLLOW, "--every", "0.2") as process:
        wait_until(lambda: written(tmp_path, 1), within_s=300)
        for number in range(1, 4):
            rotate_in(logs, number)
        # The days of the second batch are written, and its manifest is not, or just about.
        kill_when(process, lambda: len(list((tmp_path / "lake").glob("date=2026-11-21/run=*"))) > 1)
    rotate_in(logs, 4)
    once(warm_command, tmp_path)
    assert rows_of(tmp_path / "lake") == in_one_run(warm_command, tmp_path)
    (stream,) = manifest(tmp_path / "lake")["streams"]
    assert stream["batch"] >= 1
    assert once(warm_command, tmp_path)["requests"] == 0


@pytest.mark.large
def test_sigterm_ends_a_stream_between_two_batches(logs: Path, tmp_path: Path, warm_command: Command) -> None:
    rotate_in(logs, 0)
    with compact_process(tmp_path, *FOLLOW, "--every", "0.2") as process:
        wait_until(lambda: written(tmp_path, 1), within_s=300)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert rows_of(tmp_path / "lake") == in_one_run(warm_command, tmp_path)
    assert once(warm_command, tmp_path)["requests"] == 0


def test_a_batch_that_is_in_the_manifest_is_passed_over(logs: Path, tmp_path: Path, warm_command: Command) -> None:
    rotate_in(logs, 0)
    once(warm_command, tmp_path)
    before = manifest(tmp_path / "lake")
    # As after a kill between the manifest and the end of the batch.
    (commit,) = (tmp_path / "checkpoint" / "commits").glob("[0-9]*")
    for file in (commit, commit.with_name(f".{commit.name}.crc")):
        file.unlink(missing_ok=True)
    assert once(warm_command, tmp_path)["requests"] == 0
    assert manifest(tmp_path / "lake") == before


def test_a_checkpoint_of_another_job_is_refused(logs: Path, tmp_path: Path, warm_command: Command) -> None:
    rotate_in(logs, 0)
    once(warm_command, tmp_path)
    other = warm_command("compact", *FOLLOW, "--once", "--master", "local[2]", "--out", "elsewhere", cwd=tmp_path)
    assert (other.code, other.out) == (1, "")
    assert f"the checkpoint file://{tmp_path}/checkpoint is that of file://{tmp_path}/logs into lake" in other.err
    assert "Give a folder of its own with --checkpoint" in other.err
    marker = tmp_path / "checkpoint" / "_kafka-quotas.json"
    assert json.loads(marker.read_text())["out"] == "lake"
    marker.unlink()
    foreign = warm_command("compact", *FOLLOW, "--once", "--master", "local[2]", cwd=tmp_path)
    assert foreign.code == 1
    assert "is that of another Spark job" in foreign.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--follow", "--out", "lake", "--traffic", "1=logs"), "--follow needs --checkpoint"),
        (("--out", "lake", "--traffic", "1=logs", "--checkpoint", "c"), "--checkpoint is for --follow only"),
        (("--folder", "lake", "--traffic", "1=logs", "--keep", "4d"), "--keep is for --out only"),
        (("--out", "lake", "--traffic", "kafka://b1:9092/t"), "is for --follow"),
        ((*FOLLOW, "--traffic", "2=logs"), "Give --traffic once"),
        ((*FOLLOW, "--replace"), "are for a run without --follow"),
        (("--follow", "--out", "lake", "--traffic", "kafka://b1:9092", "--checkpoint", "c"), "write kafka://HOST:PORT/TOPIC"),
        (("--out", "lake", "--traffic", "1=logs", "--remote", "sc://h:1"), "leave out --remote"),
        ((*FOLLOW, "--remote", "sc://h:1"), "leave out --remote"),
        (("--out", "lake", "--traffic", "1=logs", "--keep", "4 weeks"), "'4 weeks' is not a number of days: write 400d"),
    ],
)
def test_options_that_cannot_work_are_refused_before_spark_starts(
    tmp_path: Path, warm_command: Command, arguments: tuple[str, ...], words: str
) -> None:
    done = warm_command("compact", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (64, "")
    assert words in done.err
