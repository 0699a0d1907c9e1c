"""Recorded traffic on Spark, as rows of the canonical traffic schema.

Of files that all workers see, each worker reads parts, many small ones in one task. Datasets, which are addresses and tables, go
through Spark's own readers.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import logging
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import PurePosixPath
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import log_event, timed_event
from reconciler.model import escaped
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.shuffle.on_spark import (
    KeptRows,
    SparkRows,
    Together,
    least_tasks,
    scan_all,
    scan_frame,
    scan_parts,
    split_work,
)
from reconciler.traffic.sources.log_documents import check_zone
from reconciler.traffic.sources.log_evidence import (
    CLUSTER,
    LINE_KEYS,
    NO_TOPICS,
    TOPIC_EVENTS,
    charge_topics,
    count_partitions,
    line_keys,
    mark_copies,
)
from reconciler.traffic.sources.log_files import (
    BrokerFiles,
    Dataset,
    LogPart,
    address_of_file,
    is_request_log,
    log_parts,
    number_brokers,
)
from reconciler.traffic.sources.normal_form import COLUMNS, canonical_rows, file_columns, require_columns
from reconciler.traffic.sources.parquet_parts import ROWS_A_PART, Between, Part, decode_file, read_part
from reconciler.traffic.sources.request_log import parse_lines, schema
from reconciler.traffic.spark_jobs import reason
from reconciler.traffic.spark_versions import collect_table

_log: Final = logging.getLogger(__name__)
_LOG_BYTES_A_TASK: Final = 4_000_000
"""As stored, perhaps compressed."""
_PATH: Final = "_metadata.file_path"
_MOST_FILES: Final = 100_000
"""Of which the names are looked at."""
_TABLE_FORMATS: Final = {"_delta_log": "a Delta table", "metadata": "an Iceberg table"}
"""Folders of tables: their files alone have rows that the table no longer has."""
_DAYS: Final = frozenset({"dt", "ds", "date", "day"})
"""Usual names of the columns by which a Hive layout is cut into days."""
LARGEST_FILE: Final = 128 * 1024 * 1024
"""Bytes. Spark puts as many into one task, too, and a worker gets all files of a task at once."""
_NEEDED: Final = ("path", "content")
Found = TypeVar("Found")


def normal_form_rows(spark: SparkSession, parts: Sequence[Part], together: Together = ()) -> SparkRows[pa.RecordBatch]:
    """Rows of the canonical traffic schema of files in the normal form: workers read their columns anew for each pass.

    ``together``: totals for which one pass is enough.
    """
    return SparkRows(spark, scan_parts(spark, parts, [part.rows for part in parts], read_part, a_task=ROWS_A_PART), together)


def request_log_rows(
    spark: SparkSession,
    logs: Sequence[BrokerFiles],
    *,
    log_timezone: str = "UTC",
    also: Sequence[str] = (),
    kinds: Collection[Kind] = BYTES,
    topics: Mapping[str, int] = NO_TOPICS,
) -> SparkRows[pa.RecordBatch]:
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
    return mark_repeats(KeptRows.of_shares(spark, shares, read), also, topics if Kind.MUTATION in kinds else None)


def mark_repeats(rows: KeptRows, also: Sequence[str], topics: Mapping[str, int] | None) -> SparkRows[pa.RecordBatch]:
    """The rows of request logs with the columns ``also``, copies of lines marked. Closes them when it fails.

    Topics that were extended or deleted get what that cost, where some line or ``topics`` shows it. ``topics``: ``None`` where no
    mutations were read.
    """
    try:
        if rows.has_repeats(line_keys, LINE_KEYS):
            rows = rows.rewritten(
                lambda batch: np.asarray(batch.column("tie").to_numpy(), dtype=np.int64),
                lambda table: mark_copies(table.cast(schema(also))),
            )
        if topics is not None and (partitions := count_partitions(rows.total(TOPIC_EVENTS), topics)):
            return rows.map(functools.partial(charge_topics, partitions=partitions), ())
    except BaseException:
        rows.close()
        raise
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of datasets: request logs by broker, or Parquet. A table has neither."""

    logs: tuple[BrokerFiles, ...] = ()
    parquet: tuple[str, ...] = ()


