"""How good each source of traffic is: ``python -m benchmarks.traffic_sources`` (needs Java 17, Debian's prometheus, pyspark).

The same clients on a real broker, seen by its request log, by per-second totals, and by the gauges that a real Prometheus
scrapes; then gauges of days of traffic, simulated from requests. Writes the figures, and the page from them.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import machine
from benchmarks.traffic_sources.figures import (
    FILE,
    Figures,
    of_errors,
    of_margins,
    of_models,
    of_signals,
    of_verdicts,
    read_figures,
    real_facts,
    write_figures,
)
from benchmarks.traffic_sources.judged import Judged, judge
from benchmarks.traffic_sources.real_run import RealRun, read_run, record_run
from benchmarks.traffic_sources.simulated import Place, Ratios, ratios, read_ratios, write_ratios
from benchmarks.traffic_sources.tables import write_page
from benchmarks.traffic_sources.traces import Trace, recorded, synthetic

PAGE = Path(__file__).parents[2] / "docs" / "traffic-sources.md"


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    if not args.page:
        with tempfile.TemporaryDirectory(prefix="kafka-quotas-traffic-sources-") as name:
            write_figures(_figures(args, Path(args.keep or name)))
    figures = read_figures()
    write_page(PAGE, figures)
    wrong = sum(one.wrong for one in figures.verdicts)
    false_proofs = sum(one.false_proven or 0 for one in figures.margins)
    print(f"{FILE} and {PAGE}: {wrong} wrong verdicts, {false_proofs} false proofs")
    return 1 if wrong or false_proofs else 0


def _figures(args: argparse.Namespace, folder: Path) -> Figures:
    """Runs and simulations that ``folder`` has already are taken from there."""
    folder.mkdir(parents=True, exist_ok=True)
    about = f"{datetime.datetime.now(datetime.UTC).date().isoformat()}, {machine()}"
    runs = [_run(seed, args.seconds, folder / f"run-{seed}") for seed in range(1, args.runs + 1)]
    simulated = _simulated(args, folder)
    judged = min(args.judge or args.runs, args.runs)
    rows = _judge(runs[:judged], folder / "judged")
    return Figures(
        about=about,
        command=f"python -m benchmarks.traffic_sources --runs {args.runs} --judge {judged} --seconds {args.seconds} "
        f"--clients {args.clients} --phases {args.phases}",
        real=real_facts(runs, judged),
        verdicts=tuple(of_verdicts(rows)),
        errors=tuple(of_errors(rows)),
        models=of_models(runs),
        margins=of_margins(simulated, runs),
        signals=of_signals(runs),
    )


def _run(seed: int, seconds: int, folder: Path) -> RealRun:
    if not (folder / "run.json.gz").exists():
        print(f"... real run {seed}, {seconds} s", file=sys.stderr, flush=True)
        record_run(seed, seconds, folder)
    return read_run(folder)


def _simulated(args: argparse.Namespace, folder: Path) -> dict[Place, Ratios]:
    file = folder / "simulated.json.gz"
    if not file.exists():
        print("... simulated gauges", file=sys.stderr, flush=True)
        write_ratios(ratios(_traces(args.clients, folder), phases=args.phases), file)
    return read_ratios(file)


def _traces(clients: int, folder: Path) -> Iterator[Trace]:
    yield from synthetic(clients)
    yield from recorded(folder)


def _judge(runs: Sequence[RealRun], folder: Path) -> list[Judged]:
    from reconciler.traffic.session import SessionOptions, spark_session

    print("... verdicts", file=sys.stderr, flush=True)
    with spark_session(SessionOptions(master="local[2]", memory="2g")) as spark:
        return list(judge(spark, runs, folder))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traffic_sources", description=__doc__)
    parser.add_argument("--runs", type=int, default=4, help="real runs, each with clients of its own (default: %(default)s)")
    parser.add_argument("--judge", type=int, help="backtest only the first so many of them (default: all)")
    parser.add_argument("--seconds", type=int, default=780, help="length of each real run (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=40, help="synthetic clients of each shape (default: %(default)s)")
    parser.add_argument("--phases", type=int, default=10, help="phases of scraping of each client (default: %(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", help="keep runs and simulations there, or take them from there")
    parser.add_argument("--page", action="store_true", help="only write the page, from the figures that are there")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # The brokers are gone by now.
        sys.exit(130)
