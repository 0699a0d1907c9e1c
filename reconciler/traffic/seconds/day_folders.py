"""Per-second totals as folders by day, on any file system that Spark reaches.

    ROOT/date=2026-11-20/run=RUN/*.parquet           a part of a day's totals, written by one run and never changed
    ROOT/_kafka-quotas/sources/2026-11-20.RUN.json   of which sources they are
    ROOT/_kafka-quotas/manifests/N.json              which folders are the day's: written last, and never changed
    ROOT/_kafka-quotas/staging/RUN                   what a run makes, or made when it was cut short

The newest manifest is the dataset. A run adds the next one, and of two runs that add the same number one fails: it looks at what
the other one wrote, and goes on where both wrote other days. So a reader of a manifest sees each day as one run left it, whatever
is written meanwhile. What a manifest replaces is removed an hour later, for readers that still have an earlier one.

A batch of a stream adds a part to its day, and takes some earlier parts in (``day_parts``). Any other run makes a day one part.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.seconds.day_columns import COLUMNS, NAMES
from reconciler.traffic.seconds.day_ledger import (
    DayPart,
    DayWrite,
    LakeDay,
    LakeLedger,
    SourceShare,
    StreamPosition,
    changed_days,
)
from reconciler.traffic.seconds.day_manifest import manifest_text, parse_manifest, parse_sources, sources_text
from reconciler.traffic.shuffle.on_spark import run_on_workers
from reconciler.traffic.sources.datasets import OWN_FOLDER
from reconciler.traffic.sources.normal_form import CHARGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic.seconds.lake_files import LakeFiles

_log: Final = logging.getLogger(__name__)
MANIFESTS: Final = f"{OWN_FOLDER}/manifests"
_STAGING: Final = f"{OWN_FOLDER}/staging"
_MANIFEST: Final = re.compile(r"(\d{10})\.json")
_MANIFESTS_KEPT: Final = 20
_GRACE: Final = datetime.timedelta(hours=1)
"""How long a reader may go on with a manifest that is no longer the newest."""
_LONGEST_RUN: Final = datetime.timedelta(hours=24)
"""What an unfinished run left is removed after this time."""
_WRITERS: Final = "spark.sql.maxConcurrentOutputFileWriters"
_ROWS_A_BATCH: Final = 1 << 19
_ATTEMPTS: Final = 100
_PATIENCE: Final = 5


class ChangedMeanwhileError(TrafficError):
    """Another writer has written a day that this run would write, or has moved its stream on. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeChange:
    """What a run does to the dataset. ``now``: when. ``run``: its own id."""

    run: str
    now: datetime.datetime
    program: str
    writes: tuple[DayWrite, ...] = ()
    removed: tuple[str, ...] = ()
    stream: StreamPosition | None = None
    clusters: tuple[str, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        """Every day that it changes."""
        return (*(write.date for write in self.writes), *self.removed)


def ddl(more: str = "") -> str:
    """The columns, as Spark reads them."""
    return ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS) + more


