"""Recorded rows to the days of a dataset: the one writer of a daily run and of a stream.

A run reads its sources once, adds them up by source and second, sees which days they have, and writes these days in one commit.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.errors import UsageError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.seconds.day_blocks import (
    BLOCKS,
    DAYS,
    TOTALS_A_SLOT,
    blocks_of_days,
    count_blocks,
    merge_blocks,
    read_summaries,
    slots_for,
)
from reconciler.traffic.seconds.day_columns import SECOND_COLUMNS
from reconciler.traffic.seconds.day_folders import ChangedMeanwhileError, LakeChange, run_id
from reconciler.traffic.seconds.day_ledger import (
    STREAM,
    TABLE,
    DayPlan,
    DayRange,
    DayWrite,
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
from reconciler.traffic.seconds.day_parts import count_mergeable
from reconciler.traffic.sources.log_evidence import require_one
from reconciler.traffic.sources.normal_form import DUPLICATE, OF_METRICS, UNREADABLE, require_readable
from reconciler.traffic.spark_versions import repartition_by_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_log: Final = logging.getLogger(__name__)
_ATTEMPTS: Final = 5
_TOTALS_A_FILE: Final = 2_000_000
_BYTES_A_TOTAL: Final = 8
"""Of a recorded file, so that there are slots enough for the totals of any."""
_UNKNOWN_TOTALS: Final = 64_000_000
"""Of a table or a batch of records, whose size is not known before it is read."""


class DayStore(Protocol):
    """Where the days are: ``DayFolders`` or ``DayTable``."""

    @property
    def adds_parts(self) -> bool:
        """Whether a day can have several parts, so that a batch need not write its whole day again."""
        ...

    def load(self) -> LakeLedger:
        """What there is now."""
        ...

    def made_of_totals(
        self,
        ledger: LakeLedger,
        writes: Collection[DayWrite],
        go: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> DataFrame | None:
        """What ``go`` makes of the rows of a state that are written again, ``None`` where none are.

        The rows have the columns ``day_columns.NAMES``, and ``go`` makes batches of ``schema``.
        """
        ...

    def commit(self, ledger: LakeLedger, change: LakeChange, frame: DataFrame | None) -> LakeLedger:
        """Write a change whole or not at all. Raises ``ChangedMeanwhileError`` where another writer came first."""
        ...


class SourceRows(Protocol):
    """Rows with the address of their source as ``file``."""

    def made_of_shares(
        self,
        go: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]],
        columns: Sequence[str],
        schema: pa.Schema,
        *,
        few: bool,
    ) -> DataFrame:
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


OpenRows = Callable[[Sequence[LakeSource]], contextlib.AbstractContextManager[tuple[SourceRows, Mapping[str, LakeSource]]]]
"""Opens rows of these sources, with the source of each ``file``. Of a table there is one file, and a source for each day."""


def write_days(store: DayStore, given: Sequence[LakeSource], open_rows: OpenRows, options: WriteOptions) -> WrittenDays:
    """Bring the days of these sources up to date, and remove those that are too old.

    Another writer of the same days means another try. Raises ``TrafficError`` for sources that cannot be used, and
    ``ChangedMeanwhileError`` when others write all the time.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _write_once(store, given, open_rows, options)
        except ChangedMeanwhileError:
            log_event(_log, "days changed meanwhile", level=logging.INFO, attempt=attempt)
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _write_once(store: DayStore, given: Sequence[LakeSource], open_rows: OpenRows, options: WriteOptions) -> WrittenDays:
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
    adds_parts = stream is not None and store.adds_parts
    slots = _slots_of(files.read, ledger, adds_parts=adds_parts)
    with open_rows(files.read) as (rows, source_of), _kept(rows, slots) as blocks:
        counted = _Counted.of(blocks, source_of, ledger)
        counted.require_usable(options.max_unreadable)
        read = counted.shares()
        totals = counted.totals() if adds_parts else None
        plan = plan_days(ledger, files, read, options.days, gone=options.gone(ledger), anew=options.replace, totals=totals)
        frame = _frame(store, ledger, plan, blocks, counted, slots) if plan.writes else None
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


