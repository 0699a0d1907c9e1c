"""Adoption of a real cluster in one command: owners by prefixes, nothing to edit, and a plan that changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke

pytestmark = pytest.mark.kafka

RATE = "producer_byte_rate"
LIVE: dict[raw_quotas.RawEntity, dict[str, float | None]] = {
    frozenset({("user", "payments-api")}): {RATE: 1000.0},
    frozenset({("user", "payments-batch"), ("client-id", "orders-x")}): {RATE: 2000.0},
    frozenset({("client-id", "orders-etl")}): {RATE: 3000.0},
    frozenset({("user", "orders.web")}): {RATE: 500.0},
    frozenset({("user", "Orders-1")}): {RATE: 500.0},
    frozenset({("user", "Orders-2")}): {RATE: 500.0},
    frozenset({("client-id", "orders-ui")}): {RATE: 3000.0},
    frozenset({("user", "zoe")}): {RATE: 10.0},
    frozenset({("user", None)}): {RATE: 50.0},
    frozenset({("user", None), ("client-id", "payments-x")}): {RATE: 60.0},
    frozenset({("ip", "10.0.0.1")}): {"connection_creation_rate": 5.0},
}


@pytest.fixture
def server(clean_kafka: Sandbox) -> str:
    raw_quotas.alter(clean_kafka.bootstrap_servers, LIVE)
    raw_quotas.settled(clean_kafka.bootstrap_servers)
    return clean_kafka.bootstrap_servers


def test_init_adopts_a_cluster_without_edits(server: str, tmp_path: Path) -> None:
    made = invoke("init", "repo", "--adopt", "--ci", "none", "--name", "prod", "--bootstrap-server", server, cwd=tmp_path)
    assert (made.code, "Replace" in made.out) == (0, False)
    folder = tmp_path / "repo"
    teams = sorted(path.name for path in (folder / "teams").iterdir())
    assert teams == ["orders", "orders-2", "payments", "platform"]
    assert invoke("validate", cwd=folder).code == 0
    planned = invoke("plan", "--detailed-exitcode", "--format", "json", cwd=folder)
    assert (planned.code, planned.json()["changes"], planned.json()["summary"]["unmanaged"]) == (0, [], 0)
    text = (folder / "teams" / "payments" / "users.yaml").read_text()
    assert text.splitlines()[0].endswith("=../../.schemas/client-quotas.v1.schema.json")
    changed = re.sub(r"producer_byte_rate: \w+", "producer_byte_rate: 900", text)
    (folder / "teams" / "payments" / "users.yaml").write_text(changed)
    plan = invoke("plan", "teams/payments", "--format", "json", cwd=folder).json()
    assert [change["entity"] for change in plan["changes"]] == [{"user": "payments-api"}]


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
    everything = invoke("validate", "quotas", "--all", cwd=tmp_path)

    assert (before.code, written.code, after.code) == (0, 0, 0)
    assert len(before.err.splitlines()) >= 27
    (line,) = after.err.splitlines()
    assert line.endswith(" findings as before: validate --all and plan --format json list them")
    assert everything.out.count(", as before]") == int(line.split()[0])

    users = tmp_path / "quotas" / "users.yaml"
    users.write_text(users.read_text().replace("producer_byte_rate: 20MiB", "producer_byte_rate: 19MiB"))
    applied = invoke("apply", "quotas", "--auto-approve", "--fail-on", "warning", cwd=tmp_path)
    assert applied.code == 0, applied.err
    assert applied.err.count(" findings as before: ") == 1
    assert "warning" not in applied.err
