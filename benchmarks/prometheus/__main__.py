"""A verdict from the samples of a real Prometheus: ``python -m benchmarks.prometheus``.

Two whole processes on one server: the first reads the server and judges, the second judges what the first one stored.
Before them, the parts of the first one, one after the other: the server's own time, transfer, decoding and writing.
Needs the Debian package prometheus.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.measure import machine, once, row
from benchmarks.prometheus.tsdb import START_S, Sampled, fill, require_programs
from reconciler.features.prometheus import AnswerReader, PageWriter, PrometheusApi, selector_of
from reconciler.features.sandbox.configuration import free_ports
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until

_GOAL_SAMPLES: Final = 6 * 2000 * 86_400 // 15
_PIECE_S: Final = 900
_GOAL_S: Final = 60
_GOAL_MB: Final = 1024


def main() -> None:
    """Print ratios and absolute figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prometheus", description=__doc__)
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--series", type=int, default=2000, help="of one broker")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--step", type=int, default=15, help="seconds between two scrapes")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "kafka-quotas-prometheus")
    args = parser.parse_args()
    require_programs()
    size = Sampled(brokers=args.brokers, series=args.series, hours=args.hours, step_s=args.step)
    print(machine())
    print(f"{size.brokers} brokers x {size.series:,} series, {size.hours} h every {size.step_s} s: {size.samples:,} samples")
    data = fill(args.data, size)
    with tempfile.TemporaryDirectory() as name, _served(data, Path(name)) as port:
        folder = Path(name)
        parts = _parts(port, size, folder / "parts")
        for name_of_part, cpu in parts.items():
            row(f"{name_of_part}, CPU", cpu)
        command = _command(folder, port, size)
        first = once(*command)
        again = once(*command)
    row("read and judge", first.wall, None, f"{first.cpu:.0f} s CPU, peak {first.peak:.0f} MB")
    row("judge what is stored", again.wall, None, f"{again.cpu:.0f} s CPU, peak {again.peak:.0f} MB")
    if size.samples >= _GOAL_SAMPLES:
        within = first.wall <= _GOAL_S and first.peak <= _GOAL_MB
        print(f"goal: {_GOAL_S} s and {_GOAL_MB} MB for a day of 6 x 2,000 series: {'met' if within else 'missed'}")


def _command(folder: Path, port: int, size: Sampled) -> tuple[str, ...]:
    manifests = folder / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    everyone = {"user": {"default": True}, "client-id": {"default": True}}
    (manifests / "quotas.yaml").write_text(quotas((everyone, {"producer_byte_rate": 1_500_000})))
    times = (datetime.fromtimestamp(at, UTC).isoformat() for at in (START_S, START_S + size.hours * 3600))
    since, until = times
    program, server = str(Path(sys.executable).parent / "kafka-quotas"), f"prometheus+http://127.0.0.1:{port}"
    return (
        program, "backtest", str(manifests), "--traffic", server, "--since", since, "--until", until,
        "--traffic-store", str(folder / "store"), "--format", "json", "--quiet",
    )  # fmt: skip


def _parts(port: int, size: Sampled, folder: Path) -> dict[str, float]:
    """Seconds of processor time, of this process but for the first one."""
    api, answers = PrometheusApi(f"http://127.0.0.1:{port}"), AnswerReader()
    server = _server_cpu(port)
    parts = dict.fromkeys(("transfer", "decode and write pages"), 0.0)
    for hour in range(size.hours):
        begin_s = START_S + hour * 3600
        moments = [time.process_time()]
        pieces = range(begin_s, begin_s + 3600, _PIECE_S)
        bodies = [(at, api.range_samples(selector_of(), end_s=at + _PIECE_S, length_s=_PIECE_S)) for at in pieces]
        moments.append(time.process_time())
        with PageWriter(folder / f"{hour}.parquet", answers) as page:
            for at, body in bodies:
                page.add(body, after_s=at)
            page.finish(complete=True)
        moments.append(time.process_time())
        for name, begin, end in zip(parts, moments, moments[1:], strict=False):
            parts[name] += end - begin
    return {"the server": _server_cpu(port) - server, **parts}


def _server_cpu(port: int) -> float:
    """As the server counts it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("process_cpu_seconds_total "))


@contextmanager
def _served(data: Path, folder: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    (folder / "prometheus.yml").write_text("global: {}\n")
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_until(lambda: process.poll() is not None or _is_ready(port), within_s=60)
        if process.poll() is not None:
            sys.exit((folder / "prometheus.log").read_text())
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    main()
