"""The shuffle on Spark: workers read shares of the rows and cut them into blocks, others get each partition whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reconciler.logs import log_event
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.block import SCHEMA, GroupRanges, cut_into_blocks, merge_blocks, pack_rows
from reconciler.traffic.shuffle.rows import Convert, GroupWork, Rows, Totals, columns_of, count_together, joined_names
from reconciler.traffic.spark_jobs import logged_stages
from reconciler.traffic.spark_versions import collect_table, repartition_by_number

_log: Final = logging.getLogger(__name__)
Together: TypeAlias = Sequence[Totals[pa.RecordBatch]]
Work = TypeVar("Work")
Item = TypeVar("Item")
_WORK: Final = "work"
_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_LIMIT: Final = 2**31 - 1
"""With it, Spark does not look at sizes (``BatchedPythonArrowInput`` of Spark 4.3)."""
_KEPT = pa.schema([("rows", pa.binary())])
_SPREAD = pa.schema([("partition", pa.int32()), ("rows", pa.binary())])


def split_work(work: Sequence[Work], weights: Sequence[int], most: int) -> tuple[tuple[Work, ...], ...]:
    """Split work into at most ``most`` shares of about one weight each, in order."""
    whole = max(1, sum(weights))
    shares: list[list[Work]] = []
    before = 0
    for item, weight in zip(work, weights, strict=True):
        place = min(most - 1, before * most // whole)
        if not shares or place >= len(shares):
            shares.append([])
        shares[-1].append(item)
        before += weight
    return tuple(tuple(share) for share in shares)


def run_on_workers(
    spark: SparkSession, work: Sequence[Work], go: Callable[[Work], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """The batches (of ``schema``) that ``go`` makes of each item of work; each item is a task of its own."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from go(work[number])

    return spark.range(0, len(work), 1, max(1, len(work))).mapInArrow(run, from_arrow_schema(schema))


def least_tasks(spark: SparkSession) -> int:
    """Return the number of tasks that keeps all workers busy."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


Go: TypeAlias = Callable[[Iterable[Any]], Iterable[pa.RecordBatch]]
"""What is made of the rows of a share."""


class Scan(Protocol):
    """Reads rows in shares, each in a task of Spark's workers."""

    def __call__(self, go: Go, columns: Sequence[str], schema: pa.Schema, /, *, few: bool) -> DataFrame:
        """Return what ``go`` makes of each share, which has these columns: batches of ``schema``.

        ``few``: shares are as large as possible, since each gives about as many rows.
        """
        ...