def read_ledger(spark: SparkSession, root: str, known: dict[str, tuple[SourceShare, ...]] | None = None) -> LakeLedger | None:
    """The newest manifest, by Spark's own readers; ``None`` where there is none. ``known``: shares by folder, kept between calls.

    Raises ``TrafficError`` for a manifest of another version, or one that cannot be read.
    """
    for _ in range(_PATIENCE):
        names = sorted(_listed(spark, f"{root}/{MANIFESTS}"))
        numbers = [name for name in names if _MANIFEST.fullmatch(name.rpartition("/")[2])]
        if not numbers:
            return None
        texts = _texts(spark, numbers[-1:])
        if texts:
            ledger = parse_manifest(numbers[-1], next(iter(texts.values())))
            return _with_shares(spark, root, ledger, {} if known is None else known)
    raise TrafficError(f"per-second totals {escaped(root)}: the manifests change too fast to be read. Run this again")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFolders:
    """The dataset below the root of ``files``."""

    spark: SparkSession
    files: LakeFiles
    adds_parts: ClassVar[bool] = True
    _shares: dict[str, tuple[SourceShare, ...]] = field(default_factory=dict)

    def load(self) -> LakeLedger:
        """Its present state. Raises ``TrafficError``."""
        return read_ledger(self.spark, self.files.root, self._shares) or LakeLedger()

    def made_of_totals(
        self,
        ledger: LakeLedger,
        writes: Collection[DayWrite],
        go: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> DataFrame | None:
        """As ``DayStore``. Workers read files of their own file system without Spark's reader."""
        parts = [part for write in writes for part in write.merged(ledger.days.get(write.date))]
        if not parts:
            return None
        if (folder := self.files.local) is None:
            rows = _part_frame(self.spark, self.files.root, parts).select(*NAMES)
            return rows.mapInArrow(go, from_arrow_schema(schema))
        files = [str(path) for part in parts for path in sorted((folder / part.folder).glob("*.parquet"))]
        return run_on_workers(self.spark, files, lambda file: go(_batches(file)), schema)

    def commit(self, ledger: LakeLedger, change: LakeChange, frame: DataFrame | None) -> LakeLedger:
        """Write the days of ``change``, whose rows ``frame`` has, and the manifest that names them.

        Raises ``ChangedMeanwhileError`` where another writer came first.
        """
        parts: dict[str, DayPart] = {}
        try:
            if frame is not None and change.writes:
                parts = self._parts(change, frame)
            after = self._publish(ledger, change, parts)
        except ChangedMeanwhileError:
            for part in parts.values():
                self._remove_part(part.folder)
            raise
        finally:
            self.files.remove(f"{_STAGING}/{change.run}")
        self._tidy(after, change.now)
        return after

    def _parts(self, change: LakeChange, frame: DataFrame) -> dict[str, DayPart]:
        """By day the part that this run writes."""
        staging = f"{_STAGING}/{change.run}"
        address = f"{self.files.root}/{staging}"
        with _unsorted(self.spark):
            frame.write.partitionBy("date").parquet(address)
        charged = F.col("status") == CHARGED
        written = self.spark.read.schema(ddl(", `date` string")).parquet(address)
        figures = F.count("*").alias("rows"), F.sum(F.when(charged, F.col("requests"))).alias("requests")
        counts = written.groupBy("date").agg(*figures)
        counted = {row["date"]: row for row in counts.collect()}
        parts = {}
        for write in change.writes:
            folder = f"date={write.date}/run={change.run}"
            self.files.write(sources_of(folder), sources_text(write.shares).encode())
            row = counted.get(write.date)
            parts[write.date] = DayPart(
                folder=folder,
                rows=row["rows"] if row else 0,
                requests=(row["requests"] or 0) if row else 0,
                shares=write.shares,
            )
        for write in change.writes:
            self.files.move(f"{staging}/date={write.date}", parts[write.date].folder)
        return parts

    def _publish(self, ledger: LakeLedger, change: LakeChange, parts: Mapping[str, DayPart]) -> LakeLedger:
        base, moment = ledger, _moment(change.now)
        days = {
            write.date: LakeDay.of_parts(
                write.date,
                (*write.kept, parts[write.date]),
                late=write.late,
                written=moment,
                program=change.program,
            )
            for write in change.writes
            if write.date in parts
        }
        for _ in range(_ATTEMPTS):
            self._remove_superseded(base, change.now)
            after = _next(base, change, days)
            name = f"{MANIFESTS}/{after.sequence:010d}.json"
            if self.files.create(name, manifest_text(after, written=moment, program=change.program).encode()):
                self._shares.update({part.folder: part.shares for part in parts.values()})
                log_event(
                    _log, "manifest written", level=logging.INFO, sequence=after.sequence, days=len(days), root=self.files.root
                )
                return after
            base = self.load()
            if changed := changed_days(ledger, base, change.touched):
                raise ChangedMeanwhileError(
                    f"per-second totals {escaped(self.files.root)}: another run has written {changed[0]} meanwhile, and this one "
                    "has written nothing. Run it again"
                )
            stream = change.stream
            if stream is not None and base.streams.get(stream.id) != ledger.streams.get(stream.id):
                raise ChangedMeanwhileError(
                    f"per-second totals {escaped(self.files.root)}: another run follows the same checkpoint. End one of them"
                )
        raise ChangedMeanwhileError(f"per-second totals {escaped(self.files.root)}: too many runs write at once. Run this again")

    def _remove_superseded(self, ledger: LakeLedger, now: datetime.datetime) -> None:
        """Remove what only manifests of an hour ago name."""
        named = ledger.folders
        for folder, since in ledger.superseded:
            if folder not in named and is_over(since, now):
                self._remove_part(folder)
                self.files.remove_empty(folder.partition("/")[0])

    def _remove_part(self, folder: str) -> None:
        self.files.remove(folder)
        self.files.remove(sources_of(folder))

    def _tidy(self, ledger: LakeLedger, now: datetime.datetime) -> None:
        """Remove old manifests, and what unfinished runs left a day ago."""
        manifests = [name for name in self.files.names(MANIFESTS) if _MANIFEST.fullmatch(name)]
        for name in manifests[:-_MANIFESTS_KEPT]:
            self.files.remove(f"{MANIFESTS}/{name}")
        named = ledger.folders | {folder for folder, _ in ledger.superseded}
        for run in self.files.names(_STAGING):
            begun = run_moment(run)
            if begun is None or begun > now - _LONGEST_RUN:
                continue
            for date in [name for name in self.files.names("") if name.startswith("date=")]:
                if f"{date}/run={run}" not in named:
                    self._remove_part(f"{date}/run={run}")
            self.files.remove(f"{_STAGING}/{run}")
            log_event(_log, "leftovers of a run removed", run=run)


@contextlib.contextmanager
def _unsorted(spark: SparkSession) -> Iterator[None]:
    """Rows are written as they are. Else Spark sorts them by day, which is the same for all rows of a partition."""
    before = spark.conf.get(_WRITERS, "0")
    spark.conf.set(_WRITERS, "1")
    try:
        yield
    finally:
        spark.conf.set(_WRITERS, before or "0")


def day_frame(spark: SparkSession, root: str, days: Sequence[LakeDay]) -> DataFrame:
    """The rows of all parts of these days with their ``date``: Spark lists no other folder."""
    return _part_frame(spark, root, [part for day in days for part in day.parts])


def _part_frame(spark: SparkSession, root: str, parts: Iterable[DayPart]) -> DataFrame:
    reader = spark.read.schema(ddl(", `date` date, `run` string")).option("basePath", root)
    return reader.parquet(*(f"{root}/{part.folder}" for part in parts))


def _batches(file: str) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file) as opened:
        yield from opened.iter_batches(_ROWS_A_BATCH, columns=list(NAMES), use_threads=False)


