"""Recorded rows to the days of a dataset: the one writer of a daily run and of a stream.

A run reads its sources once, adds them up by source and second, sees which days they have, and writes these days in one commit.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from pyspark import StorageLevel
from pyspark.sql import Row
from pyspark.sql import functions as F

from reconciler.errors import UsageError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.seconds.day_columns import COLUMNS, FOLDS, KEYS, NAMES, SECOND_TOTALS, SECOND_US
from reconciler.traffic.seconds.day_folders import ChangedMeanwhileError, LakeChange, run_id
from reconciler.traffic.seconds.day_ledger import (
    TABLE,
    DayPlan,
    DayRange,
    FilePlan,
    LakeLedger,
    LakeSource,
    LateRows,
    SourceShare,
    StreamPosition,
    expired_days,
    plan_days,
    plan_files,
    requests_of,
    table_day,
)
from reconciler.traffic.sources.log_evidence import require_one
from reconciler.traffic.sources.normal_form import DUPLICATE, OF_METRICS, UNREADABLE, require_readable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic.shuffle.rows import Totals

_log: Final = logging.getLogger(__name__)
_ATTEMPTS: Final = 5
_ROWS_A_FILE: Final = 20_000_000
_DAY: Final = "date"


class DayStore(Protocol):
    """Where the days are: ``DayFolders`` or ``DayTable``."""

    def load(self) -> LakeLedger:
        """What there is now."""
        ...

    def totals(self, ledger: LakeLedger, dates: Collection[str]) -> DataFrame:
        """Rows of some days of a state, with the columns ``day_columns.NAMES``."""
        ...

    def commit(self, ledger: LakeLedger, change: LakeChange, frame: DataFrame | None) -> LakeLedger:
        """Write a change whole or not at all. Raises ``ChangedMeanwhileError`` where another writer came first."""
        ...


class SummedRows(Protocol):
    """Rows that Spark adds up, with the address of their source as ``file``."""

    def totals_frame(self, work: Totals[pa.RecordBatch], *, few: bool = True) -> DataFrame:
        """As ``shuffle.on_spark``."""
        ...

    def close(self) -> None:
        """Release what Spark keeps."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How to write. ``replace``: the days of the sources are computed from these sources alone."""

    program: str
    days: DayRange = field(default_factory=DayRange)
    replace: bool = False
    max_unreadable: float = 1.0
    now: datetime.datetime
    stream: StreamPosition | None = None
    gone: Callable[[LakeLedger], Collection[str]] = lambda _: ()
    """Names of files that earlier runs read where this one looked, and that are not there any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDays:
    """What a run did."""

    read: tuple[LakeSource, ...] = ()
    known: tuple[LakeSource, ...] = ()
    dates: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    late: tuple[LateRows, ...] = ()
    requests: int = 0
    """Of the sources that were read, in days that were written."""
    copies: int = 0
    added_late: int = 0
    """Of these requests, those of a day before the newest that was there already."""
    ledger: LakeLedger = field(default_factory=LakeLedger)


OpenRows = Callable[[Sequence[LakeSource]], contextlib.AbstractContextManager[tuple[SummedRows, Mapping[str, LakeSource]]]]
"""Opens rows of these sources, with the source of each ``file``. Of a table there is one file, and a source for each day."""


def write_days(
    spark: SparkSession, store: DayStore, given: Sequence[LakeSource], open_rows: OpenRows, options: WriteOptions
) -> WrittenDays:
    """Bring the days of these sources up to date, and remove those that are too old.

    Another writer of the same days means another try. Raises ``TrafficError`` for sources that cannot be used, and
    ``ChangedMeanwhileError`` when others write all the time.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _write_once(spark, store, given, open_rows, options)
        except ChangedMeanwhileError:
            log_event(_log, "days changed meanwhile", level=logging.INFO, attempt=attempt)
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _write_once(
    spark: SparkSession, store: DayStore, given: Sequence[LakeSource], open_rows: OpenRows, options: WriteOptions
) -> WrittenDays:
    ledger = store.load()
    stream = options.stream
    if stream is not None and (done := ledger.streams.get(stream.id)) is not None and done.batch >= stream.batch:
        log_event(_log, "batch is there already", level=logging.INFO, batch=stream.batch)
        return WrittenDays(ledger=ledger)
    files = plan_files(ledger, given, options.days, anew=options.replace)
    removed = expired_days(ledger, options.days.oldest)
    change = LakeChange(
        run=run_id(options.now, uuid.uuid4().hex[:12]), now=options.now, program=options.program, removed=removed, stream=stream
    )
    if not files.read:
        if removed or stream is not None:
            ledger = store.commit(ledger, change, None)
        return WrittenDays(known=files.known, removed=removed, ledger=ledger)
    with open_rows(files.read) as (rows, source_of), _kept(rows) as totals:
        counted = _Counted.of(totals, source_of, ledger)
        counted.require_usable(options.max_unreadable)
        read = counted.shares()
        plan = plan_days(ledger, files, read, options.days, gone=options.gone(ledger), anew=options.replace)
        frame = _frame(spark, store, ledger, plan, totals, source_of) if plan.writes else None
        latest = max((0, *(row["last"] or 0 for row in counted.rows)))
        if stream is not None:
            earlier = ledger.streams.get(stream.id)
            stream = replace(stream, latest_us=max(latest, earlier.latest_us if earlier is not None else 0))
        change = replace(change, writes=plan.writes, stream=stream, clusters=counted.clusters)
        after = store.commit(ledger, change, frame) if plan.writes or removed or stream is not None else ledger
    return _result(files, plan, read, ledger, after, removed, counted.copies)


