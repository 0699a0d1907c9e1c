"""How well the backtest foretells what real brokers do: ``python -m benchmarks.fidelity`` (needs Java 17 and pyspark).

Scripted clients run twice on a real cluster, without quotas and under them. What the backtest predicts from the first recording
is compared with what the brokers did in the second, request by request. Ends with 1 when a demand is missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fidelity.musts import musts
from benchmarks.fidelity.open_files import allow_many_files
from benchmarks.fidelity.open_loop import OpenLoopRun, open_loop
from benchmarks.fidelity.page import write_figures
from benchmarks.fidelity.scenarios import GROUPS, MIXED, REQUEST_TIME, Scenario
from benchmarks.fidelity.tables import as_json, as_text, tables
from benchmarks.measure import machine
from reconciler.features.sandbox.jars import KRAFT_VERSIONS

_SCENARIOS = {one.name: one for one in (MIXED, GROUPS, REQUEST_TIME)}
_VERSIONS = KRAFT_VERSIONS
_LONGEST_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One cluster and what runs on it."""

    kafka_version: str
    brokers: int
    seconds: float
    scenario: Scenario

    def __str__(self) -> str:
        return f"{self.scenario.name} on Kafka {self.kafka_version}, {self.brokers} broker(s), {self.seconds:g} s a run"


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    allow_many_files()
    about, date = machine(), datetime.datetime.now(datetime.UTC).date().isoformat()
    print(f"{date}, {about}", flush=True)
    runs: list[OpenLoopRun] = []
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-fidelity-") as name:
        for number, step in enumerate(_steps(args)):
            print(f"... {step}", file=sys.stderr, flush=True)
            folder = Path(args.keep or name) / f"{number}"
            runs.append(open_loop(step.scenario, step.kafka_version, brokers=step.brokers, seconds=step.seconds, folder=folder))
            for table in tables(runs[-1:]):
                print(as_text(table), flush=True)
    everything = list(tables(runs))
    if args.markdown:
        write_figures(Path(args.markdown), everything, about=f"{date}, {about}, `{_command(args)}`")
    if args.out:
        Path(args.out).write_text(json.dumps(as_json(runs, about, date), indent=1) + "\n", encoding="utf-8")
    missed = sum(not must.kept for run in runs for must in musts(run))
    print(f"{missed} demands missed" if missed else "every demand kept")
    return 1 if missed else 0


def _command(args: argparse.Namespace) -> str:
    """How to run the same again; where it wrote is nobody's business."""
    words = ["python", "-m", "benchmarks.fidelity", "--seconds", f"{args.seconds:g}"]
    words += [part for name in args.scenario or () for part in ("--scenario", name)]
    for option, value in (("--kafka-version", args.kafka_version), ("--brokers", args.brokers)):
        words += [option, str(value)] if value else []
    return " ".join(words)


def _steps(args: argparse.Namespace) -> Iterator[_Step]:
    """By default all of it: both versions alone, three brokers, groups, request time."""
    versions = [args.kafka_version] if args.kafka_version else list(_VERSIONS)
    wanted = args.scenario or [MIXED.name, GROUPS.name, REQUEST_TIME.name]
    sizes = [args.brokers] if args.brokers else [1, 3]
    if MIXED.name in wanted:
        for brokers in sizes:
            # Three brokers on one machine disturb each other: one version says what is to be said.
            for version in versions if brokers == 1 else versions[:1]:
                seconds = args.seconds if brokers == 1 else min(args.seconds, 45.0)
                yield _Step(scenario=MIXED, kafka_version=version, brokers=brokers, seconds=seconds)
    if GROUPS.name in wanted:
        yield _Step(scenario=GROUPS, kafka_version=versions[0], brokers=1, seconds=min(args.seconds, 45.0))
    if REQUEST_TIME.name in wanted:
        yield _Step(scenario=REQUEST_TIME, kafka_version=versions[0], brokers=1, seconds=min(args.seconds, 40.0))


def _seconds(text: str) -> float:
    value = float(text)
    if not 5 <= value <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"between 5 and {_LONGEST_S:g} seconds")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--kafka-version", choices=_VERSIONS, help="only this one (default: all of them)")
    parser.add_argument("--brokers", type=int, choices=(1, 3), help="only clusters of this size (default: both)")
    parser.add_argument("--scenario", action="append", choices=tuple(_SCENARIOS), help="only this; repeatable")
    parser.add_argument("--seconds", type=_seconds, default=60.0, help="length of each run (default: %(default)g)")
    parser.add_argument("--out", metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables into this page, between its marks")
    parser.add_argument("--keep", metavar="FOLDER", help="keep recordings, manifests and predictions there")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # The brokers are gone by now.
        sys.exit(130)
