"""A folder of per-second totals, opened: its clients, and the totals of some or all of them.

A client's number is that of its segment. Where segments disagree (two clients with one number, one client with two), the clients
get numbers that no segment uses, and a segment's own numbers are replaced while it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.errors import TrafficError
from reconciler.traffic.cells.clients import clients_of, clients_of_segment
from reconciler.traffic.cells.segments import CELLS, Segment, SegmentFolder
from reconciler.traffic.columns.places import KnownClients
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.no_cycles import no_search_for_cycles
from reconciler.traffic.sources.series_key import IDENTITY

_FIGURES: Final = ("requests", "amount", "largest", "throttled")
_TOTALS: Final = ("series", "second", "amount")
_ROWS_A_BATCH: Final = 1 << 20
_KINDS: Final = {kind.value: kind for kind in Kind}
_NOTHING: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Which numbers of a segment stand for which keys of the history; the others are the keys.

    ``numbers``: int64, rising. ``keys``: int64, that of each. Keys are never numbers of another client in any segment.
    """

    numbers: Integers = field(default_factory=_NOTHING.copy)
    keys: Integers = field(default_factory=_NOTHING.copy)

    def numbers_of(self, keys: Integers) -> Integers:
        """All numbers, rising, that clients with these keys can have in the segment."""
        return np.union1d(keys, self.numbers[np.isin(self.keys, keys)])

    def keys_of(self, numbers: Integers) -> Integers:
        """The keys of these numbers, one each."""
        if not len(self.numbers):
            return numbers
        place = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[place] == numbers, self.keys[place], numbers)


@dataclass(frozen=True, slots=True)
class SecondsFile:
    """A Parquet file of per-second totals, sorted by number and second."""

    path: str
    renumbering: Renumbering

    def batches(self, clients: Integers) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Keys, seconds and amounts of ``clients``, whose keys rise, and of others that lie near them."""
        wanted = self.renumbering.numbers_of(clients)
        with pq.ParquetFile(self.path) as file:
            place = file.schema_arrow.names.index("series")
            statistics = (file.metadata.row_group(number).column(place).statistics for number in range(file.num_row_groups))
            groups = [number for number, known in enumerate(statistics) if known is None or _any_between(wanted, known)]
            for batch in file.iter_batches(_ROWS_A_BATCH, row_groups=groups, columns=list(_TOTALS), use_threads=False):
                columns = (np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64) for column in batch.columns)
                numbers, second, amount = columns
                yield self.renumbering.keys_of(numbers), second, amount


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """``series`` are sorted by broker, kind, user and client-id, and no two have one key.

    ``throttled``: requests that were throttled when they were recorded. ``renumberings``: by ``Segment.folder``, where needed.
    """

    folder: SegmentFolder
    segments: tuple[Segment, ...]
    series: tuple[Series, ...]
    throttled: int
    renumberings: Mapping[str, Renumbering]

    def files(self) -> list[SecondsFile]:
        """Those of all segments."""
        none = Renumbering()
        return [
            SecondsFile(path, self.renumberings.get(segment.folder, none))
            for segment in self.segments
            for path in self.folder.files((segment,), CELLS)
        ]


@no_search_for_cycles()
def open_history(folder: SegmentFolder) -> History:
    """Raises ``TrafficError`` when the folder has no totals, or a segment has one number for two clients."""
    segments = folder.segments()
    numbered = clients_of(folder, segments)
    if not numbered.num_rows:
        raise TrafficError(f"recorded traffic {folder.root}: no cells are there yet; run compact, or look at what it said")
    clients, moved = _clients_with_keys(numbered)
    columns = zip(*(clients.column(name).to_pylist() for name in (*IDENTITY, *_FIGURES, "key")), strict=True)
    found = [
        Series(
            broker=broker, kind=_KINDS[kind], user=user, client_id=client_id,
            requests=requests, amount=amount, largest=largest, throttled=throttled, key=key,
        )
        for broker, kind, user, client_id, requests, amount, largest, throttled, key in columns
    ]  # fmt: skip
    series = sorted(found, key=lambda one: one.sort_key)
    return History(
        folder=folder,
        segments=segments,
        series=tuple(series),
        throttled=int(pc.sum(clients.column("throttled")).as_py() or 0),
        renumberings=_renumberings(folder, segments, series) if moved else {},
    )


def read_totals(history: History, keys: Sequence[int]) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Keys, seconds and amounts of some series, read in this process: only the row groups that have them."""
    clients = np.asarray(sorted(keys), dtype=np.int64)

    def read(file: SecondsFile) -> list[tuple[Integers, Integers, Integers]]:
        found = []
        for series, seconds, amounts in file.batches(clients):
            mine = clients[np.minimum(np.searchsorted(clients, series), len(clients) - 1)] == series
            found.append((series[mine], seconds[mine], amounts[mine]))
        return found

    with ThreadPoolExecutor() as pool:
        for found in pool.map(read, history.files() if keys else ()):
            yield from found


def _clients_with_keys(numbered: pa.Table) -> tuple[pa.Table, bool]:
    """One row a client with its ``key``; and whether a key is not the number of its client in every segment."""
    folds = [
        ("requests", "sum"),
        ("amount", "sum"),
        ("largest", "max"),
        ("throttled", "sum"),
        ("series", "min"),
        ("series", "count"),
    ]
    found = numbered.unify_dictionaries().combine_chunks().group_by(list(IDENTITY)).aggregate(folds)
    number = np.asarray(found.column("series_min").to_numpy(), dtype=np.int64)
    numbers, clients = np.unique(numbered.column("series").to_numpy(), return_counts=True)
    unclear = (found.column("series_count").to_numpy() > 1) | np.isin(number, numbers[clients > 1])
    key = number.copy()
    count = int(np.count_nonzero(unclear))
    key[unclear] = np.setdiff1d(np.arange(count + len(numbers)), numbers)[:count]
    columns = {name: found.column(name) for name in IDENTITY}
    columns |= {name: found.column(f"{name}_{fold}") for name, fold in folds[: len(_FIGURES)]}
    return pa.table(columns | {"key": pa.array(key)}), bool(count)


def _renumberings(folder: SegmentFolder, segments: Sequence[Segment], series: Sequence[Series]) -> dict[str, Renumbering]:
    known, keys = KnownClients.of(series), np.asarray([one.key for one in series], dtype=np.int64)
    found = {}
    for segment in segments:
        clients = clients_of_segment(folder, segment)
        if not clients.num_rows:
            continue
        names = (clients.column(name).combine_chunks() for name in ("user", "client_id", "kind", "broker"))
        numbers, key = clients.column("series").to_numpy(), keys[known.of_names(*names)]
        if len(np.unique(numbers)) < len(numbers):
            raise TrafficError(f"{folder.root}: {segment.id} has one number for two clients; remove it and run compact again")
        order = np.argsort(numbers)
        order = order[(numbers != key)[order]]
        found[segment.folder] = Renumbering(numbers[order], key[order])
    return found


def _any_between(numbers: Integers, known: pq.Statistics) -> bool:
    if not known.has_min_max:
        return True
    return bool(np.searchsorted(numbers, known.min) < np.searchsorted(numbers, known.max, side="right"))
