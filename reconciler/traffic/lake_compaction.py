"""``compact --out``: the days of recorded traffic into a dataset or a table, once.

Which files there are, what identifies each, and their rows on Spark: ``ListedSources``, also for ``lake_stream``.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.errors import TrafficError, UsageError
from reconciler.model import escaped
from reconciler.text import list_some
from reconciler.traffic.dataset_traffic import DatasetLogs
from reconciler.traffic.seconds.compact import END_BYTES, LONGEST_LINE, SourceFile, log_id, whole_id
from reconciler.traffic.seconds.day_folders import MANIFESTS, DayFolders
from reconciler.traffic.seconds.day_ledger import LOG, TABLE, WHOLE, DayRange, LakeLedger, LakeSource, oldest_day
from reconciler.traffic.seconds.day_table import DayTable, is_own
from reconciler.traffic.seconds.day_writer import DayStore, SourceRows, WriteOptions, WrittenDays, write_days
from reconciler.traffic.seconds.lake_files import LakeFiles
from reconciler.traffic.shuffle.on_spark import SparkRows, scan_parts
from reconciler.traffic.sources.datasets import Dataset, address_of, local_path, parse_dataset, path_of
from reconciler.traffic.sources.log_evidence import CLUSTER
from reconciler.traffic.sources.log_files import BrokerFiles
from reconciler.traffic.sources.normal_form import FILE, require_columns
from reconciler.traffic.sources.on_spark import (
    Listing,
    files_frame,
    list_datasets,
    listing_of,
    log_rows,
    sourced_rows,
    table_frame,
)
from reconciler.traffic.sources.parquet_parts import ROWS_A_PART, Between, Part, footers_of, parts_of, read_part
from reconciler.traffic.sources.request_log import LOG_KINDS
from reconciler.traffic.traffic_files import Reading, Traffic
from reconciler.traffic.traffic_source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PROGRAM: Final = f"kafka-quotas {reconciler.__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRequest:
    """``out``: as ``--out`` names it. ``since`` and ``until``: the days to write, from the first on and before the other."""

    out: str
    now: datetime.datetime
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    keep_days: int | None = None
    replace: bool = False
    log_timezone: str = "UTC"
    max_unreadable: float = 1.0

    @property
    def days(self) -> DayRange:
        """The days that may be written. Raises ``UsageError`` for times that are not the begin of a day."""
        oldest = oldest_day(self.now.astimezone(datetime.UTC).date(), self.keep_days)
        return DayRange(first=_day(self.since, "--since"), end=_day(self.until, "--until"), oldest=oldest)

    @property
    def between(self) -> Between | None:
        """The time of these days, for tables."""
        if self.since is None and self.until is None:
            return None
        first, end = self.since or datetime.datetime.fromtimestamp(0, datetime.UTC), self.until or self.now
        # The day's first microsecond belongs to it, that of the next day does not.
        return Between(after_us=round(first.timestamp() * 1e6) - 1, until_us=round(end.timestamp() * 1e6) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeResult:
    """``written``: what was written. ``empty``: logs without a whole line."""

    written: WrittenDays
    empty: tuple[str, ...] = ()


def compact_days(spark: SparkSession, traffic: Traffic, request: LakeRequest) -> LakeResult:
    """One run. Raises ``TrafficError``, ``ChangedMeanwhileError``, and ``UsageError`` for traffic without requests."""
    require_compactable(traffic)
    days = request.days
    store = open_store(spark, request.out)
    listed = list_sources(spark, traffic, between=request.between)
    options = WriteOptions(
        program=PROGRAM,
        days=days,
        replace=request.replace,
        max_unreadable=request.max_unreadable,
        now=request.now,
        gone=listed.gone,
    )
    open_rows = functools.partial(listed.open_rows, spark, request.log_timezone)
    written = write_days(store, [*listed.sources.values()], open_rows, options)
    return LakeResult(written=written, empty=listed.empty)


def open_store(spark: SparkSession, out: str) -> DayStore:
    """Where ``--out`` names. Raises ``UsageError`` for an argument that Spark cannot write to."""
    dataset = parse_dataset(out)
    if dataset is None:
        return DayFolders(spark=spark, files=LakeFiles(address_of(Path(out))))
    if dataset.broker is not None:
        raise UsageError(f"--out {escaped(out)}: write the address without a broker")
    if dataset.is_table:
        return DayTable(spark=spark, name=dataset.name)
    return DayFolders(spark=spark, files=LakeFiles(dataset.name))


def _day(given: datetime.datetime | None, option: str) -> str:
    if given is None:
        return ""
    moment = given.astimezone(datetime.UTC)
    if moment.time() != datetime.time():
        raise UsageError(f"{option} {given.isoformat()}: with --out, days are written whole. Write a midnight of UTC")
    return moment.date().isoformat()


_ALSO: Final = ("file", CLUSTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSources:
    """What ``--traffic`` names. ``sources``: each with the address that its rows have. ``empty``: logs without a whole line.

    ``roots``: where it was looked for files.
    """

    traffic: Traffic
    sources: Mapping[str, LakeSource]
    empty: tuple[str, ...] = ()
    listing: Listing | None = None
    roots: tuple[str, ...] = ()
    between: Between | None = None

    def gone(self, ledger: LakeLedger) -> frozenset[str]:
        """The names of files that earlier runs read below ``roots``, and that are not there any more."""
        present = {source.name for source in self.sources.values()}
        known = (source.source for source in ledger.known_sources().values())
        return frozenset(
            source.name
            for source in known
            if source.kind == WHOLE and source.name not in present and source.name.startswith(self.roots)
        )

    @contextlib.contextmanager
    def open_rows(
        self, spark: SparkSession, log_timezone: str, chosen: Sequence[LakeSource]
    ) -> Iterator[tuple[SourceRows, Mapping[str, LakeSource]]]:
        """Rows of these sources with their address as ``file``, for ``write_days``."""
        ids = {source.id for source in chosen}
        of_address = {address: source for address, source in self.sources.items() if source.id in ids}
        if (paths := self._own_files(of_address)) is not None:
            of_address = {Path(path).as_uri(): of_address[address] for path, address in paths.items()}
            rows: SourceRows = _normal_form(spark, list(paths))
        else:
            rows = self._rows(spark, log_timezone, of_address)
        try:
            yield rows, of_address
        finally:
            rows.close()

    def _own_files(self, chosen: Collection[str]) -> Mapping[str, str] | None:
        """The addresses by path of files that workers read without Spark's reader, which takes longer; ``None`` where it must.

        It must for columns that are folders, for ids of clusters, and for files that it refuses with its own words.
        """
        traffic, listing = self.traffic, self.listing
        folder = local_path(traffic.datasets[0]) if traffic.datasets else None
        if folder is None or listing is None or listing.format != "parquet" or traffic.mapping is not None:
            return None
        paths = {path: address for address in chosen if (path := path_of(address)) is not None}
        if any("=" in os.path.relpath(path, folder) for path in paths):
            return None
        try:
            for path, footer in footers_of(list(paths)):
                columns = footer.schema.to_arrow_schema()
                require_columns(columns, path)
                if CLUSTER in columns.names:
                    return None
        except TrafficError:
            return None
        return paths

    def _rows(self, spark: SparkSession, log_timezone: str, chosen: Mapping[str, LakeSource]) -> SourceRows:
        traffic, mapping = self.traffic, self.traffic.mapping
        if self.listing is None:
            part = traffic.only([Path(source.name) for source in chosen.values()])
            part.look(log_timezone)
            if traffic.source is Source.NORMAL_FORM:
                return _normal_form(spark, part.parquet)
            also = _ALSO if traffic.logs else _ALSO[:1]
            return part.rows_on(spark, Reading(log_timezone=log_timezone, kinds=LOG_KINDS, also=tuple(also)))
        (dataset, *_) = traffic.datasets
        if dataset.is_table:
            return sourced_rows(table_frame(spark, dataset, self.between), mapping, escaped(str(dataset)))
        if self.listing.logs:
            logs = (replace(log, files=tuple(file for file in log.files if file in chosen)) for log in self.listing.logs)
            return _lines(spark, [log for log in logs if log.files], log_timezone)
        form = self.listing.format or "parquet"
        return sourced_rows(files_frame(spark, sorted(chosen), dataset, form, mapping), mapping, escaped(dataset.name))


def _lines(spark: SparkSession, logs: Sequence[BrokerFiles], log_timezone: str) -> SparkRows[pa.RecordBatch]:
    return log_rows(spark, logs, log_timezone=log_timezone, also=_ALSO, kinds=LOG_KINDS)


def _normal_form(spark: SparkSession, files: Sequence[str]) -> SparkRows[pa.RecordBatch]:
    import pyarrow as pa

    def read(part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        address = Path(part.path).as_uri()
        for batch in read_part(part, [name for name in columns if name != FILE.name]):
            yield batch.append_column(FILE, pa.repeat(address, batch.num_rows))

    parts = parts_of(files)
    return SparkRows(spark, scan_parts(spark, parts, [part.rows for part in parts], read, a_task=ROWS_A_PART))


def list_sources(spark: SparkSession, traffic: Traffic, *, between: Between | None = None) -> ListedSources:
    """Every file that ``traffic`` names, by what it contains. Raises ``TrafficError`` and ``UsageError`` as ``find_traffic``."""
    if not traffic.datasets:
        return _local(traffic)
    (first, *_) = traffic.datasets
    _require_requests(spark, first)
    listing = list_datasets(spark, traffic.datasets)
    if first.is_table:
        source = LakeSource(id=log_id(0, f"table {first.name}".encode()), name=str(first), size=0, kind=TABLE)
        return ListedSources(traffic=traffic, sources={str(first): source}, listing=listing, between=between)
    return _identified(LakeFiles(first.name), traffic, listing)


def _require_requests(spark: SparkSession, dataset: Dataset) -> None:
    """Raise ``UsageError`` for a dataset or a table that ``compact`` wrote."""
    if dataset.is_table:
        has_totals = is_own(DayTable(spark=spark, name=dataset.name).columns())
    else:
        has_totals = bool(LakeFiles(dataset.name).names(MANIFESTS))
    if has_totals:
        raise UsageError(f"{escaped(str(dataset))} has per-second totals already, and no requests")


def some_sources(traffic: Traffic, addresses: Sequence[str]) -> ListedSources:
    """The same of some files at the address that ``traffic`` names."""
    (dataset, *_) = traffic.datasets
    return _identified(LakeFiles(dataset.name), traffic, listing_of([(dataset, addresses)]))


def _identified(files: LakeFiles, traffic: Traffic, listing: Listing) -> ListedSources:
    """Each file once, by its beginning or its end, as the file system has it now."""
    if listing.logs:
        traffic = DatasetLogs(datasets=traffic.datasets, logs=listing.logs, between=traffic.between)
    names = [(log.broker, file) for log in listing.logs for file in log.files] or [(0, file) for file in listing.files]
    kept: dict[str, tuple[str, LakeSource]] = {}
    empty = []
    for broker, address in names:
        source = _source_of(files, address, broker if listing.logs else None)
        if source is None:
            empty.append(address)
            continue
        # The same log twice, whole and as it was when it was copied: the longer one has it all.
        if source.id not in kept or kept[source.id][1].size < source.size:
            kept[source.id] = address, source
    roots = tuple(f"{dataset.name.rstrip('/')}/" for dataset in traffic.datasets)
    roots = (*roots, *(root.replace("file:///", "file:/") for root in roots if root.startswith("file:///")))
    return ListedSources(traffic=traffic, sources=dict(kept.values()), empty=tuple(empty), listing=listing, roots=roots)


def _source_of(files: LakeFiles, address: str, broker: int | None) -> LakeSource | None:
    size = files.size(address)
    if broker is None:
        return LakeSource(id=whole_id(size, files.tail(address, END_BYTES)), name=address, size=size, kind=WHOLE)
    head = files.head(address, LONGEST_LINE)
    if address.endswith(".gz"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, LONGEST_LINE)
        except zlib.error as error:
            raise TrafficError(
                f"recorded traffic {escaped(address)} cannot be read: the compressed file is damaged ({error}). Take it out"
            ) from error
    line, newline, _ = head.partition(b"\n")
    if not newline and len(head) < LONGEST_LINE:
        return None
    return LakeSource(id=log_id(broker, line + newline), name=address, size=size)


def _local(traffic: Traffic) -> ListedSources:
    kept: dict[str, SourceFile] = {}
    empty = []
    is_recorder = traffic.source is Source.RECORDER
    of_logs = [(file, SourceFile.of_log(Path(file), log.broker)) for log in traffic.logs for file in log.files]
    whole = SourceFile.of_recorder if is_recorder else SourceFile.of_whole
    for file, source in [*of_logs, *((file, whole(Path(file))) for file in traffic.parquet)]:
        if source is None:
            empty.append(file)
        elif source.id not in kept or kept[source.id].size < source.size:
            kept[source.id] = source
    kind = LOG if traffic.logs or is_recorder else WHOLE
    sources = {s.path.as_uri(): LakeSource(id=s.id, name=str(s.path), size=s.size, kind=kind) for s in kept.values()}
    roots = tuple(sorted({f"{Path(file).parent}/" for file in traffic.parquet}))
    return ListedSources(traffic=traffic, sources=sources, empty=tuple(empty), roots=roots)


def require_compactable(traffic: Traffic) -> None:
    """Raise ``UsageError`` for traffic that has no single requests."""
    if traffic.cells is not None:
        raise UsageError(f"{traffic.cells} has per-second totals already, and no requests")
    if of_metrics := traffic.files_of_metrics:
        raise UsageError(
            f"{list_some(of_metrics, 1)} has samples of metrics, of which no totals of seconds can be made. Keep the files, "
            "and give them to backtest as they are"
        )
