"""The per-second totals of one file, added up batch by batch, by the command itself or by Spark's workers.

A client's number is its place among the clients of the file, sorted by user, so that those of a user are together.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

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
    minutes_of,
    statuses,
)
from reconciler.traffic.columns.charged import ChargedRows, charged_rows
from reconciler.traffic.columns.group_index import client_seconds
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.seconds.folder import SERIES, TOTALS, FileSummary, minutes_in, ranges_of
from reconciler.traffic.shuffle.rows import PartialSums
from reconciler.traffic.sources.log_evidence import CLUSTER, COPY_OF
from reconciler.traffic.sources.normal_form import CHARGED, DUPLICATE, IDENTITY

_ROWS_A_GROUP: Final = 25_000
"""Of totals: what is read, at least, of a few clients."""
_ROWS_A_FILE: Final = 4_000_000
_MOST_HELD: Final = 8_000_000
_IDENTITY_TYPES: Final = (pa.int32(), pa.string(), pa.string(), pa.string(), pa.string())
_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)
_TOTALS_OF_PART, _CLIENTS_OF_PART, _COUNTS_OF_PART = "totals.parquet", "clients.parquet", "counts.parquet"


class FileTotals:
    """Adds up the rows of one file, in any order."""

    def __init__(self) -> None:
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
        """Write the Parquet files of a segment below ``target``, whatever an earlier try left there.

        ``SERIES`` has all totals of rows, those of clients first, in the order of their numbers.
        """
        counted = self._counts.table()
        charged = pc.equal(counted.column("status"), CHARGED)
        clients = counted.filter(charged).sort_by([(name, "ascending") for name in ("user", "client_id", "ip", "kind", "broker")])
        # Clients of which no row is charged get a place here.
        place = self._places(zip(*(clients.column(name).to_pylist() for name in IDENTITY), strict=True))
        numbers = np.empty(len(self._place_of), dtype=np.int32)
        numbers[place] = np.arange(len(place), dtype=np.int32)
        for part, table in enumerate(self._totals.tables(numbers)):
            _write(table, target / TOTALS, part)
        _write(pa.concat_tables([clients, counted.filter(pc.invert(charged))]), target / SERIES, 0)
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

    def _summary(self, counted: pa.Table) -> FileSummary:
        minutes = {broker: ranges_of(minutes_of) for broker, minutes_of in sorted(self._minutes.items())}
        return FileSummary(
            statuses=statuses(counted),
            minutes=minutes,
            clusters=tuple(sorted(self._clusters)),
            copies=self._copies,
            copies_of=tuple(sorted(self._copies_of)),
        )


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

    def tables(self, numbers: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Iterator[pa.Table]:
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
