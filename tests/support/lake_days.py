"""Per-second totals by day: the rows that ``compact`` wrote, traffic to write, and jobs to kill while they write."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.command import COMMAND, environment
from tests.support.polling import wait_until
from tests.support.recorded_parquet import Flow, write_traffic
from tests.traffic.log_lines import line, produce_request

DAY_S = 86_400
KEYS = ("ts", "status", "broker", "kind", "user", "client_id", "ip")


def days_in(out: Path) -> list[str]:
    """The days of a dataset in folders."""
    return sorted(folder.name.removeprefix("date=") for folder in out.glob("date=*") if any(folder.glob("*.parquet")))


def rows_of(out: Path) -> list[dict[str, Any]]:
    """The rows of a dataset in folders, each second of a client once, in order."""
    files = sorted(out.glob("date=*/*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert len({tuple(row[name] for name in KEYS) for row in rows}) == len(rows), "a second of a client is there twice"
    return sorted(rows, key=repr)


def days_of_parquet(folder: Path, days: int = 3, *, user: str = "alice", file: str = "part-0") -> None:
    """One file a day, in folders of a Hive layout: 150 produce requests of the user, and 40 fetches of bob."""
    for number in range(days):
        day = folder / f"dt=2026-11-{20 + number}"
        day.mkdir(parents=True, exist_ok=True)
        begin = number * DAY_S
        write_traffic(
            day / f"{file}.parquet",
            [
                Flow(user=user, amount=90_000, every_s=0.4, begin_s=begin, end_s=begin + 60),
                Flow(user="bob", client_id=None, broker=2, kind="fetch", amount=7, begin_s=begin + 20, end_s=begin + 60),
            ],
        )


def log_of(*moments: str, user: str = "alice", port: int = 53412) -> bytes:
    """A line of a produce request for each time, all of one connection."""
    connection = f"10.0.0.5:9092-10.0.0.9:{port}-2-0"
    lines = [
        line(at=at, principal=f"User:{user}", correlation_id=number, connection=connection, request=produce_request(1000))
        for number, at in enumerate(moments)
    ]
    return "".join(f"{text}\n" for text in lines).encode()


@contextmanager
def compact_process(work: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """``compact`` in a process group of its own, which is gone afterwards."""
    command = [*COMMAND, "compact", *arguments, "--master", "local[2]"]
    process = subprocess.Popen(
        command, cwd=work, env=environment(env), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """As ``kill -9`` of the command and of its Java."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_when(process: subprocess.Popen[bytes], happened: Callable[[], bool]) -> None:
    """Kill it the moment that something is to be seen."""
    wait_until(lambda: happened() or process.poll() is not None, within_s=300)
    assert process.poll() is None, "it ended before"
    kill(process)
