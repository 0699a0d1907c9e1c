"""What can be wrong with the sources of compact --out and with its dataset: a sentence with the remedy, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import Command, Done
from tests.support.lake_days import days_of_parquet, log_of, manifest, rows_of
from tests.support.manifests import quotas
from tests.support.recorded_parquet import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def compact(command: Command, work: Path, *arguments: str) -> Done:
    return command("compact", *arguments, "--out", "lake", "--master", "local[2]", cwd=work)


def empty_partition(day: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), day / "part-0.parquet")


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
        (no_amount, "the normal form needs the column 'amount'"),
    ],
)
@pytest.mark.parametrize("at_address", [True, False])
def test_a_damaged_day_is_a_sentence_and_writes_nothing(
    tmp_path: Path, warm_command: Command, damage: Callable[[Path], None], words: str, at_address: bool
) -> None:
    days_of_parquet(tmp_path / "traffic", 2)
    day = tmp_path / "traffic" / "dt=2026-11-25"
    day.mkdir()
    damage(day)
    traffic = f"file://{tmp_path}/traffic" if at_address else "traffic"
    done = compact(warm_command, tmp_path, "--traffic", traffic)
    assert (done.code, done.out) == (1, "")
    assert words in done.err or (not at_address and "part-0.parquet" in done.err)
    assert not list((tmp_path / "lake").glob("date=*"))


def test_an_empty_partition_is_a_day_without_rows(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    day = tmp_path / "traffic" / "dt=2026-11-25"
    day.mkdir()
    empty_partition(day)
    done = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic")
    assert done.code == 0, done.err
    assert [day["date"] for day in manifest(tmp_path / "lake")["days"]] == ["2026-11-20"]


def test_a_file_that_a_retry_wrote_twice_counts_once(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    first = tmp_path / "traffic" / "dt=2026-11-20" / "part-0.parquet"
    assert compact(warm_command, tmp_path, "--traffic", "traffic").code == 0
    rows = rows_of(tmp_path / "lake")
    (first.parent / "part-0-attempt-1.parquet").write_bytes(first.read_bytes())
    done = compact(warm_command, tmp_path, "--traffic", "traffic")
    assert done.code == 0
    assert rows_of(tmp_path / "lake") == rows


def test_a_file_that_vanishes_after_it_was_listed_is_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.errors import ReconcilerError
    from reconciler.traffic.lake_compaction import list_sources, some_sources
    from reconciler.traffic.traffic_files import find_traffic

    log = tmp_path / "logs" / "a-request.log"
    log.parent.mkdir()
    log.write_bytes(log_of("2026-11-20 08:00:00,000"))
    traffic = find_traffic([f"1=file://{log.parent}"])
    (address,) = list_sources(spark, traffic).sources
    log.unlink()
    with pytest.raises(ReconcilerError, match=r"a-request\.log was there when it was listed, and is gone now\. Run this again"):
        some_sources(traffic, [address])


def test_a_dataset_whose_manifest_is_damaged_or_of_the_future_is_a_sentence(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"})), "utf-8")
    assert compact(warm_command, tmp_path, "--traffic", "traffic").code == 0
    (file,) = (tmp_path / "lake" / "_kafka-quotas" / "manifests").glob("*.json")
    text = file.read_text()

    def refused() -> str:
        done = warm_command("backtest", "quotas.yaml", "--traffic", "lake", "--master", "local[2]", cwd=tmp_path)
        assert (done.code, done.out) == (1, "")
        return done.err

    for suffix in (".crc",):
        file.with_name(f".{file.name}{suffix}").unlink(missing_ok=True)
    file.write_text(text[:100])
    assert "is not a manifest of per-second totals" in refused()
    file.write_text(json.dumps(json.loads(text) | {"format_version": "3.0"}))
    assert "has format 3.0, of a newer version of this tool: update it" in refused()
    file.write_text(text)
    (sources,) = (tmp_path / "lake" / "_kafka-quotas" / "sources").glob("*.json")
    sources.rename(tmp_path / "elsewhere.json")
    assert "is missing, which the manifest needs. Restore it" in refused()


def test_a_time_without_a_day_names_the_days_that_there_are(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 2)
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"})), "utf-8")
    assert compact(warm_command, tmp_path, "--traffic", "traffic").code == 0
    time = ("--since", "2025-01-01T00:00Z", "--until", "2025-01-02T00:00Z", "--master", "local[2]")
    done = warm_command("backtest", "quotas.yaml", "--traffic", "lake", *time, cwd=tmp_path)
    assert done.code == 1
    assert "has no day in this time. It has 2026-11-20 to 2026-11-21" in done.err


def test_days_are_written_whole(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    done = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic", "--since", "2026-11-20T08:00Z")
    assert done.code == 64
    assert "days are written whole. Write a midnight of UTC" in done.err


def test_a_dataset_is_not_compacted_again(tmp_path: Path, warm_command: Command) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    assert compact(warm_command, tmp_path, "--traffic", "traffic").code == 0
    done = compact(warm_command, tmp_path, "--traffic", "lake")
    assert done.code == 64
    assert "has per-second totals already" in done.err


def test_days_of_a_second_cluster_are_refused_also_by_a_later_run(tmp_path: Path, warm_command: Command) -> None:
    for name in ("east", "west"):
        days_of_parquet(tmp_path / "traffic" / f"cluster={name}", 1, user=name)
    both = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic")
    assert (both.code, both.out) == (1, "")
    assert "is of 2 clusters, east (file:" in both.err
    (tmp_path / "traffic" / "cluster=west").rename(tmp_path / "later")
    assert compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic").code == 0
    (tmp_path / "traffic" / "cluster=east").rename(tmp_path / "earlier")
    (tmp_path / "later").rename(tmp_path / "traffic" / "cluster=west")
    later = compact(warm_command, tmp_path, "--traffic", f"file://{tmp_path}/traffic")
    assert (later.code, later.out) == (1, "")
    assert "east (written earlier) and west" in later.err or "east (written earlier), west" in later.err
    assert {row["user"] for row in rows_of(tmp_path / "lake")} == {"east", "bob"}
