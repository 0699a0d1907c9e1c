"""A full disk and a killed worker while Spark works: one sentence, nothing half-written, and the next run does it all."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.client_totals import CLIENT_TOTALS
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.sources.log_files import Dataset
from reconciler.traffic.sources.on_spark import frame_rows
from reconciler.traffic.spark_jobs import raise_as_sentences
from tests.support.command import Command
from tests.support.full_disk import run_with_room
from tests.support.manifests import quotas
from tests.support.recorded_parquet import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 300_000
LOOKING_S = 0.03
"""Between two looks for workers: less than they take to read the rows, more than a look costs."""
MANIFEST = quotas(({"user": {"default": True}}, {"producer_byte_rate": "1KiB"}), owner="team")


def write_traffic(folder: Path) -> None:
    """Requests whose ties cannot be compressed."""
    chance = np.random.default_rng(7)
    times = np.sort(chance.integers(1_795_000_000_000_000, 1_795_000_600_000_000, ROWS))
    folder.mkdir()
    table = pa.table(
        {
            "ts": pa.array(times, type=pa.timestamp("us", tz="UTC")),
            "interval_ms": pa.array(np.zeros(ROWS, dtype=np.int32)),
            "broker": pa.array(np.ones(ROWS, dtype=np.int32)),
            "user": pa.array([f"user-{number}" for number in range(50)]).take(pa.array(chance.integers(0, 50, ROWS))),
            "client_id": pa.array(["app"]).take(pa.array(np.zeros(ROWS, dtype=np.int32))),
            "kind": pa.array(["produce"]).take(pa.array(np.zeros(ROWS, dtype=np.int32))),
            "amount": pa.array(chance.integers(1, 10**6, ROWS)),
            "semantics": pa.array(["event"]).take(pa.array(np.zeros(ROWS, dtype=np.int32))),
            "tie": pa.array(chance.integers(0, 2**62, ROWS)),
        }
    )
    for number in range(2):
        pq.write_table(table.slice(number * ROWS // 2, ROWS // 2), folder / f"{number}.parquet")


@pytest.mark.large
def test_cells_are_whole_or_not_there_when_the_disk_is_full(tmp_path: Path, warm_command: Command) -> None:
    write_traffic(tmp_path / "rows")
    compact = ("compact", "--traffic", "rows", "--folder", "cells", "--master", "local[2]")
    done = run_with_room(20_000, *compact, cwd=tmp_path, timeout=400)
    assert (done.code, done.out) == (1, "")
    assert SegmentFolder(tmp_path / "cells").segments() == ()
    again = warm_command(*compact, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    segments = SegmentFolder(tmp_path / "cells").segments()
    assert sum(segment.requests for segment in segments) == ROWS
    assert sorted(path.name for path in (tmp_path / "cells" / "data").iterdir()) == sorted(one.folder for one in segments)


def test_a_worker_that_is_killed_ends_the_run_with_a_sentence_and_the_next_one_does_it_all(
    tmp_path: Path, warm_command: Command
) -> None:
    write_traffic(tmp_path / "rows")
    compact = ("compact", "--traffic", "rows", "--folder", "cells", "--master", "local[2]")
    with killing_workers() as killed:
        done = warm_command(*compact, cwd=tmp_path)
    assert killed
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1] == (
        "kafka-quotas: Spark on local[2] could not finish: a Python process of a worker ended, perhaps for want of memory"
    )
    assert SegmentFolder(tmp_path / "cells").segments() == ()
    again = warm_command(*compact, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert sum(segment.requests for segment in SegmentFolder(tmp_path / "cells").segments()) == ROWS


@contextlib.contextmanager
def killing_workers() -> Iterator[list[int]]:
    """Inside the block, each Python process that works for this process's Spark ends at once; the processes killed so far."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(LOOKING_S):
            for worker in workers_below(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def workers_below(pid: int) -> list[int]:
    """The Python processes that work for a run: what the daemon of its Java has started."""
    parents: dict[int, int] = {}
    daemons = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            parents[int(entry.name)] = int(
                (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            )
            if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                daemons.add(int(entry.name))

    def below(one: int) -> bool:
        while one in parents:
            one = parents[one]
            if one == pid:
                return True
        return False

    return [one for one in daemons if parents[one] in daemons and below(one)]


def write_many_clients(folder: Path) -> None:
    """One request of each client, whose names cannot be compressed: a verdict row each."""
    chance = np.random.default_rng(7)
    names = [f"user-{number:x}" for number in chance.integers(0, 2**62, 20_000).tolist()]
    start = datetime.datetime(2026, 11, 20, 8, tzinfo=datetime.UTC)
    times = [start + datetime.timedelta(milliseconds=10 * number) for number in range(len(names))]
    folder.mkdir()
    rows = [
        {"ts": ts, "interval_ms": 0, "broker": 1, "user": user, "client_id": "app", "kind": "produce", "amount": 10**6}
        for ts, user in zip(times, names, strict=True)
    ]
    table = pa.Table.from_pylist([row | {"semantics": "event", "throttled": False} for row in rows], schema=SCHEMA)
    pq.write_table(table, folder / "0.parquet")


def test_a_file_that_vanishes_after_spark_listed_it_is_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    write_many_clients(tmp_path / "rows")
    rows = frame_rows(spark, [Dataset(name=f"file://{tmp_path}/rows")])
    (tmp_path / "rows" / "0.parquet").unlink()
    with pytest.raises(TrafficError) as failed, raise_as_sentences("local[2]"):
        rows.total(CLIENT_TOTALS)
    assert str(failed.value) == (
        f"Spark on local[2] could not finish: file://{tmp_path}/rows/0.parquet was there when it was listed, and Spark cannot "
        "find it now. Run this again. Every machine that Spark runs on must see the files of --traffic under the same path"
    )