def list_datasets(spark: SparkSession, datasets: Sequence[Dataset]) -> Listing:
    """List the files at these addresses. Raises ``TrafficError`` when there are none, or none that can be read."""
    if datasets[0].is_table:
        return Listing()
    logs: list[tuple[int | None, str, list[str]]] = []
    parquet: list[str] = []
    for dataset in datasets:
        with timed_event(_log, "dataset listed", dataset=dataset.name) as event:
            names = file_names(spark, dataset)
            event["files"] = len(names)
        of_parquet = [name for name in names if name.endswith(".parquet")]
        lines = [name for name in names if is_request_log(PurePosixPath(name).name) and not name.endswith(".parquet")]
        if of_parquet:
            _refuse_table(spark, dataset)
            parquet += of_parquet
        elif not lines:
            raise TrafficError(
                f"recorded traffic {escaped(dataset.name)}: there is no request log and no Parquet. Of other files create a view "
                "in Spark, and name it as table:NAME"
            )
        if lines:
            logs.append((dataset.broker, root_of(dataset, lines), lines))
    if logs and parquet:
        raise UsageError("--traffic names addresses with different kinds of files: give one kind at a time")
    return Listing(logs=number_brokers(logs), parquet=tuple(parquet))


def root_of(dataset: Dataset, names: Sequence[str]) -> str:
    """The dataset's address as it stands in those of its files, where Spark may write ``file:`` with other slashes."""
    path = f"/{dataset.name.partition('://')[2].partition('/')[2]}".rstrip("/")
    before, same, _ = names[0].partition(path)
    return before + path if same else names[0].rpartition("/")[0]


def frame_rows(
    spark: SparkSession, datasets: Sequence[Dataset], between: Between | None = None, together: Together = ()
) -> SparkRows[pa.RecordBatch]:
    """Rows of a table, or of Parquet files, in a stretch of time. Spark reads them anew for each pass.

    Workers decode plain Parquet files, of a stretch of time those of its days in UTC. Spark's own reader looks for rows of this
    time in the days beside them, and reads the row groups that have some. ``together``: as ``normal_form_rows``. Raises
    ``TrafficError`` when a column is missing or has another type.
    """
    where = escaped(str(datasets[0]))
    frame = _load(datasets[0], lambda: _frame(spark, datasets))
    rows = rows_of_frame(frame, between, together, where=where)
    contents = None if datasets[0].is_table else _load(datasets[0], lambda: _contents(spark, datasets, between))
    if contents is None:
        return rows
    decoded = contents_rows(contents, between, together)
    if between is None:
        return decoded
    rest = rows_of_frame(frame.where(~_of_utc_days(frame, between)), between, where=where)
    return SparkRows(spark, scan_all([decoded.made_of_shares, rest.made_of_shares]), together)


def _contents(spark: SparkSession, datasets: Sequence[Dataset], between: Between | None) -> DataFrame | None:
    """Whole Parquet files of the UTC days of a stretch of time. ``None``: Spark's reader reads less, or alone can read them."""
    contents = contents_frame(spark, [dataset.name for dataset in datasets])
    if contents is not None and between is not None:
        contents = contents.where(_of_utc_days(contents, between)) if day_columns(contents) else None
    return None if contents is None or largest_file(contents) > LARGEST_FILE else contents


def rows_of_frame(
    frame: DataFrame, between: Between | None = None, together: Together = (), *, where: str
) -> SparkRows[pa.RecordBatch]:
    """The same of a frame, on its own session. ``where`` names it in errors. Raises ``TrafficError``."""
    names = frame.columns
    known = [f"`{name}`" for name, _ in COLUMNS if name in names]
    schema = collect_table(frame.select(known).limit(0)).schema if known else pa.schema([])
    others = [pa.field(name, pa.null()) for name in names if name not in schema.names]
    require_columns(pa.schema([*schema, *others]), where)
    narrowed = frame if between is None else rows_between(frame, between)
    scan = scan_frame(narrowed, file_columns, lambda batch, columns: (canonical_rows(batch, columns),))
    return SparkRows(frame.sparkSession, scan, together)


