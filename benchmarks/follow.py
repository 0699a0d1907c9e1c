"""``compact --follow`` of Parquet files as they come, beside a daily run of ``compact`` over the same files.

``python -m benchmarks.follow --rows 8000000``: whole processes on two threads. The second batch adds the last file to the day
that the first one has written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.backtest import watch
from benchmarks.backtest.traffic import FILE_ROWS, Scene, write
from benchmarks.measure import machine

_SPARK = ("--master", "local[2]", "--memory", "2g")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.follow", description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000, help=f"in files of {FILE_ROWS:,}")
    parser.add_argument("--timeout", type=float, default=1800.0)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-follow-") as name:
        folder = Path(name)
        write(folder / "made", Scene(rows=args.rows))
        (folder / "traffic").mkdir()
        *first, last = sorted((folder / "made").glob("*.parquet"))
        follow = ("--follow", "--once", "--out", "followed", "--checkpoint", "checkpoint")
        for file in first:
            file.rename(folder / "traffic" / file.name)
        early = args.rows - FILE_ROWS
        print(measured(folder, "compact --follow, first batch", early, args.timeout, *follow), flush=True)
        last.rename(folder / "traffic" / last.name)
        print(measured(folder, "compact --follow, one more file", FILE_ROWS, args.timeout, *follow), flush=True)
        print(measured(folder, "compact", args.rows, args.timeout, "--out", "at-once"), flush=True)


def measured(folder: Path, name: str, rows: int, timeout_s: float, *options: str) -> str:
    """One command, as a line."""
    command = (sys.executable, "-m", "reconciler", "compact", "--traffic", "traffic", *options, *_SPARK)
    done = watch.run(["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], timeout_s=timeout_s)
    if done.code:
        return f"{name}: ended with {done.code}: {done.stderr[-500:]}"
    rate = rows / done.processor_s / 1e6
    return f"{name}: {rows:,} rows, processor time {done.processor_s:.0f} s, {rate:.2f} M rows/s/core, peak {done.peak:,.0f} MB"


if __name__ == "__main__":
    main()
