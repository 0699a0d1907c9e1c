"""Synthetic requests in the normal form: many clients of very unlike size on several brokers, in the order of time."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLIENTS = 5_000
BROKERS = 6
KINDS = ("produce", "fetch")
ROWS_A_SECOND = 13_900
"""Over all brokers: ten million requests in twelve minutes."""
FILE_ROWS = 2_000_000
_START_US = 1_795_000_000_000_000
_OVERHEAD = 60
_LARGEST = 1_000_000
"""Below what a fetch quota cuts, which engines that only add up know nothing of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """``hot``: the share that one client has on top of what its rank gives it. Clients follow Zipf's law with exponent 1.1."""

    rows: int
    hot: float = 0.3
    seed: int = 1


def write(folder: Path, scene: Scene, *, processes: int = 2) -> None:
    """Files of two million rows; the same scene gives the same files."""
    folder.mkdir(parents=True)
    with ProcessPoolExecutor(processes) as pool:
        for _ in pool.map(partial(_write_file, folder, scene), range(-(-scene.rows // FILE_ROWS))):
            pass


def size(folder: Path) -> int:
    """Its bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _write_file(folder: Path, scene: Scene, number: int) -> None:
    begin = number * FILE_ROWS
    count = min(FILE_ROWS, scene.rows - begin)
    chance = np.random.default_rng((scene.seed, number))
    weights = 1 / np.arange(1, CLIENTS + 1) ** 1.1
    client = np.searchsorted(np.cumsum(weights / weights.sum()), chance.random(count)).clip(max=CLIENTS - 1).astype(np.int32)
    client[chance.random(count) < scene.hot] = 0
    first = _START_US + begin * 1_000_000 // ROWS_A_SECOND
    times = np.sort(chance.integers(first, first + count * 1_000_000 // ROWS_A_SECOND, count))
    table = pa.table(
        {
            "ts": pa.array(times, type=pa.timestamp("us", tz="UTC")),
            "interval_ms": pa.array(np.zeros(count, dtype=np.int32)),
            "broker": pa.array(chance.integers(1, BROKERS + 1, count).astype(np.int32)),
            "user": _names(client % 500, [f"team-{number:03}" for number in range(500)]),
            "client_id": _names(client, [f"app-{number:04}" for number in range(CLIENTS)]),
            "kind": _names(chance.integers(0, len(KINDS), count), KINDS),
            "amount": pa.array(chance.lognormal(8.5, 1.0, count).astype(np.int64).clip(max=_LARGEST) + _OVERHEAD),
            "semantics": _names(np.zeros(count), ("event",)),
            "throttled": pa.array(np.zeros(count, dtype=np.bool_)),
            "overhead": pa.array(np.full(count, _OVERHEAD, dtype=np.int64)),
            "tie": pa.array(chance.integers(0, 2**62, count)),
        }
    )
    pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd", row_group_size=500_000)


def _names(places: np.ndarray[tuple[int], np.dtype[np.generic]], names: list[str] | tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(places.astype(np.int32), pa.array(names))
