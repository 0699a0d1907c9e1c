"""Request logs on Spark: each worker reads parts of the files and parses their lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.shuffle.on_spark import run_on_workers, split_work
from reconciler.traffic.sources.line_time import checked_zone
from reconciler.traffic.sources.log_files import BrokerFiles
from reconciler.traffic.sources.log_text import LogPart, log_parts
from reconciler.traffic.sources.one_cluster import CLUSTER, require_one
from reconciler.traffic.sources.request_log import parse_lines, schema


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
