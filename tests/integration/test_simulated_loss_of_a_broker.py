"""A broker of three is killed: ``backtest --without-broker`` predicts from the history before what the other two then log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import SandboxSpec
from reconciler.traffic import Reading, find_traffic
from reconciler.traffic.kinds import Kind
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.partition_senders import SteadySender, create_placed_topic, sending
from tests.support.polling import wait_until
from tests.support.recorded_seconds import logged_requests
from tests.support.three_nodes import ThreeNodes, three_nodes

pytestmark = [pytest.mark.kafka, pytest.mark.large]

TOPIC = "simulated-loss"
LOST = 3
LEFT = (1, 2)
REPLICAS = {0: [1, 2], 1: [1, 3], 2: [2, 3], 3: [2, 1], 4: [3, 1], 5: [3, 2]}
"""Each broker leads two partitions, and one of the two of a lost broker goes to each of the others."""
EVERY_S = 0.1
SECONDS = 25
SETTLED_SECONDS = 12
"""Longer than the window of eleven seconds, so that the catch-up after the loss has left it."""
SIZES = {"heavy": 4000, "light": 1000}
"""Bytes of a client's record to each partition, ten times a second."""
LIMIT = 106_000.0
"""Of each client on each broker: heavy sends 80,000 bytes/s and overhead, and half as much again without a broker."""
PROPERTIES = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreeNodes]:
    with three_nodes(SandboxSpec(nodes=3, heap_mb=320, request_log=True, properties=PROPERTIES)) as nodes:
        yield nodes


def copy_lines(log: Path, first: int, target: Path) -> Path:
    target.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[first:]))
    return target


def observed_rates(log: Path, broker: int) -> Mapping[str, float]:
    """Bytes a second of each client, over the time that the log has."""
    rates = {}
    for (kind, _, client_id), requests in logged_requests(log, broker).items():
        if kind == "produce" and client_id in SIZES:
            span = max(request.ts_us for request in requests) - min(request.ts_us for request in requests)
            rates[client_id] = sum(request.amount for request in requests) / (span / 1e6)
    return rates


def throttled(logs: Mapping[int, Path]) -> set[tuple[str, int]]:
    """The clients that the brokers themselves throttled, with the broker."""
    return {
        (row["client_id"], broker)
        for broker, log in logs.items()
        for batch in find_traffic([f"{broker}={log}"]).batches(Reading(kinds=(Kind.PRODUCE,)))
        for row in batch.to_pylist()
        if row["throttled"]
    }


def simulated(folder: Path, servers: str, history: Mapping[int, Path]) -> dict[str, Any]:
    traffic = [word for broker, log in history.items() for word in ("--traffic", f"{broker}={log}")]
    done = invoke(
        "backtest", "--without-broker", str(LOST), "--bootstrap-server", servers, *traffic, "--format", "json", cwd=folder
    )
    assert done.code == 0, done.err
    data: dict[str, Any] = done.json()
    return data


def test_the_loss_of_a_broker_is_predicted(cluster: ThreeNodes, tmp_path: Path) -> None:
    create_placed_topic(cluster.servers(), TOPIC, REPLICAS)
    wait_until(lambda: set(cluster.leaders_of(TOPIC)) == {1, 2, LOST})
    raw_quotas.alter(cluster.servers(), {frozenset({("client-id", name)}): {"producer_byte_rate": LIMIT} for name in SIZES})
    logs = cluster.request_logs

    def servers_of() -> dict[int, str]:
        return {partition: cluster.servers(leader) for partition, leader in enumerate(cluster.leaders_of(TOPIC)) if leader > 0}

    senders = {name: SteadySender(servers_of, name, TOPIC, size=size, every_s=EVERY_S) for name, size in SIZES.items()}

    def let_pass(seconds: float) -> None:
        last = senders["light"].rounds + seconds / EVERY_S
        wait_until(lambda: senders["light"].rounds >= last)

    def count_lines() -> dict[int, int]:
        return {broker: log.read_bytes().count(b"\n") for broker, log in logs.items()}

    with sending(senders.values()):
        let_pass(3)
        first = count_lines()
        let_pass(SECONDS)
        history = {broker: copy_lines(log, first[broker], tmp_path / f"before-{broker}.log") for broker, log in logs.items()}
        cluster.kill(LOST)
        wait_until(lambda: set(cluster.leaders_of(TOPIC)) == set(LEFT))
        let_pass(SETTLED_SECONDS)
        first = count_lines()
        let_pass(SECONDS)
        after = {broker: copy_lines(logs[broker], first[broker], tmp_path / f"after-{broker}.log") for broker in LEFT}

    predicted = simulated(tmp_path, cluster.servers(), history)
    peaks = {(row["bucket"]["client-id"], row["broker"]): row["peak"] for row in predicted["verdicts"]}
    observed = {(name, broker): rate for broker, log in after.items() for name, rate in observed_rates(log, broker).items()}
    over = {(row["bucket"]["client-id"], row["broker"]) for row in predicted["verdicts"] if row["verdict"] == "throttled"}
    figures = {"predicted": peaks, "observed": observed, "over": over, "throttled": throttled(after)}
    print(f"\n{figures}")
    assert over == throttled(after) == {("heavy", broker) for broker in LEFT}, figures
    for broker in LEFT:
        # A throttled client is kept at its limit, and would send more than that.
        assert peaks["heavy", broker] > 1.1 * LIMIT, figures
        assert observed["heavy", broker] == pytest.approx(LIMIT, rel=0.15), figures
