"""A live broker throttles producers under quotas; the backtest of its request log must predict what it did."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.model.entity import DEFAULT, Entity
from tests.support import raw_quotas
from tests.support.local_traffic import open_here

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka

QUOTAS = {
    Entity.of({"user": "alice"}): {"producer_byte_rate": 60_000.0},
    Entity.of({"user": "bob", "client-id": DEFAULT}): {"producer_byte_rate": 40_000.0},
    Entity.of({"user": DEFAULT}): {"producer_byte_rate": 50_000.0},
}
CLIENTS = [
    ("alice", "live-1", 9000), ("alice", "live-2", 30000), ("bob", "live-3", 20000), ("bob", "live-4", 70000),
    ("carol", "live-5", 15000),
]  # fmt: skip
"""User, client id, mean record size."""
SECONDS = 7.0
MOST_MISSES = 0.05
"""One millisecond at a sample's boundary moves a request into another sample, so single verdicts can differ."""
MOST_ERROR_MS = 125
"""An eighth of what a model is wrong by whose window has one sample less or more.

The log has the time at which a request was logged, on a slow machine some milliseconds after the broker counted it. The throttle
time is ``bytes / limit - window``, so the error is the difference between two such delays.
"""


def raw(entity: Entity) -> frozenset[tuple[str, str | None]]:
    return frozenset((kind, None if name is DEFAULT else name) for kind, name in entity.parts)


def produce(sandbox: Sandbox, user: str, client_id: str, size: int) -> None:
    from kafka import KafkaProducer

    login = sandbox.user(user)
    producer = KafkaProducer(
        bootstrap_servers=sandbox.sasl_bootstrap_servers, client_id=client_id, linger_ms=0, acks=1, request_timeout_ms=60_000,
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
        sasl_plain_username=login.name, sasl_plain_password=login.password,
    )  # fmt: skip
    chance = random.Random(client_id)
    try:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            # One request at a time: when it is throttled, the answer still comes at once and the next one waits.
            producer.send("backtest-live", bytes(1 + int(chance.expovariate(1 / size)))).get(60)
    finally:
        producer.close(timeout=10)


def test_the_log_of_throttled_producers_is_predicted(clean_kafka: Sandbox, tmp_path: Path) -> None:
    log = clean_kafka.nodes[0].request_log_file
    assert log is not None
    raw_quotas.alter(clean_kafka.bootstrap_servers, {raw(entity): quotas for entity, quotas in QUOTAS.items()})
    raw_quotas.settled(clean_kafka.bootstrap_servers)
    # What others sent before is not in these quota groups, since the groups are new.
    before = log.read_bytes().count(b"\n")
    with ThreadPoolExecutor(max_workers=len(CLIENTS)) as pool:
        for done in [pool.submit(produce, clean_kafka, *client) for client in CLIENTS]:
            done.result()

    own = tmp_path / log.name
    own.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[before:]))
    rows = predictions(own)
    throttled = [row for row in rows if row["recorded_throttle_ms"] > 0]
    assert {row["user"] for row in throttled} == {"alice", "bob", "carol"}
    errors = [error_ms(row) for row in throttled]
    assert median(errors) <= MOST_ERROR_MS, sorted(errors)
    wrong = [row for row in rows if (row["throttle_ms"] > 0) != (row["recorded_throttle_ms"] > 0)]
    # A request that is just over its limit, or just not, differs by as little as the others.
    by_much = [row for row in wrong if error_ms(row) > MOST_ERROR_MS]
    assert len(by_much) <= max(1, MOST_MISSES * len(rows)), (len(rows), [row["ts"] for row in by_much])


def predictions(log: Path) -> list[dict[str, Any]]:
    """The produce requests of ``CLIENTS``, judged."""
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic

    question = BacktestRequest(current=QUOTAS, proposed=QUOTAS, declared=QUOTAS, exact=True)
    recorded = open_here(find_traffic([f"1={log}"]), requests=True)
    try:
        run = Backtest(recorded, question)
        run.report()
        rows = [json.loads(text) for text in run.request_lines()]
    finally:
        recorded.close()
    return [row for row in rows if row["client_id"].startswith("live-") and row["key"] == "producer_byte_rate"]


def error_ms(row: dict[str, Any]) -> int:
    return abs(int(row["throttle_ms"]) - int(row["recorded_throttle_ms"]))
