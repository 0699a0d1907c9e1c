"""The CPU time of ``record`` over a minute: pages of 10,000 series of 6 brokers, every 5 seconds, served by another process."""

from __future__ import annotations

import argparse
import gzip
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq

_PAGES = 4


def _page(series: int, seed: int) -> bytes:
    """Half of the series are rates, half throttle times; as many lines of other metrics."""
    chance = random.Random(seed)
    lines = []
    for number in range(series // 4):
        for kind in ("Produce", "Fetch"):
            labels = f'{{client_id="client-{number}",user="user-{number % 97}",}}'
            throttle = f"{chance.random() * 900:.3f}" if chance.random() < 0.01 else "NaN"
            lines.append(f"kafka_server_{kind}_byte_rate{labels} {chance.random() * 1e6}")
            lines.append(f"kafka_server_{kind}_throttle_time{labels} {throttle}")
    lines += [f'kafka_log_Log_size{{partition="{number}",topic="orders",}} {number}.0' for number in range(series)]
    return gzip.compress("\n".join([*lines, ""]).encode(), 1)


def _serve(brokers: int, series: int) -> None:
    """Print the ports, then answer until the standard input ends."""
    pages = [_page(series, seed) for seed in range(_PAGES)]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = random.choice(pages)
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Print nothing."""

    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(brokers)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*(server.server_address[1] for server in servers), flush=True)
    sys.stdin.read()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(pid: int) -> float:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def main() -> None:
    """``--brokers``, ``--series``, ``--interval``, ``--seconds``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--interval", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        _serve(asked.brokers, asked.series)
        return
    serve = [sys.executable, "-m", "benchmarks.scraper", "--serve", f"--brokers={asked.brokers}", f"--series={asked.series}"]
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as exporters,
    ):
        assert exporters.stdout is not None
        ports = exporters.stdout.readline().split()
        pages = [f"--traffic={broker}=metrics+http://127.0.0.1:{int(port)}/metrics" for broker, port in enumerate(ports, 1)]
        options = [f"--folder={name}", f"--interval={asked.interval}", "--file-seconds=30"]
        command = [sys.executable, "-m", "reconciler", "record", *options, *pages]
        with subprocess.Popen(command) as recorder:
            # The first pages are parsed in full.
            time.sleep(3 * asked.interval)
            before, begun = _cpu_s(recorder.pid), time.monotonic()
            time.sleep(asked.seconds)
            used, seconds = _cpu_s(recorder.pid) - before, time.monotonic() - begun
            peak = _peak_mb(recorder.pid)
            recorder.send_signal(signal.SIGTERM)
        exporters.communicate()
        files = sorted(Path(name).glob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        print(f"{asked.brokers} brokers x {asked.series:,} series every {asked.interval} s, load {os.getloadavg()[0]:.1f}")
        print(f"CPU {used:.2f} s in {seconds:.1f} s: {used / seconds:.1%} of a core; peak {peak:.0f} MB")
        print(f"{rows:,} rows")


if __name__ == "__main__":
    main()
