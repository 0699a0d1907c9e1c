"""What a folder of cells holds: its clients, and the cells of some or all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.traffic.cells.clients import clients_of
from reconciler.traffic.cells.segments import CELLS, Segment, SegmentFolder
from reconciler.traffic.judging.by_seconds import judged_parcels
from reconciler.traffic.judging.cell_keys import CellKeys
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.kernels.second_sums import SECOND_BITS, Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.no_cycles import no_search_for_cycles
from reconciler.traffic.parcels.bins import Bins
from reconciler.traffic.parcels.workers import brought_together, shares
from reconciler.traffic.sources.series_key import IDENTITY

_OF_SERIES: Final = ("series", *IDENTITY, "requests", "amount", "largest")
_OF_CELL: Final = ("series", "second", "amount")
_CELLS_A_BATCH: Final = 1 << 20
_BYTES_A_SHARE: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million cells."""
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


def judged_on_spark(
    spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int], era: Rule
) -> dict[int, GroupVerdict]:
    """Verdicts of these groups, from all cells: each worker reads some files."""
    keys = CellKeys.of(history.series, grouping, groups)

    def read(files: Iterable[str]) -> Iterator[tuple[Integers, Integers]]:
        return (keyed for path in files for cells in _cells_of_file(path, keys.clients) for keyed in keys.keyed(*cells))

    files = history.paths(CELLS)
    sizes = [Path(path).stat().st_size for path in files]
    least = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    work = shares(files, sizes, max(least, sum(sizes) // _BYTES_A_SHARE))
    bins = Bins.of(rows_of_groups(history.series, grouping, groups), least)
    return judged_parcels(brought_together(spark, work, read, bins, SECOND_BITS), grouping.groups, era)


def placed_cells(spark: SparkSession, history: History, grouping: Grouping, groups: Collection[int]) -> DataFrame:
    """Columns ``group``, ``second``, ``amount`` of the series in these groups, for judging in SQL."""
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
    """Series, seconds and amounts of some series, read without Spark: only the row groups that hold them."""
    clients = np.asarray(sorted(keys), dtype=np.int64)

    def read(path: str) -> list[tuple[Integers, Integers, Integers]]:
        found = []
        for series, seconds, amounts in _cells_of_file(path, clients):
            mine = clients[np.minimum(np.searchsorted(clients, series), len(clients) - 1)] == series
            found.append((series[mine], seconds[mine], amounts[mine]))
        return found

    with ThreadPoolExecutor() as pool:
        for found in pool.map(read, history.paths(CELLS) if keys else ()):
            yield from found


def _cells_of_file(path: str, clients: Integers) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Cells of ``clients``, whose keys rise, and of others that lie near them: files are sorted by series."""
    with pq.ParquetFile(path) as file:
        place = file.schema_arrow.names.index("series")
        groups = (file.metadata.row_group(number).column(place).statistics for number in range(file.num_row_groups))
        wanted = [number for number, said in enumerate(groups) if said is None or _any_between(clients, said)]
        for batch in file.iter_batches(_CELLS_A_BATCH, row_groups=wanted, columns=list(_OF_CELL), use_threads=False):
            columns = (np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64) for column in batch.columns)
            series, second, amount = columns
            yield series, second, amount


def _any_between(clients: Integers, said: pq.Statistics) -> bool:
    if not said.has_min_max:
        return True
    return bool(np.searchsorted(clients, said.min) < np.searchsorted(clients, said.max, side="right"))
