"""Recorded traffic on Spark: each worker reads parts of the files, many small ones in one task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.shuffle.on_spark import KeptRows, ReadRows, least_tasks, run_on_workers, split_work
from reconciler.traffic.sources.line_time import checked_zone
from reconciler.traffic.sources.log_evidence import LINE_KEYS, line_keys, mark_copies
from reconciler.traffic.sources.log_files import BrokerFiles, LogPart, log_parts
from reconciler.traffic.sources.mapped import MappedFiles, MappedPart, mapped_rows
from reconciler.traffic.sources.mapping import TrafficMapping
from reconciler.traffic.sources.normal_form import COLUMNS, FILE, ROWS, rows_of
from reconciler.traffic.sources.parquet_parts import ROWS_A_PART, Part, parts_of, read_part
from reconciler.traffic.sources.request_log import parse_lines, schema

_LOG_BYTES_A_TASK: Final = 4_000_000
"""As stored, perhaps compressed."""


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


def normal_form_rows(spark: SparkSession, parts: Sequence[Part]) -> ReadRows[Part, pa.RecordBatch]:
    """Rows of the canonical traffic schema of files in the normal form: workers read their columns anew for each pass."""
    return ReadRows(spark, parts, [part.rows for part in parts], read_part, a_task=ROWS_A_PART)


def mapped_file_rows(spark: SparkSession, files: Sequence[str], mapping: TrafficMapping) -> KeptRows[Sequence[MappedPart]]:
    """The same of mapped files, read once and kept. Raises ``TrafficError`` as ``MappedFiles``."""
    found = MappedFiles.of(files, mapping)
    found.require_readable_beginning()

    def read(share: Sequence[MappedPart]) -> Iterator[pa.RecordBatch]:
        return mapped_rows(share, mapping)

    return KeptRows(spark, _mapped_shares(spark, found.parts), read)


def read_mapped(spark: SparkSession, files: Sequence[str], mapping: TrafficMapping, *, also: Sequence[str] = ()) -> DataFrame:
    """The same from mapped files. Raises ``TrafficError`` as ``MappedFiles``."""
    with_file, found = "file" in also, MappedFiles.of(files, mapping)
    found.require_readable_beginning()

    def read(share: Iterable[MappedPart]) -> Iterator[pa.RecordBatch]:
        return mapped_rows(share, mapping, with_file=with_file)

    return run_on_workers(spark, _mapped_shares(spark, found.parts), read, _schema(with_file=with_file))


def _mapped_shares(spark: SparkSession, parts: Sequence[MappedPart]) -> tuple[tuple[MappedPart, ...], ...]:
    sizes = [part.rows * 64 if isinstance(part, Part) else part.size for part in parts]
    return split_work(parts, sizes, _tasks(spark, sum(sizes) // (32 * 1024 * 1024)))


def _tasks(spark: SparkSession, wanted: int) -> int:
    return max(least_tasks(spark), wanted)


def _schema(*, with_file: bool) -> pa.Schema:
    return ROWS.append(FILE) if with_file else ROWS


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
    return run_on_workers(spark, _log_shares(spark, logs), _parser(log_timezone, also, kinds), schema(also))


def request_log_rows(
    spark: SparkSession,
    logs: Sequence[BrokerFiles],
    *,
    log_timezone: str = "UTC",
    also: Sequence[str] = (),
    kinds: Collection[Kind] = BYTES,
) -> KeptRows[tuple[LogPart, ...]]:
    """The same rows as batches of the canonical traffic schema, read once and kept; a copy of a line is a ``DUPLICATE``.

    Raises ``UsageError`` for an unknown time zone.
    """
    rows = KeptRows(spark, _log_shares(spark, logs), _parser(log_timezone, also, kinds))
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


def _log_shares(spark: SparkSession, logs: Sequence[BrokerFiles]) -> tuple[tuple[LogPart, ...], ...]:
    """A part of a large file is a task of its own, small files share one."""
    parts, least = log_parts(logs, least_tasks(spark)), 2 * least_tasks(spark)
    sizes = [part.size for part in parts]
    return split_work(parts, sizes, max(least, sum(sizes) // _LOG_BYTES_A_TASK))


def _parser(
    log_timezone: str, also: Sequence[str], kinds: Collection[Kind]
) -> Callable[[Iterable[LogPart]], Iterator[pa.RecordBatch]]:
    zone = checked_zone(log_timezone)

    def parse(share: Iterable[LogPart]) -> Iterator[pa.RecordBatch]:
        for part in share:
            yield from parse_lines(part.lines(), broker=part.broker, file=part.uri, zone=zone, kinds=kinds, also=also)

    return parse
