"""What a folder of cells holds: its clients, and the cells of some or all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.traffic.cells.clients import clients_of
from reconciler.traffic.cells.segments import CELLS, Segment, SegmentFolder
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.no_cycles import no_search_for_cycles
from reconciler.traffic.sources.series_key import IDENTITY

_OF_SERIES: Final = ("series", *IDENTITY, "requests", "amount", "largest")
_KINDS: Final = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A folder of cells, opened: ``series`` sorted by broker, kind, user and client id; ``throttled`` requests when recorded."""

    folder: SegmentFolder
    segments: tuple[Segment, ...]
    series: tuple[Series, ...]
    throttled: int

    def paths(self, part: str) -> list[str]:
        """The Parquet files of a part of all segments."""
        return self.folder.files(self.segments, part)


@no_search_for_cycles()
def open_history(folder: SegmentFolder) -> History:
    """Raises ``TrafficError`` when there are no cells, or two clients have one number."""
    segments = folder.segments()
    table = clients_of(folder, segments)
    if not table.num_rows:
        raise TrafficError(f"recorded traffic {folder.root}: no cells are there yet; run compact, or look at what it said")
    found = [
        Series(
            broker=broker, kind=_KINDS[kind], user=user, client_id=client_id,
            requests=requests, amount=amount, key=key, largest=largest,
        )
        for key, broker, kind, user, client_id, requests, amount, largest in zip(
            *(table.column(name).to_pylist() for name in _OF_SERIES), strict=True
        )
    ]  # fmt: skip
    if len({one.key for one in found}) < len(found):
        raise TrafficError("two clients of this history have the same number; judge it without compacting it")
    series = sorted(found, key=lambda one: one.sort_key)
    return History(
        folder=folder, segments=segments, series=tuple(series), throttled=int(pc.sum(table.column("throttled")).as_py() or 0)
    )


def placed_cells(spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Columns ``group``, ``second``, ``amount`` of the series in these groups."""
    placed = [
        (one.key, group)
        for index, one in enumerate(history.series)
        for group in grouping.groups_of_series[index]
        if group in groups
    ]
    keys, numbers = zip(*placed, strict=True) if placed else ((), ())
    table = pa.table([pa.array(keys, type=pa.int64()), pa.array(numbers, type=pa.int32())], names=["series", "group"])
    places = F.broadcast(spark.createDataFrame(table))
    return spark.read.parquet(*history.paths(CELLS)).join(places, "series").select("group", "second", "amount")


def some_cells(history: History, keys: Sequence[int]) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Series, seconds and amounts of a few series, read without Spark: only the row groups that hold them."""
    wanted = pa.array(sorted(keys), type=pa.int64())
    cells = ds.dataset(history.paths(CELLS), format="parquet")
    for batch in cells.to_batches(columns=["series", "second", "amount"], filter=pc.field("series").isin(wanted)):
        series, second, amount = (np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64) for column in batch.columns)
        yield series, second, amount
