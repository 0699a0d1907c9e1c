"""Headroom of a real broker that throttles a real client, by its jmx_exporter, with names chosen to break labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import Login, SandboxSpec
from reconciler.resolution.kafka_names import quote_client_id
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.jmx_exporter import ExportedCluster, exported_cluster
from tests.support.wire_client import WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

BOB = Login(name="CN=bob, O=a*b", password="bob-secret")
HOSTILE = 'a "b"*?\\c|{{x}}\n'
BATCH = record_batch(400_000)


@pytest.fixture(scope="module")
def throttled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportedCluster]:
    """A client of bob may produce 40 kB/s, every other client 1 GB/s."""
    with exported_cluster(tmp_path_factory.mktemp("kafka"), spec=SandboxSpec(users=(BOB,), heap_mb=512)) as cluster:
        servers = cluster.sandbox.bootstrap_servers
        create_topic(servers, "orders")
        raw_quotas.alter(
            servers,
            {
                frozenset({("user", BOB.name), ("client-id", HOSTILE)}): {"producer_byte_rate": 40_000.0},
                frozenset({("user", None), ("client-id", None)}): {"producer_byte_rate": 1e9},
            },
        )
        raw_quotas.settled(servers, brokers=(1,))
        yield cluster


def burst(cluster: ExportedCluster, login: Login, client_id: str) -> int:
    """A request of 400 kB; how long the broker throttles it."""
    with WireClient(cluster.sandbox.sasl_bootstrap_servers or "", login, client_id) as client:
        return client.produce("orders", BATCH)[1]


def groups(document: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {(*row["bucket"].values(), row["key"]): row for row in document["groups"]}


def test_hostile_names_of_a_real_broker_meet_their_quota(throttled: ExportedCluster, tmp_path: Path) -> None:
    assert burst(throttled, BOB, HOSTILE) > 0
    servers = throttled.sandbox.bootstrap_servers
    done = invoke(
        "headroom", "--bootstrap-server", servers, "--traffic", f"metrics+{throttled.url()}", "--format", "json", cwd=tmp_path
    )
    row = groups(json.loads(done.out))[BOB.name, HOSTILE, "producer_byte_rate"]
    assert (row["limit"], row["level"], row["percent"] > 50) == (40_000, 1, True)
    assert any(
        quote_client_id(HOSTILE).replace("\\", "\\\\").replace('"', '\\"') in line
        for line in throttled.lines("Produce_byte_rate")
    )
