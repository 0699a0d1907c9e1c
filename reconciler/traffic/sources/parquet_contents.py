"""Parquet files that Spark reads as bytes, with its own file systems and credentials, and workers decode.

Spark's own Parquet reader makes rows of the columns of a file, and columns of these rows for a worker. The bytes of a file cost a
quarter of that processor time. Spark's reader stays for three cases: files that are too large to be in memory whole, a stretch of
time that days in folder names do not cut out, and settings that only it knows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.model import escaped
from reconciler.traffic.shuffle.on_spark import SparkRows, scan_frame
from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.normal_form import COLUMNS, DELTA, canonical_rows, file_columns, with_required_columns
from reconciler.traffic.sources.parquet_parts import (
    DICTIONARIES,
    ROWS_A_BATCH,
    Between,
    excludes_value,
    require_short_names,
    span_us,
)

LARGEST_FILE: Final = 128 * 1024 * 1024
"""Bytes. Spark puts as many into one task, too, and a worker gets all files of a task at once."""
_NEEDED: Final = ("path", "content")
_ONLY_SPARK: Final = {
    "parquet.crypto.factory.class": None,
    "spark.hadoop.parquet.crypto.factory.class": None,
    "spark.sql.files.ignoreCorruptFiles": "true",
}
"""Settings, and the value (``None``: any), with which only Spark's own reader reads the files."""


def contents_frame(spark: SparkSession, addresses: Sequence[str]) -> DataFrame | None:
    """A row for each file, with the columns of its folders. ``None``: Spark's own reader has to read them."""
    if any(_is_set(spark, name, value) for name, value in _ONLY_SPARK.items()):
        return None
    frame = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet").load(list(addresses))
    # A folder such as broker=1 is a column of the traffic that its files lack.
    return frame if set(frame.columns).isdisjoint(name for name, _ in COLUMNS) else None


def largest_file(frame: DataFrame) -> int:
    """The bytes of the largest file of ``contents_frame``. Spark reads no content for it."""
    (row,) = frame.agg(F.max("length")).collect()
    return int(row[0] or 0)


def contents_rows(
    frame: DataFrame, between: Between | None = None, together: Sequence[Totals[pa.RecordBatch]] = ()
) -> SparkRows[pa.RecordBatch]:
    """Canonical rows of the files of ``contents_frame``, in a stretch of time. ``together``: as ``SparkRows``.

    A file that cannot be decoded ends the run with ``TrafficError``.
    """
    scan = scan_frame(frame, lambda _: _NEEDED, functools.partial(_decode_files, between=between))
    return SparkRows(frame.sparkSession, scan, together)


def _is_set(spark: SparkSession, name: str, value: str | None) -> bool:
    try:
        given = spark.conf.get(name, None)
    except PySparkException:  # as Spark Connect answers for a setting that is not known
        return False
    return given is not None and (value is None or given.lower() == value)


def _decode_files(batch: pa.RecordBatch, columns: Sequence[str], between: Between | None) -> Iterator[pa.RecordBatch]:
    for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
        try:
            yield from decode_file(content.as_buffer(), columns, between, path)
        except (pa.ArrowInvalid, OSError) as error:
            message = f"recorded traffic {escaped(path)} is not a Parquet file, or was not finished"
            raise TrafficError(message) from error


def decode_file(
    content: pa.Buffer, columns: Sequence[str], between: Between | None = None, path: str = ""
) -> Iterator[pa.RecordBatch]:
    """Some columns of the canonical traffic schema of one file. Columns that it lacks are null, as Spark's reader has them.

    Raises ``pyarrow.ArrowInvalid`` or ``OSError`` for what is not a Parquet file.
    """
    footer = pq.read_metadata(pa.BufferReader(content))
    names = frozenset(footer.schema.to_arrow_schema().names)
    needed = file_columns(columns, may_have_deltas=not excludes_value(footer, "semantics", DELTA))
    groups = [group for group in range(footer.num_row_groups) if between is None or between.may_cut(span_us(footer, group))]
    with pq.ParquetFile(
        pa.BufferReader(content),
        metadata=footer,
        read_dictionary=[name for name in DICTIONARIES if name in names],
        coerce_int96_timestamp_unit="us",
    ) as file:
        present = [name for name in needed if name in names]
        require_short_names(footer, path, groups, present)
        for batch in file.iter_batches(ROWS_A_BATCH, row_groups=groups, columns=present, use_threads=False):
            rows = with_required_columns(batch)
            yield canonical_rows(rows if between is None else between.rows_of(rows), columns)
