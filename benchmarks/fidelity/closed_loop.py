"""Ordinary producers that send as fast as they are let, with and without a quota: Kafka's own in Java, and kafka-python's.

The model is told what each sends in a moment without limits, and must say how much of it a limit lets through.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.apply.scenes import bring
from benchmarks.fidelity.comparison import quantile
from benchmarks.fidelity.prediction import Predicted, predict
from benchmarks.fidelity.recording import PRODUCED, cluster, cut_logs, log_sizes, write_manifests
from benchmarks.fidelity.scenarios import Quotas
from benchmarks.fidelity.waiting import Model, Sends, waiting
from reconciler.model.entity import Entity
from reconciler.sandbox.clients import produce_steadily
from reconciler.sandbox.cluster import runtime_for
from reconciler.sandbox.spec import Sandbox

JAVA, PYTHON = "orders", "reports"
_LIMIT = 100_000.0
QUOTAS: Quotas = {Entity.of({"user": user}): {"producer_byte_rate": _LIMIT} for user in (JAVA, PYTHON)}
_RECORD = 1_000
_FREE_S = 6.0
_FREE_RECORDS = 30_000
_START_UP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """One producer under its limit, from its first request on: bytes a second, and the shape of it."""

    client: str
    kafka_version: str
    seconds: float
    limit: float
    rate: float
    rate_predicted: float
    requests: int
    requests_predicted: int
    throttle_median_ms: float
    throttle_median_predicted_ms: float
    pulse_share: float
    """Of its bytes, what went through in seconds with more than twice the limit."""
    pulse_share_predicted: float

    @property
    def error(self) -> float:
        return self.rate_predicted / self.rate - 1 if self.rate else 1.0


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
    with ThreadPoolExecutor(max_workers=2) as pool:
        runs = [pool.submit(run, sandbox, seconds, records) for run in (_run_java, _run_python)]
        for run in runs:
            run.result()
    return cut_logs(sandbox, starts, folder)


def _run_java(sandbox: Sandbox, seconds: float, records: int | None) -> None:
    runtime = runtime_for(sandbox.kafka_version)
    count = records or int(seconds * _LIMIT / _RECORD * 3 + 20 * _LIMIT / _RECORD)
    command = [
        str(runtime.java), "-Xmx128m", "-XX:+UseSerialGC", "-cp", ":".join(map(str, runtime.jars)),
        "org.apache.kafka.tools.ProducerPerformance", "--topic", PRODUCED, "--num-records", str(count),
        "--record-size", str(_RECORD), "--throughput", "-1", "--producer.config", str(sandbox.client_properties(JAVA)),
        "--producer-props", f"bootstrap.servers={sandbox.sasl_bootstrap_servers}", "client.id=java-producer", "acks=1",
        "delivery.timeout.ms=600000", "partitioner.ignore.keys=true",
    ]  # fmt: skip
    # What it prints of every few seconds must go somewhere, else it stops.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = process.communicate(timeout=_START_UP_S if records else seconds)
        if process.returncode:
            raise SystemExit(f"ProducerPerformance ended with {process.returncode}: {said[-2000:]}")
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _run_python(sandbox: Sandbox, seconds: float, records: int | None) -> None:
    rate = 40 * _LIMIT if records else 20 * _LIMIT
    produce_steadily(
        sandbox.sasl_bootstrap_servers or "", PRODUCED, client_id="python-producer", bytes_per_second=rate, seconds=seconds,
        record_size=_RECORD, login=sandbox.user(PYTHON),
    )  # fmt: skip


def _of_users(rows: Sequence[Predicted]) -> dict[str, list[Predicted]]:
    return {user: [row for row in rows if row.user == user and row.key == "producer_byte_rate"] for user in _NAMES}


def _compared(name: str, kafka_version: str, free: Sequence[Predicted], under: Sequence[Predicted], seconds: float) -> ClosedLoop:
    model = waiting(Sends.of(free), limit=_LIMIT, seconds=seconds)
    start = under[0].at_ms
    kept = [row for row in under if row.at_ms < start + seconds * 1000]
    seen = Model(
        at_ms=tuple(int(row.at_ms - start) for row in kept),
        amounts=tuple(int(row.amount) for row in kept),
        throttles_ms=tuple(row.recorded_ms for row in kept),
    )
    length = min(seconds, (kept[-1].at_ms - start + kept[-1].recorded_ms) / 1000)
    return ClosedLoop(
        client=name, kafka_version=kafka_version, seconds=length, limit=_LIMIT,
        rate=seen.total(length) / length, rate_predicted=model.total(length) / length,
        requests=len(seen.at_ms), requests_predicted=sum(at < length * 1000 for at in model.at_ms),
        throttle_median_ms=quantile(sorted(seen.throttles_ms), 0.5),
        throttle_median_predicted_ms=quantile(sorted(model.throttles_ms), 0.5),
        pulse_share=seen.pulse_share(_LIMIT), pulse_share_predicted=model.pulse_share(_LIMIT),
    )  # fmt: skip
