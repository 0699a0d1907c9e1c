"""A quota, a client, and the series that a real jmx_exporter and a real Prometheus make of both."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.spec import Login, SandboxSpec
from tests.support import raw_quotas
from tests.support.jmx_exporter import exported_cluster
from tests.support.polling import wait_until
from tests.support.prometheus_server import Prometheus, ScrapeJob, prometheus

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

ALICE = Login(name="alice", password="alice-secret")
RATE = 'kafka_server_Produce_byte_rate{client_id="app",user="alice"'


def _result_of(server: Prometheus, query: str) -> list[Any]:
    return list(server.get("query", query=query)["result"])


def test_a_client_under_a_quota_has_its_series_on_its_broker_and_in_prometheus(tmp_path: Path) -> None:
    spec = SandboxSpec(nodes=3, users=(ALICE,), heap_mb=384)
    with exported_cluster(tmp_path, spec=spec) as cluster:
        servers = cluster.sandbox.bootstrap_servers
        create_topic(servers, "orders")
        pair = frozenset({("user", "alice"), ("client-id", "app")})
        raw_quotas.alter(servers, {pair: {"producer_byte_rate": 20_000.0}})
        raw_quotas.settled(servers, brokers=(1, 2, 3))
        assert not any(cluster.lines(RATE, broker) for broker in cluster.ports)

        sent = produce_steadily(
            cluster.sandbox.sasl_bootstrap_servers or "",
            "orders",
            client_id="app",
            bytes_per_second=200_000,
            seconds=4,
            login=ALICE,
        )

        assert sent.throttle_ms_max > 0
        (leader,) = [broker for broker in cluster.ports if cluster.lines(RATE, broker)]
        targets = {port: {"broker_id": str(broker)} for broker, port in cluster.ports.items()}
        jobs = [ScrapeJob(name=f"every-{interval}", ports=targets, interval_s=interval) for interval in (1, 2)]
        with prometheus(tmp_path, jobs) as server:
            for job in jobs:
                query = f'kafka_server_Produce_throttle_time{{user="alice",job="{job.name}"}}'
                shown = wait_until(functools.partial(_result_of, server, query), within_s=60)
                assert [row["metric"]["broker_id"] for row in shown] == [str(leader)]
                assert float(shown[0]["value"][1]) > 0
