"""Request log text: a real broker's lines again and again, read as the backtest reads them and in the barest way there is."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECORDED = Path(__file__).parents[2] / "tests" / "traffic" / "recordings" / "kafka-4.3.1" / "kafka-request.log.gz"
_NAME = "kafka-request.log"
_FILES = 4
_FIELDS = """
requestHeader struct<requestApiKey: int, requestApiVersion: int, clientId: string>, principal string, throttleTimeMs double,
request struct<topicData: array<struct<partitionData: array<struct<recordsSizeInBytes: bigint>>>>>,
response struct<responses: array<struct<partitions: array<struct<recordsSizeInBytes: bigint>>>>>
"""


def write(folder: Path, *, megabytes: int) -> None:
    """Logs of a few brokers, together of this size."""
    lines = gzip.decompress(_RECORDED.read_bytes())
    for broker in range(_FILES):
        (folder / f"broker-{broker}").mkdir(parents=True)
        with (folder / f"broker-{broker}" / _NAME).open("wb") as stream:
            for _ in range(max(1, megabytes * 1_000_000 // _FILES // len(lines))):
                stream.write(lines)


def bare(spark: SparkSession, folder: Path) -> int:
    """Spark's own JSON reader on the fields that are needed, and a group-by."""
    from pyspark.sql import functions as F

    text = spark.read.text(str(folder / "*" / _NAME))
    start = F.instr("value", "{")
    document = F.from_json(F.expr("substring(value, instr(value, '{'))"), _FIELDS).alias("line")
    found = text.where(start > 0).select(document).select("line.*")
    records = F.expr(
        "coalesce(aggregate(flatten(request.topicData.partitionData.recordsSizeInBytes), 0L, (a, b) -> a + b), 0L)"
        " + coalesce(aggregate(flatten(response.responses.partitions.recordsSizeInBytes), 0L, (a, b) -> a + b), 0L)"
    )
    grouped = found.groupBy("principal", "requestHeader.clientId", "requestHeader.requestApiKey")
    return len(grouped.agg(F.sum(records), F.count(F.lit(1))).collect())


def ours(spark: SparkSession, folder: Path) -> int:
    """To the rows of the normal form, and its clients."""
    from reconciler.traffic.client_totals import CLIENT_TOTALS
    from reconciler.traffic.sources.log_files import find_logs
    from reconciler.traffic.sources.on_spark import request_log_rows

    rows = request_log_rows(spark, find_logs([str(folder)]))
    try:
        return int(rows.total(CLIENT_TOTALS).num_rows)
    finally:
        rows.close()
