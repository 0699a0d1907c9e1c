"""``kafka-quotas record`` as a process, with its log, and an exporter whose page a test can change."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.command import COMMAND, environment, start_on
from tests.support.polling import wait_until
from tests.support.service_process import Running
from tests.support.warm_process import Started

_SOFT_LIMIT = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A limit of the process's own that its parent can lift: a disk that is full, and later is not."""


class ChangingPage:
    """Answers for ``served``; it counts requests, and how many were under way at once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.status = 200
        self.requests = 0
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self.wait: Callable[[], object] = lambda: None

    def __call__(self, _path: str, _headers: dict[str, str], _body: bytes) -> tuple[int, str, bytes]:
        with self._lock:
            self.requests += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        self.wait()
        with self._lock:
            self._now -= 1
        return self.status, "text/plain; version=0.0.4", self.text.encode()


class RunningRecorder(Running):
    """A recorder that runs; its log is JSON lines in a file."""

    def __init__(self, process: subprocess.Popen[bytes] | Started, log: Path, folder: Path) -> None:
        super().__init__(process, log)
        self.folder = folder

    def end(self, number: signal.Signals) -> int:
        code = super().end(number)
        wait_until(lambda: self.events("stopped"))
        assert "Traceback" not in self.log.read_text()
        return code

    @property
    def rows(self) -> list[dict[str, Any]]:
        return recorded_rows(self.folder)


def recorded_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of all files that a backtest would read."""
    files = sorted(folder.glob("*.parquet"))
    return sorted((row for file in files for row in _rows_of(file)), key=lambda row: row["ts"])


@functools.cache
def _rows_of(file: Path) -> list[dict[str, Any]]:
    """A recorder never changes a file."""
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


@contextmanager
def recorder(tmp_path: Path, *options: str, room: int | None = None) -> Iterator[RunningRecorder]:
    """Started with a scrape a second, and a file a second; ``room``: no file may be larger at first."""
    folder, log = tmp_path / "history", tmp_path / "record.log"
    arguments = ("record", "--folder", str(folder), "--interval", "1", "--file-seconds", "1", "--log-format", "json", *options)
    # Through a pipe, since the limit of files is not for the log.
    reading, writing = os.pipe()
    copier = threading.Thread(target=_copy, args=(reading, log))
    process: subprocess.Popen[bytes] | Started
    with Path(os.devnull).open("r+b") as null, os.fdopen(writing, "wb") as stderr:
        if room is None:
            process = start_on((null.fileno(), null.fileno(), writing), *arguments, cwd=tmp_path)
        else:
            limited = [sys.executable, "-c", _SOFT_LIMIT, str(room), *COMMAND, *arguments]
            process = subprocess.Popen(limited, env=environment(), stdin=null, stderr=stderr, stdout=null)
    copier.start()
    running = RunningRecorder(process, log, folder)
    try:
        running.until(lambda: running.events("started"))
        yield running
    finally:
        process.kill()
        process.wait()
        copier.join()


def _copy(reading: int, log: Path) -> None:
    with os.fdopen(reading, "rb") as lines, log.open("wb", buffering=0) as file:
        for line in lines:
            file.write(line)
