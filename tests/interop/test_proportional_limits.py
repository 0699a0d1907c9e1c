"""A total in proportion to leaders over three real brokers with the plugin: each broker enforces its own part. Needs a JDK."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka.admin import NewTopic

from reconciler.features.sandbox.clients import admin_client
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from tests.support.command import run
from tests.support.group_callback_jar import SETTINGS, with_callback
from tests.support.manifests import cluster, quotas
from tests.support.wire_client import WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

TOTAL = 60_000
LEADERS = (1, 1, 1, 2, 2, 3)
BATCH = record_batch(500_000)
WINDOW_S = 10.0


def make_topics(sandbox: Sandbox) -> None:
    """``orders`` with its leaders, and a topic with its only partition on each broker."""
    with admin_client(sandbox.bootstrap_servers, timeout_s=60) as client:
        orders = NewTopic(name="orders", replica_assignments={number: [leader] for number, leader in enumerate(LEADERS)})
        client.create_topics(
            [orders, *(NewTopic(name=f"on-{node.id}", replica_assignments={0: [node.id]}) for node in sandbox.nodes)]
        )


def throttled_ms(sandbox: Sandbox, server: str, broker: int) -> tuple[int, int, float]:
    """Bytes, throttle and how long it took at most, of one burst to one broker."""
    begun = time.monotonic()
    with WireClient(server, sandbox.user("etl"), "app") as client:
        amount, throttle_ms = client.produce(f"on-{broker}", BATCH)
    return amount, throttle_ms, time.monotonic() - begun


def test_each_broker_enforces_its_part_of_a_total_by_leaders(tmp_path: Path) -> None:
    spec = SandboxSpec(nodes=3, heap_mb=320, users=(Login(name="etl", password="secret"),))
    with running(with_callback(spec)) as sandbox:
        make_topics(sandbox)
        value = {"producer_byte_rate": {"proportional": TOTAL, "topics": ["orders"]}}
        (tmp_path / "quotas.yaml").write_text(quotas(({"user": "etl"}, value)))
        servers = sandbox.bootstrap_servers.split(",")
        callback = {"class": SETTINGS["client.quota.callback.class"]}
        (tmp_path / "prod.yaml").write_text(cluster(connection={"bootstrapServers": servers}, quotaCallback=callback))
        applied = run("apply", ".", "--auto-approve", cwd=tmp_path)
        assert applied.code == 0, applied.out + applied.err
        parts = "broker 1 29.3 KiB/s (30,000 B/s), broker 2 19.53 KiB/s (20,000 B/s), broker 3 9.766 KiB/s (10,000 B/s)"
        assert parts in " ".join(applied.out.split())
        sasl = (sandbox.sasl_bootstrap_servers or "").split(",")
        for broker, server in enumerate(sasl, start=1):
            limit = TOTAL * LEADERS.count(broker) / len(LEADERS)
            amount, throttle_ms, elapsed = throttled_ms(sandbox, server, broker)
            latest = (amount / limit - WINDOW_S) * 1000
            assert latest - min(1.0, elapsed) * 1000 - 1 <= throttle_ms <= latest + 1, (broker, limit, throttle_ms)
