"""Running things several times and saying how long the quickest took: on a shared machine the least disturbed run."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process: wall clock and CPU time in seconds, peak memory in MB."""

    wall: float
    cpu: float
    peak: float


def cpu_seconds(work: Callable[[], object], *, times: int = 3) -> float:
    """CPU time of the quickest of several runs in this process; other load on the machine is not counted."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def once(*command: str, cwd: Path | None = None) -> Run:
    """One whole process, start-up included; the benchmark ends with what it said when it fails."""
    # An installation has its modules compiled.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    child = subprocess.Popen(command, cwd=cwd, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read()
    child.stderr.close()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)[:500]} ended with {child.returncode}: {said.decode(errors='replace')[-2000:]}")
    return Run(wall=wall, cpu=usage.ru_utime + usage.ru_stime, peak=usage.ru_maxrss / 1024)


def process(*command: str, cwd: Path | None = None, times: int = 3) -> Run:
    """The quickest of several whole processes, in wall clock and in CPU time, and the largest peak memory."""
    runs = [once(*command, cwd=cwd) for _ in range(times)]
    return Run(wall=min(r.wall for r in runs), cpu=min(r.cpu for r in runs), peak=max(r.peak for r in runs))


def median(runs: Sequence[Run]) -> Run:
    """The middle of several runs, each figure for itself; the largest peak memory."""
    wall, cpu = statistics.median(r.wall for r in runs), statistics.median(r.cpu for r in runs)
    return Run(wall=wall, cpu=cpu, peak=max(r.peak for r in runs))


def machine() -> str:
    """What the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}, load {load:.1f} at the start"


def row(what: str, measured: float, base: float | None = None, note: str = "") -> None:
    """One line of the result; with ``base`` the ratio to it."""
    ratio = f"{measured / base:6.2f} x" if base else " " * 8
    print(f"{what:<58} {measured:8.3f} s {ratio}  {note}", flush=True)
