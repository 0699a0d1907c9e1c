"""Parquet read a column at a time by workers: the same totals as from rows."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.local_traffic import no_spark
from tests.support.placed_totals import stored_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


START = datetime.datetime(2026, 11, 21, 13, tzinfo=datetime.UTC)
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
        ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
    ]
)  # fmt: skip
OPTIONAL = pa.schema([("throttled", pa.bool_()), ("overhead", pa.int64()), ("tie", pa.int64()), ("ip", pa.string())])


def rows(chance: random.Random, count: int, *, optional: bool) -> pa.Table:
    """Requests of few clients, among them everything that makes a row unusable or a client not known."""

    def one() -> dict[str, Any]:
        row = {
            "ts": START
            + datetime.timedelta(hours=chance.choice([0, 0, 0, 0, 0, 0, 0, 0, 5]), microseconds=chance.randrange(90_000_000)),
            "interval_ms": 0,
            "broker": chance.choice([1, 2, 70_000]),
            "user": chance.choice(["alice", "bob", "", "<default>", "ürsula"]),
            "client_id": chance.choice(["app", "", "app\0", "x" * 40]),
            "kind": chance.choice(["produce", "fetch", "request", "connection"]),
            "amount": chance.choice([0, 1, 100, 2**31, 2**40]),
            "semantics": "event",
        }
        if optional:
            row |= {"throttled": chance.random() < 0.2, "overhead": chance.choice([0, 1, None]), "tie": chance.randrange(2**62)}
            row["ip"] = chance.choice(["10.0.0.1", "::1", None]) if row["kind"] == "connection" else None
        if chance.random() < 0.3:
            row[chance.choice(["ts", "broker", "user", "client_id", "kind", "amount", "semantics"])] = None
        if chance.random() < 0.1:
            row |= {"amount": -1} if chance.random() < 0.5 else {"kind": "other", "semantics": "gauge"}
        return row

    schema = pa.unify_schemas([SCHEMA, OPTIONAL]) if optional else SCHEMA
    return pa.Table.from_pylist([one() for _ in range(count)], schema=schema)


def write(folder: Path, tables: list[pa.Table], **options: Any) -> list[str]:
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)
    return [str(folder / f"{number}.parquet") for number in range(len(tables))]


def test_a_share_holds_about_its_part_of_the_rows_and_nothing_is_lost(tmp_path: Path) -> None:
    from reconciler.traffic.shuffle.on_spark import split_work
    from reconciler.traffic.sources.parquet_parts import parts_of

    files = write(tmp_path, [rows(random.Random(1), count, optional=False) for count in (90, 10, 0, 40)], row_group_size=10)
    parts = parts_of(files, rows=25)
    assert [part.rows for part in parts] == [30, 30, 30, 10, 30, 10]
    weights = [part.rows for part in parts]
    assert [sum(part.rows for part in share) for share in split_work(parts, weights, 2)] == [90, 50]
    assert [part for share in split_work(parts, weights, 3) for part in share] == list(parts)
    assert len(split_work(parts, weights, 100)) == len(parts)
    assert split_work((), (), 4) == ()


@pytest.mark.parametrize("most", [1, 2**31, 2**45, 2**60])
@pytest.mark.parametrize("size", [3, 1000, 10**12])
def test_sums_are_exact_for_few_and_many_and_large_numbers(size: int, most: int) -> None:
    from reconciler.traffic.columns import number_codes, sum_by_code

    chance = random.Random(size + most)
    codes = [chance.randrange(size) for _ in range(500)]
    amounts = [chance.randrange(most // 500 + 1) for _ in codes]
    expected: dict[int, int] = {}
    for code, amount in zip(codes, amounts, strict=True):
        expected[code] = expected.get(code, 0) + amount
    distinct, total = sum_by_code(np.asarray(codes), size, np.asarray(amounts))
    assert dict(zip(distinct.tolist(), total.tolist(), strict=True)) == expected
    assert distinct.tolist() == sorted(expected)
    found, places = number_codes(np.asarray(codes), size)
    assert found.tolist() == sorted(expected)
    assert found[places].tolist() == codes


@pytest.mark.spark
def test_cells_written_from_columns_are_those_of_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.errors import TrafficError
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.seconds.stored_rows import open_folder
    from tests.support.traffic_rows import normal_form_batches

    chance = random.Random(12)
    tables = [rows(chance, 2500, optional=True), rows(chance, 700, optional=False), rows(chance, 0, optional=True)]
    nothing_charged = tables[0].filter(pa.compute.is_null(tables[0].column("kind")))
    (tmp_path / "rows").mkdir()
    names = write(tmp_path / "rows", [*tables, nothing_charged], row_group_size=300)
    files = [Path(name) for name in names]
    sources = {file: SourceFile(path=file, id=file.stem, size=file.stat().st_size) for file in files}
    by_rows, by_columns = SegmentFolder(tmp_path / "by rows"), SegmentFolder(tmp_path / "by columns")
    Compaction(files=sources, folder=by_rows).in_process(normal_form_batches(names, with_file=True))
    Compaction(files=sources, folder=by_columns).of_normal_form(spark)

    def told(folder: SegmentFolder) -> list[tuple[object, ...]]:
        found = [segment for segment in folder.segments() if segment.summary.statuses]
        return [(one.id, one.source, one.size, one.summary.statuses) for one in found]

    assert told(by_columns) == told(by_rows)
    assert [one.requests > 0 for one in by_columns.segments()] == [True, True, False, False]
    first, second = open_folder(by_rows, no_spark), open_folder(by_columns, no_spark)
    assert second.series == first.series
    assert second.facts == first.facts
    assert first.facts.throttled_then > 0
    assert Counter(stored_seconds(first)) == Counter(stored_seconds(second))
    for segment in by_columns.segments():
        for part in by_columns.data(segment, "cells").glob("*.parquet"):
            table = pq.read_table(part)
            rising = list(zip(table.column("series").to_pylist(), table.column("second").to_pylist(), strict=True))
            assert rising == sorted(set(rising))

    with pytest.raises(TrafficError, match="cannot be read"):
        Compaction(files=sources, folder=SegmentFolder(tmp_path / "strict"), max_unreadable=0.01).of_normal_form(spark)
    assert SegmentFolder(tmp_path / "strict").segments() == ()
