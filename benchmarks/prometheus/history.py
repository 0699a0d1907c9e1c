"""A verdict from weeks of stored gauges through Spark: ``python -m benchmarks.prometheus.history``.

A month of 12,000 series every 15 s is 2,073,600,000 samples. The default is a tenth of it. The files are those that ``backtest
--traffic prometheus+...`` stores, an hour each.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.backtest import watch
from benchmarks.measure import machine
from benchmarks.prometheus.tsdb import START_S, Sampled
from tests.support.gauge_pages import gauge_clients, random_rates, write_hour
from tests.support.manifests import cluster, quotas

_HOUR_S: Final = 3600
_LIMIT: Final = 1_500_000


def main() -> None:
    """Print rows a second and core, and memory."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prometheus.history", description=__doc__)
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--series", type=int, default=2000, help="of one broker")
    parser.add_argument("--hours", type=int, default=72)
    parser.add_argument("--step", type=int, default=15, help="seconds between two scrapes")
    parser.add_argument("--above", type=float, default=1.0, help="share of series that exceed their limit at some moment")
    parser.add_argument("--master", default="local[2]", help="empty: without Spark")
    parser.add_argument("--memory", default="1g", help="of the driver")
    args = parser.parse_args()
    size = Sampled(brokers=args.brokers, series=args.series, hours=args.hours, step_s=args.step)
    print(f"{machine()}; {size.samples:,} samples, {args.above:.0%} of the series above their limits")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = _write(folder / "pages", size, args.above)
        print(f"{written / 1e9:.2f} GB of Parquet")
        command = [str(Path(sys.executable).parent / "kafka-quotas"), "backtest", _manifests(folder), "--traffic"]
        command += [str(folder / "pages"), "--format", "json", "--quiet"]
        command += ["--master", args.master, "--memory", args.memory] if args.master else []
        start = time.monotonic()
        done = watch.run(command, timeout_s=6 * _HOUR_S)
        wall, processor = time.monotonic() - start, done.processor_s
    if done.code:
        sys.exit(done.stderr)
    summary = json.loads(done.stdout)["summary"]
    print(f"{wall:.0f} s, {processor:.0f} s of processor time, peak of all processes {done.peak:,.0f} MB")
    print(f"{size.samples / processor / 1e6:.2f} M samples a second of processor time; {summary['headline']}")


def _write(folder: Path, size: Sampled, above: float) -> int:
    folder.mkdir()
    rng = np.random.default_rng(7)
    clients = gauge_clients(size.brokers, size.series)
    most = np.where(rng.random(len(clients)) < above, 4 * _LIMIT / 3, _LIMIT * 0.9)
    for hour in range(size.hours):
        rates = random_rates(rng, most, _HOUR_S // size.step_s)
        write_hour(folder / f"{hour:05}.parquet", clients, rates, start_s=START_S + hour * _HOUR_S, step_s=size.step_s)
    return sum(path.stat().st_size for path in folder.iterdir())


def _manifests(folder: Path) -> str:
    manifests = folder / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    everyone = {"user": {"default": True}, "client-id": {"default": True}}
    (manifests / "quotas.yaml").write_text(quotas((everyone, {"producer_byte_rate": _LIMIT})))
    return str(manifests)


if __name__ == "__main__":
    main()
