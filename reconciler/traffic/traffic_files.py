"""What ``--traffic`` can name, found and opened. A class for each kind of source claims its arguments, looks early and opens.

``find_traffic`` asks the sources in their order: those of the core, then those of features. Whatever none of them claims is a
request log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias, TypeVar

import pyarrow as pa

from reconciler.errors import TrafficError, UsageError
from reconciler.hooks import added, load
from reconciler.logs import log_event, timed_event
from reconciler.model import escaped
from reconciler.traffic.kinds import Kind
from reconciler.traffic.shuffle.rows import LocalRows, count_rows
from reconciler.traffic.sources.log_documents import check_zone
from reconciler.traffic.sources.log_evidence import charge_known_topics, mark_copies
from reconciler.traffic.sources.log_files import BrokerFiles, Dataset, find_logs, is_request_log, log_parts, parse_dataset
from reconciler.traffic.sources.normal_form import DEFAULT_MOST, DELTA, EVENT, IDENTITY_COLUMNS
from reconciler.traffic.sources.parquet_parts import BYTES_A_ROW, Between, footers_of
from reconciler.traffic.sources.request_log import SELF_EVIDENCE, parse_lines, require_request_lines
from reconciler.traffic.spark_setup import has_spark, is_spark_asked_for, require_spark_above
from reconciler.traffic.traffic_source import Reading, Source, require_usable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic.request_traffic import TrafficSource
    from reconciler.traffic.seconds.folder import SourceFile
    from reconciler.traffic.shuffle.on_spark import SparkRows
    from reconciler.traffic.spark_setup import SessionOptions
    from reconciler.traffic.traffic_source import Facts

_log: Final = logging.getLogger(__name__)
Work = TypeVar("Work")
_SOURCES: Final = (
    "reconciler.traffic.traffic_files:RequestLogs",
    "reconciler.traffic.parquet_traffic:TotalsFolder",
    "reconciler.traffic.parquet_traffic:CanonicalFiles",
)
SMALL_BYTES: Final = 64 * 1024 * 1024
"""Below this, compiling costs Spark more than it gains, and starting it more than judging in this process."""
MOST_BYTES_ALONE: Final = 2 * 1024**3
"""Where PySpark is not installed. A request log of 1 GB takes 13 s of one core and 1 GB of memory."""
_COMPRESSED: Final = (".gz", ".zst", ".gz.open")
_PACKED: Final = 12
"""How many times larger compressed text is when it is read, or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Recorded traffic of one kind, which is not open yet."""

    source: ClassVar[Source]
    has_rows: ClassVar[bool] = True
    """Whether it is rows, of which Spark's workers can read shares."""
    takes_time: ClassVar[bool] = False
    """Whether ``between`` may narrow it."""
    needs_little_jvm: ClassVar[bool] = False
    """Whether Java does not look at single rows, or at few."""
    own_columns: ClassVar[tuple[str, ...]] = ()
    """What rows of request logs have beside the canonical schema, where they are judged."""

    logs: tuple[BrokerFiles, ...] = ()
    parquet: tuple[str, ...] = ()
    """Files other than logs."""
    cells: Path | None = None
    between: Between | None = None
    """Only the rows of this time."""
    datasets: tuple[Dataset, ...] = ()
    """What only Spark can find."""

    @staticmethod
    def claims(path: Path) -> bool:
        """Whether an argument is of this kind."""
        del path
        return False

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """The traffic of arguments that it claims. Raises ``TrafficError`` and ``UsageError``."""
        raise NotImplementedError

    @property
    def files(self) -> tuple[str, ...]:
        """The files by name. Per-second totals have none, and datasets have the names of their arguments."""
        return tuple(map(str, self.datasets)) or tuple(file for log in self.logs for file in log.files) or self.parquet

    def only(self, files: Collection[Path]) -> Self:
        """The part of it that is in these files."""
        names = {str(file) for file in files}
        logs = (replace(log, files=tuple(file for file in log.files if file in names)) for log in self.logs)
        parquet = tuple(file for file in self.parquet if file in names)
        return replace(self, logs=tuple(log for log in logs if log.files), parquet=parquet)

    @property
    def semantics(self) -> str:
        """The semantics of a row: ``EVENT``, or an amount of some time."""
        return EVENT

    @property
    def of_requests(self) -> bool:
        """Whether it may show single requests."""
        return self.has_rows and self.semantics == EVENT

    def session(self, asked: SessionOptions | None) -> SessionOptions:
        """The session that was asked for, as this traffic needs it."""
        from reconciler.traffic.spark_setup import SessionOptions

        # Of small files, Spark does better to compile little.
        small = not self.datasets and sum(Path(file).stat().st_size for file in self.files) < SMALL_BYTES
        return replace(asked or SessionOptions(), small=small, light=self.needs_little_jvm)

    def stays_here(self, options: SessionOptions | None, *, compacting: bool = False) -> bool:
        """Whether it is read in this process, without Spark: small traffic, where no master or server was asked for."""
        # What Spark finds is not here, and per-second totals choose for themselves.
        if self.datasets or self.cells is not None or not self.has_rows:
            return not self.datasets and self.cells is None
        unasked = not is_spark_asked_for(options)
        read_bytes, most_bytes = self.sizes(compacting=compacting)
        if unasked and read_bytes > most_bytes and not has_spark():
            most_bytes = max(most_bytes, MOST_BYTES_ALONE)
            require_spark_above(read_bytes, most_bytes, unit="bytes")
        small = read_bytes <= most_bytes
        why = ("the traffic is small" if small else "the traffic is large") if unasked else "Spark was asked for"
        here = unasked and small
        engine = "this process" if here else "Spark"
        sizes = {"read_bytes": read_bytes, "most_bytes": most_bytes}
        log_event(_log, "engine chosen", level=logging.INFO, engine=engine, why=why, **sizes)
        return here

    def sizes(self, *, compacting: bool) -> tuple[int, int]:
        """Return about how many bytes its files are when they are read, and up to how many this process reads, not Spark."""
        del compacting
        parquet = [file for file in self.files if file.endswith(".parquet")]
        rows = sum(int(footer.num_rows) for _, footer in footers_of(parquet)) if parquet else 0
        texts = [(file, Path(file).stat().st_size) for file in self.files if not file.endswith(".parquet")]
        read = rows * BYTES_A_ROW + sum(size * (_PACKED if file.endswith(_COMPRESSED) else 1) for file, size in texts)
        return read, SMALL_BYTES

    def require_rows(self) -> None:
        """Raise ``UsageError`` where there are no rows to read."""
        if not self.has_rows:
            raise self.refused()

    def refused(self) -> UsageError:
        """Make the error of a process that reads no rows of it."""
        where = self.cells or escaped(str(self.datasets[0]))
        return UsageError(f"{where} has per-second totals already, and no requests")

    def listed(self, session: Callable[[], SparkSession]) -> Traffic:
        """The same, with what Spark finds at the addresses of a dataset."""
        del session
        return self

    def look(self, log_timezone: str) -> None:
        """Look at headers, footers and first rows, which takes milliseconds.

        Raises ``TrafficError`` for what the whole traffic would be refused for later, ``UsageError`` for an unknown time zone.
        """
        del log_timezone

    def source_file(self, file: str) -> SourceFile | None:
        """A file, as ``compact`` knows it again; ``None`` while it has no whole line. Raises ``TrafficError``."""
        from reconciler.traffic.seconds.folder import SourceFile

        return SourceFile.of_whole(Path(file))

    def with_remarks(self, facts: Facts) -> Facts:
        """Return the facts with what the files themselves state: times that were not observed, and what to know about a file."""
        return facts

    def clusters(self, spark: SparkSession) -> frozenset[str]:
        """The clusters that a column beside the rows names."""
        del spark
        return frozenset()

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Rows in this process, file by file. Copies are not marked. Raises ``UsageError`` where there are none."""
        del reading
        raise self.refused()

    def rows_here(self, reading: Reading) -> LocalRows[pa.RecordBatch]:
        """Rows in this process, to be judged. Raises ``UsageError`` where there are none."""
        batches = list(count_rows(self.batches(reading), reading.progress, None))
        return LocalRows(lambda _: batches, progress=reading.progress)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Rows on Spark's workers. Text is read once and kept, other columns anew for each pass."""
        del spark, reading
        raise self.refused()

    def open(self, session: Callable[[], SparkSession], reading: Reading, *, in_process: bool) -> TrafficSource:
        """The clients and facts of its rows. Raises ``TrafficError`` when nothing can be used."""
        from reconciler.traffic.request_traffic import open_rows

        rows = self.rows_here(reading) if in_process else self.rows_on(session(), reading)
        opened = open_rows(rows, source=self.source, files=self.files, columns=reading.also, has_sums=self.semantics == DELTA)
        opened.facts = self.with_remarks(opened.facts)
        return opened


