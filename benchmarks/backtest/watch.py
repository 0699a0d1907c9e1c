"""What a process and all that it started take: memory while it runs, processor time in all."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")
_EVERY_S = 0.5
_MOST_OF_TIME = 0.05
"""The part of a core that looking may take: the kernel walks all pages of a process for its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One run: its output and how it ended; ``peak``: the most memory that the whole tree of processes had at once, MB.

    ``processor_s``: of the whole tree, as it was last seen before it ended; workers that nothing waits for included. ``python``
    and ``java``: the most of the process itself, and of the largest Java below it.
    """

    stdout: str
    stderr: str
    code: int
    peak: float
    processor_s: float
    python: float
    java: float


def run(command: Sequence[str], *, timeout_s: float) -> Watched:
    """Run a command and watch its tree. One that takes longer is ended, with a code below zero."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    done = threading.Event()
    peaks, times, python, java = [0.0], [0.0], [0.0], [0.0]

    def watch() -> None:
        pause_s = _EVERY_S
        while not done.wait(pause_s):
            begin = time.thread_time()
            memory = {pid: _memory_mb(pid) for pid in tree(process.pid)}
            peaks.append(sum(memory.values()))
            python.append(memory[process.pid])
            java.extend(megabytes for pid, megabytes in memory.items() if _name(pid) == "java")
            times.append(processor_s(process.pid))
            pause_s = max(_EVERY_S, (time.thread_time() - begin) / _MOST_OF_TIME)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        for pid in reversed(tree(process.pid)):
            _end(pid)
        stdout, stderr = process.communicate()
        stderr += f"\nended after {timeout_s:.0f} s"
    finally:
        done.set()
        watcher.join()
    return Watched(
        stdout=stdout,
        stderr=stderr,
        code=process.returncode,
        peak=max(peaks),
        processor_s=max(times),
        python=max(python),
        java=max(java),
    )


def tree(root: int) -> list[int]:
    """A process and all below it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found


def processor_s(root: int) -> float:
    """Processor time of a tree so far, ended children that were waited for included."""
    times = (fields[11:15] for fields in map(_stat, tree(root)) if fields)
    return sum(sum(map(int, four)) for four in times) / _TICK


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold anything; none when it has ended."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text().strip()
    return ""


def _memory_mb(pid: int) -> float:
    """Memory of its own, and its part of what it shares."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _end(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, 9)
