"""Adoption of a real cluster whose quotas break many rules: its findings stand in one line before each plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke

pytestmark = pytest.mark.kafka

RATE = "producer_byte_rate"
MESSY: dict[raw_quotas.RawEntity, dict[str, float | None]] = {
    frozenset({("user", None)}): {RATE: 1048576.0, "consumer_byte_rate": 2097152.0},
    frozenset({("client-id", None)}): {RATE: 1048576.0},
    frozenset({("user", "ANONYMOUS")}): {RATE: 1048576.0},
    frozenset({("user", "User%3Aold")}): {RATE: 1e6},
    frozenset({("user", "shop")}): {RATE: 20971520.0},
    **{frozenset({("client-id", name)}): {RATE: 5242880.0} for name in ("etl", "orders-app", "legacy", "connect", "spark-job")},
    **{
        frozenset({("user", name)}): {RATE: 1048576.0, "consumer_byte_rate": 2097152.0}
        for name in ("payments", "orders", "billing", "search")
    },
    **{frozenset({("user", name), ("client-id", None)}): {RATE: 10485760.0} for name in ("shop", "crm", "erp")},
    **{frozenset({("user", name)}): {RATE: 20.0} for name in ("tiny", "tiny-2", "tiny-3")},
    **{frozenset({("user", name)}): {"request_percentage": 0.5} for name in ("slow", "slower", "slowest")},
    **{frozenset({("user", f"team-{number}")}): {RATE: 2e6 + number} for number in range(9)},
}


def test_a_messy_cluster_prints_one_line_before_each_plan(clean_kafka: Sandbox, tmp_path: Path) -> None:
    server = clean_kafka.bootstrap_servers
    raw_quotas.alter(server, MESSY)
    raw_quotas.settled(server)
    assert len(MESSY) == 32
    assert invoke("export", "--bootstrap-server", server, "--folder", "quotas", cwd=tmp_path).code == 0

    before = invoke("plan", "quotas", cwd=tmp_path)
    written = invoke("validate", "quotas", "--write-baseline", "quotas/kafka-quotas-baseline.yaml", cwd=tmp_path)
    after = invoke("plan", "quotas", cwd=tmp_path)
    everything = invoke("validate", "quotas", "--format", "json", cwd=tmp_path)

    assert (before.code, written.code, after.code) == (0, 0, 0)
    assert len(before.err.splitlines()) >= 15
    (line,) = after.err.splitlines()
    assert line.endswith(" findings as before: --format json lists them")
    assert sum(one.get("as_before", False) for one in everything.json()["findings"]) == int(line.split()[0])

    users = tmp_path / "quotas" / "users.yaml"
    users.write_text(users.read_text().replace("producer_byte_rate: 20MiB", "producer_byte_rate: 19MiB"))
    applied = invoke("apply", "quotas", "--auto-approve", "--fail-on", "warning", cwd=tmp_path)
    assert applied.code == 0, applied.err
    assert applied.err.count(" findings as before: ") == 1
    assert "warning" not in applied.err
