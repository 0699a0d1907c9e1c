"""A model of what a backtest in shards costs, fitted on small sizes, checked on a size that it has not seen, and extrapolated.

``python -m benchmarks.backtest.cost``: processor time and shuffled bytes of the command with ``--out parquet=`` are a constant,
a part for each row, and a part for each series (a client on a broker). A size is SERIESxROWS, with the rows of each series.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.backtest import series, watch
from benchmarks.measure import machine

FITTED = ("10000x50", "10000x400", "40000x12", "40000x100")
HELD_OUT = "80000x75"
LAKE = (7e12, 1e8, 1_000)
"""100 TB at 15 bytes a row, of ten million clients on ten of the brokers each, on 1,000 executors of one core."""
_SHUFFLED = re.compile(r"shuffled_bytes[=:]\s*(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One run. ``stored``: bytes of the Parquet that it read."""

    series: int
    rows: int
    stored: int
    processor_s: float
    shuffled: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest.cost", description=__doc__)
    parser.add_argument("--fit", nargs="*", default=FITTED, metavar="SERIESxROWS")
    parser.add_argument("--held-out", default=HELD_OUT, metavar="SERIESxROWS")
    parser.add_argument("--timeout", type=float, default=1800.0)
    args = parser.parse_args()
    print(machine())
    runs = []
    for size in (*args.fit, args.held_out):
        runs.append(measured(size, args.timeout))
        print(words(runs[-1]), flush=True)
    *fitted, held_out = runs
    for line in model(fitted, held_out):
        print(line)


def measured(size: str, timeout_s: float) -> Cost:
    """One command in a process of its own, on two threads."""
    count, each = map(int, size.split("x"))
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-cost-") as name:
        folder = Path(name)
        series.write(folder / "traffic", count, each)
        (folder / "quotas.yaml").write_text(series.MANIFEST, encoding="utf-8")
        stored = sum(file.stat().st_size for file in (folder / "traffic").iterdir())
        command = [
            *(sys.executable, "-m", "reconciler", "backtest", "quotas.yaml", "--traffic", "traffic", "--master", "local[2]"),
            *("--out", "parquet=verdicts", "--format", "json", "-vv"),
        ]
        done = watch.run(["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command], timeout_s=timeout_s)
    if done.code not in (0, 1) or not done.stdout:
        sys.exit(f"{size}: ended with {done.code}: {done.stderr[-1000:]}")
    provenance = json.loads(done.stdout)["provenance"]
    return Cost(
        series=provenance["series"],
        rows=provenance["requests"],
        stored=stored,
        processor_s=done.processor_s,
        shuffled=sum(map(int, _SHUFFLED.findall(done.stderr))),
    )


def words(cost: Cost) -> str:
    """One run as a line."""
    return (
        f"{cost.series:,} series, {cost.rows:,} rows, {cost.stored / 1e6:.0f} MB stored: "
        f"processor time {cost.processor_s:.0f} s, {cost.shuffled / 1e6:.0f} MB shuffled"
    )


def model(fitted: Sequence[Cost], held_out: Cost) -> Iterator[str]:
    """The parts, the error at the size that was held out, and what the largest lake would take."""
    terms = np.array([[1.0, run.rows, run.series] for run in fitted])
    for name, unit, of in (("processor time", "s", _processor_s), ("shuffled bytes", "B", _shuffled)):
        parts, *_ = np.linalg.lstsq(terms, np.array([of(run) for run in fitted]), rcond=None)
        expected, actual = float(parts @ [1.0, held_out.rows, held_out.series]), of(held_out)
        error = abs(expected - actual) / actual if actual else 0.0
        yield (
            f"{name}: {parts[0]:.3g} {unit} + {1e6 * parts[1]:.3g} {unit} a million rows + "
            f"{1e3 * parts[2]:.3g} {unit} a thousand series. "
            f"Held out: {expected:.4g} expected, {actual:.4g} measured, error {100 * error:.0f} %"
        )
        rows, count, executors = LAKE
        whole = float(parts @ [1.0, rows, count])
        yield f"  100 TB: {whole:.3g} {unit}, {whole / executors:.3g} {unit} for each of {executors:,} executors"


def _processor_s(run: Cost) -> float:
    return run.processor_s


def _shuffled(run: Cost) -> float:
    return float(run.shuffled)


if __name__ == "__main__":
    main()
