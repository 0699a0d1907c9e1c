"""What is measured, each in a process of its own: ``python -m benchmarks.backtest.engines NAME FOLDER`` prints one JSON line."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.backtest import log_text
from benchmarks.backtest.answers import AFTER, BEFORE, answer, answer_of_report
from benchmarks.backtest.elsewhere import THREADS, duckdb_verdict, polars_verdict
from benchmarks.backtest.watch import processor_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.model import BacktestReport

MEMORY = os.environ.get("BENCHMARK_SPARK_MEMORY", "4g")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """``work`` takes the Spark session, if it needs one, and the folder; what it returns is made into an answer untimed.

    ``warm``: everything is done once before. ``light``: Java as the command starts it for what is read by workers. ``imports``:
    what is imported before the time counts, as starting Spark does it for the others.
    """

    work: Callable[[Any, Path], Any]
    answer: Callable[[Any], object]
    spark: bool = True
    warm: bool = False
    light: bool = False
    imports: tuple[str, ...] = ()


def spark_scan(spark: SparkSession, folder: Path) -> int:
    """The bound: read what is needed, and group by client."""
    from pyspark.sql import functions as F

    rows = spark.read.parquet(str(folder / "rows")).groupBy("broker", "user", "client_id", "kind")
    return int(rows.agg(F.sum("amount"), F.count(F.lit(1)), F.max("ts")).count())


def judged(spark: SparkSession | None, recording: Path | str, *, exact: bool = False, one_user: bool = False) -> BacktestReport:
    """Everything from the files to the report, of a change of everybody's limit or of one user's.

    ``recording``: a folder, or the address of one, which Spark's own reader reads.
    """
    from reconciler.model.entity import DEFAULT, Entity
    from reconciler.traffic import Backtest, BacktestRequest, Reading, find_traffic, open_traffic

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
    recorded = open_traffic(find_traffic([str(recording)]), session, Reading(by_seconds=not exact))
    return Backtest(
        recorded, BacktestRequest(current={everybody: limits}, proposed=proposed, declared=proposed, exact=exact)
    ).report()


def compacted(spark: SparkSession, folder: Path) -> int:
    """The normal form to cells."""
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import SegmentFolder

    files = sorted((folder / "rows").glob("*.parquet"))
    sources = {path: SourceFile(path=path, id=path.stem, size=path.stat().st_size) for path in files}
    return len(Compaction(files=sources, folder=SegmentFolder(folder / "cells")).of_normal_form(spark))


def verdicts(report: BacktestReport) -> object:
    return {name: sum(v.verdict == name for v in report.verdicts) for name in ("throttled", "possible", "clear")}


def _groups(count: int) -> object:
    return {"groups": count}


OURS = ("reconciler.traffic.backtest", "reconciler.traffic.traffic_files")
ENGINES: dict[str, Engine] = {
    "spark scan": Engine(work=spark_scan, answer=lambda count: {"clients": count}),
    "duckdb": Engine(work=lambda _, folder: duckdb_verdict(folder), answer=answer, spark=False, imports=("duckdb",)),
    "polars": Engine(work=lambda _, folder: polars_verdict(folder), answer=answer, spark=False, imports=("polars",)),
    "seconds": Engine(work=lambda spark, folder: judged(spark, folder / "rows"), answer=answer_of_report, light=True),
    "exact": Engine(work=lambda spark, folder: judged(spark, folder / "rows", exact=True), answer=verdicts, light=True),
    "reader": Engine(work=lambda spark, folder: judged(spark, (folder / "rows").as_uri()), answer=answer_of_report),
    "reader exact": Engine(work=lambda spark, folder: judged(spark, (folder / "rows").as_uri(), exact=True), answer=verdicts),
    "compact": Engine(work=compacted, answer=lambda count: {"segments": count}, light=True),
    "cells": Engine(work=lambda spark, folder: judged(spark, folder / "cells"), answer=answer_of_report, light=True),
    "one user": Engine(
        work=lambda _, folder: judged(None, folder / "cells", one_user=True), answer=verdicts, spark=False, imports=OURS
    ),
}
"""``reader``: through Spark's own Parquet reader instead of workers that read files. ``one user``: from the cells, without Spark.
``cells`` and it need what ``compact`` wrote."""
LOGS: dict[str, Engine] = {
    "bare log": Engine(work=lambda spark, folder: log_text.bare(spark, folder / "log"), answer=_groups, warm=True),
    "log": Engine(work=lambda spark, folder: log_text.ours(spark, folder / "log"), answer=_groups, warm=True),
}
"""Text of request logs, the second time in one session: the first is mostly compiling."""
REMADE = {"compact": "cells"}
"""Engines that write a folder, which another round must not find."""
SAME = ("seconds", "reader", "duckdb", "polars", "cells")
"""Engines whose answers must be equal."""


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    engine = (ENGINES | LOGS)[name]
    for module in engine.imports:
        importlib.import_module(module)
    if not engine.spark:
        print(json.dumps(_timed(engine, None, folder)))
        return
    from reconciler.traffic.session import spark_session
    from reconciler.traffic.spark_setup import SessionOptions

    with spark_session(
        SessionOptions(master=f"local[{THREADS}]", settings=(("spark.driver.memory", MEMORY),), light=engine.light)
    ) as spark:
        spark.range(10).count()
        if engine.warm:
            engine.work(spark, folder)
        print(json.dumps(_timed(engine, spark, folder)))


def _timed(engine: Engine, spark: object, folder: Path) -> dict[str, object]:
    begin, start = processor_s(os.getpid()), time.perf_counter()
    found = engine.work(spark, folder)
    seconds, cpu = time.perf_counter() - start, processor_s(os.getpid()) - begin
    return {"seconds": seconds, "cpu": cpu, "answer": engine.answer(found)}


if __name__ == "__main__":
    main()
