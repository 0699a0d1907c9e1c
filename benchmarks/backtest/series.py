"""A backtest of more and more clients on brokers: memory of the driver, rows kept by Spark beside rows in the report.

``python -m benchmarks.backtest.series --series 60000 1000000``: each command runs in a process of its own on two threads.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.backtest import watch
from benchmarks.measure import machine

BROKERS = 10
START_US = 1_795_000_000_000_000
_SPAN_US = 3_600_000_000
_ROWS_A_FILE = 1_000_000
MANIFEST = """
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: teams, owner: team}
spec:
  quotas:
    - match: {user: {default: true}, client-id: {default: true}}
      quotas: {producer_byte_rate: 1KiB}
"""
FORMS = {"rows": ("--out", "parquet=verdicts"), "report": ()}
"""All rows as Parquet, or all in the JSON report."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest.series", description=__doc__)
    parser.add_argument("--series", type=int, nargs="*", default=[60_000], help="clients on brokers")
    parser.add_argument("--rows", type=int, default=3, help="of each series")
    parser.add_argument("--entities", type=int, default=0, help="further quotas of users")
    parser.add_argument("--only", choices=tuple(FORMS), nargs="*", default=tuple(FORMS))
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--timeout", type=float, default=3600.0)
    args = parser.parse_args()
    print(machine())
    for series in args.series:
        with tempfile.TemporaryDirectory(prefix="kafka-quotas-series-") as name:
            folder = Path(name)
            write(folder / "traffic", series, args.rows)
            (folder / "quotas.yaml").write_text(MANIFEST + "".join(_users(args.entities)), encoding="utf-8")
            for form in args.only:
                print(measured(folder, form, series, args), flush=True)


def measured(folder: Path, form: str, series: int, args: argparse.Namespace) -> str:
    """One command, as a line."""
    command = [
        *(sys.executable, "-m", "reconciler", "backtest", "quotas.yaml", "--traffic", "traffic", "--master", "local[2]"),
        *("--memory", args.memory, "--format", "json", "-v", *FORMS[form]),
    ]
    done = watch.run(["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], timeout_s=args.timeout)
    if done.code not in (0, 1) or not done.stdout:
        return f"{series:,} series, {form}: ended with {done.code}: {done.stderr[-500:]}"
    rows = json.loads(done.stdout)["summary"]["rows"]
    spent = next((line for line in done.stderr.splitlines() if "time spent" in line), "")
    return (
        f"{series:,} series, {form}: {rows:,} rows of verdicts, report of {len(done.stdout) / 1e6:.1f} MB, processor time "
        f"{done.processor_s:.0f} s, peak of all {done.peak:,.0f} MB, "
        f"driver: Python {done.python:,.0f} MB, Java {done.java:,.0f} MB"
        f"\n  {spent}"
    )


def write(folder: Path, series: int, rows: int) -> None:
    """``rows`` requests of each series in an hour; each client is on every broker."""
    folder.mkdir()
    clients = -(-series // BROKERS)
    a_file = max(1, _ROWS_A_FILE // (BROKERS * rows))
    for number, first in enumerate(range(0, clients, a_file)):
        some = np.arange(first, min(clients, first + a_file))
        pq.write_table(table(some, rows, number), folder / f"part-{number:05}.parquet", compression="zstd")


def table(clients: np.ndarray[tuple[int], np.dtype[np.int64]], rows: int, seed: int) -> pa.Table:
    chance, count = np.random.default_rng(seed), len(clients) * BROKERS * rows
    client = np.repeat(clients, BROKERS * rows)
    names = pa.array([f"client-{number:08}" for number in clients.tolist()])
    place = pa.array(np.repeat(np.arange(len(clients), dtype=np.int32), BROKERS * rows))
    return pa.table(
        {
            "ts": pa.array(START_US + chance.integers(0, _SPAN_US, count), pa.timestamp("us", "UTC")),
            "interval_ms": pa.array(np.zeros(count, dtype=np.int32)),
            "broker": pa.array(np.tile(np.arange(1, BROKERS + 1, dtype=np.int32), len(clients) * rows)),
            "user": pa.DictionaryArray.from_arrays(place, pa.array([f"team-{number % 1000:03}" for number in clients.tolist()])),
            "client_id": pa.DictionaryArray.from_arrays(place, names),
            "kind": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array(["produce"])),
            "amount": pa.array(chance.integers(100, 100_000, count) + client % 7),
            "semantics": pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array(["event"])),
            "tie": pa.array(chance.integers(0, 2**62, count)),
        }
    )


def _users(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"    - match: {{user: absent-{number:06}}}\n      quotas: {{producer_byte_rate: 1MiB}}\n"


if __name__ == "__main__":
    main()