def cluster_names(spark: SparkSession, datasets: Sequence[Dataset], between: Between | None) -> frozenset[str]:
    """Return the names in a column or folder ``cluster``. Brokers of two clusters have the same ids."""
    frame = _load(datasets[0], lambda: _frame(spark, datasets))
    if CLUSTER not in frame.columns:
        return frozenset()
    narrowed = frame if between is None else days_between(frame, between)
    names = narrowed.select(F.col(CLUSTER).cast("string").alias(CLUSTER)).distinct().collect()
    return frozenset(row[CLUSTER] for row in names if row[CLUSTER] is not None)


def columns_of_dataset(spark: SparkSession, dataset: Dataset, listing: Listing) -> list[str]:
    """The columns of a table, or of one of the files of a dataset in Parquet."""
    read, name = (spark.read.table, dataset.name) if dataset.is_table else (spark.read.parquet, listing.parquet[0])
    return _load(dataset, lambda: read(name).columns)


def days_between(frame: DataFrame, between: Between) -> DataFrame:
    """The rows of the days of this time and of the days beside them, by columns such as ``dt=2026-11-20`` in a Hive layout.

    Nothing is known of the time zone in which those days begin.
    """
    day = datetime.timedelta(days=1)
    first, last = (datetime.datetime.fromtimestamp(us / 1e6, datetime.UTC).date() for us in (between.after_us, between.until_us))
    for name in day_columns(frame):
        frame = frame.where(F.col(name).between(first - day, last + day))
    return frame


def _of_utc_days(frame: DataFrame, between: Between) -> Column:
    """Whether a row is of the days of this time, in UTC. A day of which only its first moment counts is left out."""
    first, last = (
        datetime.datetime.fromtimestamp(us / 1e6, datetime.UTC).date() for us in (between.after_us + 1, between.until_us - 1)
    )
    return reduce(operator.and_, (F.col(name).between(first, last) for name in day_columns(frame)))


def day_columns(frame: DataFrame) -> list[str]:
    """The columns by which a Hive layout is cut into days."""
    return [field.name for field in frame.schema.fields if field.name.lower() in _DAYS and isinstance(field.dataType, DateType)]


def rows_between(frame: DataFrame, between: Between) -> DataFrame:
    """The canonical rows of a stretch of time, by a filter that Spark hands on to files and tables."""
    ts = F.col("ts")
    after, until = (F.timestamp_micros(F.lit(us)) for us in (between.after_us, between.until_us))
    if isinstance(frame.schema["ts"].dataType, TimestampNTZType):
        # As UTC, whatever the time zone of the session is.
        after, until = (_utc_wall(us) for us in (between.after_us, between.until_us))
    return days_between(frame, between).where((ts > after) & (ts <= until))


def _utc_wall(us: int) -> Column:
    at = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=us)
    return F.expr(f"TIMESTAMP_NTZ'{at:%Y-%m-%d %H:%M:%S.%f}'")


def log_rows(
    spark: SparkSession,
    logs: Sequence[BrokerFiles],
    *,
    log_timezone: str,
    also: Sequence[str],
    kinds: Collection[Kind],
    between: Between | None = None,
) -> KeptRows:
    """Rows of request logs, which Spark unpacks and cuts into lines, with the columns ``also``, read once and kept.

    ``mark_repeats`` makes them those of ``request_log_rows``. Raises ``UsageError`` for an unknown time zone.
    """
    zone = check_zone(log_timezone)
    brokers = {file: log.broker for log in logs for file in log.files}
    # Bytes, since a damaged line need not be text.
    lines = spark.read.text(list(brokers)).select(F.col(_PATH).alias("file"), F.col("value").cast("binary").alias("line"))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file, part in itertools.groupby(_lines(batches), key=lambda line: line[0]):
            texts, address = (line for _, line in part), address_of_file(file)
            for batch in parse_lines(texts, broker=brokers[address], file=address, zone=zone, kinds=kinds, also=also):
                yield batch if between is None else between.charged_rows(batch)

    return KeptRows.of_frame(spark, lines, read)


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    for batch in batches:
        files = batch.column("file").to_pylist()
        yield from zip(files, (line + b"\n" for line in batch.column("line").to_pylist()), strict=True)


