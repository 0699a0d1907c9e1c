"""Every command that reaches a cluster, run on one that keeps its quotas in ZooKeeper."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.schemas import valid
from tests.support.zookeeper_repository import ZooKeeperRepository

pytestmark = pytest.mark.kafka

APPLY = ("apply", "--auto-approve", "--accept", "default-entity", "--accept", "large-reduction", "--accept", "too-many-changes")

TEN = (
    ("{user: alice@EXAMPLE.COM}", "{producer_byte_rate: 20MiB, request_percentage: 200}"),
    ("{user: {default: true}}", "{consumer_byte_rate: 1GiB}"),
    ("{client-id: etl}", "{producer_byte_rate: 5MiB}"),
    ("{client-id: {default: true}}", "{controller_mutation_rate: 1e6}"),
    ('{user: "<default>", client-id: "a b"}', "{producer_byte_rate: 5MiB}"),
    ("{user: alice@EXAMPLE.COM, client-id: {default: true}}", "{request_percentage: 12.5}"),
    ("{user: {default: true}, client-id: etl}", "{producer_byte_rate: 6MiB}"),
    ("{user: {default: true}, client-id: {default: true}}", "{producer_byte_rate: 7MiB}"),
    ("{ip: 10.0.0.7}", "{connection_creation_rate: 50}"),
    ("{ip: {default: true}}", "{connection_creation_rate: 100000}"),
)

NODES = {
    "/config/users/alice%40EXAMPLE.COM": '{"version":1,"config":{"request_percentage":"200.0","producer_byte_rate":"20971520"}}',
    "/config/users/alice%40EXAMPLE.COM/clients": "",
    "/config/users/alice%40EXAMPLE.COM/clients/<default>": '{"version":1,"config":{"request_percentage":"12.5"}}',
    "/config/users/<default>": '{"version":1,"config":{"consumer_byte_rate":"1073741824"}}',
    "/config/users/<default>/clients": "",
    "/config/users/<default>/clients/etl": '{"version":1,"config":{"producer_byte_rate":"6291456"}}',
    "/config/users/<default>/clients/<default>": '{"version":1,"config":{"producer_byte_rate":"7340032"}}',
    "/config/users/%3Cdefault%3E": "",
    "/config/users/%3Cdefault%3E/clients": "",
    "/config/users/%3Cdefault%3E/clients/a%20b": '{"version":1,"config":{"producer_byte_rate":"5242880"}}',
    "/config/clients/etl": '{"version":1,"config":{"producer_byte_rate":"5242880"}}',
    "/config/clients/<default>": '{"version":1,"config":{"controller_mutation_rate":"1000000.0"}}',
    "/config/ips/10.0.0.7": '{"version":1,"config":{"connection_creation_rate":"50"}}',
    "/config/ips/<default>": '{"version":1,"config":{"connection_creation_rate":"100000"}}',
}


@pytest.fixture
def repository(tmp_path: Path, zookeeper_kafka: Sandbox) -> ZooKeeperRepository:
    return ZooKeeperRepository(tmp_path, zookeeper_kafka)


def read(data: bytes | str) -> Any:
    return json.loads(data) if data else None


def test_what_is_applied_is_in_the_nodes_and_then_there_is_nothing_to_do(
    repository: ZooKeeperRepository, zookeeper_kafka: Sandbox
) -> None:
    repository.declare(*TEN)
    done = repository.run(*APPLY, "--format", "json")

    report = valid(done.json(), "apply-report")
    assert (done.code, report["result"], report["verified"]) == (0, "done", True), done.err
    assert {path: read(data) for path, data in repository.nodes().items()} == {path: read(text) for path, text in NODES.items()}
    assert len(raw_quotas.describe(zookeeper_kafka.bootstrap_servers)) == len(TEN)
    assert repository.run("plan", "--detailed-exitcode").code == 0
    assert repository.run("drift", "--detailed-exitcode").code == 0


def test_what_somebody_changed_is_drift_and_its_credentials_stay(repository: ZooKeeperRepository) -> None:
    repository.declare(*TEN)
    assert repository.run(*APPLY).code == 0
    secret = "salt=MTd,stored_key=U8g=,server_key=9O5=,iterations=4096"
    changed = f'{{"version":1,"config":{{"SCRAM-SHA-256":"{secret}","producer_byte_rate":"1"}}}}'
    repository.put("/config/users/alice%40EXAMPLE.COM", changed.encode())

    done = repository.run("drift", "--detailed-exitcode")
    assert done.code == 2
    assert "producer_byte_rate" in done.out
    assert secret not in done.out + done.err
    again = repository.run(*APPLY)
    assert again.code == 0, again.out + again.err
    assert secret not in again.out + again.err
    assert read(repository.nodes()["/config/users/alice%40EXAMPLE.COM"])["config"] == {
        "SCRAM-SHA-256": secret, "producer_byte_rate": "20971520", "request_percentage": "200.0",
    }  # fmt: skip


def test_nodes_that_brokers_cannot_read_are_told_of_everywhere(repository: ZooKeeperRepository, tmp_path: Path) -> None:
    repository.put("/config/users/broken", b"hello")
    repository.put("/config/users/raw name", b'{"version":1,"config":{"producer_byte_rate":"5"}}')
    before = repository.nodes()
    repository.declare(("{user: bob}", "{producer_byte_rate: 1MiB}"))

    plan = repository.run("plan", "--format", "json").json()
    assert [f["message"] for f in plan["findings"] if f["id"] == "unreadable-node"] == [
        "ZooKeeper's node /config/users/broken (user=broken): the node's data are not JSON",
        "ZooKeeper's node /config/users/raw name: brokers never look for its name, so it applies to no client",
    ]
    assert "/config/users/broken" in repository.run("drift").out
    export = repository.run("export", ".", "--folder", "exported", "--format", "json").json()
    shutil.rmtree(tmp_path / "exported")
    assert [f["id"] for f in export["findings"]] == ["unreadable-node", "unreadable-node"]
    assert repository.run(*APPLY).code == 0
    repository.declare(("{user: broken}", "{producer_byte_rate: 1MiB}"))
    refused = repository.run(*APPLY, "--format", "json")
    assert (refused.code, refused.json()["failure_reason"]) == (1, "refused-by-cluster")
    assert {path: repository.nodes()[path] for path in before} == before


def test_a_filter_names_the_unreadable_nodes_that_it_asks_for_and_an_address_that_stops_a_broker_is_one(
    repository: ZooKeeperRepository,
) -> None:
    rate = b'{"version":1,"config":{"connection_creation_rate":"5"}}'
    for node in ("users/broken", "clients/broken"):
        repository.put(f"/config/{node}", b"hello")
    for node in ("ips/10.0.0.1:80", "ips/10.1", "ips/::1"):
        repository.put(f"/config/{node}", rate)

    def named(*names: str) -> list[str]:
        done = repository.run("describe", "--zookeeper", repository.zookeeper, *names)
        return re.findall(r"ZooKeeper's node (\S+?):? ", done.err)

    assert named("--name", "user=alice") == []
    assert named("--name", "user=broken") == ["/config/users/broken"]
    assert named("--name", "ip=10.0.0.1:80") == ["/config/ips/10.0.0.1:80"]
    assert named() == ["/config/clients/broken", "/config/ips/10.0.0.1:80", "/config/users/broken"]


def migrated(repository: ZooKeeperRepository, folder: Path) -> Path:
    """What was exported before a migration. There the cluster keeps its id; the test's other cluster has its own."""
    assert invoke("export", "--zookeeper", repository.zookeeper, "--folder", "exported", cwd=folder).code == 0
    exported = folder / "exported" / "cluster.yaml"
    kept = [line for line in exported.read_text().splitlines() if "clusterId" not in line]
    exported.write_text("\n".join(kept) + "\n")
    return exported.parent


