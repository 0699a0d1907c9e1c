"""A real broker that throttles a client-id, seen by a real Prometheus: what a backtest of that limit concludes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import SandboxSpec
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.exporter_rules import RULES
from tests.support.jmx_exporter import exported_cluster
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.prometheus_server import ScrapeJob, prometheus
from tests.support.wire_client import WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

KEY, LIMIT = "producer_byte_rate", 20_000.0
APP, ZOE = {"client-id": "app"}, {"user": "zoe"}


def test_a_limit_that_throttles_is_convicted_beside_a_quota_of_another_user_and_not_by_a_higher_one(tmp_path: Path) -> None:
    verdicts: dict[float, Any] = {}
    with exported_cluster(tmp_path, rules=RULES["quota-labels"], spec=SandboxSpec(heap_mb=384)) as running:
        servers = running.sandbox.bootstrap_servers
        create_topic(servers, "orders")
        entities: dict[raw_quotas.RawEntity, dict[str, float | None]] = {
            frozenset(APP.items()): {KEY: LIMIT},
            frozenset(ZOE.items()): {KEY: 5_000_000.0},
        }
        raw_quotas.alter(servers, entities)
        job = ScrapeJob(name="kafka", ports={running.ports[1]: {"broker_id": "1"}}, interval_s=1)
        with prometheus(tmp_path, [job]) as server:
            with WireClient(servers, None, "app") as client:
                for _ in range(14):
                    client.produce("orders", record_batch(30_000))
            throttled = 'count_over_time((kafka_server_quota_throttle_time{clientId="app",resource="Produce"} > 0)[1m:1s])'
            wait_until(lambda: (server.value(throttled) or 0) >= 5)
            for limit in (LIMIT, LIMIT / 2, LIMIT * 10):
                folder = tmp_path / f"{limit:.0f}"
                folder.mkdir()
                (folder / "q.yaml").write_text(cluster() + "---\n" + quotas((APP, {KEY: limit}), (ZOE, {KEY: 5_000_000})))
                options = ("--bootstrap-server", servers, "--traffic", f"prometheus+http://127.0.0.1:{server.port}")
                done = invoke(
                    "backtest", ".", *options, "--traffic-store", str(tmp_path / "store"), "--format", "json", cwd=folder
                )
                assert done.code in (0, 1), done.err
                (verdicts[limit],) = (row for row in done.json()["verdicts"] if row["bucket"] == {"client-id": "app"})
    assert (verdicts[LIMIT]["verdict"], verdicts[LIMIT / 2]["verdict"]) == ("throttled", "throttled")
    assert verdicts[LIMIT]["reason"].startswith("the broker reported throttles under this limit in ")
    assert verdicts[LIMIT / 2]["reason"].endswith(", when it was 19.53 KiB/s (20,000 B/s)")
    assert verdicts[LIMIT * 10]["verdict"] == "inconclusive"
    assert verdicts[LIMIT * 10]["reason"].startswith("the old limit of 19.53 KiB/s throttled these clients in ")
