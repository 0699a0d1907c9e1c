"""A backtest of moved traffic beside one that changes every limit, from the same per-second totals: whole processes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Run, once

_COMMAND = (sys.executable, "-m", "reconciler")
_START_MS = 1_763_600_000_000
_USER = "user:producer_byte_rate"
_LIMIT = 60_000
"""Six times the average rate of a client on a broker: none is throttled today."""


def main() -> None:
    """Make the totals, then time both commands in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, nargs="+", default=[3, 12])
    parser.add_argument("--users", type=int, default=400)
    parser.add_argument("--totals", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shared", type=float, default=0.0, help="part of the users who are client-ids of one user instead")
    args = parser.parse_args()
    for brokers in args.brokers:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            work = Path(folder)
            make_totals(work, brokers, args.users, args.totals, shared=round(args.users * args.shared))
            compare(work, brokers, args.rounds, args.totals)


def make_totals(work: Path, brokers: int, users: int, totals: int, *, shared: int = 0) -> None:
    """A folder ``cells`` of so many totals, and a snapshot with a default quota. ``shared``: so many users are one."""
    seconds = totals // (brokers * users)
    random = np.random.default_rng(7)
    history = work / "history"
    history.mkdir()
    for broker in range(brokers):
        second = np.repeat(np.arange(seconds), users)
        amount = random.exponential(10_000, len(second)).astype(np.int64) + 1
        user = np.tile(np.arange(users), seconds)
        names = pa.array([f"user-{max(number, shared - 1)}" for number in range(users)])
        clients = pa.array([f"app-{number}" if number < shared else "app" for number in range(users)])
        columns = {
            "ts": pa.array(_START_MS * 1000 + second * 1_000_000, pa.timestamp("us", "UTC")),
            "interval_ms": pa.array(np.zeros(len(second), dtype=np.int32)),
            "broker": pa.array(np.full(len(second), broker, dtype=np.int32)),
            "user": names.take(pa.array(user)),
            "client_id": clients.take(pa.array(user)),
            "kind": pa.repeat("produce", len(second)),
            "amount": pa.array(amount),
            "semantics": pa.repeat("event", len(second)),
        }
        pq.write_table(pa.table(columns), history / f"{broker}.parquet")
    once(*_COMMAND, "compact", "--traffic", str(history), "--folder", str(work / "cells"))
    snapshot = {
        "format_version": "1.0",
        "cluster": {"name": None, "id": None, "kafka_version": "4.3"},
        "observed": {"at": "2026-11-21T13:00:00Z", "from": "broker"},
        "entities": [{"entity": {"user": None}, "quotas": {"producer_byte_rate": _LIMIT}}],
    }
    (work / "now.json").write_text(json.dumps(snapshot), encoding="utf-8")


def compare(work: Path, brokers: int, rounds: int, totals: int) -> None:
    """Both in turn, the quickest of each by CPU time."""
    common = ("--traffic", "cells", "--current", "now.json", "--format", "json")
    lines = {
        "backtest": ("backtest", "--set", f"{_USER}={2 * _LIMIT}", *common),
        "--without-broker": ("backtest", "--without-broker", "0", *common),
        "--brokers": ("backtest", "--brokers", str(brokers + 1), *common),
    }
    runs: dict[str, list[Run]] = {name: [] for name in lines}
    for _ in range(rounds):
        for name, line in lines.items():
            runs[name].append(once(*_COMMAND, *line, cwd=work))
    best = {name: min(run.cpu for run in some) for name, some in runs.items()}
    print(f"{totals:,} totals on {brokers} brokers")
    for name, cpu in best.items():
        peak = max(run.peak for run in runs[name])
        print(f"  {name:<20} {cpu:6.2f} s CPU, peak {peak:,.0f} MB, {cpu / best['backtest']:.2f} x backtest")


if __name__ == "__main__":
    main()
