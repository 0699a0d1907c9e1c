"""Rows as traffic: files in the canonical traffic schema, mapped ones and per-second totals, and what only Spark can find."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import UsageError
from reconciler.logs import log_event
from reconciler.model import GAUGE, escaped
from reconciler.ports import Progress
from reconciler.traffic.client_seconds import sum_here
from reconciler.traffic.client_totals import CLIENT_TOTALS, GAUGE_TOTALS, MINUTE_TOTALS, ONE_PASS, ONE_PASS_WITH_GAUGES
from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.shuffle.rows import AnyRows, LocalRows, Read, Totals, count_rows
from reconciler.traffic.sources.normal_form import COLUMNS, require_columns, rows_of
from reconciler.traffic.sources.parquet_parts import (
    BYTES_A_ROW,
    Part,
    footers_of,
    parts_of,
    read_ahead,
    read_part,
    time_slices,
    value_range,
)
from reconciler.traffic.sources.request_log import SELF_EVIDENCE
from reconciler.traffic.traffic_files import Traffic, shown_files
from reconciler.traffic.traffic_source import Facts, Reading, Source, read_gaps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic.request_traffic import TrafficSource
    from reconciler.traffic.seconds.days import DayRows
    from reconciler.traffic.shuffle.on_spark import SparkRows

_log: Final = logging.getLogger(__name__)
_ROWS_A_SLICE: Final = 4_000_000
"""Of Parquet, what is sorted at a time in this process: some 250 MB."""
_SMALL_PARQUET: Final = 10_000_000
"""Rows: half of the processor time of Spark, in 1.2 to 1.9 GB by seconds and 1.7 to 2.2 GB at every request."""
_SMALL_GAUGES: Final = 200_000_000
"""Rows: a gauge counts once, and is not sorted with all others. A day of 12,000 series every 15 s has a third of it."""


_STORED: Final[tuple[Totals[pa.RecordBatch], ...]] = (CLIENT_TOTALS, GAUGE_TOTALS, MINUTE_TOTALS)
TOTALS_KEY: Final = b"kafka-quotas.totals.1."
"""The number changes with what the totals mean. The name of the totals follows."""


class CanonicalFiles(Traffic):
    """Parquet in the canonical traffic schema, whose columns are read anew for each pass."""

    source: ClassVar[Source] = Source.NORMAL_FORM
    takes_time: ClassVar[bool] = True
    needs_little_jvm: ClassVar[bool] = True

    @staticmethod
    def claims(path: Path) -> bool:
        """A Parquet file, or a folder that has one."""
        if path.is_dir():
            return any(path.rglob("*.parquet"))
        return path.suffix == ".parquet" and path.exists()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """Implement ``Traffic.of``."""
        return cls(parquet=tuple(file for argument in arguments for file in _parquet_of(Path(argument))))

    def sizes(self, *, compacting: bool) -> tuple[int, int]:
        """Implement ``Traffic.sizes``."""
        read, most = super().sizes(compacting=compacting)
        if all(value_range(footer, "semantics") == (GAUGE, GAUGE) for _, footer in footers_of(self.parquet)):
            return read, _SMALL_GAUGES * BYTES_A_ROW
        return read, most if compacting else _SMALL_PARQUET * BYTES_A_ROW

    def look(self, log_timezone: str) -> None:
        """Implement ``Traffic.look``."""
        del log_timezone
        for file, footer in footers_of(self.parquet):
            require_columns(footer.schema.to_arrow_schema(), file)

    def with_remarks(self, facts: Facts) -> Facts:
        """Return the facts with the gaps that ``record`` noted beside its files. Raises ``TrafficError``."""
        return replace(facts, gaps=read_gaps(sorted({Path(file).parent for file in self.parquet})))

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Implement ``Traffic.batches``."""
        names = [name for name, _ in COLUMNS]
        parts = self._parts()
        files = [Path(part.path).as_uri() if "file" in reading.also else None for part in parts]
        batches = (rows_of(batch, file) for part, file in zip(parts, files, strict=True) for batch in part.batches(names))
        yield from count_rows(batches, reading.progress, sum(part.rows for part in parts))

    def rows_here(self, reading: Reading) -> LocalRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_here``."""
        parts = self._parts()
        progress = reading.progress
        slices = [(sum(part.rows for part in some), _reader_of(some, progress)) for some in time_slices(parts, _ROWS_A_SLICE)]
        rows = LocalRows(_reader_of(parts, progress), ONE_PASS_WITH_GAUGES, slices, progress)
        if reading.by_seconds and _has_only_events(parts):
            return sum_here(rows)
        return _with_stored_totals(
            rows, parts, lambda rest: LocalRows(_reader_of(rest, progress), ONE_PASS_WITH_GAUGES, progress=progress)
        )

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_on``. By seconds, rows are read once."""
        from reconciler.traffic.client_seconds import sum_on_spark
        from reconciler.traffic.sources.on_spark import normal_form_rows

        parts = self._parts()
        rows = normal_form_rows(spark, parts, ONE_PASS)
        if reading.by_seconds and _has_only_events(parts):
            return sum_on_spark(rows)
        return _with_stored_totals(rows, parts, lambda rest: normal_form_rows(spark, rest, ONE_PASS))

    def _parts(self) -> Sequence[Part]:
        parts = parts_of(self.parquet, between=self.between)
        for part in parts:
            log_event(_log, "file opened", file=part.path, rows=part.rows)
        return parts


