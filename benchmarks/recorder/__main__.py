"""What the recorder costs a broker, and how exact its seconds are beside the request log and beside polled rates."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support import raw_quotas
from tests.support.broker_classes import plugin_jar, with_recorder
from tests.support.recorded_seconds import Client, Seconds, logged_requests, recorded_seconds, sums_of

HERE = Path(__file__).parent
EVERYBODY = frozenset({("user", None), ("client-id", None)})
VISIBLE = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e9}
FAST = ("-XX:TieredStopAtLevel=4", "-XX:+UseG1GC", "-XX:-UseSerialGC")
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Three parts, printed as they are ready."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=float, default=10_000, help="a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that do not count, before Java has compiled")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--only-cost", action="store_true", help="leave out what a charge costs, and exactness")
    args = parser.parse_args()
    runtime = runtime_for(DEFAULT_KAFKA_VERSION)
    jar = plugin_jar("recorder")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as work:
        classes = Path(work)
        path = ":".join(map(str, (classes, jar, *runtime.jars)))
        subprocess.run(["javac", "-d", str(classes), "-cp", path, *map(str, HERE.glob("*.java"))], check=True)
        java = [str(runtime.java), "-cp", path, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        if not args.only_cost:
            done = subprocess.run([*java, "kafkaquotas.recorder.RecordCost"], check=True, capture_output=True, text=True)
            print("a charge:", done.stdout.strip())
            exactness(classes, java)
        cost(args)


def cost(args: argparse.Namespace) -> None:
    """The same load on a broker with the recorder and on one without, in turn."""
    with tempfile.TemporaryDirectory() as folder, broker(recorded=Path(folder)) as recording, broker() as bare:
        figures: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
        for number in range(-args.warm_up, args.rounds):
            order = [("with", recording), ("without", bare)]
            for name, sandbox in order if number % 2 else reversed(order):
                measured = load(sandbox, args, Path(folder))
                print("warm-up" if number < 0 else name, json.dumps(measured), flush=True)
                if number >= 0:
                    figures[name].append(measured)
        for key in ("requests_a_second", "p50_ms", "p99_ms", "broker_us_a_request"):
            ours, theirs = ([one[key] for one in figures[name]] for name in ("with", "without"))
            spread = f"{min(theirs):.2f} to {max(theirs):.2f}"
            print(f"{key}: {statistics.median(ours):.2f} with, {statistics.median(theirs):.2f} without ({spread})")
        for key in ("p50_ms", "p99_ms"):
            print(compared(key, *([run[key] for run in figures[name]] for name in ("with", "without"))))
        share = [one["recorder_cpu_s"] / one["broker_cpu_s"] for one in figures["with"]]
        print(f"recorder's threads: {statistics.median(share):.3%} of the broker's processor time (at most {max(share):.3%})")


def compared(key: str, ours: list[float], theirs: list[float]) -> str:
    """How often a run with the recorder is slower than one without, and how likely so much is by chance (Mann-Whitney)."""
    slower = sum((our > their) + (our == their) / 2 for our in ours for their in theirs)
    pairs = len(ours) * len(theirs)
    deviation = math.sqrt(pairs * (len(ours) + len(theirs) + 1) / 12)
    chance = math.erfc(abs(slower - pairs / 2) / deviation / math.sqrt(2))
    quartiles = ("/".join(f"{value:.2f}" for value in statistics.quantiles(values, n=4)) for values in (ours, theirs))
    words = f"a run with it is slower than one without in {slower / pairs:.0%} of {pairs} pairs (by chance with p = {chance:.2f})"
    return f"{key}: quartiles {' with, '.join(quartiles)} without; {words}"


def load(sandbox: Sandbox, args: argparse.Namespace, recorded: Path) -> dict[str, float]:
    """One run of the load, with what the broker and the recorder used meanwhile."""
    before, bytes_before = cpu(sandbox), bytes_in(recorded)
    command = [sys.executable, "-m", "benchmarks.recorder.pipelined", sandbox.bootstrap_servers, "load"]
    command += map(str, (args.clients, args.requests, args.seconds))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    after, found = cpu(sandbox), json.loads(done.stdout.splitlines()[-1])
    found["requests_a_second"] = found["requests"] / found["seconds"]
    found["broker_cpu_s"], found["recorder_cpu_s"] = (end - begin for begin, end in zip(before, after, strict=True))
    found["broker_us_a_request"] = found["broker_cpu_s"] / found["requests"] * 1e6
    found["bytes_an_hour"] = (bytes_in(recorded) - bytes_before) / found["seconds"] * 3600
    return {name: round(value, 4) for name, value in found.items()}


def cpu(sandbox: Sandbox) -> tuple[float, float]:
    """Processor seconds of the whole broker, and of the recorder's threads."""
    tasks = Path(f"/proc/{sandbox.nodes[0].process.pid}/task")
    own = [task for task in tasks.iterdir() if (task / "comm").read_text().startswith("quota-rec")]
    return seconds_of(tasks.parent / "stat"), sum(nanoseconds_of(task) for task in own)


