"""``backtest`` on synthetic traffic beside Spark's own scan, DuckDB and Polars: ``python -m benchmarks.backtest``.

Every engine runs on two threads in a process of its own, and its time counts from the moment it may begin (Spark has started) to
its whole answer. DuckDB and Polars judge by the same seconds, and the answers are compared row by row.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.backtest import log_text, traffic, watch
from benchmarks.backtest.engines import ENGINES, LOGS, REMADE, SAME, THREADS
from benchmarks.backtest.goals import Result, broken
from benchmarks.backtest.traffic import Scene
from benchmarks.measure import machine

GATE_ROWS = 10_000_000
SKEW = (0.0, 0.9)
_SCAN = "spark scan"


def main() -> None:
    args = _arguments()
    print(f"{machine()}; " + ", ".join(f"{name} {version(name)}" for name in ("pyspark", "duckdb", "polars", "pyarrow", "numpy")))
    failed = []
    totals: dict[int, dict[str, Result]] = {}
    with _folder(args.folder) as root:
        for rows in args.rows:
            with _scene(root, Scene(rows=rows, hot=args.hot)) as folder:
                totals[rows] = _engines(folder, rows, args.only, args)
                failed += _different(totals[rows])
                if args.gate:
                    failed += list(broken(totals[rows]))
        _growth(totals)
        if args.skew:
            _skew(root, args)
        if args.log:
            _logs(root, args)
    for sentence in failed:
        print(sentence, file=sys.stderr)
    sys.exit(1 if failed else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[GATE_ROWS], help="sizes; 100000000 300000000 for the large runs")
    parser.add_argument("--rounds", type=int, default=1, help="of each engine; medians are shown")
    parser.add_argument(
        "--only", nargs="*", choices=tuple(ENGINES), default=tuple(ENGINES), metavar="ENGINE", help=", ".join(ENGINES)
    )
    parser.add_argument("--hot", type=float, default=0.3, help="share of one client on top of its rank's")
    parser.add_argument("--skew", type=int, default=0, metavar="ROWS", help="so many rows without and with one client of 90 %%")
    parser.add_argument("--log", type=int, default=0, metavar="MB", help="request log text of this size, too")
    parser.add_argument("--gate", action="store_true", help="end with 1 when a ratio is above its limit (for ten million rows)")
    parser.add_argument("--timeout", type=float, default=1800.0, metavar="S", help="of one engine; it is left out then")
    parser.add_argument("--folder", type=Path, help="where the traffic is written, and removed again; 15 bytes a row")
    return parser.parse_args()


@contextlib.contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-benchmark-", dir=parent) as name:
        yield Path(name)


@contextlib.contextmanager
def _scene(root: Path, scene: Scene) -> Iterator[Path]:
    """A folder with traffic, gone afterwards: the next size needs the room."""
    with tempfile.TemporaryDirectory(dir=root) as name:
        folder = Path(name)
        _say(f"writing {scene.rows:,} rows")
        traffic.write(folder / "rows", scene)
        megabytes = traffic.size(folder / "rows") / 1e6
        print(f"\n{scene.rows:,} rows, {scene.hot:.0%} of them more of one client; {megabytes:.0f} MB of Parquet", flush=True)
        yield folder


def _engines(folder: Path, rows: int, names: Sequence[str], args: argparse.Namespace) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for name in names:
        found = _rounds(name, folder, args)
        if found is not None:
            results[name] = found
            _row(name, found, rows, results)
    return results


def _rounds(name: str, folder: Path, args: argparse.Namespace) -> Result | None:
    runs = []
    for number in range(args.rounds):
        _say(f"{name}, round {number + 1} of {args.rounds}")
        if name in REMADE:
            shutil.rmtree(folder / REMADE[name], ignore_errors=True)
        found = _run(name, folder, args.timeout)
        if found is None:
            return None
        runs.append(found)
    return _median(runs)


def _run(name: str, folder: Path, timeout_s: float) -> Result | None:
    command = [sys.executable, "-m", "benchmarks.backtest.engines", name, str(folder)]
    done = watch.run(command, timeout_s=timeout_s)
    if done.code:
        _say(f"{name} ended with {done.code}: {done.stderr[-2000:]}")
        return None
    return Result(peak=done.peak, **json.loads(done.stdout.splitlines()[-1]))


def _median(runs: Sequence[Result]) -> Result:
    middle = [statistics.median(values) for values in ((r.seconds for r in runs), (r.cpu for r in runs))]
    return Result(seconds=middle[0], cpu=middle[1], peak=max(r.peak for r in runs), answer=runs[-1].answer)


def _row(name: str, result: Result, rows: int, results: dict[str, Result]) -> None:
    scan = results.get(_SCAN)
    others = [results[other].seconds for other in ("duckdb", "polars") if other in results]
    speed = f"{rows / result.seconds / THREADS / 1e6:6.2f} M rows/s/core"
    ratios = f"{result.seconds / scan.seconds:6.2f} x ({result.cpu / scan.cpu:5.2f} x cpu) scan" if scan else ""
    beside = f"{result.seconds / min(others):6.2f} x best other" if others else ""
    _show(name, result, f"{speed} {ratios} {beside}")


def _show(name: str, result: Result, more: str) -> None:
    figures = f"{result.seconds:7.1f} s {result.cpu:7.1f} s cpu {result.peak:6.0f} MB"
    print(f"{name:12} {figures} {more}  {json.dumps(result.answer)}", flush=True)


def _different(results: dict[str, Result]) -> list[str]:
    answers = {name: results[name].answer for name in SAME if name in results}
    if len({json.dumps(answer, sort_keys=True) for answer in answers.values()}) > 1:
        return [f"the answers differ: {answers}"]
    return []


def _growth(totals: dict[int, dict[str, Result]]) -> None:
    if len(totals) < 2:
        return
    (few, first), (many, last) = min(totals.items()), max(totals.items())
    print(f"\n{many / few:g} times the rows:")
    for name in [name for name in first if name in last]:
        one, other = first[name], last[name]
        print(f"{name:12} {other.seconds / one.seconds:6.2f} x the time, {other.peak / one.peak:5.2f} x the memory")


def _skew(root: Path, args: argparse.Namespace) -> None:
    names = [name for name in ("seconds", "exact") if name in args.only]
    found = []
    for hot in SKEW:
        with _scene(root, Scene(rows=args.skew, hot=hot)) as folder:
            found.append(_engines(folder, args.skew, names, args))
    for name in names:
        if all(name in results for results in found):
            print(f"{name}: one client with 90 % takes {found[1][name].seconds / found[0][name].seconds:.2f} x the time without")


def _logs(root: Path, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=root) as name:
        folder = Path(name)
        _say(f"writing {args.log} MB of log")
        log_text.write(folder / "log", megabytes=args.log)
        megabytes = traffic.size(folder / "log") / 1e6
        print(f"\n{megabytes:.0f} MB of request log")
        found = {name: _rounds(name, folder, args) for name in LOGS}
    for name, result in found.items():
        if result is not None:
            _show(name, result, f"{megabytes / result.seconds / THREADS:6.1f} MB/s/core")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