class TotalsFolder(Traffic):
    """A folder of per-second totals, which decides where it is judged when it is known which of them are needed."""

    source: ClassVar[Source] = Source.CELLS
    has_rows: ClassVar[bool] = False
    needs_little_jvm: ClassVar[bool] = True

    @staticmethod
    def claims(path: Path) -> bool:
        """A folder that ``compact`` wrote."""
        return path.is_dir() and SegmentFolder(path).exists()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """Implement ``Traffic.of``."""
        if len(arguments) > 1:
            raise UsageError("--traffic names several folders of per-second totals: compact everything into one")
        return cls(cells=Path(arguments[0]))

    def open(self, session: Callable[[], SparkSession], reading: Reading, *, in_process: bool) -> TrafficSource:
        """Implement ``Traffic.open``."""
        from reconciler.traffic.seconds.stored_rows import open_folder

        del in_process
        assert self.cells is not None
        return open_folder(SegmentFolder(self.cells), session, reading.progress)


def _has_only_events(parts: Sequence[Part]) -> bool:
    """Whether all rows are requests, as far as statistics show: metrics have totals of their own."""
    return all(part.has_only_events for part in parts)


def _reader_of(parts: Sequence[Part], progress: Progress) -> Read[pa.RecordBatch]:
    rows = sum(part.rows for part in parts)
    return lambda columns: count_rows(read_ahead(batch for part in parts for batch in read_part(part, columns)), progress, rows)


def _with_stored_totals(rows: AnyRows, parts: Sequence[Part], read: Callable[[Sequence[Part]], AnyRows]) -> AnyRows:
    """``rows``, of which only files without totals of their own are added up, and files of which only a part counts."""
    whole = {part.path for part in parts if part.between is None}
    stored = {path: totals for path, footer in footers_of(sorted(whole)) if (totals := stored_totals(footer)) is not None}
    if not stored:
        return rows
    log_event(_log, "stored totals found", files=len(stored))
    rest = [part for part in parts if part.path not in stored]
    joined = [(work, pa.concat_tables(tables)) for work, tables in zip(_STORED, zip(*stored.values(), strict=True), strict=True)]
    return rows.with_totals(joined, read(rest) if rest else None)


def _parquet_of(path: Path) -> tuple[str, ...]:
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    log = next((file for file in path.rglob("*request*.log*") if ".parquet" not in file.name), None) if path.is_dir() else None
    if log is not None:
        msg = f"--traffic {escaped(str(path))}: the folder has Parquet files and request logs, such as {escaped(log.name)}"
        raise UsageError(f"{msg}. Give one kind at a time, or compact them into one folder")
    return shown_files(path, files, what="all Parquet files of the folder are hidden, as after a job that did not finish")