OpenFiles: TypeAlias = Callable[[Sequence[str]], Traffic]
"""Give the traffic of arguments, whatever their files are named."""


def find_traffic(arguments: Sequence[str], mapped: OpenFiles | None = None, *, between: Between | None = None) -> Traffic:
    """The source that the arguments name. ``mapped``: reads their files, which have columns of their own.

    ``between``: which rows of Parquet or of the recorder count.

    Raises ``TrafficError`` for a path without traffic, ``UsageError`` for no arguments, one file of two brokers, and a mixture.
    """
    parsed = [(argument, parse_dataset(argument)) for argument in arguments]
    datasets = tuple(dataset for _, dataset in parsed if dataset is not None)
    traffic: Traffic
    if datasets:
        if mapped is not None:
            raise UsageError(f"--mapping is for files of this machine, not for {datasets[0]}. Give a view of Spark: table:NAME")
        traffic = _at_addresses(parsed, datasets)
    elif mapped is not None:
        traffic = mapped(arguments)
    else:
        kinds: dict[type[Traffic], None] = {}
        places = (*_SOURCES, *added("SOURCES"))
        for argument in arguments:
            # Those of the core come first. A log may have any name.
            claiming = (kind for kind in map(load, places) if kind.claims(Path(argument)))
            kinds[next(claiming, RequestLogs)] = None
        if len(kinds) > 1:
            names = " and ".join(sorted(kind.source.value for kind in kinds))
            raise UsageError(f"--traffic names {names}: give one kind at a time, or compact them into one folder")
        traffic = next(iter(kinds), RequestLogs).of(arguments)
    traffic = replace(traffic, between=between)
    if between is not None and not traffic.takes_time:
        raise UsageError(
            "--since and --until need Parquet in the canonical traffic schema, files of the recorder, an address or a table. "
            "Leave them out, or give the address: file:///PATH"
        )
    log_event(
        _log, "traffic found", level=logging.INFO, source=traffic.source.value, files=len(traffic.files), first=traffic.files[:1]
    )
    return traffic


