"""One run on a real broker: its request log, and what a real Prometheus scraped of a real jmx_exporter meanwhile."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.fidelity.observed import observed
from benchmarks.fidelity.open_files import allow_many_files
from benchmarks.fidelity.prediction import predict
from benchmarks.fidelity.recording import make_topics, record, warm_up, write_manifests
from benchmarks.fidelity.rehearsal import KEY_OF
from benchmarks.fidelity.scenarios import Scenario
from benchmarks.traffic_sources.clients import arrivals, quotas, senders
from reconciler.features.sandbox.spec import Login, SandboxSpec
from tests.support.jmx_exporter import exported_cluster
from tests.support.prometheus_server import Prometheus, ScrapeJob, prometheus

INTERVALS_S: Final = (1, 5, 15, 30, 60)
KAFKA_VERSION: Final = "4.3.1"
_PASSWORD: Final = "benchmark"  # a sandbox on loopback, gone when the run is
_GAUGES: Final = re.compile(r"kafka_server_(Produce|Fetch)_(byte_rate|throttle_time|queue_size)")
_AFTER_S: Final = 62.0
"""Until the throttle time of the last throttle is gone."""

_Row = TypeVar("_Row", "Requested", "Throttled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """One recorded request as the product reads it from the log."""

    key: str
    user: str
    client_id: str
    at_ms: float
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """One throttled request, read from the log without the product: the amount of a throttled fetch is in no log."""

    key: str
    user: str
    client_id: str
    at_ms: float
    throttle_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One series of one scrape job: ``samples`` are (seconds since 1970, value)."""

    every_s: int
    key: str
    measure: str
    user: str
    client_id: str
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun:
    """Of one seed. ``limits``: by key, user and client-id, of those whose limit throttles."""

    seed: int
    started: float
    """Whole seconds since 1970."""
    seconds: float
    requests: tuple[Requested, ...]
    throttled: tuple[Throttled, ...]
    gauges: tuple[Gauge, ...]
    limits: Mapping[tuple[str, str, str], float]


def record_run(seed: int, seconds: float, folder: Path) -> None:
    """Run the clients of ``seed`` for so long; what is needed later goes into ``folder``."""
    allow_many_files()
    folder.mkdir(parents=True, exist_ok=True)
    some = senders(seed)
    wanted = quotas(some)
    script = arrivals(some, seconds=seconds, seed=seed)
    logins = tuple(Login(name=user, password=_PASSWORD) for user in sorted({one.client.user for one in some}))
    spec = SandboxSpec(kafka_version=KAFKA_VERSION, users=logins, request_log=True, heap_mb=768)
    scenario = Scenario(name=f"traffic-sources-{seed}", clients=tuple(one.client for one in some), quotas=wanted)
    with exported_cluster(folder, spec=spec) as cluster:
        make_topics(cluster.sandbox)
        warm_up(cluster.sandbox, script)
        jobs = [ScrapeJob.of(cluster.ports[1], name=f"every-{every_s}", interval_s=every_s) for every_s in INTERVALS_S]
        with prometheus(folder, jobs) as server:
            recorded = record(cluster.sandbox, scenario, script, wanted, folder)
            # Prometheus scrapes on; nothing is waited for but its next samples.
            time.sleep(_AFTER_S)
            gauges = _read_gauges(server, recorded.sent.started, seconds)
    rows = predict(recorded.logs, write_manifests(folder / "quotas", wanted), KAFKA_VERSION)
    requests = [
        Requested(key=row.key, user=row.user, client_id=row.client_id, at_ms=row.at_ms, amount=row.amount) for row in rows
    ]
    clients = {arrival.number: arrival.client for arrival in script}
    throttled = [
        Throttled(
            key=KEY_OF[row.kind],
            user=clients[row.number].user,
            client_id=clients[row.number].client_id,
            at_ms=row.at_ms,
            throttle_ms=row.throttle_ms,
        )
        for row in observed(recorded.logs).values()
        if row.throttle_ms > 0
    ]
    document = {
        "seed": seed,
        "seconds": seconds,
        "started": recorded.sent.started,
        "limits": [
            [key, one.client.user, one.client.client_id, one.limit]
            for one in some
            if one.limit is not None
            for key in (KEY_OF[one.client.kind],)
        ],
        "throttled": [list(asdict(one).values()) for one in throttled],
        "requests": [list(asdict(one).values()) for one in requests],
        "gauges": [asdict(one) for one in gauges],
    }
    with gzip.open(folder / "run.json.gz", "wt", encoding="utf-8") as file:
        json.dump(document, file)


def read_run(folder: Path) -> RealRun:
    """What ``record_run`` left there."""
    with gzip.open(folder / "run.json.gz", "rt", encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return RealRun(
        seed=document["seed"],
        started=document["started"],
        seconds=document["seconds"],
        requests=tuple(_of_row(Requested, row) for row in document["requests"]),
        throttled=tuple(_of_row(Throttled, row) for row in document["throttled"]),
        gauges=tuple(
            Gauge(**{**row, "samples": tuple((at, value) for at, value in row["samples"])}) for row in document["gauges"]
        ),
        limits={(key, user, client_id): limit for key, user, client_id, limit in document["limits"]},
    )


def _of_row(kind: type[_Row], row: Sequence[Any]) -> _Row:
    return kind(**dict(zip((field.name for field in fields(kind)), row, strict=True)))


def _read_gauges(server: Prometheus, started: float, seconds: float) -> list[Gauge]:
    length_s = int(seconds + _AFTER_S + 20)
    found = []
    for every_s in INTERVALS_S:
        query = f'{{__name__=~"kafka_server_(Produce|Fetch)_.+",job="every-{every_s}"}}[{length_s}s]'
        for row in server.get("query", query=query)["result"]:
            match = _GAUGES.fullmatch(row["metric"]["__name__"])
            found += [_gauge(every_s, match, row, started)] if match else []
    return found


def _gauge(every_s: int, match: re.Match[str], row: Mapping[str, Any], started: float) -> Gauge:
    samples: Sequence[tuple[float, str]] = row["values"]
    return Gauge(
        every_s=every_s,
        key="producer_byte_rate" if match[1] == "Produce" else "consumer_byte_rate",
        measure=match[2],
        user=row["metric"].get("user", ""),
        client_id=row["metric"].get("client_id", ""),
        samples=tuple((at, float(value)) for at, value in samples if at >= started),
    )
