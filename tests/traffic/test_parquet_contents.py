"""Parquet files that Spark reads as bytes give the rows of Spark's own reader, which stays where it has to."""

from __future__ import annotations

import datetime
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.client_seconds import sum_on_spark
from reconciler.traffic.client_totals import CLIENT_TOTALS, MINUTE_TOTALS
from reconciler.traffic.shuffle.on_spark import SparkRows
from reconciler.traffic.sources.log_files import Dataset
from reconciler.traffic.sources.normal_form import ROWS
from reconciler.traffic.sources.on_spark import (
    contents_frame,
    contents_rows,
    frame_rows,
    largest_file,
    normal_form_rows,
    rows_of_frame,
)
from reconciler.traffic.sources.parquet_parts import Between, decode_file, parts_of, read_part
from tests.support.recorded_parquet import START, Flow, write_traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLOWS = (
    Flow(user="alice", amount=90_000, every_s=0.5),
    Flow(user=None, broker=2, amount=-1),
    Flow(user="bob", client_id="", kind="fetch", amount=700_000, begin_s=20),
)
MIDDLE_US = round((START + datetime.timedelta(seconds=25)).timestamp() * 1e6)
CUT = Between(after_us=MIDDLE_US, until_us=MIDDLE_US + 10_000_000)
NAMES = tuple(ROWS.names)
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def rows_in(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches([batch.cast(ROWS) for batch in batches], schema=ROWS)
    return table.sort_by([(name, "ascending") for name in NAMES])


@pytest.mark.parametrize("between", [None, CUT])
@pytest.mark.parametrize("rows_a_group", [7, 1_000_000])
def test_a_file_has_the_rows_that_reading_its_path_gives(tmp_path: Path, between: Between | None, rows_a_group: int) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pq.read_table(write_traffic(tmp_path / "all.parquet", FLOWS)), path, row_group_size=rows_a_group)
    decoded = rows_in([*decode_file(pa.py_buffer(path.read_bytes()), NAMES, between)])
    parts = parts_of([str(path)], between=between)
    assert decoded == rows_in([batch for part in parts for batch in read_part(part, NAMES)])
    assert decoded.num_rows == (220 if between is None else 40)


def test_row_groups_of_another_time_are_not_decoded(tmp_path: Path) -> None:
    path = write_traffic(tmp_path / "all.parquet", FLOWS[:1])
    pq.write_table(pq.read_table(path), path, row_group_size=20)
    content = bytearray(path.read_bytes())
    first = pq.read_metadata(path).row_group(0).column(0)
    begin, size = first.dictionary_page_offset or first.data_page_offset, first.total_compressed_size
    content[begin : begin + size] = b"\xff" * size
    assert sum(batch.num_rows for batch in decode_file(pa.py_buffer(bytes(content)), NAMES, CUT)) == 20
    with pytest.raises((pa.ArrowInvalid, OSError)):
        list(decode_file(pa.py_buffer(bytes(content)), NAMES))


def dataset(folder: Path) -> Path:
    """Files by day, of which one lacks a column that the other has, and one lacks a needed column."""
    table = pq.read_table(write_traffic(folder.parent / "all.parquet", FLOWS))
    for day, part in {
        "2026-11-20": table.slice(0, 90),
        "2026-11-21": table.slice(90).drop_columns(["throttled", "user"]),
    }.items():
        (folder / f"dt={day}").mkdir(parents=True)
        pq.write_table(part, folder / f"dt={day}" / "part-0.parquet")
    return folder


