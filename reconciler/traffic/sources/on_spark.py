"""Recorded traffic on Spark: each worker reads parts of the files, many small ones in one task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.shuffle.on_spark import KeptRows, ReadRows, least_tasks, split_work
from reconciler.traffic.sources.line_time import check_zone
from reconciler.traffic.sources.log_evidence import LINE_KEYS, line_keys, mark_copies
from reconciler.traffic.sources.log_files import BrokerFiles, LogPart, log_parts
from reconciler.traffic.sources.mapped import MappedFiles, MappedPart, mapped_rows
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.parquet_parts import ROWS_A_PART, Part, read_part
from reconciler.traffic.sources.recorder_files import recorder_rows
from reconciler.traffic.sources.request_log import parse_lines, schema

_LOG_BYTES_A_TASK: Final = 4_000_000
"""As stored, perhaps compressed."""
_MAPPED_BYTES_A_TASK: Final = 32 * 1024 * 1024
_BYTES_A_MAPPED_ROW: Final = 64
"""Of Parquet."""


def normal_form_rows(spark: SparkSession, parts: Sequence[Part]) -> ReadRows[Part, pa.RecordBatch]:
    """Rows of the canonical traffic schema of files in the normal form: workers read their columns anew for each pass."""
    return ReadRows(spark, parts, [part.rows for part in parts], read_part, a_task=ROWS_A_PART)


def mapped_file_rows(spark: SparkSession, files: Sequence[str], mapping: TrafficMapping, *, with_file: bool = False) -> KeptRows:
    """The same of mapped files, read once and kept. Raises ``TrafficError`` as ``MappedFiles``."""
    found = MappedFiles.of(files, mapping)
    found.require_readable_beginning()

    def read(share: Sequence[MappedPart]) -> Iterator[pa.RecordBatch]:
        return mapped_rows(share, mapping, with_file=with_file)

    sizes = [part.rows * _BYTES_A_MAPPED_ROW if isinstance(part, Part) else part.size for part in found.parts]
    tasks = max(least_tasks(spark), sum(sizes) // _MAPPED_BYTES_A_TASK)
    return KeptRows.of_shares(spark, split_work(found.parts, sizes, tasks), read)


def recorder_file_rows(spark: SparkSession, files: Sequence[str], *, with_file: bool = False) -> KeptRows:
    """The same of a recorder's files, each of which one worker reads."""

    def read(share: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return recorder_rows(share, with_file=with_file)

    sizes = [Path(file).stat().st_size for file in files]
    return KeptRows.of_shares(spark, split_work(files, sizes, max(least_tasks(spark), sum(sizes) // _LOG_BYTES_A_TASK)), read)


def request_log_rows(
    spark: SparkSession,
    logs: Sequence[BrokerFiles],
    *,
    log_timezone: str = "UTC",
    also: Sequence[str] = (),
    kinds: Collection[Kind] = BYTES,
) -> KeptRows:
    """The same of request logs, with the columns ``also``, read once and kept. A copy of a line is a ``DUPLICATE``.

    A part of a large file is a task of its own, small files share one. Raises ``UsageError`` for an unknown time zone.
    """
    zone = check_zone(log_timezone)

    def read(share: Iterable[LogPart]) -> Iterator[pa.RecordBatch]:
        for part in share:
            yield from parse_lines(part.lines(), broker=part.broker, file=part.uri, zone=zone, kinds=kinds, also=also)

    parts = log_parts(logs, least_tasks(spark))
    sizes = [part.size for part in parts]
    shares = split_work(parts, sizes, max(2 * least_tasks(spark), sum(sizes) // _LOG_BYTES_A_TASK))
    return mark_repeats(KeptRows.of_shares(spark, shares, read), also)


def mark_repeats(rows: KeptRows, also: Sequence[str]) -> KeptRows:
    """The rows of request logs with the columns ``also``, copies of lines marked. Closes them when it fails."""
    try:
        if rows.has_repeats(line_keys, LINE_KEYS):
            rows.rewrite(
                lambda batch: np.asarray(batch.column("tie").to_numpy(), dtype=np.int64),
                lambda table: mark_copies(table.cast(schema(also))),
            )
    except BaseException:
        rows.close()
        raise
    return rows
