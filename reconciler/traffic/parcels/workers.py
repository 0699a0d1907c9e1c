"""Parcels on Spark: some workers make them of what they read, others get each bin whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reconciler.traffic.parcels.bins import Bins
from reconciler.traffic.parcels.parcel import SCHEMA, Columns, parcels

Work = TypeVar("Work")


def shares(work: Sequence[Work], weights: Sequence[int], most: int) -> tuple[tuple[Work, ...], ...]:
    """At most so many shares of about one weight each, in order."""
    whole = max(1, sum(weights))
    found: list[list[Work]] = []
    before = 0
    for one, weight in zip(work, weights, strict=True):
        place = min(most - 1, before * most // whole)
        if not found or place >= len(found):
            found.append([])
        found[-1].append(one)
        before += weight
    return tuple(tuple(share) for share in found)


def on_workers(
    spark: SparkSession, work: Sequence[Work], go: Callable[[Work], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What ``go`` makes of each piece of work, each in a task of its own."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from go(work[number])

    return spark.range(0, len(work), 1, max(1, len(work))).mapInArrow(run, schema)


def brought_together(
    spark: SparkSession, work: Sequence[Work], read: Callable[[Work], Iterable[Columns]], bins: Bins, bits: int
) -> DataFrame:
    """Parcels of all that ``read`` makes of the work, each bin whole in one partition, ready to be ``merged``.

    ``bits``: how many of a key are below the group's number.
    """

    def send(one: Work) -> Iterator[pa.RecordBatch]:
        for columns in read(one):
            if len(columns[0]):
                yield parcels(columns, bins, bits)

    sent = on_workers(spark, work, send, SCHEMA)
    return sent.repartitionById(len(bins), "bin").sortWithinPartitions("bin", "first")