def seconds_of(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def nanoseconds_of(task: Path) -> float:
    return int((task / "schedstat").read_text().split()[0]) / 1e9


def bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@contextlib.contextmanager
def broker(*, recorded: Path | None = None, classes: Path | None = None, polled: Path | None = None) -> Iterator[Sandbox]:
    """With all clients visible, as a production broker compiles."""
    properties = {"quota.recorder.flush.seconds": "10"} if recorded else {}
    options: tuple[str, ...] = FAST
    if classes is not None and polled is not None:
        runtime = runtime_for(DEFAULT_KAFKA_VERSION)
        options = (*FAST, "-cp", ":".join(map(str, (*runtime.jars, plugin_jar("recorder"), classes))))
        properties = {
            "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter,kafkaquotas.recorder.QuotaRecorder,"
            "kafkaquotas.benchmark.PolledRates",
            "benchmark.polled.file": str(polled),
            "quota.recorder.flush.seconds": "1",
        }
    spec = SandboxSpec(request_log=polled is not None, heap_mb=1024, properties=properties, java_options=options)
    with running(with_recorder(spec, recorded) if recorded else spec) as sandbox:
        create_topic(sandbox.bootstrap_servers, "load")
        raw_quotas.alter(sandbox.bootstrap_servers, {EVERYBODY: VISIBLE})
        raw_quotas.settled(sandbox.bootstrap_servers, brokers=(1,))
        yield sandbox


def exactness(classes: Path, java: list[str]) -> None:
    """Sums of seconds of the same requests: the log's, the recorder's, and those from rates that are polled once a second."""
    polled_file, folder = classes / "polled.tsv", classes / "recorded"
    with broker(recorded=folder, classes=classes, polled=polled_file) as sandbox:
        command = [*java, "Load", sandbox.bootstrap_servers, "load", "4", "400", "30"]
        subprocess.run(command, check=True, capture_output=True)
        threading.Event().wait(6)
        node = sandbox.nodes[0]
        assert node.request_log_file is not None
        logged = logged_requests(node.request_log_file)
        recorded, polled = recorded_seconds(folder), polled_seconds(polled_file)
    clients = [client for client in logged if (client[2] or "").startswith("load-")]
    for name, found in (("recorder", recorded), ("polled rates", polled)):
        cells = differing = deviation = total = 0
        sums = 0
        for client in clients:
            log, ours = sums_of(logged[client]), found.get(client, {})
            sums += abs(sum(ours.values()) - sum(log.values()))
            for second in {*log, *ours}:
                cells += 1
                differing += log.get(second, 0) != ours.get(second, 0)
                deviation += abs(log.get(second, 0) - ours.get(second, 0))
                total += log.get(second, 0)
        print(
            f"{name} against the log: {len(clients)} clients, {cells} seconds, {total:,} bytes; totals differ by {sums:,} bytes, "
            f"{differing / cells:.1%} of the seconds differ, by {deviation / total:.2%} of the bytes"
        )


def polled_seconds(file: Path) -> dict[Client, Seconds]:
    """The best that differences give: what a window gained, and again what left it, which is its gain of 11 seconds before."""
    held: dict[Client, dict[int, float]] = defaultdict(dict)
    for line in file.read_text(encoding="utf-8").splitlines():
        now, group, user, client, value = line.split("\t")
        held[group.lower(), user or None, client or None][int(now) // 1000] = float(value)
    found: dict[Client, Seconds] = {}
    for name, values in held.items():
        gains: dict[int, float] = {}
        for second in sorted(values):
            gain = values[second] - values.get(second - 1, 0.0)
            gains[second - 1] = gain + gains.get(second - 12, 0.0)
        found[name] = {second: round(gain) for second, gain in gains.items() if round(gain)}
    return found


if __name__ == "__main__":
    main()
