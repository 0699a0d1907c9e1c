"""Synthetic requests in the normal form: many clients of very unlike size on several brokers, in the order of time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLIENTS = 5_000
BROKERS = 6
KINDS = ("produce", "fetch")
ROWS_A_SECOND = 13_900
"""Over all brokers: ten million requests in twelve minutes."""
_FILE_ROWS = 2_000_000
_START_US = 1_795_000_000_000_000


def write(folder: Path, rows: int, *, hot: float = 0.3, seed: int = 1) -> None:
    """``hot``: the share that one client has on top of what its rank gives it. Clients follow Zipf's law with exponent 1.1."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    weights = 1 / np.arange(1, CLIENTS + 1) ** 1.1
    cumulated = np.cumsum(weights / weights.sum())
    users = pa.array([f"team-{number % 500:03}" for number in range(CLIENTS)])
    client_ids = pa.array([f"app-{number:04}" for number in range(CLIENTS)])
    for number, begin in enumerate(range(0, rows, _FILE_ROWS)):
        count = min(_FILE_ROWS, rows - begin)
        client = np.searchsorted(cumulated, chance.random(count)).astype(np.int32)
        client[chance.random(count) < hot] = 0
        first = _START_US + begin * 1_000_000 // ROWS_A_SECOND
        span = count * 1_000_000 // ROWS_A_SECOND
        times = np.sort(chance.integers(first, first + span, count))
        size = (chance.lognormal(8.5, 1.0, count)).astype(np.int64) + 60
        kinds = chance.integers(0, len(KINDS), count).astype(np.int8)
        table = pa.table(
            {
                "ts": pa.array(times, type=pa.timestamp("us", tz="UTC")),
                "interval_ms": pa.array(np.zeros(count, dtype=np.int32)),
                "broker": pa.array(chance.integers(1, BROKERS + 1, count).astype(np.int32)),
                "user": pa.DictionaryArray.from_arrays(client, users),
                "client_id": pa.DictionaryArray.from_arrays(client, client_ids),
                "kind": pa.DictionaryArray.from_arrays(kinds, pa.array(KINDS)),
                "amount": pa.array(size),
                "semantics": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int8), pa.array(["event"])),
                "throttled": pa.array(np.zeros(count, dtype=np.bool_)),
                "overhead": pa.array(np.full(count, 60, dtype=np.int64)),
                "tie": pa.array(chance.integers(0, 2**62, count)),
            }
        )
        pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd", row_group_size=500_000)
