"""Request log text to the normal form, beside a bare ``from_json`` of the needed fields and a group-by, on two threads.

``python -m benchmarks.request_log [--mb 500]``; the log is made of the lines of ``tests/traffic/recordings``. Figures are of CPU
seconds of Spark's processes, the best of several runs, so that other load counts little; MB/s/core is per CPU second.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.measure import machine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDINGS: Final = Path(__file__).parents[1] / "tests" / "traffic" / "recordings"
NEEDED: Final = """
requestHeader struct<requestApiKey: int, requestApiVersion: int, correlationId: int, clientId: string>,
request struct<
  transactionalId: string, topicData: array<struct<name: string, partitionData: array<struct<recordsSizeInBytes: bigint>>>>,
  replicaId: int>,
response struct<responses: array<struct<topic: string, partitions: array<struct<recordsSizeInBytes: bigint>>>>>,
connection string, principal string, throttleTimeMs double, responseQueueTimeMs double, sendTimeMs double
"""
_SHARES: Final = {'"PRODUCE"': 0.6, '"FETCH"': 0.3, "": 0.1}
"""Of the lines, by what they hold; the last one is everything else."""


def write_log(path: Path, size: int, *, seed: int = 1) -> None:
    """At least ``size`` bytes of lines as brokers wrote them, mixed anew."""
    lines: dict[str, list[bytes]] = {kind: [] for kind in _SHARES}
    for log in sorted(RECORDINGS.glob("*/kafka-request.log.gz")):
        for line in gzip.decompress(log.read_bytes()).splitlines(keepends=True):
            lines[next(kind for kind in _SHARES if kind.encode() in line)].append(line)
    chance = random.Random(seed)
    written = 0
    with path.open("wb") as stream:
        while written < size:
            (kind,) = chance.choices(list(_SHARES), list(_SHARES.values()))
            written += stream.write(chance.choice(lines[kind]))


def bare(spark: SparkSession, path: Path) -> DataFrame:
    """The bound: the fields that are needed, of every line, and a group-by."""
    from pyspark.sql import functions as F

    document = F.from_json(F.substring_index("value", "Completed request:", -1), NEEDED).alias("d")
    header, sums = (
        "d.requestHeader",
        ("d.throttleTimeMs", "d.responseQueueTimeMs", "d.sendTimeMs", "d.requestHeader.correlationId"),
    )
    read = spark.read.text(str(path)).select(document).groupBy("d.principal", f"{header}.clientId", f"{header}.requestApiKey")
    return read.agg(
        F.sum(F.size("d.request.topicData")),
        F.sum(F.size("d.response.responses")),
        F.max("d.connection"),
        *(F.sum(name) for name in sums),
    )


def read_bytes(spark: SparkSession, path: Path) -> int:
    """Bytes of produce and fetch, as a backtest without other quotas reads them; the number of clients."""
    return _charged(spark, path, everything=False)


def read_everything(spark: SparkSession, path: Path) -> int:
    """Thread time and topics too."""
    return _charged(spark, path, everything=True)


def _charged(spark: SparkSession, path: Path, *, everything: bool) -> int:
    from reconciler.traffic.client_totals import CLIENT_TOTALS
    from reconciler.traffic.kinds import BYTES
    from reconciler.traffic.sources.log_files import find_logs
    from reconciler.traffic.sources.on_spark import request_log_rows
    from reconciler.traffic.sources.request_log import LOG_KINDS

    kinds = LOG_KINDS if everything else BYTES
    with contextlib.closing(request_log_rows(spark, find_logs([f"1={path}"]), kinds=kinds)) as rows:
        return int(rows.total(CLIENT_TOTALS).num_rows)


WORK: Final[dict[str, Callable[[SparkSession, Path], object]]] = {
    "from_json and group-by": lambda spark, path: bare(spark, path).collect(),
    "produce and fetch": read_bytes,
    "everything": read_everything,
}


def main() -> None:
    """Measure, and print a table."""
    from reconciler.traffic.session import spark_session
    from reconciler.traffic.spark_setup import SessionOptions

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--times", type=int, default=4)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-log-") as made:
        path = Path(made) / "kafka-request.log"
        write_log(path, args.mb * 1_000_000)
        size = path.stat().st_size / 1e6
        with spark_session(SessionOptions(master="local[2]", settings=(("spark.driver.memory", "4g"),))) as spark:
            bound = None
            for name, work in WORK.items():
                seconds = min(_cpu(functools.partial(work, spark, path)) for _ in range(args.times))
                bound = bound or seconds
                print(f"{name:24} {seconds:7.2f} CPU s {size / seconds:6.1f} MB/s/core {seconds / bound:5.2f} x", flush=True)


def _cpu(work: Callable[[], object]) -> float:
    before = _spark_seconds()
    work()
    return _spark_seconds() - before


def _spark_seconds() -> float:
    """CPU time of all processes below this one that are alive, and of what they have waited for: Java, and its Python workers."""
    parents, ticks = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        process = int(status.parent.name)
        parents[process], ticks[process] = int(fields[1]), sum(int(field) for field in fields[11:15])

    def below(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == os.getpid():
                return True
        return False

    return sum(spent for process, spent in ticks.items() if below(process)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
