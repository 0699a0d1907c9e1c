"""Charged requests to the groups in which they are judged: one broadcast join, one shuffle, one sort by a single number."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.exact_batch import ORDER_BITS, TIME_BITS
from reconciler.traffic.sources.request_log import CHARGED
from reconciler.traffic.sources.series_key import IDENTITY, series_key

MICRO_BITS: Final = 10
_PLACES: Final = pa.schema(
    [
        ("series_key", pa.int64()), ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()),
        ("client_id", pa.string()), ("series", pa.int32()), ("group", pa.int32()),
    ]
)  # fmt: skip


def placed(
    rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int], *, also: Sequence[str] = ()
) -> DataFrame:
    """Columns ``key``, ``order_``, ``records``, ``overhead``, ``series`` and ``also``; each group whole in one partition, sorted.

    ``key`` is as ``exact_batch.pack`` makes it. A row whose bucket changes is there once for each of its groups.
    """
    joined = with_groups(rows.where(F.col("status") == CHARGED), series, grouping, groups)
    key = F.shiftleft(F.col("group").cast("long"), TIME_BITS).bitwiseOR(F.floor(F.col("ts_us") / 1000))
    found = joined.select(key.alias("key"), order_of().alias("order_"), "records", "overhead", "series", *also)
    return in_order(found)


def in_order(found: DataFrame) -> DataFrame:
    """Rows with such a ``key``, each group whole in one partition, sorted."""
    return found.repartition(F.shiftright("key", TIME_BITS)).sortWithinPartitions("key")


def with_groups(rows: DataFrame, series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Rows that have the columns ``IDENTITY``, with ``series`` (its index) and ``group``; those of no group are gone."""
    table = [
        (s.key, s.broker, s.kind.value, s.user, s.client_id, index, group)
        for index, s in enumerate(series)
        for group in grouping.groups_of_series[index]
        if group in groups
    ]
    columns = zip(*table, strict=True) if table else [()] * len(_PLACES)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _PLACES, strict=True)]
    places = rows.sparkSession.createDataFrame(pa.Table.from_arrays(arrays, schema=_PLACES))
    if len({one.key for one in series}) < len(series):
        # Names that are not known are null, and equal here.
        known = F.broadcast(places.drop("series_key").withColumnsRenamed({name: f"its_{name}" for name in IDENTITY}))
        same = [rows[name].eqNullSafe(known[f"its_{name}"]) for name in IDENTITY]
        return rows.join(known, reduce(Column.__and__, same)).drop(*(f"its_{name}" for name in IDENTITY))
    # Joining on one number takes a third of the time of joining on three strings.
    return rows.withColumn("series_key", series_key()).join(F.broadcast(places.drop(*IDENTITY)), "series_key")


def order_of() -> Column:
    """What decides between requests of one ms: microseconds within the ms, then a hash of what identifies the request."""
    rest = (1 << ORDER_BITS - MICRO_BITS) - 1
    micros = F.shiftleft(F.pmod(F.col("ts_us"), F.lit(1000)).cast("long"), ORDER_BITS - MICRO_BITS)
    return micros.bitwiseOR(F.col("tie").bitwiseAND(F.lit(rest).cast("long")))