def _result(
    files: FilePlan,
    plan: DayPlan,
    read: Mapping[str, Sequence[SourceShare]],
    before: LakeLedger,
    after: LakeLedger,
    removed: tuple[str, ...],
    copies: int,
) -> WrittenDays:
    counted = {
        write.date: sum(requests_of(share) for share in read[write.date] if share.source.id in write.sources)
        for write in plan.writes
    }
    return WrittenDays(
        read=files.read,
        known=files.known,
        dates=tuple(counted),
        removed=removed,
        late=plan.late,
        requests=sum(counted.values()),
        copies=copies,
        added_late=sum(counted[w.date] for w in plan.writes if w.add and w.date < before.newest),
        ledger=after,
    )


@contextlib.contextmanager
def _kept(rows: SummedRows) -> Iterator[DataFrame]:
    frame = rows.totals_frame(SECOND_TOTALS, few=False)
    day = F.date_format(F.timestamp_micros(F.col("second") * SECOND_US), "yyyy-MM-dd")
    totals = frame.withColumn(_DAY, day).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield totals
    finally:
        totals.unpersist()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Rows of each source, day and status, and the ids of clusters."""

    rows: tuple[Row, ...]
    clusters: tuple[str, ...]
    source_of: Mapping[str, LakeSource]

    @classmethod
    def of(cls, totals: DataFrame, source_of: Mapping[str, LakeSource], ledger: LakeLedger) -> _Counted:
        sums = (F.sum("requests").alias("requests"), F.max("last").alias("last"))
        rows = totals.groupBy("file", _DAY, "status", "cluster").agg(*sums).collect()
        named = {row["cluster"]: row["file"] for row in rows if row["cluster"] is not None}
        require_one(dict.fromkeys(ledger.clusters, "written earlier") | {name: escaped(file) for name, file in named.items()})
        return cls(
            rows=tuple(row for row in rows if row["status"] is not None), clusters=tuple(sorted(named)), source_of=source_of
        )

    @property
    def copies(self) -> int:
        """Rows that are copies of others."""
        return sum(row["requests"] for row in self.rows if row["status"] == DUPLICATE)

    def require_usable(self, max_unreadable: float) -> None:
        """Raise ``TrafficError`` for too many rows that cannot be read, ``UsageError`` for samples of metrics."""
        of_file: dict[str, dict[str, int]] = {}
        for row in self.rows:
            statuses = of_file.setdefault(row["file"], {})
            statuses[row["status"]] = statuses.get(row["status"], 0) + row["requests"]
        for file, statuses in of_file.items():
            name = self.source_of[file].name
            if any(statuses.get(status) for status in OF_METRICS):
                raise UsageError(
                    f"{escaped(name)} has samples of metrics, of which no totals of seconds can be made. Keep the files, "
                    "and give them to backtest as they are"
                )
            require_readable(statuses.get(UNREADABLE, 0), sum(statuses.values()), max_unreadable, files=[name])

    def shares(self) -> dict[str, list[SourceShare]]:
        """By day what each source has of it."""
        days: dict[str, dict[str, dict[str, int]]] = {}
        undated: dict[str, dict[str, int]] = {}
        for row in self.rows:
            statuses = undated.setdefault(row["file"], {})
            if row[_DAY] is not None:
                statuses = days.setdefault(row["file"], {}).setdefault(row[_DAY], {})
            statuses[row["status"]] = statuses.get(row["status"], 0) + row["requests"]
        shares: dict[str, list[SourceShare]] = {}
        for file, of_file in sorted(days.items()):
            source, dates = self.source_of[file], tuple(sorted(of_file))
            for date in dates:
                statuses = dict(sorted(of_file[date].items()))
                share = SourceShare(
                    source=source if source.kind != TABLE else _of_table(source, date, sum(statuses.values())),
                    statuses=statuses,
                    days=dates if source.kind != TABLE else (date,),
                    undated=dict(sorted(undated.get(file, {}).items())) if date == dates[0] else {},
                )
                shares.setdefault(date, []).append(share)
        return shares


def _of_table(source: LakeSource, date: str, rows: int) -> LakeSource:
    return replace(source, id=table_day(source.id, date), size=rows)


def _frame(
    spark: SparkSession,
    store: DayStore,
    ledger: LakeLedger,
    plan: DayPlan,
    totals: DataFrame,
    source_of: Mapping[str, LakeSource],
) -> DataFrame:
    """The rows of all days to write, each day in as many files as its size asks for, in the order of clients."""
    pairs = [
        (file, write.date)
        for write in plan.writes
        for file, source in source_of.items()
        if (source.id if source.kind != TABLE else table_day(source.id, write.date)) in write.sources
    ]
    wanted = spark.createDataFrame(pairs, "file string, date string")
    dated = totals.where(F.col("second").isNotNull()).join(F.broadcast(wanted), ["file", _DAY], "left_semi")
    begin = F.col("second") * SECOND_US
    new = dated.select(
        F.timestamp_micros(begin).alias("ts"),
        *(F.col(name) for name in ("broker", "kind", "user", "client_id", "ip", "status", "requests", "amount", "largest")),
        F.col("throttled"),
        (F.col("first") - begin).cast("int").alias("first_us"),
        (F.col("last") - begin).cast("int").alias("last_us"),
    ).select(*NAMES)
    added = [write.date for write in plan.writes if write.add]
    whole = new.unionByName(store.totals(ledger, added)) if added else new
    folds = [getattr(F, fold)(name).cast(dict(COLUMNS)[name]).alias(name) for name, fold in FOLDS.items()]
    summed = whole.groupBy(*KEYS).agg(*folds).withColumn(_DAY, F.date_format("ts", "yyyy-MM-dd"))
    most = max(sum(sum(share.statuses.values()) for share in write.shares) for write in plan.writes)
    files = max(1, -(-most // _ROWS_A_FILE))
    spread = summed.repartition(F.col(_DAY), F.pmod(F.hash("kind", "broker", "user", "client_id", "ip"), F.lit(files)))
    order = ("kind", "broker", "user", "client_id", "ip", "ts", "status")
    return spread.sortWithinPartitions(_DAY, *order).select(*NAMES, _DAY)
