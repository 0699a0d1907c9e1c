"""Recorded requests to per-second totals, file by file: in this process, or on Spark. Both add up with ``FileTotals``.

A client's number is its place among the clients of the file, sorted by user, so that those of a user are together.
"""

from __future__ import annotations

import logging
import shutil
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.model import GAUGE
from reconciler.traffic import (
    CHARGED,
    CLIENT_FOLDS,
    CLIENT_NAMES,
    CLIENT_SCHEMA,
    CLUSTER,
    COPY_OF,
    COUNTED,
    DUPLICATE,
    IDENTITY,
    SERIES_PART,
    TOTALS_PART,
    UNREADABLE,
    ChargedRows,
    FileSummary,
    Integers,
    PartialSums,
    Segment,
    SegmentFolder,
    SourceFile,
    charge_known_topics,
    charge_second_sums,
    charged_rows,
    collect_table,
    count_batch,
    count_minutes,
    mark_copies,
    minutes_in,
    minutes_of,
    parts_of,
    ranges_of,
    read_part,
    require_one,
    require_readable,
    statuses,
    sum_seconds,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import SparkRows

_log: Final = logging.getLogger(__name__)
_BYTES_A_TASK: Final = 32 * 1024 * 1024
_BEGINS_LINE: Final = "begins_line"
"""The column that only rows of request logs have, of which there can be copies."""


class Compaction:
    """One run over files: what it makes is out of the way until it is published, and gone when it fails.

    All three ways write a segment for each file. They raise ``TrafficError`` when more of a file cannot be read or files
    are of several clusters, ``FileAccessError`` when the folder cannot be written. What was whole before stays whole then.
    """

    def __init__(
        self, *, files: Mapping[Path, SourceFile], folder: SegmentFolder, max_unreadable: float = 1.0, of_logs: bool = True
    ) -> None:
        """``max_unreadable``: the largest share of a file that may be unreadable. ``of_logs``: the files are request logs."""
        self._files, self._folder, self._max_unreadable, self._of_logs = files, folder, max_unreadable, of_logs
        self._id = uuid.uuid4().hex[:12]
        self._paths = list(files)

    def __enter__(self) -> None:
        self._made = self._folder.fresh(self._id)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            self._folder.sweep()
            return
        shutil.rmtree(self._made, ignore_errors=True)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(f"{self._folder.root} has the totals of earlier runs, and the same command begins this one anew")

    def in_process(self, batches: Iterable[pa.RecordBatch]) -> tuple[Segment, ...]:
        """Add up rows of small files, with their ``file``. All of them have to fit into memory."""
        with self:
            totals = _by_file(_without_copies(batches))
            return self._publish(
                {_path_of(file): of_file.write(self._target(_path_of(file))) for file, of_file in totals.items()}
            )

    def on_spark(self, rows: SparkRows[pa.RecordBatch]) -> tuple[Segment, ...]:
        """Add up rows with their ``file``, copies marked: workers add up what they keep, then by file. ``rows`` stays open."""
        with self:
            saved_in = self._made / "parts"

            def save(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                saved = []
                for file, of_file in _by_file(batches).items():
                    folder = saved_in / uuid.uuid4().hex
                    saved.append({"file": file, "folder": str(folder), "summary": of_file.save(folder)})
                yield pa.RecordBatch.from_pylist(saved, schema=_SAVED)

            parts: dict[Path, list[tuple[str, str]]] = {}
            for row in rows.share_results(save, _SAVED).to_pylist():
                parts.setdefault(_path_of(row["file"]), []).append((row["folder"], row["summary"]))

            def merge(path: Path) -> FileTotals:
                of_file = FileTotals()
                for folder, summary in parts[path]:
                    of_file.add_saved(Path(folder), summary)
                return of_file

            return self._publish(self._on_workers(rows.spark, merge, [path for path in self._paths if path in parts]))

    def of_normal_form(self, spark: SparkSession) -> tuple[Segment, ...]:
        """Add up files in the normal form, whose columns have been looked at before: one worker reads each, once."""
        with self:
            parts = {path: parts_of([str(path)]) for path in self._paths}

            def add_up(path: Path) -> FileTotals:
                of_file = FileTotals()
                for part in parts[path]:
                    for batch in read_part(part, COUNTED):
                        of_file.add_rows(charge_second_sums(batch))
                return of_file

            return self._publish(self._on_workers(spark, add_up, self._paths))

    def _target(self, path: Path) -> Path:
        """Return the folder in which the segment of a file is made."""
        return self._made / f"done-{self._files[path].id}"

    def _on_workers(
        self, spark: SparkSession, work: Callable[[Path], FileTotals], paths: Sequence[Path]
    ) -> dict[Path, FileSummary]:
        """Add up each of these files, many small ones in one task, and write it. Return their summaries."""
        from reconciler.traffic import least_tasks, run_on_workers, split_work

        def write(share: Sequence[Path]) -> Iterator[pa.RecordBatch]:
            for path in share:
                summary = msgspec.json.encode(work(path).write(self._target(path))).decode()
                yield pa.RecordBatch.from_pylist([{"file": str(path), "summary": summary}], schema=_SUMMARIES)

        sizes = [self._files[path].size for path in paths]
        least = least_tasks(spark)
        shares = split_work(paths, sizes, max(least, sum(sizes) // _BYTES_A_TASK))
        rows = collect_table(run_on_workers(spark, shares, write, _SUMMARIES)).to_pylist()
        return {Path(row["file"]): msgspec.json.decode(row["summary"], type=FileSummary) for row in rows}

    def _publish(self, summaries: Mapping[Path, FileSummary]) -> tuple[Segment, ...]:
        """A segment for each file, after all of them were checked; a file without rows has none."""
        files, folder = self._files, self._folder
        known = {path: summaries.get(path) or FileTotals().write(self._target(path)) for path in self._paths}
        self._require_one_cluster(known)
        for path, summary in known.items():
            statuses = summary.statuses
            require_readable(statuses.get(UNREADABLE, 0), sum(statuses.values()), self._max_unreadable, files=[str(path)])
            _require_no_metrics(statuses, path)
        segments = []
        for path, summary in known.items():
            source = files[path]
            segment = Segment(
                id=source.id,
                source=source.path.name,
                size=source.size,
                folder=f"{source.id}-{self._id}",
                summary=summary,
                of_logs=self._of_logs,
                copies_of=tuple(sorted({files[_path_of(file)].id for file in summary.copies_of} - {source.id})),
            )
            folder.publish(segment, self._target(path))
            log_event(
                _log,
                "totals written",
                level=logging.INFO,
                file=str(path),
                folder=segment.folder,
                requests=segment.requests,
                copies=summary.copies,
            )
            segments.append(segment)
        return tuple(segments)

    def _require_one_cluster(self, summaries: Mapping[Path, FileSummary]) -> None:
        """Raise ``TrafficError`` unless these files and those compacted before are of one cluster. Old versions do not count."""
        named: dict[str, str] = {}
        for path, summary in summaries.items():
            named |= dict.fromkeys(summary.clusters, str(path))
        again = {source.id for source in self._files.values()}
        for segment in self._folder.segments():
            if segment.id not in again:
                named |= dict.fromkeys(segment.summary.clusters, f"{segment.source}, compacted earlier")
        require_one(named)


def _by_file(batches: Iterable[pa.RecordBatch]) -> dict[str, FileTotals]:
    """Add up rows with their ``file``, by its address."""
    totals: dict[str, FileTotals] = {}
    for batch in batches:
        for file in batch.column("file").unique().to_pylist():
            totals.setdefault(file, FileTotals()).add_rows(batch.filter(pc.equal(batch.column("file"), file)))
    return totals


_SAVED: Final = pa.schema([("file", pa.string()), ("folder", pa.string()), ("summary", pa.string())])
_SUMMARIES: Final = pa.schema([("file", pa.string()), ("summary", pa.string())])


def _without_copies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held = list(batches)
    if not held or _BEGINS_LINE not in held[0].schema.names:
        yield from held
        return
    yield from charge_known_topics(mark_copies(pa.Table.from_batches(held)).to_batches())


def _require_no_metrics(statuses: Mapping[str, int], path: Path) -> None:
    """Raise ``TrafficError`` where totals would leave rows out without a word."""
    if gauges := statuses.get(GAUGE):
        raise TrafficError(
            f"recorded traffic {path}: {gauges} rows are rates, of which no totals of seconds can be made. Keep the file, and "
            "give it to backtest as it is"
        )


def _path_of(uri: str) -> Path:
    """Rows name their file by its address."""
    return Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))


_ROWS_A_GROUP: Final = 25_000
"""Of totals: what is read, at least, of a few clients."""
_ROWS_A_FILE: Final = 4_000_000
_MOST_HELD: Final = 8_000_000
_IDENTITY_TYPES: Final = (pa.int32(), pa.string(), pa.string(), pa.string(), pa.string())
_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)
_TOTALS_OF_PART, _CLIENTS_OF_PART, _COUNTS_OF_PART = "totals.parquet", "clients.parquet", "counts.parquet"


class FileTotals:
    """Adds up the rows of one file, in any order."""

    def __init__(self) -> None:
        self._place_of: dict[tuple[Any, ...], int] = {}
        self._totals, self._counts = _Totals(), PartialSums(CLIENT_SCHEMA, CLIENT_NAMES, CLIENT_FOLDS)
        self._minutes: dict[int, set[int]] = {}
        self._clusters: set[str] = set()
        self._copies_of: set[str] = set()
        self._copies = 0

    def add_rows(self, rows: pa.RecordBatch) -> None:
        """Rows with the columns ``client_totals.COUNTED``, and with ``CLUSTER`` and ``COPY_OF`` where these are known."""
        self._add(charged_rows(rows), rows)
        for broker, minutes in minutes_of(pa.Table.from_batches(count_minutes([rows]))).items():
            self._minutes.setdefault(broker, set()).update(minutes.tolist())
        if CLUSTER in rows.schema.names:
            self._clusters.update(rows.column(CLUSTER).unique().drop_null().to_pylist())
        if COPY_OF in rows.schema.names:
            copied = rows.filter(pc.equal(rows.column("status"), DUPLICATE))
            self._copies += pc.sum(copied.column("begins_line")).as_py() or 0
            self._copies_of.update(copied.column(COPY_OF).unique().drop_null().to_pylist())

    def save(self, folder: Path) -> str:
        """Write what was added to a new folder, and return its summary for ``add_saved``."""
        folder.mkdir(parents=True)
        columns = [pa.array([client[place] for client in self._place_of], kind) for place, kind in enumerate(_IDENTITY_TYPES)]
        pq.write_table(pa.table(columns, names=list(IDENTITY)), folder / _CLIENTS_OF_PART)
        pq.write_table(pa.table(list(self._totals.summed()), names=["client", "second", "amount"]), folder / _TOTALS_OF_PART)
        counted = self._counts.table()
        pq.write_table(counted, folder / _COUNTS_OF_PART)
        return msgspec.json.encode(self._summary(counted)).decode()

    def add_saved(self, folder: Path, summary: str) -> None:
        """Add what another instance saved."""
        clients = pq.read_table(folder / _CLIENTS_OF_PART)
        place = self._places(zip(*(clients.column(name).to_pylist() for name in IDENTITY), strict=True))
        totals = pq.read_table(folder / _TOTALS_OF_PART)
        client, second, amount = (np.asarray(column.to_numpy(), dtype=np.int64) for column in totals.columns)
        self._totals.add(place[client], second, amount)
        self._counts.add(pq.read_table(folder / _COUNTS_OF_PART))
        known = msgspec.json.decode(summary, type=FileSummary)
        for broker, ranges in known.minutes.items():
            self._minutes.setdefault(broker, set()).update(minutes_in(ranges).tolist())
        self._clusters.update(known.clusters)
        self._copies_of.update(known.copies_of)
        self._copies += known.copies

    def write(self, target: Path) -> FileSummary:
        """Write the Parquet files of a segment below ``target``, whatever an earlier try left there.

        ``SERIES_PART`` has all totals of rows, those of clients first, in the order of their numbers.
        """
        counted = self._counts.table()
        charged = pc.equal(counted.column("status"), CHARGED)
        clients = counted.filter(charged).sort_by([(name, "ascending") for name in ("user", "client_id", "ip", "kind", "broker")])
        # Clients of which no row is charged get a place here.
        place = self._places(zip(*(clients.column(name).to_pylist() for name in IDENTITY), strict=True))
        numbers = np.empty(len(self._place_of), dtype=np.int32)
        numbers[place] = np.arange(len(place), dtype=np.int32)
        for part, table in enumerate(self._totals.tables(numbers)):
            _write(table, target / TOTALS_PART, part)
        _write(pa.concat_tables([clients, counted.filter(pc.invert(charged))]), target / SERIES_PART, 0)
        return self._summary(counted)

    def _add(self, rows: ChargedRows, batch: pa.RecordBatch) -> None:
        # Of dictionaries, to_pylist takes ten times as long.
        names = (names.cast(pa.string()).to_pylist() for names in rows.names)
        place = self._places(zip(rows.broker.tolist(), *names, strict=True))
        client, second, amount = sum_seconds(rows, np.ones(rows.clients, dtype=np.bool_))
        self._totals.add(place[client], second, amount)
        self._counts.add(count_batch(rows, batch))

    def _places(self, clients: Iterator[tuple[Any, ...]]) -> Integers:
        known = self._place_of
        return np.asarray([known.setdefault(client, len(known)) for client in clients], dtype=np.int64)

    def _summary(self, counted: pa.Table) -> FileSummary:
        minutes = {broker: ranges_of(minutes_of) for broker, minutes_of in sorted(self._minutes.items())}
        return FileSummary(
            statuses=statuses(counted),
            minutes=minutes,
            clusters=tuple(sorted(self._clusters)),
            copies=self._copies,
            copies_of=tuple(sorted(self._copies_of)),
        )


class _Totals:
    """Sums of clients, by their place, and seconds."""

    def __init__(self) -> None:
        self._held: list[tuple[Integers, Integers, Integers]] = [(_NO_INTEGERS,) * 3]
        self._rows, self._next_sum = 0, _MOST_HELD

    def add(self, clients: Integers, seconds: Integers, amounts: Integers) -> None:
        self._held.append((clients, seconds, amounts))
        self._rows += len(clients)
        if self._rows > self._next_sum:
            self._held = [self.summed()]
            self._rows = len(self._held[0][0])
            self._next_sum = max(_MOST_HELD, 2 * self._rows)

    def summed(self) -> tuple[Integers, Integers, Integers]:
        """Rising by client and second, each pair once."""
        clients, seconds, amounts = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
        if not len(clients):
            return clients, seconds, amounts
        order = np.lexsort((seconds, clients))
        clients, seconds, amounts = clients[order], seconds[order], amounts[order]
        first = np.flatnonzero(_changes(clients) | _changes(seconds))
        return clients[first], seconds[first], np.add.reduceat(amounts, first)

    def tables(self, numbers: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Iterator[pa.Table]:
        """Yield the sums in the order of the clients' numbers, a table for each file, whose size is bounded."""
        clients, seconds, amounts = self.summed()
        order = np.argsort(numbers[clients], kind="stable")
        columns = {"series": numbers[clients][order], "second": seconds[order], "amount": amounts[order]}
        whole = pa.table(columns)
        for begin in range(0, whole.num_rows, _ROWS_A_FILE):
            yield whole.slice(begin, _ROWS_A_FILE)


def _changes(values: Integers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(np.diff(values, prepend=values[:1] - 1) != 0, dtype=np.bool_)


def _write(table: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{uuid.uuid4().hex}"
    try:
        pq.write_table(table, made, compression="zstd", row_group_size=_ROWS_A_GROUP)
        made.replace(folder / f"part-{number:05}.parquet")
    finally:
        made.unlink(missing_ok=True)