@pytest.mark.spark
@pytest.mark.parametrize("between", [None, CUT])
def test_totals_of_the_bytes_are_those_of_sparks_own_reader(tmp_path: Path, spark: SparkSession, between: Between | None) -> None:
    lake = dataset(tmp_path / "lake")
    contents = contents_frame(spark, [lake.as_uri()])
    assert contents is not None
    own = rows_of_frame(spark.read.option("mergeSchema", "true").parquet(lake.as_uri()), between, where="lake")
    by_bytes = contents_rows(contents, between, (CLIENT_TOTALS, MINUTE_TOTALS))
    for work in (CLIENT_TOTALS, MINUTE_TOTALS):
        order = [(name, "ascending") for name in work.schema.names]
        totals = by_bytes.total(work).sort_by(order)
        assert totals == own.total(work).cast(work.schema).sort_by(order)
        assert totals.num_rows > 1 or between is not None


@pytest.mark.spark
@pytest.mark.parametrize("form", ["files", "contents", "frame"])
def test_rows_that_are_summed_are_read_once(tmp_path: Path, spark: SparkSession, form: str) -> None:
    lake = dataset(tmp_path / "lake")
    limit = spark.conf.get(BATCH_BYTES)
    rows: SparkRows[pa.RecordBatch]
    if form == "files":
        rows = normal_form_rows(spark, parts_of(sorted(map(str, lake.rglob("*.parquet")))))
    elif form == "contents":
        contents = contents_frame(spark, [lake.as_uri()])
        assert contents is not None
        rows = contents_rows(contents)
    else:
        rows = rows_of_frame(spark.read.option("mergeSchema", "true").parquet(lake.as_uri()), where="lake")
    expected = [sorted(rows.total(work).to_pylist(), key=repr) for work in (CLIENT_TOTALS, MINUTE_TOTALS)]

    summed = sum_on_spark(rows)
    shutil.rmtree(lake)

    assert [sorted(summed.total(work).to_pylist(), key=repr) for work in (CLIENT_TOTALS, MINUTE_TOTALS)] == expected
    assert spark.conf.get(BATCH_BYTES) == limit
    summed.close()


@pytest.mark.spark
def test_a_file_that_cannot_be_decoded_is_named(tmp_path: Path, spark: SparkSession) -> None:
    path = write_traffic(tmp_path / "all.parquet", FLOWS)
    content = bytearray(path.read_bytes())
    content[40:400] = b"\xff" * 360
    path.write_bytes(content)
    rows = frame_rows(spark, [Dataset(name=tmp_path.as_uri())])
    with pytest.raises(Exception, match=r"all\.parquet is not a Parquet file, or was not finished") as failed:
        rows.total(CLIENT_TOTALS)
    assert TrafficError.__name__ in f"{failed.type.__name__} {failed.value}"


@pytest.mark.spark
def test_sparks_own_reader_stays_where_it_reads_less_or_has_to(tmp_path: Path, spark: SparkSession) -> None:
    lake = dataset(tmp_path / "lake")
    (tmp_path / "brokers" / "broker=3").mkdir(parents=True)
    write_traffic(tmp_path / "brokers" / "broker=3" / "a.parquet", FLOWS)
    assert contents_frame(spark, [(tmp_path / "brokers").as_uri()]) is None

    contents = contents_frame(spark, [lake.as_uri()])
    assert contents is not None
    assert largest_file(contents) == max(file.stat().st_size for file in lake.rglob("*.parquet"))

    def has_bytes(folder: Path, between: Between | None) -> list[bool]:
        rows = frame_rows(spark, [Dataset(name=folder.as_uri())], between)
        frame = rows.made_of_shares(lambda batches: batches, ("broker",), pa.schema([("broker", pa.int32())]), few=False)
        plan = frame._jdf.queryExecution().analyzed().toString()
        return [reader == "binaryFile" for reader in re.findall(r"\] (binaryFile|parquet)$", plan, re.MULTILINE)]

    flat = tmp_path / "flat"
    flat.mkdir()
    write_traffic(flat / "a.parquet", FLOWS)
    assert has_bytes(lake, None) == [True]
    assert has_bytes(lake, CUT) == [True, False]
    assert has_bytes(flat, None) == [True]
    assert has_bytes(flat, CUT) == [False]
