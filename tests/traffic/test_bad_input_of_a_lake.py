"""What can be wrong with traffic and a dataset of compact: a sentence with the remedy, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import Command, Done
from tests.support.lake_days import days_of_parquet, log_of, rows_of
from tests.support.manifests import quotas

pytestmark = pytest.mark.spark


def compact(command: Command, work: Path, *arguments: str) -> Done:
    return command("compact", *arguments, "--folder", f"file://{work}/lake", "--master", "local[2]", cwd=work)


def corrupt_footer(day: Path) -> None:
    (day / "part-0.parquet").write_bytes(b"PAR1" + b"\x00" * 200 + b"PAR1")


def another_type(day: Path) -> None:
    table = pq.read_table(day.parent / "dt=2026-11-20" / "part-0.parquet", partitioning=None)
    column = table.column("amount").cast(pa.string())
    pq.write_table(table.set_column(table.schema.get_field_index("amount"), "amount", column), day / "part-0.parquet")


def no_amount(day: Path) -> None:
    for file in day.parent.rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["amount"]), file)
    day.rmdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (corrupt_footer, "is not a Parquet file, or was not finished"),
        (another_type, "a column has one type in some files of --traffic and another in others"),
        (no_amount, "the canonical traffic schema needs the column 'amount'"),
    ],
)
def test_a_damaged_day_is_a_sentence_and_writes_nothing(
    tmp_path: Path, warm_command: Command, damage: Callable[[Path], None], words: str
) -> None:
    days_of_parquet(tmp_path / "traffic", 2)
    day = tmp_path / "traffic" / "dt=2026-11-25"
    day.mkdir()
    damage(day)
    done = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic")
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert not list((tmp_path / "lake").glob("date=*"))


def test_a_time_without_a_day_names_the_days_that_there_are(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 2)
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"})), "utf-8")
    assert compact(warm_command, tmp_path, "--traffic", "traffic").code == 0
    time = ("--since", "2025-01-01T00:00Z", "--until", "2025-01-02T00:00Z", "--master", "local[2]")
    done = warm_command("backtest", "quotas.yaml", "--traffic", f"file://{tmp_path}/lake", *time, cwd=tmp_path)
    assert done.code == 1
    assert "has no day in this time. The days there are 2026-11-20 to 2026-11-21" in done.err


def test_days_are_written_whole(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    done = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic", "--since", "2026-11-20T08:00Z")
    assert done.code == 64
    assert "days are written whole. Write a midnight of UTC" in done.err


def test_a_dataset_is_not_compacted_again(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    assert compact(warm_command, tmp_path, "--traffic", "traffic").code == 0
    done = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/lake")
    assert done.code == 64
    assert "has per-second totals already, and no requests" in done.err
    plain = compact(warm_command, tmp_path, "--traffic", "lake")
    assert plain.code == 1
    assert "has per-second totals by day. Give the address of their folder, such as file:///data/seconds" in plain.err


def test_days_of_a_second_cluster_are_refused_also_by_a_later_run(tmp_path: Path, warm_command: Command) -> None:
    for name in ("east", "west"):
        days_of_parquet(tmp_path / "traffic" / f"cluster={name}", 1, user=name)
    both = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic")
    assert (both.code, both.out) == (1, "")
    assert "is of 2 clusters, east (the column cluster)" in both.err
    (tmp_path / "traffic" / "cluster=west").rename(tmp_path / "later")
    assert compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic").code == 0
    (tmp_path / "traffic" / "cluster=east").rename(tmp_path / "earlier")
    (tmp_path / "later").rename(tmp_path / "traffic" / "cluster=west")
    later = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic")
    assert (later.code, later.out) == (1, "")
    assert "is of 2 clusters, east (of this traffic, or of these days so far), west" in later.err
    assert {row["user"] for row in rows_of(tmp_path / "lake")} == {"east", "bob"}


def test_a_foreign_dataset_is_not_written_to(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    days_of_parquet(tmp_path / "lake", 1)
    done = compact(warm_command, tmp_path, "--traffic", "traffic")
    assert (done.code, done.out) == (1, "")
    assert "was not written by compact. Name another place" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--folder", "totals", "--traffic", "1=logs", "--replace"), "--replace are for --folder with an address or a table"),
        (("--folder", "7=file:///totals", "--traffic", "1=a-request.log"), "write the address without a broker"),
    ],
)
def test_options_that_cannot_work_are_refused_before_spark_starts(
    tmp_path: Path, warm_command: Command, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "a-request.log").write_bytes(log_of("2026-11-20 08:00:00,000"))
    done = warm_command("compact", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (64, "")
    assert words in done.err
