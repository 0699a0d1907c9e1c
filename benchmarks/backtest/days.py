"""One day of a history in folders of days: rows that Spark reads and processor time, beside a history of that day alone.

``python -m benchmarks.backtest.days --days 30 --rows 1000000``: rows are those of a day.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.backtest import series, watch
from benchmarks.measure import machine

_CLIENTS = 1_000
_ROWS_A_FILE = 2_000_000
_SPAN_US = 11 * 3_600_000_000
"""From the first row of a day to the begin of its last file, each of which has an hour."""
_FIRST = datetime.datetime.fromtimestamp(series.START_US / 1e6, datetime.UTC).date()
_READ = re.compile(r"read_rows[=:]\s*(\d+)")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest.days", description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each day")
    parser.add_argument("--timeout", type=float, default=1800.0)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-days-") as name:
        folder = Path(name)
        (folder / "quotas.yaml").write_text(series.MANIFEST, encoding="utf-8")
        chosen = _FIRST + datetime.timedelta(days=args.days // 2)
        stored = write(folder, args.days, args.rows, chosen)
        print(f"{args.days * args.rows:,} rows in {args.days} folders, {stored / 1e6:.0f} MB of Parquet")
        for traffic in ("whole", "day"):
            print(measured(folder, traffic, chosen, args.timeout), flush=True)


def write(folder: Path, days: int, rows: int, chosen: datetime.date) -> int:
    """The folders ``whole`` with all days, and ``day`` with the one that is ``chosen``. The bytes of the first one."""
    files = -(-rows // _ROWS_A_FILE)
    table = series.table(np.arange(_CLIENTS), max(1, rows // files // (_CLIENTS * series.BROKERS)), 1)
    first = table.column("ts").cast(pa.int64()).to_numpy()
    stored = 0
    for number in range(days):
        date = _FIRST + datetime.timedelta(days=number)
        parent = folder / "whole" / f"dt={date}"
        parent.mkdir(parents=True)
        for place in range(files):
            moved = first + number * 86_400_000_000 + place * (_SPAN_US // files)
            file = parent / f"part-{place}.parquet"
            moments = pa.array(moved).cast(pa.timestamp("us", "UTC"))
            pq.write_table(table.set_column(0, "ts", moments), file, compression="zstd", row_group_size=1_000_000)
            stored += file.stat().st_size
        if date == chosen:
            shutil.copytree(parent, folder / "day" / parent.name)
    return stored


def measured(folder: Path, traffic: str, chosen: datetime.date, timeout_s: float) -> str:
    """One command, as a line."""
    command = [
        *(sys.executable, "-m", "reconciler", "backtest", "quotas.yaml", "--traffic", f"file://{folder}/{traffic}"),
        *("--since", f"{chosen}T00:00:00Z", "--until", f"{chosen + datetime.timedelta(days=1)}T00:00:00Z"),
        *("--master", "local[2]", "--format", "json", "-vv"),
    ]
    done = watch.run(["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], timeout_s=timeout_s)
    if done.code not in (0, 1) or not done.stdout:
        return f"{traffic}: ended with {done.code}: {done.stderr[-500:]}"
    rows = json.loads(done.stdout)["provenance"]["requests"]
    read = [int(number) for number in _READ.findall(done.stderr)]
    return (
        f"one day of {traffic}: {rows:,} requests judged, at most {max(read, default=0):,} files or rows read in a pass, "
        f"processor time {done.processor_s:.0f} s"
    )


if __name__ == "__main__":
    main()
