"""``backtest --exact --out parquet=`` of traffic that is mostly of one client: time, and memory with all workers.

``python -m benchmarks.backtest.large_group --rows 12000000``: on one broker and on six, in a process of its own on two threads.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.backtest import watch
from benchmarks.backtest.traffic import BROKERS, Scene, write
from benchmarks.measure import machine

MANIFEST = """
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: teams, owner: team}
spec:
  quotas:
    - match: {user: {default: true}}
      quotas: {producer_byte_rate: 4MiB, consumer_byte_rate: 4MiB}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest.large_group", description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--hot", type=float, default=0.9, help="share of one client on top of its rank's")
    parser.add_argument("--brokers", type=int, nargs="*", choices=(1, BROKERS), default=[BROKERS, 1])
    parser.add_argument("--timeout", type=float, default=3600.0)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-large-group-") as name:
        folder = Path(name)
        (folder / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
        write(folder / "traffic", Scene(rows=args.rows, hot=args.hot))
        for brokers in args.brokers:
            if brokers == 1:
                _on_one_broker(folder / "traffic")
            print(measured(folder, brokers, args), flush=True)


def measured(folder: Path, brokers: int, args: argparse.Namespace) -> str:
    """One command, as a line."""
    command = [
        *(sys.executable, "-m", "reconciler", "backtest", "quotas.yaml", "--traffic", "traffic", "--exact", "-v"),
        *("--out", f"parquet=verdicts-{brokers}", "--master", "local[2]", "--memory", "2g", "--format", "json"),
    ]
    done = watch.run(["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], timeout_s=args.timeout)
    if done.code not in (0, 1) or not done.stdout:
        return f"{brokers} brokers: ended with {done.code}: {done.stderr[-500:]}"
    groups = json.loads(done.stdout)["summary"]["rows"]
    spent = next((line for line in done.stderr.splitlines() if "time spent" in line), "")
    return (
        f"{args.rows:,} rows, {args.hot:.0%} of one client, on {brokers} brokers: {groups:,} rows of verdicts, processor time "
        f"{done.processor_s:.0f} s, {args.rows / done.processor_s / 1e6:.2f} M rows/s/core, peak of all {done.peak:,.0f} MB"
        f"\n  {spent}"
    )


def _on_one_broker(traffic: Path) -> None:
    for file in sorted(traffic.glob("*.parquet")):
        table = pq.read_table(file)
        place = table.schema.get_field_index("broker")
        pq.write_table(table.set_column(place, "broker", pa.repeat(pa.scalar(1, pa.int32()), table.num_rows)), file)


if __name__ == "__main__":
    main()