def scan_parts(
    spark: SparkSession,
    parts: Sequence[Work],
    weights: Sequence[int],
    read: Callable[[Work, Sequence[str]], Iterable[Any]],
    *,
    a_task: int,
) -> Scan:
    """Workers read parts, anew for each pass. ``a_task``: the weight that one task reads at most, if there are as many parts."""
    fewer = split_work(parts, weights, least_tasks(spark))
    many = split_work(parts, weights, max(least_tasks(spark), sum(weights) // a_task))

    def scan(go: Go, columns: Sequence[str], schema: pa.Schema, *, few: bool) -> DataFrame:
        def run(share: Sequence[Work]) -> Iterable[pa.RecordBatch]:
            return go(item for part in share for item in read(part, columns))

        return run_on_workers(spark, fewer if few else many, run, schema)

    return scan


def scan_frame(
    frame: DataFrame,
    needed: Callable[[Sequence[str]], Sequence[str]],
    convert: Callable[[pa.RecordBatch, Sequence[str]], Iterable[pa.RecordBatch]],
) -> Scan:
    """Spark reads the columns of a data frame, anew for each pass.

    ``needed``: the columns of the frame from which ``convert`` makes some columns; those that it lacks are left out.
    """

    def scan(go: Go, columns: Sequence[str], schema: pa.Schema, *, few: bool) -> DataFrame:
        del few  # Spark cuts the files

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from go(rows for batch in batches for rows in convert(batch, columns))

        names = set(needed(columns))
        # Of two columns whose names differ in case only, Spark takes the exact name with its own setting.
        chosen = frame.select([f"`{name}`" for name in frame.columns if name in names])
        return chosen.mapInArrow(run, from_arrow_schema(schema))

    return scan


def scan_all(scans: Sequence[Scan]) -> Scan:
    """The rows of several, which are on one session."""

    def scan(go: Go, columns: Sequence[str], schema: pa.Schema, *, few: bool) -> DataFrame:
        return reduce(DataFrame.unionAll, (read(go, columns, schema, few=few) for read in scans))

    return scan


class SparkRows(Rows[Item]):
    """Rows that Spark's workers read. ``is_kept``: from what Spark keeps, so that to keep their sums saves nothing."""

    def __init__(self, spark: SparkSession, scan: Scan, together: Sequence[Totals[Item]] = ()) -> None:
        super().__init__(together)
        self.spark = spark
        self._scan = scan
        self.is_kept = False

    def made_of_shares(self, go: Go, columns: Sequence[str], schema: pa.Schema, *, few: bool) -> DataFrame:
        """Return what ``go`` makes of each share of the rows. A ``Scan``."""
        return self._scan(go, columns, schema, few=few)

    def _mapped(self, convert: Convert[Item], columns: Sequence[str]) -> SparkRows[Item]:
        read = self._scan

        def scan(go: Go, names: Sequence[str], schema: pa.Schema, *, few: bool) -> DataFrame:
            return read(lambda batches: go(convert(batches)), joined_names(names, columns), schema, few=few)

        rows = SparkRows[Item](self.spark, scan)
        rows.is_kept = self.is_kept
        return rows

    def _judge(self, work: GroupWork[Item]) -> pa.Table:
        with logged_stages(_log, self.spark, "groups judged", what=work.name, rows=sum(work.rows)) as event:
            results = collect_table(self.judged_frame(work))
            event["results"] = results.num_rows
        return results

    def _count(self, works: Sequence[Totals[Item]]) -> dict[str, pa.Table]:
        with logged_stages(_log, self.spark, "rows added up", what=", ".join(work.name for work in works)) as event:
            first = works[0]
            totals = {first.name: collect_table(self.totals_frame(first))} if len(works) == 1 else self._count_together(works)
            event["results"] = totals[first.name].num_rows
        return totals

    def _count_together(self, works: Sequence[Totals[Item]]) -> dict[str, pa.Table]:
        """Several totals by name. A row has the number of its work, and nulls in the columns of the others."""
        own = [[pa.field(f"{name}_{number}", work.schema.field(name).type) for name in work.schema.names]
               for number, work in enumerate(works)]  # fmt: skip
        schema = pa.schema([(_WORK, pa.int32()), *(field for fields in own for field in fields)])

        def count(items: Iterable[Item]) -> Iterator[pa.RecordBatch]:
            for number, table in enumerate(count_together(works, items).values()):
                rows = table.rename_columns([field.name for field in own[number]])
                rows = rows.append_column(_WORK, pa.repeat(pa.scalar(number, pa.int32()), len(rows)))
                missing = (field for field in schema if field.name not in rows.schema.names)
                for field in missing:
                    rows = rows.append_column(field, pa.nulls(len(rows), field.type))
                yield from rows.select(schema.names).to_batches()

        keys = [f"{name}_{number}" for number, work in enumerate(works) for name in work.keys]
        folds = [
            getattr(F, fold)(f"{name}_{number}").alias(f"{name}_{number}")
            for number, work in enumerate(works) for name, fold in work.folds.items()
        ]  # fmt: skip
        whole = collect_table(self.made_of_shares(count, columns_of(works), schema, few=True).groupBy(_WORK, *keys).agg(*folds))
        return {
            work.name: whole.filter(pc.field(_WORK) == number)
            .select([field.name for field in own[number]]).rename_columns(work.schema.names).cast(work.schema)
            for number, work in enumerate(works)
        }  # fmt: skip

    def totals_frame(self, work: Totals[Item], *, few: bool = True) -> DataFrame:
        """The same, left to Spark's workers. ``few``: there are much fewer totals than rows."""
        partial = self.made_of_shares(work.count, work.columns, work.schema, few=few)
        # Sums and extremes of numbers alone: a smallest text would make Spark sort all rows.
        folds = [getattr(F, fold)(name).alias(name) for name, fold in work.folds.items()]
        whole = partial.groupBy(*work.keys).agg(*folds) if folds else partial.distinct()
        return whole.select(*work.schema.names)

    def judge_in_order(self, works: Sequence[GroupWork[Item]], by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Implement ``Rows.judge_in_order``."""
        whole = reduce(DataFrame.unionAll, map(self.judged_frame, works)).orderBy(*by)
        return map(tuple, whole.toLocalIterator(prefetchPartitions=True))

    def keep(
        self,
        name: str,
        make: Callable[[Iterable[Item]], Iterable[pa.RecordBatch]],
        columns: Sequence[str],
        made: Sequence[str],
        together: Together = (),
    ) -> KeptRows:
        """Read now what ``make`` gives of each share, and let Spark keep it.

        ``name``: what is kept, for the log. ``columns``: those that ``make`` reads. ``made``: those that it gives. Each is kept
        for itself, so that a pass gets those that it needs. ``together``: as ``SparkRows``.
        """
        schema = pa.schema([(column, pa.binary()) for column in made])

        def pack(items: Iterable[Item]) -> Iterator[pa.RecordBatch]:
            for batch in make(items):
                packed = [_kept(batch.select([column])).column(0) for column in made]
                yield pa.RecordBatch.from_arrays(packed, schema=schema)

        # Java's heap is for the files that are read: with sums of a billion rows in it, Spark ran out of it.
        kept = KeptRows(
            self.spark,
            self.made_of_shares(pack, columns, schema, few=False),
            together,
            level=StorageLevel.DISK_ONLY,
            columns=made,
        )
        try:
            kept.read(name)
        except BaseException:
            kept.close()
            raise
        return kept

    def share_results(self, work: Go, schema: pa.Schema) -> pa.Table:
        """Return what ``work`` gives of each share of whole rows: rows of ``schema``, in no order."""
        with logged_stages(_log, self.spark, "rows gone through"):
            return collect_table(self.made_of_shares(work, (), schema, few=False))

    def has_repeats(self, keys: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema) -> bool:
        """Whether one combination of ``keys``, rows of ``schema``, is there twice."""
        whole = self.made_of_shares(lambda batches: map(keys, batches), (), schema, few=False)
        with logged_stages(_log, self.spark, "rows kept") as event:
            event["repeats"] = repeats = whole.groupBy(*schema.names).count().where("count > 1").limit(1).count() > 0
        return repeats

    def judged_frame(self, work: GroupWork[Item]) -> DataFrame:
        """Return what ``work.judge`` gives of all groups, as a frame. Each action on it goes through the rows again."""
        ranges = GroupRanges.of(work.rows, least_tasks(self.spark))
        log_event(_log, "shuffle planned", what=work.name, groups=len(work.rows), partitions=len(ranges))

        def send(items: Iterable[Item]) -> Iterator[pa.RecordBatch]:
            return (cut_into_blocks(columns, ranges, work.bits) for columns in work.send(items) if len(columns[0]))

        def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from work.judge(merge_blocks(batches))

        sent = self.made_of_shares(send, work.columns, SCHEMA, few=False)
        met = repartition_by_number(sent, len(ranges), "partition").sortWithinPartitions("partition", "first")
        return met.mapInArrow(judge, from_arrow_schema(work.schema))


class KeptRows(SparkRows[pa.RecordBatch]):
    """Rows that take long to read, such as text: read once, and kept by Spark as blocks of Arrow batches until ``close``."""

    def __init__(
        self,
        spark: SparkSession,
        blocks: DataFrame,
        together: Together = (),
        *,
        level: StorageLevel = StorageLevel.MEMORY_AND_DISK,
        columns: Sequence[str] = (),
    ) -> None:
        """``blocks``: batches, all of one schema, as binary values: a value a batch, or one for each of its ``columns``."""
        self._blocks = blocks.persist(level)
        super().__init__(spark, _scan_blocks(self._blocks, columns, least_tasks(spark)), together)
        self.is_kept = True

    @classmethod
    def of_shares(cls, spark: SparkSession, shares: Sequence[Work], read: Callable[[Work], Iterable[pa.RecordBatch]]) -> KeptRows:
        """``read`` gives the batches of a share; each share is a task."""

        def keep(share: Work) -> Iterator[pa.RecordBatch]:
            return map(_kept, read(share))

        return cls(spark, run_on_workers(spark, shares, keep, _KEPT))

    @classmethod
    def of_frame(
        cls, spark: SparkSession, frame: DataFrame, read: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
    ) -> KeptRows:
        """``read`` gives the batches of a partition of ``frame``."""

        def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(_kept, read(batches))

        return cls(spark, frame.mapInArrow(keep, from_arrow_schema(_KEPT)))

    def close(self) -> None:
        """Forget the rows; safe to call twice."""
        super().close()
        self._blocks.unpersist()

    def read(self, name: str) -> None:
        """Read the rows now. ``name``: what they are, for the log."""
        with logged_stages(_log, self.spark, "rows kept", what=name) as event, _unlimited_batches(self.spark):
            event["blocks"] = self._blocks.count()

    def rewritten(self, number: Callable[[pa.RecordBatch], Integers], rewrite: Callable[[pa.Table], pa.Table]) -> KeptRows:
        """Replace these rows by what ``rewrite`` makes of tables. Rows of one ``number`` are in one table."""
        rows = self._blocks.count() * (1 << 14)
        partitions = max(least_tasks(self.spark), rows // 1_000_000)

        def spread(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                partition = np.mod(number(batch), partitions)
                for place in np.unique(partition).tolist():
                    chosen = batch.take(pa.array(np.flatnonzero(partition == place)))
                    yield pa.RecordBatch.from_arrays([pa.array([place], pa.int32()), _kept(chosen).column(0)], schema=_SPREAD)

        def collect(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            batches = [batch for block in blocks for batch in _batches(block.column("rows"))]
            if batches:
                table = rewrite(pa.Table.from_batches(batches).unify_dictionaries().combine_chunks())
                yield from map(_kept, table.to_batches(1 << 16))

        met = repartition_by_number(self.made_of_shares(spread, (), _SPREAD, few=False), partitions, "partition")
        again = KeptRows(self.spark, met.mapInArrow(collect, from_arrow_schema(_KEPT)))
        with logged_stages(_log, self.spark, "kept rows rewritten", partitions=partitions):
            again._blocks.count()
        self.close()
        return again


def _scan_blocks(blocks: DataFrame, columns: Sequence[str], tasks: int) -> Scan:
    """``tasks``: how many there are where few are wanted."""

    def scan(go: Go, names: Sequence[str], schema: pa.Schema, *, few: bool) -> DataFrame:
        chosen = [name for name in columns if name in names]

        def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from go(batch for part in parts for batch in _unpacked(part))

        frame = blocks.select(*chosen) if chosen else blocks
        return (frame.coalesce(tasks) if few else frame).mapInArrow(run, from_arrow_schema(schema))

    return scan


@contextmanager
def _unlimited_batches(spark: SparkSession) -> Iterator[None]:
    """Let batches for workers have any number of bytes: with a limit, Spark asks each column for its size after each row.

    Rows of traffic are narrow, so their number limits a batch. Blocks need the limit.
    """
    before = spark.conf.get(_BATCH_BYTES, None)
    spark.conf.set(_BATCH_BYTES, str(_NO_LIMIT))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_BATCH_BYTES)
        else:
            spark.conf.set(_BATCH_BYTES, before)


def _kept(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as one binary value, texts as dictionaries."""
    columns = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in batch.columns]
    packed = pack_rows(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), "lz4")
    return pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], schema=_KEPT)


def _unpacked(block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batches of rows whose values are batches, or columns of batches."""
    for parts in zip(*map(_batches, block.columns), strict=True):
        names = [name for part in parts for name in part.schema.names]
        yield pa.RecordBatch.from_arrays([column for part in parts for column in part.columns], names=names)


def _batches(blocks: pa.Array) -> Iterator[pa.RecordBatch]:
    for block in blocks:
        with pa.ipc.open_stream(block.as_buffer()) as stream:
            yield from stream
