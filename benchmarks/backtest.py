"""``backtest`` on synthetic traffic beside Spark's own scan and DuckDB, each in a process of its own, two threads.

``python -m benchmarks.backtest [--rows 10000000] [--hot 0.3] [--only NAME ...]``; times are from the moment the engine runs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import traffic
from benchmarks.measure import machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE, AFTER = 400_000.0, 200_000.0
MEMORY = "4g"


def spark_scan(spark: SparkSession, folder: Path) -> object:
    """The bound: read what is needed, and group by client."""
    from pyspark.sql import functions as F  # noqa: N812 - the name all of Spark's own documentation uses

    rows = spark.read.parquet(str(folder / "rows")).groupBy("broker", "user", "client_id", "kind")
    return rows.agg(F.sum("amount"), F.count(F.lit(1)), F.max("ts")).count()


def judged(spark: SparkSession | None, folder: Path, *, exact: bool, one_user: bool = False) -> object:
    """Everything from the files to the report, of a change of everybody's limit or of one user's."""
    from reconciler.model.entity import DEFAULT, Entity
    from reconciler.traffic.backtest import Backtest, Question
    from reconciler.traffic.opening import find_traffic, open_traffic

    def session() -> SparkSession:
        if spark is None:
            raise RuntimeError("this was to be judged without Spark")
        return spark

    everybody = Entity.of({"user": DEFAULT, "client-id": DEFAULT})
    limits = {"producer_byte_rate": BEFORE, "consumer_byte_rate": BEFORE}
    lower = dict.fromkeys(limits, AFTER)
    proposed = (
        {everybody: limits, Entity.of({"user": "team-007", "client-id": DEFAULT}): lower} if one_user else {everybody: lower}
    )
    recorded = open_traffic(find_traffic([str(folder)]), session, log_timezone="UTC")
    report = Backtest(recorded, Question(current={everybody: limits}, proposed=proposed, declared=proposed, exact=exact)).report()
    return {verdict: sum(v.verdict == verdict for v in report.verdicts) for verdict in ("certain", "possible", "clear")}


def compacted(spark: SparkSession, folder: Path) -> object:
    """The normal form to cells."""
    from reconciler.traffic.cells.compact import SourceFile, compact
    from reconciler.traffic.cells.segments import SegmentFolder
    from reconciler.traffic.sources.normal_form import read_normal_form

    files = sorted((folder / "rows").glob("*.parquet"))
    sources = {path: SourceFile(path=path, id=path.stem, size=path.stat().st_size) for path in files}
    rows = read_normal_form(spark, [str(path) for path in files], also=("file",))
    return len(compact(rows, sources, SegmentFolder(folder / "cells")))


def duckdb_verdict(folder: Path) -> object:
    """Seconds over by the same bounds, in SQL with bounded frames: what an engine made for one machine takes."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2, "memory_limit": "12GB"})
    cells = f"""
    create temp table cells as select broker, "user" || chr(0) || client_id || chr(0) || kind as bucket,
      epoch_us(ts) // 1000000 as s, sum(amount)::double as x from read_parquet('{folder}/rows/*.parquet') group by all
    """
    connection.execute(cells)
    window = "partition by broker, bucket order by s range between {} preceding and current row"
    sums = ", ".join(f"sum(x) over ({window.format(n - 1)}) as s{n}" for n in (11, 12, 13))
    sql = f"""
    select broker, bucket, count(*), count(*) filter (s11 / 12 > {AFTER}),
      count(*) filter (greatest(s13 / 11, s12 / 10) > {AFTER}), max(greatest(s13 / 11, s12 / 10))
    from (select *, {sums} from cells) group by all
    """
    found = connection.execute(sql).fetchall()
    certain, possible = sum(row[3] > 0 for row in found), sum(row[4] > 0 for row in found)
    return {"certain": certain, "possible": possible - certain, "clear": len(found) - possible}


ENGINES: dict[str, tuple[bool, Callable[[Any, Path], object]]] = {
    "spark scan": (True, spark_scan),
    "seconds": (True, lambda spark, folder: judged(spark, folder / "rows", exact=False)),
    "exact": (True, lambda spark, folder: judged(spark, folder / "rows", exact=True)),
    "duckdb": (False, lambda _, folder: duckdb_verdict(folder)),
    "compact": (True, compacted),
    "cells": (True, lambda spark, folder: judged(spark, folder / "cells", exact=False)),
    "one user, no Spark": (False, lambda _, folder: judged(None, folder / "cells", exact=False, one_user=True)),
}


def child(name: str, folder: Path) -> None:
    from reconciler.traffic.session import SessionOptions, spark_session

    needs_spark, work = ENGINES[name]
    if not needs_spark:
        start = time.perf_counter()
        found = work(None, folder)
        print(json.dumps([time.perf_counter() - start, found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
        return
    with spark_session(SessionOptions(master="local[2]", memory=MEMORY)) as spark:
        spark.range(10).count()
        start = time.perf_counter()
        found = work(spark, folder)
        print(json.dumps([time.perf_counter() - start, found, 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--hot", type=float, default=0.3)
    parser.add_argument("--only", nargs="*", choices=tuple(ENGINES), default=tuple(ENGINES))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child[0], Path(args.child[1]))
        return
    print(machine())
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-traffic-") as made:
        folder = Path(made)
        traffic.write(folder / "rows", args.rows, hot=args.hot)
        print(f"{args.rows:,} rows, {sum(f.stat().st_size for f in (folder / 'rows').iterdir()) / 1e6:.0f} MB of Parquet")
        bound = None
        for name in args.only:
            command = [sys.executable, "-m", "benchmarks.backtest", "--child", name, str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{name}: {done.stderr[-2000:]}")
            seconds, found, peak = json.loads(done.stdout.splitlines()[-1])
            bound = seconds if name == "spark scan" else bound
            ratio = f"{seconds / bound:5.2f} x scan" if bound else ""
            print(
                f"{name:20} {seconds:7.1f} s {args.rows / seconds / 2e6:6.2f} M rows/s/core {ratio}  {found}  {peak:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
