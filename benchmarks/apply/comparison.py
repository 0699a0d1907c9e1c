"""One size on one broker: every program in turn, several times, each from the same state; medians, and ratios to a base."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from benchmarks.apply.programs import Program, config_command
from benchmarks.apply.scenes import SCENES, Wanted, bring, done, require
from benchmarks.measure import Run, median, once

Broker: TypeAlias = Callable[[], AbstractContextManager[str]]
"""Gives the server for one run: always the same, or a new one each time where removing what was written would take minutes."""


def compare(broker: Broker, wanted: Wanted, programs: Sequence[Program], *, scene: str, times: int) -> dict[str, Run]:
    """Run the programs interleaved; print a line for each, with its ratio to the last one. Removes every quota of the cluster."""
    before, after = SCENES[scene](wanted.entities), done(wanted.entities)
    runs: dict[str, list[Run]] = {program.name: [] for program in programs}
    loads = []
    for _ in range(times):
        for program in programs:
            with broker() as server:
                bring(server, before)
                loads.append(os.getloadavg()[0])
                runs[program.name].append(once(*program.command(server, wanted)))
                print(f"{program.name}: {runs[program.name][-1].wall:.2f} s, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
                require(server, after, after=program.name)
    print(f"\n{wanted.entities} entities x 2 keys, {scene}: median of {times}, load {min(loads):.1f} to {max(loads):.1f}")
    result = {name: median(several) for name, several in runs.items()}
    base = result[programs[-1].name].wall
    for name, run in result.items():
        quickest = min(one.wall for one in runs[name])
        print(
            f"  {name:<26} {run.wall:8.3f} s {run.wall / base:6.2f} x   quickest {quickest:7.3f} s, "
            f"CPU {run.cpu:6.2f} s, peak {run.peak:4.0f} MB",
            flush=True,
        )
    return result


def compare_config_command(server: str, ours: Run, *, entities: int, times: int) -> float:
    """How many of our entities fit into the time of one of ``ConfigCommand``'s; prints both."""
    bring(server, {})
    each = statistics.median(config_command(server, number).wall for number in range(times))
    ratio = each / (ours.wall / entities)
    print(f"\nConfigCommand: {each:.2f} s for one entity (median of {times}); ours: {ours.wall / entities * 1000:.3f} ms each")
    print(f"  {ratio:.0f} x", flush=True)
    return ratio
