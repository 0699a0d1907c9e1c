"""What a folder of cells holds: its clients, and the cells of some or all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.traffic.cells.clients import clients_of
from reconciler.traffic.cells.segments import CELLS, Segment, SegmentFolder
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.no_cycles import no_search_for_cycles
from reconciler.traffic.sources.series_key import IDENTITY

_OF_SERIES: Final = ("series", *IDENTITY, "requests", "amount", "largest", "throttled")
_OF_CELL: Final = ("series", "second", "amount")
_CELLS_A_BATCH: Final = 1 << 20
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
            requests=requests, amount=amount, key=key, largest=largest, throttled=throttled,
        )
        for key, broker, kind, user, client_id, requests, amount, largest, throttled in zip(
            *(table.column(name).to_pylist() for name in _OF_SERIES), strict=True
        )
    ]  # fmt: skip
    if len({one.key for one in found}) < len(found):
        raise TrafficError("two clients of this history have the same number; judge it without compacting it")
    series = sorted(found, key=lambda one: one.sort_key)
    return History(
        folder=folder, segments=segments, series=tuple(series), throttled=int(pc.sum(table.column("throttled")).as_py() or 0)
    )


def some_cells(history: History, keys: Sequence[int]) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Series, seconds and amounts of some series, read without Spark: only the row groups that hold them."""
    clients = np.asarray(sorted(keys), dtype=np.int64)

    def read(path: str) -> list[tuple[Integers, Integers, Integers]]:
        found = []
        for series, seconds, amounts in cells_of_file(path, clients):
            mine = clients[np.minimum(np.searchsorted(clients, series), len(clients) - 1)] == series
            found.append((series[mine], seconds[mine], amounts[mine]))
        return found

    with ThreadPoolExecutor() as pool:
        for found in pool.map(read, history.paths(CELLS) if keys else ()):
            yield from found


def cells_of_file(path: str, clients: Integers) -> Iterator[tuple[Integers, Integers, Integers]]:
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
