"""A live broker throttles producers under quotas; the backtest of its request log must predict what it did."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.model.entity import DEFAULT, Entity
from tests.support import raw_quotas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.sandbox.spec import Sandbox

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

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
ONE_SAMPLE_LESS = 8
"""The error of a model whose window has one sample less or more, a second, in errors of the true model, at least.

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


def test_the_log_of_throttled_producers_is_predicted(spark: SparkSession, clean_kafka: Sandbox) -> None:
    raw_quotas.alter(clean_kafka.bootstrap_servers, {raw(entity): quotas for entity, quotas in QUOTAS.items()})
    raw_quotas.settled(clean_kafka.bootstrap_servers)
    with ThreadPoolExecutor(max_workers=len(CLIENTS)) as pool:
        for done in [pool.submit(produce, clean_kafka, *client) for client in CLIENTS]:
            done.result()

    rows = {samples: predictions(spark, clean_kafka, samples) for samples in (10, 11, 12)}
    assert {row["user"] for row in rows[11] if row["recorded_throttle_ms"] > 0} == {"alice", "bob", "carol"}
    errors = {samples: median_error(judged) for samples, judged in rows.items()}
    assert errors[11] * ONE_SAMPLE_LESS <= min(errors[10], errors[12]), errors
    wrong = [row for row in rows[11] if (row["throttle_ms"] > 0) != (row["recorded_throttle_ms"] > 0)]
    # A request that is just over its limit, or just not, differs by as little as the others.
    by_much = [row for row in wrong if error_ms(row) * ONE_SAMPLE_LESS > min(errors[10], errors[12])]
    assert len(by_much) <= max(1, MOST_MISSES * len(rows[11])), (len(rows[11]), by_much)


def predictions(spark: SparkSession, sandbox: Sandbox, samples: int) -> list[dict[str, Any]]:
    """The produce requests of ``CLIENTS``, judged by a broker whose window has so many samples."""
    from reconciler.traffic.backtest import Backtest, BacktestRequest
    from reconciler.traffic.kernels.sampled_rate import Window
    from reconciler.traffic.traffic_files import find_traffic, open_traffic

    log = sandbox.nodes[0].request_log_file
    question = BacktestRequest(current=QUOTAS, proposed=QUOTAS, declared=QUOTAS, exact=True, window=Window(samples=samples))
    recorded = open_traffic(find_traffic([f"1={log}"]), lambda: spark, log_timezone="UTC", requests=True)
    try:
        run = Backtest(recorded, question)
        run.report()
        rows = [json.loads(text) for text in run.request_lines()]
    finally:
        recorded.close()
    return [row for row in rows if row["client_id"].startswith("live-") and row["key"] == "producer_byte_rate"]


def median_error(rows: list[dict[str, Any]]) -> float:
    return median(error_ms(row) for row in rows if row["recorded_throttle_ms"] > 0)


def error_ms(row: dict[str, Any]) -> int:
    return abs(int(row["throttle_ms"]) - int(row["recorded_throttle_ms"]))