def test_a_migration_that_copied_the_nodes_names_is_found_and_explained(
    repository: ZooKeeperRepository, clean_kafka: Sandbox, tmp_path: Path
) -> None:
    """What Kafka before 3.6.2 and 3.7.1 left: the names of the nodes, as names."""
    repository.declare(TEN[0], TEN[1], TEN[6])
    assert repository.run(*APPLY).code == 0
    folder = migrated(repository, tmp_path)
    left: dict[raw_quotas.RawEntity, dict[str, float | None]] = {
        frozenset({("user", "alice%40EXAMPLE.COM")}): {"producer_byte_rate": 20971520.0, "request_percentage": 200.0},
        frozenset({("user", "<default>")}): {"consumer_byte_rate": 1073741824.0},
        frozenset({("user", "<default>"), ("client-id", "etl")}): {"producer_byte_rate": 6291456.0},
    }
    raw_quotas.alter(clean_kafka.bootstrap_servers, left)
    raw_quotas.settled(clean_kafka.bootstrap_servers)

    servers = ("--bootstrap-server", clean_kafka.bootstrap_servers)
    done = invoke("plan", str(folder), *servers, "--format", "json", "--detailed-exitcode", cwd=tmp_path)
    plan = done.json()
    assert (done.code, plan["summary"]["create"]) == (2, 3)
    found = {
        json.dumps(f["entity"], sort_keys=True): f["message"].partition(". If ")[2]
        for f in plan["findings"]
        if f["id"] == "migrated-name"
    }
    assert found == {
        '{"user": "alice%40EXAMPLE.COM"}': "user=alice@EXAMPLE.COM is meant, declare that and remove this one.",
        '{"user": "<default>"}': "user=<default> is meant, declare that and remove this one.",
        '{"client-id": "etl", "user": "<default>"}': "user=<default> client-id=etl is meant, declare that and remove this one.",
    }
    assert "3.6.2" in invoke("explain", "migrated-name", cwd=tmp_path).out
