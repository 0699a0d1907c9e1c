"""A folder of per-second totals as recorded traffic: a small change is judged in this process, a large one on Spark.

A client's number is that of its segment. Where segments disagree (two clients with one number, one client with two), the clients
get numbers that no segment uses, and a segment's own numbers are replaced while it is read.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from reconciler.collector import pause_collector
from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.model import BucketVerdict, Observations, Provenance
from reconciler.traffic.backtest_request import BacktestRequest
from reconciler.traffic.client_totals import sorted_series
from reconciler.traffic.columns.group_index import KeyIndex, KnownClients
from reconciler.traffic.judging.by_seconds import Lines, Points, judge_seconds, plot_points
from reconciler.traffic.judging.evidence import Evidence, Mean
from reconciler.traffic.judging.exact import tokens_by_seconds
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, rows_of_groups
from reconciler.traffic.judging.verdicts import seconds_verdicts
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kernels.second_sums import GroupVerdict, Rule
from reconciler.traffic.relocation import KeyMoves, TrafficMoves, move_facts, move_minutes, move_series
from reconciler.traffic.seconds.folder import SERIES, TOTALS, Segment, SegmentFolder, minutes_in
from reconciler.traffic.seconds.spread_groups import SpreadGroups
from reconciler.traffic.shuffle.rows import LocalRows, Rows, add_up
from reconciler.traffic.sources.normal_form import IDENTITY, UNCHARGED
from reconciler.traffic.traffic_source import Facts, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log: Final = logging.getLogger(__name__)
SecondTotals: TypeAlias = tuple[Integers, Integers, Integers]
"""Keys of series, seconds and amounts, one item a row."""
_FIGURES: Final = {
    "requests": "sum", "amount": "sum", "largest": "max", "throttled": "sum", **dict.fromkeys(UNCHARGED.values(), "sum"),
}  # fmt: skip
"""How those of several segments are added up."""
_CLIENTS: Final = ("series", *IDENTITY, *_FIGURES)
_NAMES: Final = pa.dictionary(pa.int32(), pa.string())
_CLIENT_SCHEMA: Final = pa.schema(
    [
        ("series", pa.int64()), ("broker", pa.int32()), ("kind", _NAMES), ("user", _NAMES), ("client_id", _NAMES), ("ip", _NAMES),
        *((name, pa.int64()) for name in _FIGURES),
    ]
)  # fmt: skip
_COLUMNS: Final = ("series", "second", "amount")
_ROWS_A_BATCH: Final = 1 << 20
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
    seconds: tuple[int, int] | None = None
    """The first second to read, and the one behind the last; ``None``: all."""

    def batches(self, clients: Integers) -> Iterator[SecondTotals]:
        """Keys, seconds and amounts of ``clients``, whose keys rise, and of others that lie near them."""
        wanted = self.renumbering.numbers_of(clients)
        with pq.ParquetFile(self.path) as file:
            place = file.schema_arrow.names.index("series")
            statistics = (file.metadata.row_group(number).column(place).statistics for number in range(file.num_row_groups))
            groups = [number for number, known in enumerate(statistics) if known is None or _any_between(wanted, known)]
            for batch in file.iter_batches(_ROWS_A_BATCH, row_groups=groups, columns=list(_COLUMNS), use_threads=False):
                columns = (np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64) for column in batch.columns)
                numbers, second, amount = columns
                if self.seconds is not None:
                    inside = (second >= self.seconds[0]) & (second < self.seconds[1])
                    numbers, second, amount = numbers[inside], second[inside], amount[inside]
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
    seconds: tuple[int, int] | None = None
    """As ``SecondsFile`` has it. The figures of ``series`` are those of the whole history."""
    key_moves: KeyMoves | None = None
    """What changes the seconds as they are read, where ``series`` are not the recorded clients."""

    def files(self) -> list[SecondsFile]:
        """Those of all segments."""
        none = Renumbering()
        return [
            SecondsFile(path, self.renumberings.get(segment.folder, none), self.seconds)
            for segment in self.segments
            for path in self.folder.files((segment,), TOTALS)
        ]


@pause_collector()
def open_history(folder: SegmentFolder) -> History:
    """Raises ``TrafficError`` when the folder has no totals, or a segment has one number for two clients."""
    segments = folder.segments()
    numbered = client_totals(folder, segments)
    if not numbered.num_rows:
        raise TrafficError(f"recorded traffic {folder.root} has no per-second totals yet: run compact, and read its output")
    clients, moved = _clients_with_keys(numbered)
    series = sorted_series(clients, clients.column("key").to_pylist())
    log_event(_log, "per-second totals listed", folder=str(folder.root), segments=len(segments), clients=len(series))
    return History(
        folder=folder,
        segments=segments,
        series=series,
        throttled=int(pc.sum(clients.column("throttled")).as_py() or 0),
        renumberings=_renumberings(folder, segments, series) if moved else {},
    )


def read_totals(history: History, keys: Sequence[int] | Integers) -> Iterator[SecondTotals]:
    """The totals of series with these keys, read in this process: only the row groups that have them."""
    clients, moves = np.unique(np.asarray(keys, dtype=np.int64)), history.key_moves
    if moves is not None:
        clients = moves.sources_of(clients)

    def read(file: SecondsFile) -> list[SecondTotals]:
        return list(_totals_of(file.batches(clients), clients, moves))

    files = history.files() if len(clients) else []
    log_event(_log, "files opened", files=len(files), first=[file.path for file in files[:1]], clients=len(clients))
    with ThreadPoolExecutor() as pool:
        for totals in pool.map(read, files):
            yield from totals


def _totals_of(totals: Iterable[SecondTotals], clients: Integers, moves: KeyMoves | None) -> Iterator[SecondTotals]:
    """Those of ``clients``, whose keys rise, after ``moves``."""
    for series, seconds, amounts in totals:
        wanted = clients[np.minimum(np.searchsorted(clients, series), len(clients) - 1)] == series
        chosen = series[wanted], seconds[wanted], amounts[wanted]
        if moves is None:
            yield chosen
        else:
            yield from moves.moved(*chosen)


def _clients_with_keys(numbered: pa.Table) -> tuple[pa.Table, bool]:
    """One row a client with its ``key``; and whether a key is not the number of its client in every segment."""
    folds = [*_FIGURES.items(), ("series", "min"), ("series", "count")]
    added = numbered.unify_dictionaries().combine_chunks().group_by(list(IDENTITY)).aggregate(folds)
    number = np.asarray(added.column("series_min").to_numpy(), dtype=np.int64)
    numbers, clients = np.unique(numbered.column("series").to_numpy(), return_counts=True)
    unclear = (added.column("series_count").to_numpy() > 1) | np.isin(number, numbers[clients > 1])
    key = number.copy()
    count = int(np.count_nonzero(unclear))
    key[unclear] = np.setdiff1d(np.arange(count + len(numbers)), numbers)[:count]
    columns = {name: added.column(name) for name in IDENTITY}
    columns |= {name: added.column(f"{name}_{fold}") for name, fold in _FIGURES.items()}
    return pa.table(columns | {"key": pa.array(key)}), bool(count)


def _renumberings(folder: SegmentFolder, segments: Sequence[Segment], series: Sequence[Series]) -> dict[str, Renumbering]:
    known, keys = KnownClients.of(series), np.asarray([client.key for client in series], dtype=np.int64)
    renumberings = {}
    for segment in segments:
        clients = segment_clients(folder, segment)
        if not clients.num_rows:
            continue
        names = (clients.column(name).combine_chunks() for name in ("user", "client_id", "ip", "kind", "broker"))
        numbers, key = clients.column("series").to_numpy(), keys[known.of_names(*names)]
        if len(np.unique(numbers)) < len(numbers):
            raise TrafficError(f"{folder.root}: {segment.id} has one number for two clients: remove it and run compact again")
        order = np.argsort(numbers)
        order = order[(numbers != key)[order]]
        renumberings[segment.folder] = Renumbering(numbers[order], key[order])
    return renumberings


def _any_between(numbers: Integers, known: pq.Statistics) -> bool:
    if not known.has_min_max:
        return True
    return bool(np.searchsorted(numbers, known.min) < np.searchsorted(numbers, known.max, side="right"))


def client_totals(folder: SegmentFolder, segments: Sequence[Segment]) -> pa.Table:
    """Number, names and figures, one row a number and client, in no order. No row when no segment has any."""
    kept = folder.clients(segments)
    if kept.exists():
        # What cannot be read is made anew from what it is the sum of.
        with contextlib.suppress(OSError, pa.ArrowException):
            return _read_clients([str(kept)], _CLIENTS)
    return _sum_clients(folder, segments)


def segment_clients(folder: SegmentFolder, segment: Segment) -> pa.Table:
    """Columns ``series`` and ``IDENTITY``, one row a client: its number in this segment."""
    return _read_clients(folder.files((segment,), SERIES), ("series", *IDENTITY))


def save_client_totals(folder: SegmentFolder) -> None:
    """Write them for the next reader and remove those of other segments. Where this is not possible, reading takes longer."""
    segments = folder.segments()
    target = folder.clients(segments)
    with contextlib.suppress(OSError):
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            made = target.with_name(f".{uuid.uuid4().hex}")
            try:
                pq.write_table(_sum_clients(folder, segments), made, compression="zstd")
                made.replace(target)
            finally:
                made.unlink(missing_ok=True)
        for other in target.parent.iterdir():
            if other != target:
                other.unlink()


def _sum_clients(folder: SegmentFolder, segments: Sequence[Segment]) -> pa.Table:
    table = _read_clients(folder.files(segments, SERIES), _CLIENTS)
    if not table.num_rows:
        return table
    return add_up(table, ("series", *IDENTITY), _FIGURES)


def _read_clients(files: Sequence[str], columns: Sequence[str]) -> pa.Table:
    if not files:
        return pa.table({name: [] for name in columns})
    options = ds.ParquetReadOptions(dictionary_columns=["kind", "user", "client_id", "ip"])
    clients = ds.dataset(files, _CLIENT_SCHEMA, format=ds.ParquetFileFormat(read_options=options))
    return clients.to_table(columns=list(columns)).unify_dictionaries()


MOST_HERE: Final = 20_000_000
"""Totals of one client and second that are judged in this process: half a GB, and a few seconds."""


_BYTES_A_TASK: Final = 16 * 1024 * 1024
"""Of files, what one task reads: some three million rows."""


class SecondsSource:
    """A folder that ``compact`` made. ``session`` starts Spark when it is needed. Raises ``TrafficError`` as ``open_history``."""

    def __init__(
        self,
        folder: SegmentFolder,
        session: Callable[[], SparkSession],
        *,
        most_here: int = MOST_HERE,
        history: History | None = None,
    ) -> None:
        self.history = history or open_history(folder)
        self.session = session
        self.most_here = most_here
        self.facts = _facts(self.history)

    @property
    def means(self) -> tuple[Mean, ...]:
        """Per-second totals have none."""
        return ()

    def evidence(self, question: BacktestRequest, tables: Sequence[Tables], provenance: Provenance) -> Evidence:
        """As ``TrafficSource.evidence``: there are seconds only."""
        del question, tables, provenance
        return Evidence()

    @property
    def states_throttles(self) -> bool:
        """As ``GroupJudge.states_throttles``."""
        return self.facts.states_throttles

    @property
    def series(self) -> tuple[Series, ...]:
        """As ``GroupJudge.series``."""
        return self.history.series

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """As ``GroupJudge.by_seconds``."""
        if (moves := self.history.key_moves) is not None:
            spread = SpreadGroups.of(self.series, grouping, groups, moves)
            return spread.judge(self._rows(replace(self.history, key_moves=None), spread.keys), grouping.groups, era)
        index, expected = KeyIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)
        return judge_seconds(self._rows(self.history, index.keys), index.keyed, expected, grouping.groups, era)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """As ``GroupJudge.mutations``, in this process: mutations are few."""
        keys = KeyIndex.of(self.series, grouping, groups).keys
        judged = tokens_by_seconds(read_totals(self.history, keys), self.series, grouping, groups, window)
        return seconds_verdicts(judged, self.series, grouping, window, stated=self.states_throttles)

    def minutes(self) -> Mapping[int, Integers]:
        """What ``compact`` saw of each of a broker's files."""
        ranges_of: dict[int, list[tuple[int, int]]] = {}
        for segment in self.history.segments:
            for broker, ranges in segment.summary.minutes.items():
                ranges_of.setdefault(broker, []).extend(ranges)
        return {broker: minutes_in(ranges) for broker, ranges in ranges_of.items()}

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """As ``TrafficSource.rates``."""
        index, expected = KeyIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)
        return plot_points(self._rows(self.history, index.keys), index.keyed, expected, lines)

    def between(self, start_us: int, end_us: int) -> SecondsSource:
        """The same clients and their totals of these whole seconds."""
        part = replace(self.history, seconds=(start_us // 1_000_000, -(-end_us // 1_000_000)))
        return SecondsSource(part.folder, self.session, most_here=self.most_here, history=part)

    def close(self) -> None:
        """Nothing is kept."""

    def _rows(self, history: History, keys: Integers) -> Rows[SecondTotals]:
        """The totals of clients with these keys, rising: in this process where they are few, else on Spark."""
        most = self._at_most(keys if history.key_moves is None else history.key_moves.sources_of(keys))
        here = most <= self.most_here
        log_event(
            _log,
            "engine chosen",
            level=logging.INFO,
            engine="this process" if here else "Spark",
            why="few totals" if here else "many totals",
            clients=len(keys),
            totals=most,
            most_totals=self.most_here,
        )
        if here:
            return LocalRows(lambda _: read_totals(history, keys))
        return _totals_on_spark(self.session(), history, keys)

    def _at_most(self, keys: Integers) -> int:
        """The most totals that recorded clients can have: one for each request, and for each second of the history."""
        moves = self.history.key_moves
        clients = {c.key: c.requests for c in self.series} if moves is None else moves.requests_of_sources()
        seconds = sum((c.end_us - c.start_us) // 1_000_000 + 1 for s in self.history.segments for c in s.summary.coverage)
        return sum(min(clients[key], seconds) for key in keys.tolist())


class MovedSeconds(SecondsSource):
    """The totals of ``recorded`` as they would be after ``moves``, of all clients or of some."""

    def __init__(self, recorded: SecondsSource, moves: TrafficMoves, series: Sequence[Series] | None = None) -> None:
        """``series``: clients of ``recorded``; others are left out."""
        known = recorded.series if series is None else tuple(series)
        clients = move_series(known, moves)
        history = replace(recorded.history, series=clients, key_moves=KeyMoves.of(known, clients, moves))
        super().__init__(history.folder, recorded.session, most_here=recorded.most_here, history=history)
        self._recorded, self._moves = recorded, moves
        self.facts = move_facts(recorded.facts, moves)

    def minutes(self) -> Mapping[int, Integers]:
        """As ``TrafficSource.minutes``."""
        return move_minutes(self._recorded.minutes(), self._moves)


def _facts(history: History) -> Facts:
    statuses: dict[str, int] = {}
    for segment in history.segments:
        for status, lines in segment.summary.statuses.items():
            statuses[status] = statuses.get(status, 0) + lines
    facts = Facts.of(
        Source.LOG_CELLS if any(segment.of_logs for segment in history.segments) else Source.CELLS,
        sorted(segment.source for segment in history.segments),
        covered=(part for segment in history.segments for part in segment.summary.coverage),
        statuses=statuses,
        throttled_then=history.throttled,
    )
    seconds = Observations(semantics="second", rows=facts.requests, series=len(history.series), throttled_then=history.throttled)
    stated = all(segment.summary.states_throttles for segment in history.segments)
    return replace(facts, observations=(seconds,), states_throttles=stated)


def _totals_on_spark(spark: SparkSession, history: History, clients: Integers) -> Rows[SecondTotals]:
    """The totals of ``clients``, whose keys rise, and of others that lie near them: each worker reads some files."""
    from reconciler.traffic.shuffle.on_spark import SparkRows, scan_parts

    moves = history.key_moves
    if moves is not None:
        clients = moves.sources_of(clients)

    def read(file: SecondsFile, _: Sequence[str]) -> Iterator[SecondTotals]:
        return file.batches(clients) if moves is None else _totals_of(file.batches(clients), clients, moves)

    files = history.files()
    sizes = [Path(file.path).stat().st_size for file in files]
    return SparkRows(spark, scan_parts(spark, files, sizes, read, a_task=_BYTES_A_TASK))
