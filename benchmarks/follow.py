"""``compact --follow`` of Parquet files as they come, beside a daily run of ``compact``, and of the records of a topic.

``python -m benchmarks.follow --files 2``: whole processes on two threads. The second batch adds the last file to the day that the
first one has written. ``--records 500000``: of a topic of a real broker, by PySpark 4.1 with its connector (needs Java 17).
``--batches 60``: one process, and a file for each batch that comes when the batch before is written. All are of one day.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.backtest import watch
from benchmarks.backtest.traffic import FILE_ROWS, Scene, write
from benchmarks.measure import machine

_SPARK = ("--master", "local[2]", "--memory", "2g")
_TOPIC = "quota-traffic"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.follow", description=__doc__)
    parser.add_argument("--files", type=int, default=4, help=f"of {FILE_ROWS:,} requests each, two or more")
    parser.add_argument("--records", type=int, default=0, help="of a topic, in place of files")
    parser.add_argument("--batches", type=int, default=0, help="of --batch-rows requests each, in place of files")
    parser.add_argument("--batch-rows", type=int, default=200_000)
    parser.add_argument("--timeout", type=float, default=1800.0)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-follow-") as name:
        if args.records:
            follow_topic(Path(name), args.records, args.timeout)
        elif args.batches:
            follow_steadily(Path(name), args.batches, args.batch_rows, args.timeout)
        else:
            follow_files(Path(name), args.files, args.timeout)


def follow_files(folder: Path, files: int, timeout_s: float) -> None:
    """All files but one, the last one, and all of them by a daily run."""
    write(folder / "made", Scene(rows=files * FILE_ROWS))
    (folder / "traffic").mkdir()
    *first, last = sorted((folder / "made").glob("*.parquet"))
    source = ("--traffic", "traffic")
    follow = (*source, "--follow", "--once", "--out", "followed", "--checkpoint", "checkpoint")
    for file in first:
        file.rename(folder / "traffic" / file.name)
    early = (files - 1) * FILE_ROWS
    print(measured(folder, "compact --follow, first batch", early, timeout_s, *follow), flush=True)
    last.rename(folder / "traffic" / last.name)
    print(measured(folder, "compact --follow, one more file", FILE_ROWS, timeout_s, *follow), flush=True)
    print(measured(folder, "compact", files * FILE_ROWS, timeout_s, *source, "--out", "at-once"), flush=True)


def follow_steadily(folder: Path, batches: int, rows: int, timeout_s: float) -> None:
    """Processor time of each batch of one process, from the end of the batch before to its own."""
    files = cut(folder, batches, rows)
    (folder / "traffic").mkdir()
    follow = ("--traffic", "traffic", "--follow", "--every", "0.1", "--out", "followed", "--checkpoint", "checkpoint")
    command = (sys.executable, "-m", "reconciler", "compact", *follow, *_SPARK)
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        spent: list[float] = []
        for file in files:
            file.rename(folder / "traffic" / file.name)
            wait_for_batch(folder / "followed", len(spent), process, timeout_s)
            spent.append(watch.processor_s(process.pid))
    finally:
        process.terminate()
        process.wait(120)
    times = [after - before for before, after in itertools.pairwise(spent)]
    few = max(1, len(times) // 4)
    for name, some in (("first", times[:few]), ("last", times[-few:])):
        mean = statistics.fmean(some)
        print(
            f"{name} {few} batches after the start: {mean:.2f} s of processor time each ({min(some):.2f} to {max(some):.2f}), "
            f"{rows / mean:,.0f} rows/s",
            flush=True,
        )
    print(f"last against first: {statistics.fmean(times[-few:]) / statistics.fmean(times[:few]):.2f} x")
    print(f"all {len(times)} batches after the start: {sum(times):.1f} s, the start with its batch: {spent[0]:.1f} s")


def cut(folder: Path, batches: int, rows: int) -> list[Path]:
    """Files in the order of time, with a stretch of it each."""
    import pyarrow.parquet as pq

    write(folder / "made", Scene(rows=batches * rows))
    (folder / "cut").mkdir()
    files: list[Path] = []
    for made in sorted((folder / "made").glob("*.parquet")):
        table = pq.read_table(made)
        for begin in range(0, table.num_rows, rows):
            files.append(folder / "cut" / f"part-{len(files):05}.parquet")
            pq.write_table(table.slice(begin, rows), files[-1])
    return files


def wait_for_batch(out: Path, batch: int, process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Return when the newest manifest has the batch. Ends the benchmark when the process has ended."""
    from tests.support.polling import wait_until

    def is_there() -> bool:
        if process.poll() is not None:
            sys.exit(f"the stream ended with {process.returncode}")
        manifests = sorted((out / "_kafka-quotas" / "manifests").glob("*.json"))
        streams = json.loads(manifests[-1].read_text("utf-8"))["streams"] if manifests else []
        return any(stream["batch"] >= batch for stream in streams)

    wait_until(is_there, within_s=timeout_s)


def follow_topic(folder: Path, records: int, timeout_s: float) -> None:
    """Records that are there already. The processor time of the broker is not in the figures."""
    from reconciler.features.sandbox import SandboxSpec, running
    from reconciler.features.sandbox.clients import create_topic
    from tests.support.lake_tables import kafka_connector, pyspark_variables

    os.environ.update(pyspark_variables())
    settings = [argument for key, value in kafka_connector() for argument in ("--conf", f"{key}={value}")]
    write(folder / "made", Scene(rows=records))
    with running(SandboxSpec()) as sandbox:
        servers = sandbox.bootstrap_servers
        create_topic(servers, _TOPIC, partitions=4)
        for count, begin in ((0, 0), (records, 0)):
            send(servers, folder / "made", begin, count)
            follow = (
                "--traffic",
                f"kafka://{servers}/{_TOPIC}",
                "--follow",
                "--once",
                "--out",
                "lake",
                "--checkpoint",
                "checkpoint",
            )
            print(measured(folder, "compact --follow of a topic", count, timeout_s, *follow, *settings), flush=True)


def send(servers: str, folder: Path, begin: int, count: int) -> None:
    """Produce requests as records."""
    import pyarrow.parquet as pq
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=50, batch_size=1 << 18)
    rows = pq.read_table(folder).slice(begin, count).drop_columns(["tie"])
    for batch in rows.to_batches(50_000):
        for row in batch.to_pylist():
            producer.send(_TOPIC, json.dumps(row | {"ts": row["ts"].isoformat()}).encode())
    producer.flush(600)
    producer.close(timeout=60)


def measured(folder: Path, name: str, rows: int, timeout_s: float, *options: str) -> str:
    """One command, as a line."""
    command = (sys.executable, "-m", "reconciler", "compact", *options, *_SPARK)
    done = watch.run(["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], timeout_s=timeout_s)
    if done.code:
        return f"{name}: ended with {done.code}: {done.stderr[-500:]}"
    rate = rows / done.processor_s / 1e6
    return f"{name}: {rows:,} rows, processor time {done.processor_s:.0f} s, {rate:.2f} M rows/s/core, peak {done.peak:,.0f} MB"


if __name__ == "__main__":
    main()
