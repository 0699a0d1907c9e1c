"""The backtest on recordings of real systems: by seconds, at every request, and in DuckDB, and whether they agree.

``python -m benchmarks.traces``. Every user gets the limit that its own rate exceeds in 1 of 100 seconds (or ``--share``), where
it is hardest to tell. Needs the extra ``traffic`` and the Python index; nothing of the recordings is kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.measure import machine
from benchmarks.traces.elsewhere import THREADS, InDuckDb, Limits, Row
from benchmarks.traces.packages import fetched, member
from benchmarks.traces.recordings import RECORDINGS, Recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.model.backtest import BacktestReport, BucketVerdict

KEYS = {"produce": "producer_byte_rate", "fetch": "consumer_byte_rate"}
KINDS = {key: kind for kind, key in KEYS.items()}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One recording. ``wrong``: what the ways of judging disagree about; nothing may be."""

    requests: int
    seconds: BacktestReport
    exact: BacktestReport
    took: dict[str, float]
    wrong: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traces", description=__doc__)
    parser.add_argument("--only", choices=RECORDINGS, action="append", help="one of the recordings; repeatable")
    parser.add_argument("--share", type=float, default=0.99, help="limits are this quantile of each user's rate (default: 0.99)")
    parser.add_argument("--folder", type=Path, help="keep the downloaded packages here, or find them here")
    parser.add_argument("--memory", default="4g", help="of Spark (default: %(default)s)")
    args = parser.parse_args()
    wrong: list[str] = []
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="traces-")))
        packages = args.folder or work
        packages.mkdir(parents=True, exist_ok=True)
        chosen = {name: RECORDINGS[name] for name in args.only or RECORDINGS}
        files = {name: _traffic(one, packages, work / name) for name, one in chosen.items()}

        from reconciler.traffic.session import SessionOptions, spark_session

        spark = stack.enter_context(spark_session(SessionOptions(master=f"local[{THREADS}]", memory=args.memory)))
        print(f"{machine()}; limits at {args.share:.0%} of each user's seconds")
        for name, file in files.items():
            outcome = _judged(spark, file, args.share)
            _print(chosen[name].what, outcome)
            wrong += [f"{chosen[name].what}: {sentence}" for sentence in outcome.wrong]
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    sys.exit(1 if wrong else 0)


def _traffic(one: Recording, packages: Path, folder: Path) -> Path:
    folder.mkdir()
    raw = member(fetched(one.package, one.version, packages), one.ending, folder / Path(one.ending).name)
    file = folder / "rows.parquet"
    one.make(raw, file)
    raw.unlink()
    return file


def _judged(spark: SparkSession, file: Path, share: float) -> Outcome:
    took: dict[str, float] = {}
    there = _timed(took, "bounds in DuckDB", lambda: InDuckDb(file))
    limits = there.quantiles(share)
    rows = _timed(took, "verdicts in DuckDB", lambda: there.verdict(limits))
    there.close()
    seconds = _timed(took, "by seconds", lambda: _report(spark, file, limits, exact=False))
    exact = _timed(took, "exact", lambda: _report(spark, file, limits, exact=True))
    wrong = [*_unlike(seconds, rows), *_contradictions(seconds.verdicts, exact.verdicts)]
    return Outcome(requests=seconds.provenance.requests, seconds=seconds, exact=exact, took=took, wrong=wrong)


def _report(spark: SparkSession, file: Path, limits: Limits, *, exact: bool) -> BacktestReport:
    from reconciler.model.entity import Entity
    from reconciler.traffic.backtest import Backtest, BacktestRequest
    from reconciler.traffic.opened_traffic import open_traffic
    from reconciler.traffic.traffic_files import find_traffic

    quotas: dict[Entity, dict[str, float]] = {}
    for (user, kind), limit in limits.items():
        quotas.setdefault(Entity.of({"user": user}), {})[KEYS[kind]] = limit
    recorded = open_traffic(find_traffic([str(file)]), lambda: spark, log_timezone="UTC")
    try:
        return Backtest(recorded, BacktestRequest(current=None, proposed=quotas, declared=quotas, exact=exact)).report()
    finally:
        recorded.close()


def _unlike(report: BacktestReport, rows: Sequence[Row]) -> list[str]:
    """``seconds_over`` is never below what is certain."""
    ours = sorted(
        (v.broker, KINDS[v.key], v.user, v.active_seconds, v.seconds_certain, v.seconds_over, v.seconds_possible, v.peak)
        for v in report.verdicts
        if v.limit_after is not None
    )
    theirs = sorted(
        (*row[:4], certain, max(certain, row[5]), *row[6:8])
        for row in rows
        for certain in (_provable(row[1], row[4], cut=row[8]),)
    )
    differ = len(set(ours) ^ set(theirs))
    return [f"{differ} rows differ between DuckDB ({len(theirs)}) and the kernel ({len(ours)})"] if differ else []


def _contradictions(seconds: Sequence[BucketVerdict], exact: Sequence[BucketVerdict]) -> list[str]:
    found, other = [], {(v.broker, v.key, v.user): v for v in exact}
    for one in seconds:
        there = other[one.broker, one.key, one.user]
        place = f"{one.key} of {one.user} on broker {one.broker}"
        if there.seconds_over > one.seconds_possible:
            found.append(f"{place}: {there.seconds_over} seconds are over, only {one.seconds_possible} possibly")
        if there.seconds_over < one.seconds_certain:
            found.append(f"{place}: {one.seconds_certain} seconds are certainly over, {there.seconds_over} are")
    return found


def _provable(kind: str, certain: int, *, cut: bool) -> int:
    """A throttled fetch leaves nothing behind: after the first, seconds may be clear that would be over; so may cut ones."""
    if kind != "fetch":
        return certain
    return 0 if cut else min(1, certain)


def _timed(took: dict[str, float], what: str, work: Callable[[], _T]) -> _T:
    start = time.perf_counter()
    found = work()
    took[what] = time.perf_counter() - start
    return found


def _print(what: str, outcome: Outcome) -> None:
    verdicts, exact = outcome.seconds.verdicts, outcome.exact.verdicts
    counted = ("active_seconds", "seconds_certain", "seconds_over", "seconds_possible")
    active, certain, over, possible = (sum(getattr(v, name) for v in verdicts) for name in counted)
    true = sum(v.seconds_over for v in exact)
    kinds = {name: sum(v.verdict.value == name for v in verdicts) for name in ("throttled", "possible", "clear")}
    hit = sum(bool(v.throttled) for v in exact)
    print(f"\n{what}: {outcome.requests:,} requests, {len(verdicts):,} buckets, {active:,} active seconds")
    told = " / ".join(f"{count:,}" for count in kinds.values())
    print(f"  buckets {' / '.join(kinds)}: {told}; throttled: {hit:,}")
    print(f"  seconds certain / estimated / possible: {certain:,} / {over:,} / {possible:,}; exactly: {true:,}")
    print(f"  undecided: {(possible - certain) / active:.1%} of active seconds")
    print("  " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in outcome.took.items()))
    print(f"  {'they contradict each other' if outcome.wrong else 'all agree'}", flush=True)


if __name__ == "__main__":
    main()