def _at_addresses(parsed: Sequence[tuple[str, Dataset | None]], datasets: tuple[Dataset, ...]) -> Traffic:
    """``datasets``: those of the ``parsed`` arguments."""
    from reconciler.traffic.parquet_traffic import Datasets

    if len(datasets) < len(parsed):
        path = next(argument for argument, dataset in parsed if dataset is None)
        raise UsageError(f"--traffic names {datasets[0]} and {path}: give paths of this machine or addresses, not both")
    if len(datasets) > 1 and any(dataset.is_table for dataset in datasets):
        raise UsageError("--traffic names a table and something else: give one table at a time")
    return Datasets(datasets=datasets)


def shown_files(path: Path, files: Sequence[Path], *, what: str) -> tuple[str, ...]:
    """The paths of files that are not hidden. Raises ``TrafficError`` when there are none; ``what`` ends its sentence."""
    shown = [file for file in files if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)]
    if not shown:
        raise TrafficError(f"recorded traffic {path}: {what}")
    return tuple(str(file.resolve()) for file in shown)


def kept_rows(
    spark: SparkSession,
    parts: Sequence[Work],
    sizes: Sequence[int],
    read: Callable[[Sequence[Work]], Iterable[pa.RecordBatch]],
    *,
    a_task: int,
) -> SparkRows[pa.RecordBatch]:
    """The rows of all parts, which workers read once. ``a_task``: the bytes that one task reads, about."""
    from reconciler.traffic.shuffle.on_spark import KeptRows, least_tasks, split_work

    tasks = max(least_tasks(spark), sum(sizes) // a_task)
    return KeptRows.of_shares(spark, split_work(parts, sizes, tasks), read)


def open_traffic(
    traffic: Traffic,
    session: Callable[[], SparkSession],
    reading: Reading | None = None,
    *,
    in_process: bool = False,
    requests: bool = False,
    max_unreadable: float = DEFAULT_MOST,
) -> TrafficSource:
    """Open it; ``session`` starts Spark, and is not called for per-second totals before they need it, nor with ``in_process``.

    ``requests``: every single request will be asked for, which only logs can give.

    Raises ``TrafficError`` when nothing can be used, or more than the share ``max_unreadable`` cannot be read.
    """
    reading = reading or Reading()
    check_zone(reading.log_timezone)
    if traffic.datasets:
        traffic = traffic.listed(session)
    if requests and not traffic.own_columns:
        raise UsageError("--requests needs request logs: only they identify single requests")
    with timed_event(_log, "first rows read", source=traffic.source.value):
        traffic.look(reading.log_timezone)
    also = (*(IDENTITY_COLUMNS if requests else ()), *traffic.own_columns)
    recorded = traffic.open(session, replace(reading, also=also), in_process=in_process)
    require_usable(recorded, max_unreadable)
    return recorded


def rows_for_workers(traffic: Traffic, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
    """The rows of traffic that has some, as Spark's workers read them. Raises ``TrafficError`` and ``UsageError``."""
    traffic.look(reading.log_timezone)
    return traffic.rows_on(spark, replace(reading, also=traffic.own_columns))


_ROWS_A_BATCH: Final = 1 << 16


class RequestLogs(Traffic):
    """Request logs of brokers, whose lines are read once."""

    source: ClassVar[Source] = Source.LOGS
    own_columns: ClassVar[tuple[str, ...]] = SELF_EVIDENCE
    """The evidence of its cluster and of its other brokers."""

    @staticmethod
    def claims(path: Path) -> bool:
        """Whether it is a file that is named as a log: then no other source looks whose it is."""
        return is_request_log(path.name) and path.suffix != ".parquet" and path.is_file()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """Implement ``Traffic.of``."""
        return cls(logs=find_logs(arguments))

    def source_file(self, file: str) -> SourceFile | None:
        """Implement ``Traffic.source_file``."""
        from reconciler.traffic.seconds.folder import SourceFile

        return SourceFile.of_log(Path(file), next(log.broker for log in self.logs if file in log.files))

    def look(self, log_timezone: str) -> None:
        """Implement ``Traffic.look``."""
        require_request_lines(self.logs, check_zone(log_timezone))

    def batches(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Implement ``Traffic.batches``."""
        zone, kinds, also = reading.log_timezone, reading.kinds, reading.also
        parts = log_parts(self.logs, 1)
        read, total = 0, sum(part.end - part.begin for part in parts)
        for log in parts:
            log_event(_log, "file opened", file=log.path, broker=log.broker, begin=log.begin, end=log.end)
            yield from parse_lines(log.lines(), broker=log.broker, file=log.uri, zone=zone, kinds=kinds, also=also)
            read += log.end - log.begin
            reading.progress.count(read, total)

    def rows_here(self, reading: Reading) -> LocalRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_here``. Copies are marked, and topics have what they cost."""
        batches = list(self.batches(reading))
        if batches:
            batches = mark_copies(pa.Table.from_batches(batches).combine_chunks()).to_batches(_ROWS_A_BATCH)
            if Kind.MUTATION in reading.kinds:
                batches = charge_known_topics(batches, reading.topics)
        return LocalRows(lambda _: batches, progress=reading.progress)

    def rows_on(self, spark: SparkSession, reading: Reading) -> SparkRows[pa.RecordBatch]:
        """Implement ``Traffic.rows_on``."""
        from reconciler.traffic.sources.on_spark import request_log_rows

        return request_log_rows(
            spark, self.logs, log_timezone=reading.log_timezone, also=reading.also, kinds=reading.kinds, topics=reading.topics
        )
