"""``rightsize`` beside one ``backtest`` of the same limits and the same months of per-second totals.

``python -m benchmarks.rightsize [--entities N] [--days N] [--seconds N] [--times N]``
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Run, machine, once, row

_START = datetime.datetime(2026, 8, 1, tzinfo=datetime.UTC)
_BROKERS = 3
_LIMIT = 1024 * 1024
_KAFKA_QUOTAS = (sys.executable, "-m", "reconciler")
_HEAD = "apiVersion: kafka-quotas/v1\nkind: {}\nmetadata: {{name: prod}}\nspec:\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--seconds", type=int, default=12, help="with traffic of each client on each day")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_manifests(folder / "quotas", args.entities)
        for day in range(args.days):
            write_day(folder / "rows", day, args.entities, args.seconds)
        once(*_KAFKA_QUOTAS, "compact", "--traffic", "rows", "--folder", "history", cwd=folder)
        size = sum(file.stat().st_size for file in (folder / "history").rglob("*") if file.is_file())
        what = f"{args.entities:,} entities, {args.days} days, {args.entities * args.days * args.seconds:,} totals"
        print(f"{what}, {size / 1e6:.0f} MB")
        runs: dict[str, list[Run]] = {"backtest": [], "rightsize": []}
        options = ("quotas", "--traffic", "history", "--format", "json")
        for _ in range(args.times):
            # In turn, so that both meet the same load of the machine.
            runs["backtest"].append(once(*_KAFKA_QUOTAS, "backtest", *options, "--current", "now.json", cwd=folder))
            runs["rightsize"].append(once(*_KAFKA_QUOTAS, "rightsize", *options, cwd=folder))
        bare = statistics.median(run.cpu for run in runs["backtest"])
        for command, some in runs.items():
            cpu, walls = statistics.median(run.cpu for run in some), sorted(run.wall for run in some)
            note = f"cpu; wall clock {walls[0]:.1f} to {walls[-1]:.1f} s, peak {max(run.peak for run in some):.0f} MB"
            row(command, cpu, bare, note if command == "backtest" else f"{note}; goal 1.2 x")


def write_manifests(folder: Path, entities: int) -> None:
    """A cluster, a limit for each user, and a snapshot beside the folder in which each limit is half of that."""
    folder.mkdir()
    entry = "    - {{match: {{user: user-{:05}}}, quotas: {{producer_byte_rate: 1MiB}}}}\n"
    quotas = "".join(entry.format(number) for number in range(entities))
    (folder / "cluster.yaml").write_text(f"{_HEAD.format('Cluster')}  prune: never\n")
    (folder / "quotas.yaml").write_text(f"{_HEAD.format('ClientQuotas')}  quotas:\n{quotas}")
    values = {"producer_byte_rate": _LIMIT / 2}
    rows = [{"entity": {"user": f"user-{number:05}"}, "quotas": values} for number in range(entities)]
    cluster = {"name": "prod", "id": None, "kafka_version": None}
    observed = {"at": "2026-11-01T00:00:00Z", "from": "broker"}
    document = {"format_version": "1.0", "cluster": cluster, "observed": observed, "entities": rows}
    (folder.parent / "now.json").write_text(json.dumps(document))


def write_day(folder: Path, day: int, entities: int, seconds: int) -> None:
    """Requests of a day in the canonical schema. Some clients are above their limit, and half of them far below it."""
    folder.mkdir(exist_ok=True)
    chance = np.random.default_rng(day)
    count = entities * seconds
    client = np.tile(np.arange(entities, dtype=np.int32), seconds)
    begin = int((_START + datetime.timedelta(days=day)).timestamp())
    moments = np.repeat(np.sort(chance.integers(0, 86_400, seconds)), entities) + chance.integers(0, 300, count)
    order = np.argsort(moments, kind="stable")
    amount = chance.lognormal(0.0, 0.5, count) * np.where(client % 20 == 0, 8.0, np.where(client % 2, 3.0, 0.3)) * _LIMIT
    names = pa.array([f"user-{number:05}" for number in range(entities)])
    table = pa.table(
        {
            "ts": pa.array((begin + moments[order]) * 1_000_000, type=pa.timestamp("us", tz="UTC")),
            "interval_ms": pa.array(np.zeros(count, dtype=np.int32)),
            "broker": pa.array((client[order] % _BROKERS + 1).astype(np.int32)),
            "user": pa.DictionaryArray.from_arrays(client[order], names),
            "client_id": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array(["app"])),
            "kind": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array(["produce"])),
            "amount": pa.array(amount[order].astype(np.int64)),
            "semantics": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array(["event"])),
            "throttled": pa.array(np.zeros(count, dtype=np.bool_)),
        }
    )
    pq.write_table(table, folder / f"day-{day:03}.parquet")


if __name__ == "__main__":
    main()