def sources_of(folder: str) -> str:
    """Where the sources of a part's folder are listed, below the root."""
    return f"{OWN_FOLDER}/sources/{folder.removeprefix('date=').replace('/run=', '.')}.json"


def run_id(now: datetime.datetime, random: str) -> str:
    """When a run began, and what distinguishes it from others of that second."""
    return f"{now:%Y%m%dT%H%M%SZ}-{random}"


def run_moment(run: str) -> datetime.datetime | None:
    """When the run of this id began."""
    match = re.match(r"\d{8}T\d{6}Z-", run)
    return datetime.datetime.strptime(run[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC) if match else None


def is_over(since: str, now: datetime.datetime) -> bool:
    """Whether no reader goes on with what was replaced at this time."""
    return datetime.datetime.fromisoformat(since) < now - _GRACE


def _next(base: LakeLedger, change: LakeChange, days: Mapping[str, LakeDay]) -> LakeLedger:
    kept = {date: day for date, day in base.days.items() if date not in change.removed}
    before = (part for date in sorted({*days, *change.removed}) if date in base.days for part in base.days[date].parts)
    named = {part.folder for day in days.values() for part in day.parts}
    replaced = [part.folder for part in before if part.folder not in named]
    since = _moment(change.now)
    waiting = [(folder, at) for folder, at in base.superseded if not is_over(at, change.now)]
    streams = dict(base.streams) | ({} if change.stream is None else {change.stream.id: change.stream})
    return replace(
        base,
        sequence=base.sequence + 1,
        days=dict(sorted((kept | dict(days)).items())),
        streams=streams,
        clusters=tuple(sorted({*base.clusters, *change.clusters})),
        superseded=(*waiting, *((folder, since) for folder in replaced)),
    )


def _with_shares(spark: SparkSession, root: str, ledger: LakeLedger, known: dict[str, tuple[SourceShare, ...]]) -> LakeLedger:
    wanted = {sources_of(folder): folder for folder in sorted(ledger.folders) if folder not in known}
    addresses = [f"{root}/{name}" for name in wanted]
    texts = {name.rpartition("/")[2]: text for name, text in _texts(spark, addresses).items()}
    for name, folder in wanted.items():
        text = texts.get(name.rpartition("/")[2])
        if text is None:
            raise TrafficError(
                f"per-second totals {escaped(root)}: the file {escaped(name)} is missing, which the manifest needs. "
                "Restore it, or compact into an empty place"
            )
        known[folder] = parse_sources(text)
    return ledger.with_shares(known)


def _listed(spark: SparkSession, folder: str) -> list[str]:
    try:
        frame = spark.read.format("binaryFile").load(folder)
        return [row[0] for row in frame.select("path").collect()]
    except AnalysisException:
        return []


def _texts(spark: SparkSession, addresses: Iterable[str]) -> dict[str, str]:
    """Small files by their addresses; those that are not there are left out."""
    wanted = list(addresses)
    if not wanted:
        return {}
    reader = spark.read.format("binaryFile").option("ignoreMissingFiles", "true")
    try:
        rows = reader.load(wanted).select("path", "content").collect()
    except AnalysisException:
        # One of them is not there.
        return {} if len(wanted) == 1 else {name: text for address in wanted for name, text in _texts(spark, [address]).items()}
    return {row["path"]: bytes(row["content"]).decode() for row in rows}


def _moment(at: datetime.datetime) -> str:
    return at.astimezone(datetime.UTC).isoformat(timespec="seconds")
