"""Many small mapped files beside one file of the same rows: whole processes of ``backtest``, with ``--master`` on Spark."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import process

_MAPPING = """apiVersion: kafka-quotas/v1
kind: TrafficMapping
spec:
  columns:
    ts: {column: t, unit: ms}
    broker: {column: b}
    user: {column: u}
    client_id: {column: c}
    kind: {column: k}
    amount: {column: n}
"""
_QUOTAS = """apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: all}
spec:
  quotas:
    - match: {user: user-1}
      quotas: {producer_byte_rate: 10KiB}
"""
_START_MS = 1_795_266_000_000


def _rows(count: int) -> list[str]:
    chance = random.Random(1)
    kinds = ("produce", "fetch")
    return [
        f"{_START_MS + 100 * n},{n % 3},user-{chance.randrange(50)},app,{chance.choice(kinds)},{n % 9000}" for n in range(count)
    ]


def main() -> None:
    """``--files``, ``--rows``; ``--master`` for Spark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--master")
    asked = parser.parse_args()
    rows = _rows(asked.rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, count in (("one", 1), ("many", asked.files)):
            (folder / part).mkdir()
            for number in range(count):
                text = "\n".join(["t,b,u,c,k,n", *rows[number::count], ""])
                (folder / part / f"{number:05}.csv").write_text(text, encoding="utf-8")
        (folder / "map.yaml").write_text(_MAPPING, encoding="utf-8")
        (folder / "quotas.yaml").write_text(_QUOTAS, encoding="utf-8")
        where = ("--master", asked.master) if asked.master else ()
        command = (sys.executable, "-m", "reconciler", "backtest", "quotas.yaml", "--mapping", "map.yaml", *where, "--traffic")
        one, many = (process(*command, part, cwd=folder, times=3) for part in ("one", "many"))
    print(f"1 file, {asked.rows:,} rows: {one.wall:.2f} s, {one.cpu:.2f} s CPU, peak {one.peak:.0f} MB")
    print(f"{asked.files:,} files, the same rows: {many.wall:.2f} s, {many.cpu:.2f} s CPU, peak {many.peak:.0f} MB")
    print(f"ratio: {many.cpu / one.cpu:.2f} x CPU (at most 2)")


if __name__ == "__main__":
    main()
