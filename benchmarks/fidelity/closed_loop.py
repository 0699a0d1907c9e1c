"""Ordinary producers that send as fast as they are let, with and without a quota: Kafka's own in Java, and kafka-python's.

The product's model of waiting clients is given what each sent in a moment without limits, and must say what a limit makes of it.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.apply.scenes import bring
from benchmarks.fidelity.prediction import Predicted, predict
from benchmarks.fidelity.recording import PRODUCED, cluster, cut_logs, log_sizes, write_manifests
from benchmarks.fidelity.scenarios import Quotas
from benchmarks.fidelity.shape import Shape
from reconciler.model.entity import Entity
from reconciler.sandbox.clients import produce_steadily
from reconciler.sandbox.cluster import runtime_for
from reconciler.sandbox.spec import Sandbox
from reconciler.traffic.kernels.closed_loop import Sent, play
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW

JAVA, PYTHON = "orders", "reports"
_LIMIT = 100_000.0
QUOTAS: Quotas = {Entity.of({"user": user}): {"producer_byte_rate": _LIMIT} for user in (JAVA, PYTHON)}
_RECORD = 1_000
_FREE_S = 6.0
_FREE_RECORDS = 30_000
_START_UP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """One producer under its limit, from its first request on: what it did, and what the model of a waiting client said."""

    client: str
    kafka_version: str
    seconds: float
    limit: float
    seen: Shape
    predicted: Shape

    @property
    def error(self) -> float:
        """Of the throughput."""
        return self.predicted.rate / self.seen.rate - 1 if self.seen.rate else 1.0


def closed_loop(kafka_version: str, *, seconds: float, folder: Path) -> list[ClosedLoop]:
    """Both producers at once, each in a bucket of its own."""
    with cluster(kafka_version, (JAVA, PYTHON), brokers=1) as sandbox:
        free = _recorded(sandbox, {}, folder / "free", seconds=_FREE_S, records=_FREE_RECORDS)
        under = _recorded(sandbox, QUOTAS, folder / "under", seconds=seconds, records=None)
    manifests = write_manifests(folder / "manifests", QUOTAS)
    before, after = (_of_users(predict(logs, manifests, kafka_version)) for logs in (free, under))
    return [_compared(name, kafka_version, before[user], after[user], seconds) for user, name in _NAMES.items()]


_NAMES = {JAVA: "Java producer", PYTHON: "kafka-python producer"}


def _recorded(sandbox: Sandbox, quotas: Quotas, folder: Path, *, seconds: float, records: int | None) -> Mapping[int, Path]:
    bring(sandbox.bootstrap_servers, quotas)
    starts = log_sizes(sandbox)
    stop = threading.Event()
    # Without a limit each takes all it can get: then one after the other.
    with ThreadPoolExecutor(max_workers=1 if records else 2) as pool:
        runs = [pool.submit(run, sandbox, seconds, records, stop) for run in (_run_java, _run_python)]
        try:
            for run in runs:
                run.result()
        finally:
            # Interrupted, or one of them failed: the other need not go on.
            stop.set()
    return cut_logs(sandbox, starts, folder)


def _run_java(sandbox: Sandbox, seconds: float, records: int | None, stop: threading.Event) -> None:
    runtime = runtime_for(sandbox.kafka_version)
    count = records or int(seconds * _LIMIT / _RECORD * 3 + 20 * _LIMIT / _RECORD)
    command = [
        str(runtime.java), "-Xmx128m", "-XX:+UseSerialGC", "-cp", ":".join(map(str, runtime.jars)),
        "org.apache.kafka.tools.ProducerPerformance", "--topic", PRODUCED, "--num-records", str(count),
        "--record-size", str(_RECORD), "--throughput", "-1", "--producer.config", str(sandbox.client_properties(JAVA)),
        "--producer-props", f"bootstrap.servers={sandbox.sasl_bootstrap_servers}", "client.id=java-producer", "acks=1",
        "delivery.timeout.ms=600000", "partitioner.ignore.keys=true",
    ]  # fmt: skip
    deadline = time.monotonic() + (_START_UP_S if records else seconds)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        try:
            while process.poll() is None and time.monotonic() < deadline and not stop.is_set():
                stop.wait(0.1)
        finally:
            ended = process.poll()
            process.kill()
            process.wait()
        if ended:
            said.seek(0)
            raise SystemExit(f"ProducerPerformance ended with {ended}: {said.read().decode(errors='replace')[-2000:]}")


def _run_python(sandbox: Sandbox, seconds: float, records: int | None, stop: threading.Event) -> None:
    rate = 40 * _LIMIT if records else 20 * _LIMIT
    produce_steadily(
        sandbox.sasl_bootstrap_servers or "", PRODUCED, client_id="python-producer", bytes_per_second=rate, seconds=seconds,
        record_size=_RECORD, login=sandbox.user(PYTHON), stop=stop,
    )  # fmt: skip


def _of_users(rows: Sequence[Predicted]) -> dict[str, list[Predicted]]:
    return {user: [row for row in rows if row.user == user and row.key == "producer_byte_rate"] for user in _NAMES}


def _compared(name: str, kafka_version: str, free: Sequence[Predicted], under: Sequence[Predicted], seconds: float) -> ClosedLoop:
    start, end = under[0].at_ms, under[-1].at_ms + under[-1].recorded_ms
    length = min(seconds, (end - start) / 1000)
    seen = Shape.of([(row.at_ms - start, row.amount) for row in under], limit=_LIMIT, seconds=length)
    played = play(_as_sent(free), limit=_LIMIT, refuses=False, window=DEFAULT_WINDOW)
    charges = list(zip((played.charged_ms - played.charged_ms[0]).tolist(), played.amounts.tolist(), strict=True))
    if charges[-1][0] < length * 1000:
        raise SystemExit(f"the {name} sent too little without a limit to say what it does under one")
    return ClosedLoop(
        client=name, kafka_version=kafka_version, seconds=length, limit=_LIMIT, seen=seen,
        predicted=Shape.of(charges, limit=_LIMIT, seconds=length),
    )  # fmt: skip


def _as_sent(rows: Sequence[Predicted]) -> Sent:
    """As the model takes it."""
    numbers: dict[str, int] = {}
    connections = [numbers.setdefault(row.connection, len(numbers)) for row in rows]
    return Sent(
        times_ms=np.asarray([int(row.at_ms) for row in rows], dtype=np.int64),
        records=np.asarray([int(row.amount) for row in rows], dtype=np.int64),
        overhead=np.zeros(len(rows), dtype=np.int64),
        connections=np.asarray(connections, dtype=np.int64),
    )