def _frame(spark: SparkSession, datasets: Sequence[Dataset]) -> DataFrame:
    if datasets[0].is_table:
        return spark.read.table(datasets[0].name)
    # Files of other days may have columns that one file lacks.
    return spark.read.option("mergeSchema", "true").parquet(*(dataset.name for dataset in datasets))


def file_names(spark: SparkSession, dataset: Dataset) -> list[str]:
    """The addresses of its files, sorted. A reader of whole files lists them, and opens none for their names alone."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    rows = _load(dataset, lambda: reader.load(dataset.name).select(_PATH).limit(_MOST_FILES).collect())
    names = sorted(address_of_file(row[0]) for row in rows)
    if not names:
        raise TrafficError(f"recorded traffic {escaped(dataset.name)}: there are no files")
    return names


def _refuse_table(spark: SparkSession, dataset: Dataset) -> None:
    for folder, words in _TABLE_FORMATS.items():
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", "*.json")
        try:
            is_table = not reader.load(f"{dataset.name.rstrip('/')}/{folder}").select(_PATH).isEmpty()
        except AnalysisException:
            # There is no such folder.
            continue
        if is_table:
            raise TrafficError(
                f"recorded traffic {escaped(dataset.name)} is {words}. Its files also have rows that were replaced, so name "
                "it as table:CATALOG.DATABASE.TABLE"
            )


def _load(dataset: Dataset, load: Callable[[], Found]) -> Found:
    try:
        return load()
    except (PySparkException, Py4JError) as error:
        # Spark's own refusals are sentences, what its file systems raise is not.
        text = str(error)
        first = text.strip().splitlines()[0] if isinstance(error, AnalysisException) else reason(text)
        log_event(_log, "dataset not readable", dataset=dataset.name, error=first)
        raise TrafficError(f"recorded traffic {escaped(str(dataset))} cannot be read: {escaped(first)}") from None


def contents_frame(spark: SparkSession, addresses: Sequence[str]) -> DataFrame | None:
    """A row for each Parquet file, with the columns of its folders. Spark reads its bytes, and workers decode them.

    Spark's own reader makes rows of the columns of a file, and columns of these rows for a worker. The bytes cost a quarter of
    that processor time. Spark's reader stays for files that are too large to be in memory whole, and a stretch of time that
    days in folder names do not cut out. ``None``: Spark's own reader has to read them.
    """
    frame = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet").load(list(addresses))
    # A folder such as broker=1 is a column of the traffic that its files lack.
    return frame if set(frame.columns).isdisjoint(name for name, _ in COLUMNS) else None


def largest_file(frame: DataFrame) -> int:
    """The bytes of the largest file of ``contents_frame``. Spark reads no content for it."""
    (row,) = frame.agg(F.max("length")).collect()
    return int(row[0] or 0)


def contents_rows(frame: DataFrame, between: Between | None = None, together: Together = ()) -> SparkRows[pa.RecordBatch]:
    """Canonical rows of the files of ``contents_frame``, in a stretch of time. ``together``: as ``SparkRows``.

    A file that cannot be decoded ends the run with ``TrafficError``.
    """
    scan = scan_frame(frame, lambda _: _NEEDED, functools.partial(_decode_files, between=between))
    return SparkRows(frame.sparkSession, scan, together)


def _decode_files(batch: pa.RecordBatch, columns: Sequence[str], between: Between | None) -> Iterator[pa.RecordBatch]:
    for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
        try:
            yield from decode_file(content.as_buffer(), columns, between)
        except (pa.ArrowInvalid, OSError) as error:
            message = f"recorded traffic {escaped(path)} is not a Parquet file, or was not finished"
            raise TrafficError(message) from error
