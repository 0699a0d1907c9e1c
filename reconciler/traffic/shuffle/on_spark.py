"""The shuffle on Spark: some workers cut what they read into blocks, others get each partition whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reconciler.traffic.shuffle.block import SCHEMA, Columns, cut_into_blocks
from reconciler.traffic.shuffle.partition import GroupRanges

Work = TypeVar("Work")


def split_work(work: Sequence[Work], weights: Sequence[int], most: int) -> tuple[tuple[Work, ...], ...]:
    """At most ``most`` shares of about one weight each, in order."""
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
    spark: SparkSession, work: Sequence[Work], go: Callable[[Work], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """The batches (of ``schema``) that ``go`` makes of each item of work; each item is a task of its own."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from go(work[number])

    return spark.range(0, len(work), 1, max(1, len(work))).mapInArrow(run, schema)


def shuffle_by_group(
    spark: SparkSession, work: Sequence[Work], read: Callable[[Work], Iterable[Columns]], ranges: GroupRanges, bits: int
) -> DataFrame:
    """Blocks of all columns that ``read`` makes of the work, each partition whole in one task, sorted for ``merge_blocks``.

    ``bits``: how many bits of a key are below the group's number.
    """

    def send(item: Work) -> Iterator[pa.RecordBatch]:
        for columns in read(item):
            if len(columns[0]):
                yield cut_into_blocks(columns, ranges, bits)

    sent = run_on_workers(spark, work, send, SCHEMA)
    return sent.repartitionById(len(ranges), "partition").sortWithinPartitions("partition", "first")
