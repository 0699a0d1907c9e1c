"""A folder of per-second totals as rows of recorded traffic: few are read in this process, many by Spark's workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.traffic.client_totals import CLIENT_TOTALS, FOLDS, MINUTE_TOTALS, MINUTES, NAMES, SCHEMA
from reconciler.traffic.columns import NAME_CODES, KnownClients, names_at
from reconciler.traffic.kernels.sampled_rate import Flags, Integers
from reconciler.traffic.request_traffic import TrafficSource
from reconciler.traffic.seconds.folder import SERIES, TOTALS, Segment, SegmentFolder, minutes_in
from reconciler.traffic.shuffle.rows import Convert, GroupWork, LocalRows, Rows, Totals, add_up, copy_rows, joined_names
from reconciler.traffic.sources.normal_form import CHARGED, integers, with_missing
from reconciler.traffic.spark_setup import has_spark, require_spark_above
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log: Final = logging.getLogger(__name__)
_COLUMNS: Final = ("series", "second", "amount")
_ROWS_A_BATCH: Final = 1 << 20
_SECOND_US: Final = 1_000_000
_NAMES: Final = ("user", "client_id", "ip", "kind")
MOST_HERE: Final = 20_000_000
"""Totals of one client and second that are judged in this process: 1.6 GB, and some ten seconds."""
_ALONE: Final = 4
"""How many times as many are judged in this process where PySpark is not installed: in six GB."""
_BYTES_A_TASK: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million rows."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Which totals to read. ``seconds``: the first one, and the one behind the last. ``None``: all."""

    clients: KnownClients | None = None
    seconds: tuple[int, int] | None = None
    conversions: tuple[tuple[Convert[pa.RecordBatch], tuple[str, ...]], ...] = ()
    """What becomes of the rows, and the columns that each conversion reads."""

    def read(self, file: StoredFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        for _, more in self.conversions:
            columns = joined_names(columns, more)
        batches = file.batches(columns, self.clients, self.seconds)
        for convert, _ in self.conversions:
            batches = convert(batches)
        return batches


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A Parquet file of per-second totals, sorted by client and second. ``clients``: the file with its segment's clients."""

    path: str
    clients: str

    def batches(
        self, columns: Sequence[str], clients: KnownClients | None, seconds: tuple[int, int] | None
    ) -> Iterator[pa.RecordBatch]:
        """Columns of ``normal_form.ROWS``, a row for each second of a client. ``clients`` and ``seconds``: ``None`` is all."""
        known = pq.read_table(self.clients, read_dictionary=list(_NAMES)).unify_dictionaries().combine_chunks()
        known = known.filter(pc.equal(known.column("status"), CHARGED))
        names = {name: known.column(name).combine_chunks().cast(NAME_CODES) for name in _NAMES}
        codes = {name: integers(column.indices.fill_null(-1)) for name, column in names.items()}
        broker = integers(known.column("broker").combine_chunks())
        wanted = None if clients is None else clients.of_names(*names.values(), pa.array(broker)) >= 0
        for number, second, amount in self._totals(wanted, seconds):
            made: dict[str, Any] = {
                "status": names_at(pa.array([CHARGED]), np.zeros(len(number), dtype=np.int64)),
                "broker": pa.array(broker[number]),
                **{name: names_at(names[name].dictionary, codes[name][number]) for name in _NAMES if name in columns},
                "ts_us": pa.array(second * _SECOND_US),
                "records": pa.array(amount),
                "overhead": pa.array(np.zeros(len(number), dtype=np.int64)),
            }
            yield with_missing(made, columns, len(number))

    def _totals(self, wanted: Flags | None, seconds: tuple[int, int] | None) -> Iterator[list[Integers]]:
        """Numbers of clients, seconds and amounts. Row groups without a client that is ``wanted`` are not read."""
        numbers = None if wanted is None else np.flatnonzero(wanted)
        with pq.ParquetFile(self.path) as file:
            place = file.schema_arrow.names.index("series")
            statistics = (file.metadata.row_group(group).column(place).statistics for group in range(file.num_row_groups))
            groups = [group for group, known in enumerate(statistics) if numbers is None or _any_between(numbers, known)]
            for batch in file.iter_batches(_ROWS_A_BATCH, row_groups=groups, columns=list(_COLUMNS), use_threads=False):
                columns = [integers(column) for column in batch.columns]
                chosen = np.ones(batch.num_rows, dtype=np.bool_) if wanted is None else wanted[columns[0]]
                if seconds is not None:
                    chosen &= (columns[1] >= seconds[0]) & (columns[1] < seconds[1])
                yield columns if chosen.all() else [column[chosen] for column in columns]


class StoredRows(Rows[pa.RecordBatch]):
    """Rows of a folder that ``compact`` made. Each pass chooses its engine: ``session`` starts Spark when it is needed.

    ``counted``: ``client_totals.SCHEMA`` of all of them. ``minutes``: ``client_totals.MINUTES``.
    """

    def __init__(
        self,
        files: Sequence[StoredFile],
        session: Callable[[], SparkSession],
        counted: pa.Table,
        minutes: pa.Table,
        progress: Progress = NO_PROGRESS,
        *,
        most_here: int = MOST_HERE,
    ) -> None:
        super().__init__()
        self._progress = progress
        self.files, self.session, self.most_here = tuple(files), session, most_here
        self._clients = counted.filter(pc.field("status") == CHARGED)
        self._stored = ((CLIENT_TOTALS, counted), (MINUTE_TOTALS, minutes))
        self._part = _Part()

    def only(self, clients: KnownClients) -> StoredRows:
        """Implement ``Rows.only``. Conversions can make other clients, so that all are read for them."""
        part = self._part
        return self if part.conversions else copy_rows(self, _part=_Part(clients=clients, seconds=part.seconds))

    def between(self, start_us: int, end_us: int) -> StoredRows:
        """Implement ``Rows.between``, by whole seconds. Totals are those of the whole history."""
        part = _Part(self._part.clients, (start_us // _SECOND_US, -(-end_us // _SECOND_US)), self._part.conversions)
        return copy_rows(self, _part=part)

    def judge_in_order(self, works: Sequence[GroupWork[pa.RecordBatch]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Implement ``Rows.judge_in_order``."""
        return self._engine().judge_in_order(works, by)

    def _mapped(self, convert: Convert[pa.RecordBatch], columns: Sequence[str]) -> StoredRows:
        part = self._part
        made = _Part(part.clients, part.seconds, (*part.conversions, (convert, tuple(columns))))
        return copy_rows(self, _part=made, _stored=())

    def _count(self, works: Sequence[Totals[pa.RecordBatch]]) -> dict[str, pa.Table]:
        rows = self._engine()
        return {work.name: rows.total(work) for work in works}

    def _judge(self, work: GroupWork[pa.RecordBatch]) -> pa.Table:
        return self._engine().judge(work)

    def _engine(self) -> Rows[pa.RecordBatch]:
        part, clients = self._part, self._most()
        most = int(clients.sum())
        most_here = self.most_here
        if most > most_here and not has_spark():
            most_here *= _ALONE
            require_spark_above(most, most_here, unit="totals")
        here = most <= most_here
        log_event(
            _log,
            "engine chosen",
            level=logging.INFO,
            engine="this process" if here else "Spark",
            why="few totals" if here else "many totals",
            clients=int(np.count_nonzero(clients)),
            totals=most,
            most_totals=most_here,
        )
        if here:
            return LocalRows(self._read_here, progress=self._progress)
        from reconciler.traffic.shuffle.on_spark import SparkRows, scan_parts

        spark, sizes = self.session(), [Path(file.path).stat().st_size for file in self.files]
        return SparkRows(spark, scan_parts(spark, self.files, sizes, part.read, a_task=_BYTES_A_TASK))

    def _read_here(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        log_event(_log, "files opened", files=len(self.files), first=[file.path for file in self.files[:1]])
        with ThreadPoolExecutor() as pool:
            for done, batches in enumerate(pool.map(lambda file: list(self._part.read(file, columns)), self.files), 1):
                yield from batches
                self._progress.count(done, len(self.files), "files")

    def _most(self) -> Integers:
        """Return the most totals that are read of each client: one a request, and one a second from its first to its last."""
        lines, start, end = (integers(self._clients.column(name).combine_chunks()) for name in ("lines", "start_us", "end_us"))
        most: Integers = np.minimum(lines, (end - start) // _SECOND_US + 1)
        if self._part.clients is None:
            return most
        names = [self._clients.column(name).combine_chunks() for name in _NAMES]
        broker = pa.array(integers(self._clients.column("broker").combine_chunks()))
        return most * (self._part.clients.of_names(*names, broker) >= 0)


def open_folder(
    folder: SegmentFolder, session: Callable[[], SparkSession], progress: Progress = NO_PROGRESS, *, most_here: int = MOST_HERE
) -> TrafficSource:
    """A folder that ``compact`` made. Raises ``TrafficError`` when it has no totals."""
    segments = folder.segments()
    counted = client_totals(folder, segments)
    if not counted.num_rows:
        raise TrafficError(f"recorded traffic {folder.root} has no per-second totals yet: run compact, and read its output")
    files = [
        StoredFile(path, str(folder.data(segment, SERIES).absolute() / "part-00000.parquet"))
        for segment in segments
        for path in folder.files((segment,), TOTALS)
    ]
    log_event(_log, "per-second totals listed", folder=str(folder.root), segments=len(segments), clients=counted.num_rows)
    return TrafficSource(
        StoredRows(files, session, counted, _minutes(segments), progress, most_here=most_here),
        source=Source.LOG_CELLS if any(segment.of_logs for segment in segments) else Source.CELLS,
        files=sorted(segment.source for segment in segments),
        counted=counted,
        is_stored=True,
    )


def _minutes(segments: Sequence[Segment]) -> pa.Table:
    """``MINUTES`` that ``compact`` saw in each of a broker's files."""
    ranges_of: dict[int, list[tuple[int, int]]] = {}
    for segment in segments:
        for broker, ranges in segment.summary.minutes.items():
            ranges_of.setdefault(broker, []).extend(ranges)
    minutes = {broker: minutes_in(ranges) for broker, ranges in ranges_of.items()}
    tables = [
        pa.table([pa.repeat(pa.scalar(broker, pa.int32()), len(some)), pa.array(some)], schema=MINUTES)
        for broker, some in minutes.items()
    ]
    return pa.concat_tables([MINUTES.empty_table(), *tables])


def _any_between(numbers: Integers, known: pq.Statistics | None) -> bool:
    if known is None or not known.has_min_max:
        return True
    return bool(np.searchsorted(numbers, known.min) < np.searchsorted(numbers, known.max, side="right"))


def client_totals(folder: SegmentFolder, segments: Sequence[Segment]) -> pa.Table:
    """``client_totals.SCHEMA`` of all segments, in no order. No row when no segment has any."""
    files = folder.files(segments, SERIES)
    tables = ds.dataset(files, SCHEMA, format="parquet").to_table() if files else SCHEMA.empty_table()
    return add_up(tables, NAMES, FOLDS)
