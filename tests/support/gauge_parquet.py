"""Gauges of our own making as Parquet in the canonical schema, hour by hour, as a reader of a metrics server stores them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

START_S = 1_795_219_200
"""2026-11-21 00:00:00 UTC."""

Integers = npt.NDArray[np.int64]
Shape = Callable[[Integers], Integers]
"""The rate at each number of a sample."""
Client = tuple[str | None, str | None, int]
"""User, client-id and broker. ``None``: the group has no such tag."""


def steady(rate: int, *, peaks: dict[int, int] | None = None) -> Shape:
    """The same rate at each sample but for some, by number."""

    def rates(numbers: Integers) -> Integers:
        found = np.full(len(numbers), rate, dtype=np.int64)
        for number, peak in (peaks or {}).items():
            found[numbers == number] = peak
        return found

    return rates


def write_gauges(
    folder: Path,
    clients: Mapping[Client, Shape],
    *,
    every_s: int = 15,
    hours: int = 24,
    samples: int | None = None,
    censored: frozenset[int] = frozenset(),
    throttled: Mapping[Client, Collection[int]] | None = None,
    kind: str = "produce",
) -> int:
    """One file an hour, or one with so many ``samples``. Returns the number of rows.

    ``censored``: numbers of samples at which a quota throttled all clients; ``throttled``: at which it throttled this one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    an_hour, hours = (3600 // every_s, hours) if samples is None else (samples, 1)
    for hour in range(hours):
        numbers = np.arange(hour * an_hour, (hour + 1) * an_hour, dtype=np.int64)
        parts = [
            _table(numbers, every_s, client, shape, censored | set((throttled or {}).get(client, ())), kind)
            for client, shape in clients.items()
        ]
        pq.write_table(pa.concat_tables(parts), folder / f"{hour:04}.parquet", compression="zstd")
    return hours * an_hour * len(clients)


def _table(numbers: Integers, every_s: int, client: Client, shape: Shape, censored: frozenset[int], kind: str) -> pa.Table:
    user, client_id, broker = client
    count = len(numbers)
    ts_us = (START_S + numbers * every_s) * 1_000_000
    return pa.table(
        {
            "ts": pa.array(ts_us).cast(pa.timestamp("us", tz="UTC")),
            "interval_ms": pa.array(np.full(count, every_s * 1000, dtype=np.int32)),
            "broker": pa.array(np.full(count, broker, dtype=np.int32)),
            "user": _tag(user, count),
            "client_id": _tag(client_id, count),
            "kind": pa.repeat(kind, count),
            "amount": pa.array(shape(numbers)),
            "semantics": pa.repeat("gauge", count),
            "throttled": pa.array(np.isin(numbers, sorted(censored))),
        }
    )


def _tag(name: str | None, count: int) -> pa.Array:
    return pa.nulls(count, pa.string()) if name is None else pa.repeat(name, count)
