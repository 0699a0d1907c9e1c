"""Datasets of ``compact --out``: what their manifests name, traffic to write into them, and jobs to kill while they write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq

from reconciler.formats.schema_check import load_schema
from reconciler.traffic.seconds.day_columns import FOLDS, KEYS
from tests.support.command import COMMAND, environment
from tests.support.polling import wait_until
from tests.support.recorded_parquet import Flow, write_traffic
from tests.traffic.log_lines import line, produce_request

DAY_S = 86_400
_FOLDS: dict[str, Callable[[int, int], int]] = {"sum": int.__add__, "max": max, "min": min}


def manifest(out: Path) -> dict[str, Any]:
    newest = max((out / "_kafka-quotas" / "manifests").glob("*.json"))
    document: dict[str, Any] = json.loads(newest.read_text("utf-8"))
    jsonschema.Draft202012Validator(load_schema("days")).validate(document)
    return document


def has_manifest(out: Path) -> bool:
    """Whether a run has ended its first batch. A manifest has another name until it is whole."""
    return any((out / "_kafka-quotas" / "manifests").glob("*.json"))


def parts_of(out: Path) -> list[str]:
    """The folders that the manifest names."""
    return [part["folder"] for day in manifest(out)["days"] for part in day["parts"]]


def rows_of(out: Path) -> list[dict[str, Any]]:
    """The rows that the manifest names, in order. Those of one second of a client in several parts are added up."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for folder in parts_of(out):
        in_part: set[tuple[Any, ...]] = set()
        for row in (row for file in (out / folder).glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()):
            key = tuple(row[name] for name in KEYS)
            assert key not in in_part, "a part has a second of a client twice"
            in_part.add(key)
            known = rows.setdefault(key, row)
            if known is not row:
                known |= {name: _FOLDS[fold](known[name], row[name]) for name, fold in FOLDS.items()}
    return sorted(rows.values(), key=repr)


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
