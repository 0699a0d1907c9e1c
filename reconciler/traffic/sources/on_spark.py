"""Recorded traffic on Spark: each worker reads parts of the files, many small ones in one task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.traffic.columns.parts import Part, parts_of
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.shuffle.on_spark import run_on_workers, split_work
from reconciler.traffic.sources.line_time import checked_zone
from reconciler.traffic.sources.log_evidence import CLUSTER, require_one
from reconciler.traffic.sources.log_files import BrokerFiles, LogPart, log_parts
from reconciler.traffic.sources.mapped import MappedFiles, MappedPart, mapped_rows
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import COLUMNS, FILE, ROWS, rows_of
from reconciler.traffic.sources.request_log import parse_lines, schema


def read_normal_form(
    spark: SparkSession, files: Sequence[str], *, also: Sequence[str] = (), kinds: Collection[Kind] | None = None
) -> DataFrame:
    """Rows as ``request_log`` has them, with ``strict`` and ``part``; ``also``: ``file``, the address of each row's file.

    ``kinds``: rows of others are left out. Raises ``TrafficError`` when a file is not Parquet.
    """
    with_file, names = "file" in also, [name for name, _ in COLUMNS]
    wanted = None if kinds is None else pa.array([kind.value for kind in kinds], pa.string())

    def read(share: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        for part in share:
            for batch in part.batches(names):
                chosen = batch if wanted is None else batch.filter(pc.is_in(batch.column("kind").cast(pa.string()), wanted))
                yield rows_of(chosen, Path(part.path).as_uri() if with_file else None)

    parts = parts_of(files)
    work = split_work(parts, [part.rows for part in parts], _tasks(spark, sum(part.rows for part in parts) // 500_000))
    return run_on_workers(spark, work, read, _schema(with_file=with_file))


def read_mapped(spark: SparkSession, files: Sequence[str], mapping: TrafficMapping, *, also: Sequence[str] = ()) -> DataFrame:
    """The same from mapped files. Raises ``TrafficError`` as ``MappedFiles``."""
    with_file, found = "file" in also, MappedFiles.of(files, mapping)
    found.require_readable_beginning()

    def read(share: Iterable[MappedPart]) -> Iterator[pa.RecordBatch]:
        return mapped_rows(share, mapping, with_file=with_file)

    sizes = [part.rows * 64 if isinstance(part, Part) else part.size for part in found.parts]
    work = split_work(found.parts, sizes, _tasks(spark, sum(sizes) // (32 * 1024 * 1024)))
    return run_on_workers(spark, work, read, _schema(with_file=with_file))


def _tasks(spark: SparkSession, wanted: int) -> int:
    return max(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), wanted)


def _schema(*, with_file: bool) -> str:
    return str(from_arrow_schema(ROWS.append(FILE) if with_file else ROWS).simpleString())


def read_request_logs(
    spark: SparkSession,
    logs: Sequence[BrokerFiles],
    *,
    log_timezone: str = "UTC",
    also: Sequence[str] = (),
    kinds: Collection[Kind] = BYTES,
) -> DataFrame:
    """Rows of all brokers' logs, in no order, as ``request_log.parse_lines`` has them.

    Raises ``UsageError`` for an unknown time zone.
    """
    zone = checked_zone(log_timezone)
    workers = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    parts = log_parts(logs, workers)

    def parse(share: Iterable[LogPart]) -> Iterator[pa.RecordBatch]:
        for part in share:
            yield from parse_lines(part.lines(), broker=part.broker, file=part.uri, zone=zone, kinds=kinds, also=also)

    work = split_work(parts, [part.size for part in parts], max(len(parts), 1))
    return run_on_workers(spark, work, parse, from_arrow_schema(schema(also)).simpleString())


def require_one_cluster(rows: DataFrame) -> None:
    """Raise ``TrafficError`` when rows with the column ``CLUSTER`` are of several."""
    found = rows.where(F.col(CLUSTER).isNotNull()).select("broker", CLUSTER).distinct().orderBy("broker", CLUSTER).collect()
    brokers: dict[str, list[str]] = {}
    for row in found:
        brokers.setdefault(row[CLUSTER], []).append(str(row.broker))
    require_one({name: f"broker {' and '.join(ids)}" for name, ids in brokers.items()})
