"""``record`` reads a real jmx_exporter on a real broker, and the backtest convicts by what it wrote."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.spec import Login, SandboxSpec
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.jmx_exporter import exported_cluster
from tests.support.manifests import cluster, quotas
from tests.support.recorder_process import recorder

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

ALICE = Login(name="alice", password="alice-secret")
LIMIT = 20_000


def test_a_throttled_client_of_a_real_broker_is_recorded_and_convicted(tmp_path: Path) -> None:
    spec = SandboxSpec(users=(ALICE,))
    with exported_cluster(tmp_path, spec=spec) as exported:
        servers = exported.sandbox.bootstrap_servers
        create_topic(servers, "orders")
        pair = frozenset({("user", "alice"), ("client-id", "my app (1)")})
        raw_quotas.alter(servers, {pair: {"producer_byte_rate": float(LIMIT)}})
        raw_quotas.settled(servers)
        with recorder(tmp_path, "--traffic", f"1=metrics+{exported.url()}") as running:
            sent = produce_steadily(
                exported.sandbox.sasl_bootstrap_servers or "",
                "orders",
                client_id="my app (1)",
                bytes_per_second=200_000,
                seconds=4,
                login=ALICE,
            )
            assert sent.throttle_ms_max > 0
            running.until(lambda: any(row["throttled"] for row in running.rows))
            assert running.end(signal.SIGTERM) == 0
            rows = [row for row in running.rows if row["kind"] == "produce" and row["throttled"]]
    assert {(row["broker"], row["user"], row["client_id"]) for row in rows} == {(1, "alice", "my app (1)")}

    manifests = tmp_path / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    half = max(1, max(row["amount"] for row in rows) // 2)
    (manifests / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": str(half)})))
    done = invoke("backtest", str(manifests), "--traffic", str(tmp_path / "history"), "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "throttled" in {row["verdict"] for row in done.json()["verdicts"] if row["bucket"].get("user") == "alice"}