def _slots_of(sources: Sequence[LakeSource], ledger: LakeLedger, *, adds_parts: bool) -> int:
    """Into how many slots the clients of a day are divided."""
    unknown = any(source.kind in {STREAM, TABLE} for source in sources)
    new = _UNKNOWN_TOTALS if unknown else sum(source.size for source in sources) // _BYTES_A_TOTAL
    days = ledger.days.values()
    before = (count_mergeable([part.rows for part in day.parts]) if adds_parts else day.rows for day in days)
    return slots_for(new + max(before, default=0))


@contextlib.contextmanager
def _kept(rows: SourceRows, slots: int) -> Iterator[DataFrame]:
    """``day_blocks.BLOCKS`` of all rows, which Spark makes once."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return count_blocks(batches, slots)

    blocks = rows.made_of_shares(count, SECOND_COLUMNS, BLOCKS, few=False).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield blocks
    finally:
        blocks.unpersist()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Rows of each source, day and status, and the ids of clusters."""

    rows: tuple[Mapping[str, Any], ...]
    clusters: tuple[str, ...]
    source_of: Mapping[str, LakeSource]

    @classmethod
    def of(cls, blocks: DataFrame, source_of: Mapping[str, LakeSource], ledger: LakeLedger) -> _Counted:
        rows = read_summaries(bytes(row[0]) for row in blocks.where("slot < 0").select("rows").collect())
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

    def totals(self) -> dict[str, int]:
        """By day how many totals the blocks have. A second of a client may be in several blocks."""
        of_day: dict[str, int] = {}
        for row in self.rows:
            if row["date"] is not None:
                of_day[row["date"]] = of_day.get(row["date"], 0) + row["totals"]
        return of_day

    def shares(self) -> dict[str, list[SourceShare]]:
        """By day what each source has of it."""
        days: dict[str, dict[str, dict[str, int]]] = {}
        undated: dict[str, dict[str, int]] = {}
        for row in self.rows:
            statuses = undated.setdefault(row["file"], {})
            if row["date"] is not None:
                statuses = days.setdefault(row["file"], {}).setdefault(row["date"], {})
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
    store: DayStore,
    ledger: LakeLedger,
    plan: DayPlan,
    blocks: DataFrame,
    counted: _Counted,
    slots: int,
) -> DataFrame:
    """The rows of all days to write, each day in as many partitions as its size asks for, in the order of clients."""
    wanted = {
        (file, write.date)
        for write in plan.writes
        for file, source in counted.source_of.items()
        if (source.id if source.kind != TABLE else table_day(source.id, write.date)) in write.sources
    }
    totals: dict[str, int] = {}
    all_wanted = True
    for row in counted.rows:
        if (row["file"], row["date"]) in wanted:
            totals[row["date"]] = totals.get(row["date"], 0) + row["totals"]
        elif row["date"] is not None:
            all_wanted = False
    begin, files_of = 0, dict[str, tuple[int, int]]()
    for write in plan.writes:
        before = ledger.days[write.date].rows - sum(part.rows for part in write.kept) if write.add else 0
        expected = totals.get(write.date, 0) + before
        files = min(slots, slots_for(expected * TOTALS_A_SLOT // _TOTALS_A_FILE))
        files_of[write.date] = begin, files
        begin += files
    partitions = F.create_map(*(F.lit(value) for date, (first, _) in files_of.items() for value in (date, first)))
    counts = F.create_map(*(F.lit(value) for date, (_, files) in files_of.items() for value in (date, files)))
    whole = blocks.where((F.col("slot") >= 0) & F.col("date").isin(*files_of))

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return blocks_of_days(batches, slots)

    earlier = store.made_of_totals(ledger, plan.writes, cut, BLOCKS)
    whole = whole if earlier is None else whole.unionByName(earlier)
    chosen = None if all_wanted else frozenset(wanted)

    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return merge_blocks(batches, chosen)

    number = (partitions[F.col("date")] + F.col("slot") % counts[F.col("date")]).cast("int")
    numbered = whole.withColumn("partition", number)
    return repartition_by_number(numbered, begin, "partition").select("date", "rows").mapInArrow(merge, from_arrow_schema(DAYS))
