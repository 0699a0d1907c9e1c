"""``kafka-quotas resolve`` against a real broker: what the broker holds is what is answered, in one request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox, SandboxSpec, ZooKeeperSpec
from tests.support import manifests, raw_quotas
from tests.support.command import run

pytestmark = pytest.mark.kafka

PRODUCE, CONSUME, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


def test_the_cluster_its_snapshot_and_its_plan_are_asked_and_compared(clean_kafka: Sandbox, tmp_path: Path) -> None:
    server = clean_kafka.bootstrap_servers
    wanted: dict[raw_quotas.RawEntity, dict[str, float | None]] = {
        frozenset({("user", "alice")}): {PRODUCE: 9e6, CONSUME: 8e6},
        frozenset({("user", "<default>")}): {PRODUCE: 1e6},
        frozenset({("client-id", "a,b=c}\u20ac")}): {REQUEST: 300.0},
        frozenset({("ip", "10.0.0.7")}): {"connection_creation_rate": 50.0},
    }
    raw_quotas.alter(server, wanted)
    raw_quotas.settled(server)
    exported = run("export", "--bootstrap-server", server, "--snapshot", "before.json", cwd=tmp_path)
    assert exported.code == 0, exported.err
    live = run("resolve", "--bootstrap-server", server, "--all", "--format", "json", cwd=tmp_path)
    recorded = run("resolve", "--current", "before.json", "--all", "--format", "json", cwd=tmp_path)
    assert live.code == recorded.code == 0
    answers = live.json()["resolutions"]
    assert answers == recorded.json()["resolutions"]
    assert {json.dumps(answer["entity"]): sorted(answer["quotas"]) for answer in answers} == {
        '{"user": "alice"}': [CONSUME, PRODUCE],
        '{"user": "<default>"}': [PRODUCE],
        '{"client-id": "a,b=c}\\u20ac"}': [REQUEST],
        '{"ip": "10.0.0.7"}': ["connection_creation_rate"],
    }

    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "cluster.yaml").write_text(
        manifests.cluster(connection={"bootstrapServers": [server]}, scope={"include": [{"user": "alice"}]})
    )
    (tmp_path / "team" / "quotas.yaml").write_text(manifests.quotas(({"user": "alice"}, {PRODUCE: "9MB"})))
    asked = ("resolve", "team", "--name", "user=alice", "--format", "json")
    planned = run(*asked, "--state", "planned", cwd=tmp_path).json()
    assert [(key, quota["value"]) for key, quota in planned["quotas"].items()] == [(PRODUCE, 9_000_000)]

    # What is predicted is what holds once the plan is applied.
    assert run("apply", "team", "--auto-approve", "--accept", "too-many-removals", cwd=tmp_path).code == 0
    assert run(*asked, cwd=tmp_path).json()["quotas"] == planned["quotas"]


@pytest.mark.slow
def test_a_client_without_a_quota_is_not_known_of_a_broker_before_3(
    start_kafka: Callable[[SandboxSpec], Sandbox], tmp_path: Path
) -> None:
    old = start_kafka(SandboxSpec(kafka_version="2.8.2", zookeeper=ZooKeeperSpec()))
    asked = ("resolve", "--bootstrap-server", old.bootstrap_servers, "--name", "user=bob", "--name", "client-id=app")
    document = run(*asked, "--format", "json", cwd=tmp_path).json()
    assert document["cluster"]["kafka_version"] == "2.8"
    assert document["quotas"] == {}
    assert set(document["unknown"]) == {CONSUME, PRODUCE}
