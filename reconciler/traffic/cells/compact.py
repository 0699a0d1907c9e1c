"""Recorded requests to cells on Spark: what each client did in each second, and who the clients are."""

from __future__ import annotations

import itertools
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.traffic.cells.clients import keep_clients
from reconciler.traffic.cells.minutes import MINUTE_US, ranges_of
from reconciler.traffic.cells.segment_files import ROWS_A_GROUP, Clients, write_segment
from reconciler.traffic.cells.segment_files import SCHEMA as LINES
from reconciler.traffic.cells.segments import CELLS, SERIES, Covered, Segment, SegmentFolder
from reconciler.traffic.columns.places import KnownClients
from reconciler.traffic.columns.workers import ColumnFiles
from reconciler.traffic.counted import added_up, series_of
from reconciler.traffic.shuffle.on_spark import run_on_workers
from reconciler.traffic.sources.one_cluster import CLUSTER, require_one
from reconciler.traffic.sources.readable import require_readable
from reconciler.traffic.sources.series_key import IDENTITY, series_key
from reconciler.traffic.sources.statuses import CHARGED, UNREADABLE

_SPREAD: Final = 4
"""A file's cells are sorted and written in two to the power of so many parts at most."""
_SAME_NUMBER: Final = "two clients of this history have the same number; judge it without compacting it"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to compact: ``id`` is what it is known by."""

    path: Path
    id: str
    size: int


def compact(
    rows: DataFrame, files: Mapping[Path, SourceFile], folder: SegmentFolder, *, max_unreadable: float = 1.0
) -> tuple[Segment, ...]:
    """Write a segment for each file. ``rows``: as ``request_log`` reads them, with their ``file``.

    Raises ``TrafficError`` when two clients have one number, or when more than the share ``max_unreadable`` of a file cannot be
    read; ``FileAccessError`` when the folder cannot be written. What was
    whole before stays whole, whatever happens.
    """
    made = folder.fresh(run := _fresh_run())
    keyed = rows.where(F.col("status") == CHARGED).withColumn("series", series_key()).withColumn("file_key", F.xxhash64("file"))
    by_file = _lines_by_file(rows)
    _require_one_cluster(by_file, files, folder)
    for lines in by_file:
        _require_readable(lines, max_unreadable, _path_of(lines[0].file))
    _write_cells(keyed, made / CELLS)
    _write_series(keyed, made / SERIES)
    segments = []
    for lines in by_file:
        source = files[_path_of(lines[0].file)]
        target = made / f"done-{source.id}"
        target.mkdir()
        for part in (CELLS, SERIES):
            found = made / part / f"file_key={lines[0].file_key}"
            if found.exists():
                found.rename(target / part)
        segments.append(_publish(folder, target, run, source, lines))
    return _tidied(folder, segments)


def compact_columns(
    spark: SparkSession, files: Mapping[Path, SourceFile], folder: SegmentFolder, *, max_unreadable: float = 1.0
) -> tuple[Segment, ...]:
    """The same from files in the normal form, whose columns have been looked at before: each is read by one worker, twice."""
    made = folder.fresh(run := _fresh_run())
    sources = list(files.values())
    columns = ColumnFiles(spark, [str(source.path) for source in sources])
    series = series_of(added_up(columns.counted()))
    keys = np.asarray([one.key for one in series], dtype=np.int64)
    if len(np.unique(keys)) < len(keys):
        raise TrafficError(_SAME_NUMBER)
    clients = Clients(KnownClients.of(series), keys)
    parts_of = columns.parts_by_file()
    parts = [parts_of.get(str(source.path), ()) for source in sources]
    targets = [made / f"done-{source.id}" for source in sources]

    def write(number: int) -> Iterator[pa.RecordBatch]:
        yield write_segment(number, parts[number], clients, targets[number])

    found = run_on_workers(spark, range(len(sources)), write, LINES).toArrow().to_pylist()
    by_file: list[list[Row]] = [[] for _ in sources]
    for line in sorted(found, key=lambda line: (line["status"] or "", line["broker"] or 0)):
        by_file[line["file"]].append(Row(**line, clusters=[]))
    for source, lines in zip(sources, by_file, strict=True):
        _require_readable(lines, max_unreadable, source.path)
    segments = []
    for source, target, lines in zip(sources, targets, by_file, strict=True):
        target.mkdir(exist_ok=True)
        segments.append(_publish(folder, target, run, source, lines))
    return _tidied(folder, segments)


def _tidied(folder: SegmentFolder, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    folder.sweep()
    keep_clients(folder)
    return tuple(segments)


def _fresh_run() -> str:
    return uuid.uuid4().hex[:12]


def _require_readable(lines: Sequence[Row], most: float, path: Path) -> None:
    unreadable = sum(row.lines for row in lines if row.status == UNREADABLE)
    require_readable(unreadable, sum(row.lines for row in lines), most, files=[str(path)])


def _require_one_cluster(by_file: Sequence[Sequence[Row]], files: Mapping[Path, SourceFile], folder: SegmentFolder) -> None:
    """Of these files and those that were compacted before; an earlier version of the same file is gone afterwards."""
    named: dict[str, str] = {}
    for lines in by_file:
        named |= dict.fromkeys(_clusters(lines), str(_path_of(lines[0].file)))
    again = {source.id for source in files.values()}
    for segment in folder.segments():
        if segment.id not in again:
            named |= dict.fromkeys(segment.clusters, f"{segment.source}, compacted earlier")
    require_one(named)


def _clusters(lines: Sequence[Row]) -> tuple[str, ...]:
    return tuple(sorted({name for row in lines for name in row.clusters}))


def _write_cells(keyed: DataFrame, target: Path) -> None:
    second = F.floor(F.col("ts_us") / 1_000_000).alias("second")
    cells = keyed.groupBy("file_key", "series", second).agg(F.sum(F.col("records") + F.col("overhead")).alias("amount"))
    ordered = cells.repartition("file_key", F.shiftrightunsigned("series", 64 - _SPREAD))
    ordered = ordered.sortWithinPartitions("file_key", "series", "second")
    writer = ordered.write.partitionBy("file_key").option("compression", "zstd")
    writer.option("parquet.block.row.count.limit", ROWS_A_GROUP).parquet(str(target))


def _write_series(keyed: DataFrame, target: Path) -> None:
    # All by numbers and sums: a smallest text would make Spark sort all rows.
    series = keyed.groupBy("file_key", "series", *IDENTITY).agg(
        F.count(F.lit(1)).alias("requests"),
        F.sum(F.col("records") + F.col("overhead")).alias("amount"),
        F.max("records").alias("largest"),
        F.sum(F.col("throttled").cast("long")).alias("throttled"),
        F.min("ts_us").alias("start_us"),
        F.max("ts_us").alias("end_us"),
    )
    series.coalesce(1).write.partitionBy("file_key").parquet(str(target))
    # Read back, so that a long history is not gone through once more.
    written = keyed.sparkSession.read.parquet(str(target)).groupBy("file_key", "series").count()
    if written.where("count > 1").count():
        raise TrafficError(_SAME_NUMBER)


def _lines_by_file(rows: DataFrame) -> list[list[Row]]:
    cluster = F.col(CLUSTER) if CLUSTER in rows.columns else F.lit(None).cast("string").alias(CLUSTER)
    minute = F.floor(F.col("ts_us") / MINUTE_US).alias("minute")
    # Two steps: collecting the minutes of all lines at once would take Spark its slow way of adding up.
    of_minutes = rows.groupBy("file", F.xxhash64("file").alias("file_key"), "status", "broker", cluster, minute).agg(
        F.count(F.lit(1)).alias("lines"), F.min("ts_us").alias("start_us"), F.max("ts_us").alias("end_us")
    )
    counted = of_minutes.groupBy("file", "file_key", "status", "broker", CLUSTER).agg(
        F.sum("lines").alias("lines"),
        F.min("start_us").alias("start_us"),
        F.max("end_us").alias("end_us"),
        F.collect_list("minute").alias("minutes"),
    )
    found = counted.orderBy("file", "status", "broker", CLUSTER).collect()
    by_file: dict[str, list[Row]] = {}
    # Those that name a cluster were counted apart.
    for (file, _, _), alike in itertools.groupby(found, key=lambda row: (row.file, row.status, row.broker)):
        by_file.setdefault(file, []).append(_together(list(alike)))
    return list(by_file.values())


def _together(rows: Sequence[Row]) -> Row:
    def known(name: str) -> list[int]:
        return [row[name] for row in rows if row[name] is not None]

    return Row(
        file=rows[0].file,
        file_key=rows[0].file_key,
        status=rows[0].status,
        broker=rows[0].broker,
        lines=sum(row.lines for row in rows),
        start_us=min(known("start_us"), default=None),
        end_us=max(known("end_us"), default=None),
        minutes=[minute for row in rows for minute in row.minutes],
        clusters=[row[CLUSTER] for row in rows if row[CLUSTER] is not None],
    )


def _publish(folder: SegmentFolder, target: Path, run: str, source: SourceFile, lines: Sequence[Row]) -> Segment:
    """``lines`` without a status are of all of a broker's."""
    statuses: dict[str, int] = {}
    for row in (row for row in lines if row.status is not None):
        statuses[row.status] = statuses.get(row.status, 0) + row.lines
    segment = Segment(
        id=source.id,
        source=source.path.name,
        size=source.size,
        folder=f"{source.id}-{run}",
        coverage=tuple(
            Covered(
                broker=row.broker,
                requests=row.lines,
                start_us=row.start_us,
                end_us=row.end_us,
                minutes=ranges_of([minute for one in lines if one.broker == row.broker for minute in one.minutes or ()]),
            )
            for row in lines
            if row.status == CHARGED
        ),
        statuses=statuses,
        clusters=_clusters(lines),
    )
    folder.publish(segment, target)
    return segment


def _path_of(uri: str) -> Path:
    """Spark names files by their address."""
    return Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
