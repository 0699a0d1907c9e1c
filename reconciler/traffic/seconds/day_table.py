"""Per-second totals as an Iceberg table, partitioned by day.

Every commit is one snapshot: it replaces the days that it touches, and fails if another one has touched them since this one read
them. What the table covers is in the table itself, in rows whose status is ``source`` or ``stream``. They belong to their day, so
a commit cannot write totals without them, and whatever compacts files or expires snapshots keeps them.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.seconds.day_columns import COLUMNS, NAMES, SCHEMA_VERSION
from reconciler.traffic.seconds.day_folders import ChangedMeanwhileError, LakeChange, ddl
from reconciler.traffic.seconds.day_ledger import DayWrite, LakeDay, LakeLedger, SourceShare, StreamPosition
from reconciler.traffic.sources.normal_form import CHARGED

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_log: Final = logging.getLogger(__name__)
SOURCE: Final = "source"
STREAM: Final = "stream"
_NOTES: Final = (SOURCE, STREAM)
DETAIL: Final = "detail"
_CONFLICTS: Final = ("ValidationException", "CommitFailedException", "Found conflicting files", "TABLE_OR_VIEW_ALREADY_EXISTS")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTable:
    """The table of this name."""

    spark: SparkSession
    name: str
    adds_parts: ClassVar[bool] = False
    """Iceberg validates no append: of two writers that append the same rows, neither fails."""

    def load(self) -> LakeLedger:
        """What it covers. Raises ``TrafficError`` for a table that is not one of these."""
        try:
            frame = self.spark.read.table(self.name)
            require_own(frame.columns, self.name)
            snapshot = self._snapshot()
        except AnalysisException as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                return LakeLedger()
            raise
        if snapshot == 0:
            return LakeLedger()
        notes = self._at(snapshot).where(F.col("status").isin(*_NOTES)).select("status", F.to_date("ts").alias("date"), DETAIL)
        return _ledger(snapshot, [(row["status"], row["date"].isoformat(), json.loads(row[DETAIL])) for row in notes.collect()])

    def made_of_totals(
        self,
        ledger: LakeLedger,
        writes: Collection[DayWrite],
        go: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> DataFrame | None:
        """As ``DayStore``. A day that is added to is written again whole."""
        dates = [write.date for write in writes if write.add]
        if not dates:
            return None
        inside = F.to_date("ts").cast("string").isin(*dates)
        rows = self.totals_from(ledger, min(dates), max(dates)).where(inside)
        return rows.mapInArrow(go, from_arrow_schema(schema))

    def totals_from(self, ledger: LakeLedger, first: str, last: str) -> DataFrame:
        """Rows of the days from ``first`` to ``last``."""
        begin = F.to_timestamp(F.lit(first))
        end = F.to_timestamp(F.lit(last)) + F.expr("interval 1 day")
        inside = (F.col("ts") >= begin) & (F.col("ts") < end) & ~F.col("status").isin(*_NOTES)
        return self._at(ledger.sequence).where(inside).select(*NAMES)

    def columns(self) -> list[str]:
        """Its columns; none when there is no such table."""
        try:
            return self.spark.read.table(self.name).columns
        except AnalysisException:
            return []

    def commit(self, ledger: LakeLedger, change: LakeChange, frame: DataFrame | None) -> LakeLedger:
        """One snapshot with the days of ``change``, whose rows ``frame`` has. Raises ``ChangedMeanwhileError``."""
        if change.removed:
            first, last = min(change.removed), max(change.removed)
            delete = (
                "DELETE FROM IDENTIFIER(:name) WHERE ts >= to_timestamp(:first) AND ts < to_timestamp(:last) + interval 1 day"
            )
            self._try(lambda: self.spark.sql(delete, {"name": self.name, "first": first, "last": last}))
            ledger = self.load()
        if frame is None or not change.writes:
            return ledger
        rows = frame.drop("date").withColumn(DETAIL, F.lit(None).cast("string"))
        rows = rows.persist()
        try:
            whole = rows.unionByName(self._notes(ledger, change, rows))
            self._try(lambda: self._write(ledger, whole))
        finally:
            rows.unpersist()
        log_event(_log, "table written", level=logging.INFO, table=self.name, days=len(change.writes))
        return self.load()

    def _write(self, ledger: LakeLedger, rows: DataFrame) -> None:
        if not self.spark.catalog.tableExists(self.name):
            writer = rows.limit(0).writeTo(self.name).using("iceberg").partitionedBy(F.partitioning.days("ts"))
            writer.tableProperty("kafka-quotas.schema", SCHEMA_VERSION).create()
        writer = rows.sortWithinPartitions("ts").writeTo(self.name).option("isolation-level", "serializable")
        if ledger.sequence:
            writer = writer.option("validate-from-snapshot-id", str(ledger.sequence))
        writer.overwritePartitions()

    def _notes(self, ledger: LakeLedger, change: LakeChange, rows: DataFrame) -> DataFrame:
        charged = F.col("status") == CHARGED
        counts = rows.groupBy(F.to_date("ts").cast("string").alias("date")).agg(
            F.count("*").alias("rows"), F.sum(F.when(charged, F.col("requests"))).alias("requests")
        )
        counted = {row["date"]: row for row in counts.collect()}
        notes: list[tuple[str, str, dict[str, Any]]] = []
        positions = dict(ledger.streams) | ({} if change.stream is None else {change.stream.id: change.stream})
        for write in change.writes:
            row = counted.get(write.date)
            day = {
                "rows": row["rows"] if row else 0, "requests": (row["requests"] or 0) if row else 0, "late": write.late,
                "written": change.now.isoformat(timespec="seconds"), "program": change.program, "clusters": list(change.clusters),
            }  # fmt: skip
            notes += [(SOURCE, write.date, {"day": day, **share.to_json()}) for share in write.shares]
            if not write.shares:
                notes.append((SOURCE, write.date, {"day": day}))
            # Those of other streams too: the day may be where they are. The last batch counts.
            notes += [(STREAM, write.date, dataclasses.asdict(position)) for position in positions.values()]
        made = self.spark.createDataFrame(
            [(date, status, json.dumps(detail, sort_keys=True)) for status, date, detail in notes],
            "date string, status string, detail string",
        )
        kinds = dict(COLUMNS)
        known = {"ts": F.to_timestamp("date"), "status": F.col("status"), DETAIL: F.col(DETAIL)}
        return made.select(*(known.get(n, F.lit(None).cast(kinds.get(n, "string"))).alias(n) for n in (*NAMES, DETAIL)))

    def _snapshot(self) -> int:
        rows = self.spark.read.table(f"{self.name}.refs").where("name = 'main'").select("snapshot_id").collect()
        return int(rows[0][0]) if rows else 0

    def _at(self, snapshot: int) -> DataFrame:
        return self.spark.read.option("versionAsOf", str(snapshot)).table(self.name)

    def _try(self, go: Callable[[], object]) -> None:
        try:
            go()
        except (PySparkException, Py4JError) as error:
            text = str(error)
            if any(word in text for word in _CONFLICTS):
                raise ChangedMeanwhileError(
                    f"table {escaped(self.name)}: another run has written the same days meanwhile, and this one has written "
                    "nothing. Run it again"
                ) from None
            raise


def require_own(columns: Iterable[str], name: str) -> None:
    """Raise ``TrafficError`` for a table without the columns of per-second totals."""
    missing = [column for column in (*NAMES, DETAIL) if column not in set(columns)]
    if missing:
        raise TrafficError(
            f"table {escaped(name)} has no column {missing[0]!r}, so it was not written by compact. Name another table: compact "
            "creates it"
        )


def is_own(columns: Iterable[str]) -> bool:
    """Whether a table has the columns of per-second totals."""
    return {*NAMES, DETAIL} <= set(columns)


def table_columns() -> str:
    """The columns, as Spark reads them."""
    return ddl(f", `{DETAIL}` string")


def _ledger(snapshot: int, notes: Iterable[tuple[str, str, Mapping[str, Any]]]) -> LakeLedger:
    days: dict[str, LakeDay] = {}
    streams: dict[str, StreamPosition] = {}
    clusters: set[str] = set()
    for status, date, detail in notes:
        if status == STREAM:
            position = StreamPosition(**detail)
            if position.id not in streams or streams[position.id].batch < position.batch:
                streams[position.id] = position
            continue
        facts = dict(detail["day"])
        clusters.update(facts.pop("clusters"))
        share = (SourceShare.from_json(detail),) if "id" in detail else ()
        day = days.get(date)
        days[date] = LakeDay(date=date, **facts, shares=(*(day.shares if day is not None else ()), *share))
    return LakeLedger(sequence=snapshot, days=dict(sorted(days.items())), streams=streams, clusters=tuple(sorted(clusters)))
