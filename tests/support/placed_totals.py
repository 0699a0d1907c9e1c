"""Per-second totals of a folder, one row at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from reconciler.traffic.request_traffic import SecondsTraffic
from reconciler.traffic.seconds.stored_rows import StoredRows
from reconciler.traffic.sources.normal_form import IDENTITY
from reconciler.traffic.spark_versions import frame_of_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.traffic.judging.grouping import Grouping

Identity = tuple[int | str | None, ...]
"""Broker, kind, user, client-id and address."""


def no_spark() -> NoReturn:
    """In place of a session, for what needs none."""
    raise AssertionError("Spark is not needed")


def stored_seconds(recorded: SecondsTraffic) -> Iterator[tuple[Identity, int, int]]:
    """Client, second and amount of each row of a folder of compact."""
    assert isinstance(recorded.rows, StoredRows)
    for file in recorded.rows.files:
        for batch in file.batches((*IDENTITY, "ts_us", "records"), None, None):
            for *client, ts_us, amount in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield tuple(client), ts_us // 1_000_000, amount


def placed_totals(spark: SparkSession, recorded: SecondsTraffic, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Columns ``group``, ``second`` and ``amount``: a row for each second of each client in each of its groups."""
    names = [(one.broker, one.kind.value, one.user, one.client_id, one.ip) for one in recorded.series]
    groups_of: dict[Identity, tuple[int, ...]] = dict(zip(names, grouping.groups_of_series, strict=True))
    rows = [
        (group, second, amount)
        for client, second, amount in stored_seconds(recorded)
        for group in groups_of[client]
        if group in groups
    ]
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)] if rows else [pa.array([], pa.int64())] * 3
    return frame_of_table(spark, pa.table(columns, names=["group", "second", "amount"]))