def stored_totals(footer: pq.FileMetaData) -> list[pa.Table] | None:
    """Return the totals of ``_STORED`` that a footer has of all rows of its file; ``None`` without them."""
    metadata: Mapping[bytes, bytes] = footer.metadata or {}
    tables = []
    for work in _STORED:
        try:
            with pa.ipc.open_stream(base64.b64decode(metadata[TOTALS_KEY + work.name.encode()], validate=True)) as stream:
                tables.append(stream.read_all())
        except (KeyError, binascii.Error, pa.ArrowInvalid, OSError):
            return None
        if tables[-1].schema != work.schema:
            return None
    return tables if (pc.sum(tables[0].column("lines")).as_py() or 0) == footer.num_rows else None


class Datasets(Traffic):
    """Addresses and tables. ``listed`` finds what they have: rows in the canonical schema, logs, or per-second totals by day."""

    source: ClassVar[Source] = Source.NORMAL_FORM
    takes_time: ClassVar[bool] = True

    def listed(self, session: Callable[[], SparkSession]) -> Traffic:
        """Implement ``Traffic.listed``. Raises ``TrafficError`` and ``UsageError``."""
        from reconciler.traffic.seconds.days import has_days
        from reconciler.traffic.sources.on_spark import columns_of_dataset, list_datasets

        spark, (first, *_) = session(), self.datasets
        listing = list_datasets(spark, self.datasets)
        if listing.logs:
            return DatasetLogs(datasets=self.datasets, logs=listing.logs, between=self.between)
        if has_days(columns_of_dataset(spark, first, listing)):
            return DayTotals(datasets=self.datasets, between=self.between)
        return self

    def clusters(self, spark: SparkSession) -> frozenset[str]:
        """Implement ``Traffic.clusters``."""
        from reconciler.traffic.sources.on_spark import cluster_names

        return cluster_names(spark, self.datasets, self.between)

    def refused(self) -> UsageError:
        """Implement ``Traffic.refused``."""
        return UsageError(f"{escaped(str(self.datasets[0]))} is not on this machine: give files or a folder")

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_on``. By seconds, rows are read once."""
        from reconciler.traffic.client_seconds import sum_on_spark
        from reconciler.traffic.sources.on_spark import frame_rows

        rows = frame_rows(spark, self.datasets, self.between, ONE_PASS)
        return sum_on_spark(rows) if reading.by_seconds else rows


class DatasetLogs(Datasets):
    """Request logs at addresses."""

    source: ClassVar[Source] = Source.LOGS
    own_columns: ClassVar[tuple[str, ...]] = SELF_EVIDENCE

    def clusters(self, spark: SparkSession) -> frozenset[str]:
        """Return none: the lines of logs name the cluster."""
        del spark
        return frozenset()

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_on``."""
        from reconciler.traffic.sources.on_spark import log_rows, mark_repeats

        zone, also, kinds = reading.log_timezone, reading.also, reading.kinds
        rows = log_rows(spark, self.logs, log_timezone=zone, also=also, kinds=kinds, between=self.between)
        return mark_repeats(rows, also, reading.topics if Kind.MUTATION in kinds else None)


class DayTotals(Traffic):
    """Per-second totals by day, which ``compact`` wrote."""

    source: ClassVar[Source] = Source.CELLS
    has_rows: ClassVar[bool] = False

    def rows_on(self, spark: SparkSession, reading: Reading) -> DayRows:
        """Implement ``Traffic.rows_on``: a row is a second of a client."""
        from reconciler.traffic.seconds.days import day_rows

        del reading
        return day_rows(spark, self.datasets, self.between)

    def open(self, session: Callable[[], SparkSession], reading: Reading, *, in_process: bool) -> TrafficSource:
        """Implement ``Traffic.open``."""
        from reconciler.traffic.seconds.days import open_days

        del in_process
        return open_days(self.rows_on(session(), reading), self.files)
