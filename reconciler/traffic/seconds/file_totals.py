"""The per-second totals of one file, added up batch by batch, by the command itself or by Spark's workers.

A client's number begins with a hash of the user alone, so that a file sorted by numbers has the clients of a user together. Each
half has 32 bits, and names are the clients' own, so two clients can have one number: the second one gets another.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciler.traffic.client_totals import (
    FOLDS,
    NAMES,
    SCHEMA,
    count_batch,
    count_minutes,
    covered,
    minutes_of,
    states_throttles,
    statuses,
)
from reconciler.traffic.columns.charged import ChargedRows, charged_rows
from reconciler.traffic.columns.group_index import client_seconds
from reconciler.traffic.judging.grouping import client_order
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.seconds.folder import SERIES, TOTALS, FileSummary, minutes_in, ranges_of
from reconciler.traffic.shuffle.rows import PartialSums
from reconciler.traffic.sources.log_evidence import CLUSTER, COPY_OF
from reconciler.traffic.sources.normal_form import CHARGED, DUPLICATE, IDENTITY, UNCHARGED

_ROWS_A_GROUP: Final = 25_000
"""Of totals: what is read, at least, of a few clients."""
_ROWS_A_FILE: Final = 4_000_000
_MOST_HELD: Final = 8_000_000
_FIGURES: Final = {"requests": "lines"} | {
    name: name for name in ("amount", "largest", "throttled", "start_us", "end_us", *UNCHARGED.values())
}
_IDENTITY_TYPES: Final = (pa.int32(), pa.string(), pa.string(), pa.string(), pa.string())
_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)
_TOTALS_OF_PART, _CLIENTS_OF_PART, _COUNTS_OF_PART = "totals.parquet", "clients.parquet", "counts.parquet"
_HALF_BYTES: Final = 4
_HALF: Final = 1 << 8 * _HALF_BYTES


class Client(NamedTuple):
    """As ``IDENTITY``: ``None`` is a name that is not known."""

    broker: int
    kind: str
    user: str | None
    client_id: str | None
    ip: str | None = None

    @property
    def sort_key(self) -> tuple[int | str, ...]:
        """By broker, kind, user, client-id and address; a name that is not known comes first."""
        return client_order(*self)


def client_number(client: Client) -> int:
    """64 bits with a sign, the same in every file unless another client has them there."""
    halves = _digest(repr(client.user)), _digest(repr((client.broker, client.kind, client.client_id, client.ip)))
    return int.from_bytes(b"".join(halves), "big", signed=True)


def number_clients(clients: Sequence[Client], number: Callable[[Client], int] = client_number) -> list[int]:
    """A number for each of these different clients, no two the same, whatever order they are in.

    Of clients with one number the first by ``sort_key`` keeps it, and the others get the next free lower halves.
    """
    wanted = [number(client) for client in clients]
    taken = set(wanted)
    if len(taken) == len(wanted):
        return wanted
    given: dict[int, int] = {}
    kept: set[int] = set()
    for place in sorted(range(len(clients)), key=lambda place: clients[place].sort_key):
        free = wanted[place]
        if free in kept:
            while free in taken:
                free = free - free % _HALF + (free + 1) % _HALF
            taken.add(free)
        kept.add(free)
        given[place] = free
    return [given[place] for place in range(len(clients))]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HALF_BYTES).digest()


class FileTotals:
    """Adds up the rows of one file, in any order. ``number``: the number that a client gets unless another one has it."""

    def __init__(self, number: Callable[[Client], int] = client_number) -> None:
        self._number = number
        self._place_of: dict[tuple[Any, ...], int] = {}
        self._totals, self._counts = _Totals(), PartialSums(SCHEMA, NAMES, FOLDS)
        self._minutes: dict[int, set[int]] = {}
        self._clusters: set[str] = set()
        self._copies_of: set[str] = set()
        self._copies = 0

    def add_rows(self, rows: pa.RecordBatch) -> None:
        """Rows with the columns ``client_totals.COUNTED``, and with ``CLUSTER`` and ``COPY_OF`` where these are known."""
        self._add(charged_rows(rows), rows)
        for broker, minutes in minutes_of(pa.Table.from_batches(count_minutes([rows]))).items():
            self._minutes.setdefault(broker, set()).update(minutes.tolist())
        if CLUSTER in rows.schema.names:
            self._clusters.update(rows.column(CLUSTER).unique().drop_null().to_pylist())
        if COPY_OF in rows.schema.names:
            copied = rows.filter(pc.equal(rows.column("status"), DUPLICATE))
            self._copies += pc.sum(copied.column("begins_line")).as_py() or 0
            self._copies_of.update(copied.column(COPY_OF).unique().drop_null().to_pylist())

    def save(self, folder: Path) -> str:
        """Write what was added to a new folder, and return its summary for ``add_saved``."""
        folder.mkdir(parents=True)
        columns = [pa.array([client[place] for client in self._place_of], kind) for place, kind in enumerate(_IDENTITY_TYPES)]
        pq.write_table(pa.table(columns, names=list(IDENTITY)), folder / _CLIENTS_OF_PART)
        pq.write_table(pa.table(list(self._totals.summed()), names=["client", "second", "amount"]), folder / _TOTALS_OF_PART)
        counted = self._counts.table()
        pq.write_table(counted, folder / _COUNTS_OF_PART)
        return msgspec.json.encode(self._summary(counted)).decode()

    def add_saved(self, folder: Path, summary: str) -> None:
        """What another instance saved."""
        clients = pq.read_table(folder / _CLIENTS_OF_PART)
        place = self._places(zip(*(clients.column(name).to_pylist() for name in IDENTITY), strict=True))
        totals = pq.read_table(folder / _TOTALS_OF_PART)
        client, second, amount = (np.asarray(column.to_numpy(), dtype=np.int64) for column in totals.columns)
        self._totals.add(place[client], second, amount)
        self._counts.add(pq.read_table(folder / _COUNTS_OF_PART))
        known = msgspec.json.decode(summary, type=FileSummary)
        for broker, ranges in known.minutes.items():
            self._minutes.setdefault(broker, set()).update(minutes_in(ranges).tolist())
        self._clusters.update(known.clusters)
        self._copies_of.update(known.copies_of)
        self._copies += known.copies

    def write(self, target: Path) -> FileSummary:
        """Write the Parquet files of a segment below ``target``, whatever an earlier try left there."""
        target.mkdir(parents=True, exist_ok=True)
        counted = self._counts.table()
        charged = counted.filter(pc.field("status") == CHARGED)
        if charged.num_rows:
            place_of_row = self._places_of(charged)
            clients = [Client(*client) for client in self._place_of]
            numbers = np.asarray(number_clients(clients, self._number), dtype=np.int64)
            for place, table in enumerate(self._totals.tables(numbers)):
                _write(table, target / TOTALS, place)
            _write(_series(charged, numbers[place_of_row]), target / SERIES, 0)
        return self._summary(counted)

    def _add(self, rows: ChargedRows, batch: pa.RecordBatch) -> None:
        # Of dictionaries, to_pylist takes ten times as long.
        names = (names.cast(pa.string()).to_pylist() for names in rows.names)
        place = self._places(zip(rows.broker.tolist(), *names, strict=True))
        client, second, amount = client_seconds(rows, np.ones(rows.clients, dtype=np.bool_))
        self._totals.add(place[client], second, amount)
        self._counts.add(count_batch(rows, batch))

    def _places(self, clients: Iterator[tuple[Any, ...]]) -> Integers:
        known = self._place_of
        return np.asarray([known.setdefault(client, len(known)) for client in clients], dtype=np.int64)

    def _places_of(self, clients: pa.Table) -> Integers:
        """Also of clients of which no row is charged, which get a place here."""
        return self._places(zip(*(clients.column(name).to_pylist() for name in IDENTITY), strict=True))

    def _summary(self, counted: pa.Table) -> FileSummary:
        minutes = {broker: ranges_of(minutes_of) for broker, minutes_of in sorted(self._minutes.items())}
        return FileSummary(
            coverage=tuple(covered(counted)),
            statuses=statuses(counted),
            minutes=minutes,
            clusters=tuple(sorted(self._clusters)),
            copies=self._copies,
            copies_of=tuple(sorted(self._copies_of)),
            states_throttles=states_throttles(counted),
        )


def _series(charged: pa.Table, numbers: Integers) -> pa.Table:
    """The clients with these numbers."""
    columns = {"series": pa.array(numbers), **{name: charged.column(name) for name in IDENTITY}}
    return pa.table(columns | {name: charged.column(counted) for name, counted in _FIGURES.items()}).sort_by("series")


class _Totals:
    """Sums of clients, by their place, and seconds."""

    def __init__(self) -> None:
        self._held: list[tuple[Integers, Integers, Integers]] = [(_NO_INTEGERS,) * 3]
        self._rows, self._next_sum = 0, _MOST_HELD

    def add(self, clients: Integers, seconds: Integers, amounts: Integers) -> None:
        self._held.append((clients, seconds, amounts))
        self._rows += len(clients)
        if self._rows > self._next_sum:
            self._held = [self.summed()]
            self._rows = len(self._held[0][0])
            self._next_sum = max(_MOST_HELD, 2 * self._rows)

    def summed(self) -> tuple[Integers, Integers, Integers]:
        """Rising by client and second, each pair once."""
        clients, seconds, amounts = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
        if not len(clients):
            return clients, seconds, amounts
        order = np.lexsort((seconds, clients))
        clients, seconds, amounts = clients[order], seconds[order], amounts[order]
        first = np.flatnonzero(_changes(clients) | _changes(seconds))
        return clients[first], seconds[first], np.add.reduceat(amounts, first)

    def tables(self, numbers: Integers) -> Iterator[pa.Table]:
        """In the order of the clients' numbers, in files of a bounded size."""
        clients, seconds, amounts = self.summed()
        order = np.argsort(numbers[clients], kind="stable")
        columns = {"series": numbers[clients][order], "second": seconds[order], "amount": amounts[order]}
        whole = pa.table(columns)
        for begin in range(0, whole.num_rows, _ROWS_A_FILE):
            yield whole.slice(begin, _ROWS_A_FILE)


def _changes(values: Integers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(np.diff(values, prepend=values[:1] - 1) != 0, dtype=np.bool_)


def _write(table: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{uuid.uuid4().hex}"
    try:
        pq.write_table(table, made, compression="zstd", row_group_size=_ROWS_A_GROUP)
        made.replace(folder / f"part-{number:05}.parquet")
    finally:
        made.unlink(missing_ok=True)
