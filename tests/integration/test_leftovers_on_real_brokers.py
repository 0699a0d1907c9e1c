"""Throttles of replication that stand without a reassignment, and quotas of users without credentials, on real brokers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from reconciler.features.sandbox.clients import admin_client, produce_steadily
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support import config_command, raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.three_nodes import ThreeNodes, three_nodes

pytestmark = pytest.mark.kafka

SIDES = ("leader", "follower")
TOPIC = "moved"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("prod.yaml").write_text(cluster())
    tmp_path.joinpath("quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "10MiB"})))
    return tmp_path


def run(servers: str, folder: Path, command: str, *arguments: str) -> Done:
    return invoke(command, ".", "--bootstrap-server", servers, *arguments, "--format", "json", cwd=folder)


def leftovers(servers: str, folder: Path, rule: str = "leftover-throttle") -> list[str]:
    done = run(servers, folder, "drift")
    assert done.code == 0, done.err
    return [found["message"] for found in done.json()["findings"] if found["id"] == rule]


def set_throttles(servers: str, *, brokers: dict[int, int], topics: dict[str, str]) -> None:
    rates = {(ConfigResourceType.BROKER, str(broker)): ("rate", str(rate)) for broker, rate in brokers.items()}
    lists = {(ConfigResourceType.TOPIC, topic): ("replicas", replicas) for topic, replicas in topics.items()}
    resources = [
        ConfigResource(kind, name, configs={f"{side}.replication.throttled.{what}": value for side in SIDES})
        for (kind, name), (what, value) in (rates | lists).items()
    ]
    with admin_client(servers) as client:
        client.alter_configs(resources, raise_on_unknown=False)


def test_a_throttle_without_a_reassignment_is_named_until_the_printed_command_removes_it(
    clean_kafka: Sandbox, folder: Path
) -> None:
    servers = clean_kafka.bootstrap_servers
    with admin_client(servers) as client:
        client.create_topics([NewTopic("left.over", 1, 1)])
    assert leftovers(servers, folder) == []

    set_throttles(servers, brokers={1: 2**20}, topics={"left.over": "0:1"})
    wait_until(lambda: len(leftovers(servers, folder)) == 2)
    on_brokers, on_topics = leftovers(servers, folder)
    assert "broker 1 follower 1 MiB/s, leader 1 MiB/s" in on_brokers
    assert "list throttled replicas: 'left.over'" in on_topics
    (check,) = (one for one in run(servers, folder, "doctor").json()["checks"] if one["id"] == "leftovers")
    assert (check["status"], check["message"]) == ("warn", f"{on_brokers} {on_topics}")
    assert run(servers, folder, "apply", "--auto-approve").code == 0
    assert len(leftovers(servers, folder)) == 2

    for message in (on_brokers, on_topics):
        (command,) = re.findall(r"run: kafka-configs --bootstrap-server HOST:PORT (.*)", message)
        config_command.run(clean_kafka, *shlex.split(command))
    wait_until(lambda: leftovers(servers, folder) == [])


def test_users_with_quotas_and_without_credentials_are_named_where_others_have_some(clean_kafka: Sandbox, folder: Path) -> None:
    servers, rule = clean_kafka.bootstrap_servers, "quota-without-user"
    raw_quotas.alter(
        servers,
        {
            frozenset({("user", "alice")}): {"producer_byte_rate": 10.0 * 2**20},
            frozenset({("user", "it's gone"), ("client-id", "app")}): {"request_percentage": 5.0},
            frozenset({("client-id", "other")}): {"producer_byte_rate": 5.0},
        },
    )
    raw_quotas.settled(servers)
    # No user has credentials: they log in another way.
    assert leftovers(servers, folder, rule) == []
    with admin_client(servers) as client:
        client.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "secret")])
    try:
        wait_until(lambda: leftovers(servers, folder, rule) != [])
        (message,) = leftovers(servers, folder, rule)
    finally:
        with admin_client(servers) as client:
            client.alter_user_scram_credentials([UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)])
    assert message.startswith("1 of 2 users with quotas have no SCRAM credentials: 'it's gone'.")
    (command,) = re.findall(r"with kafka-quotas alter (.*)", message)
    done = invoke("alter", *shlex.split(command), "--bootstrap-server", servers, "--auto-approve", cwd=folder)
    assert done.code == 0, done.err
    assert frozenset({("user", "it's gone"), ("client-id", "app")}) not in raw_quotas.describe(servers)


@pytest.fixture(scope="module")
def nodes() -> Iterator[ThreeNodes]:
    with three_nodes(SandboxSpec(nodes=3, heap_mb=320)) as running:
        yield running


@pytest.mark.large
def test_a_throttle_of_a_running_reassignment_is_no_leftover_before_it_has_ended(nodes: ThreeNodes, folder: Path) -> None:
    servers, partition = nodes.servers(), TopicPartition(TOPIC, 0)
    with admin_client(servers) as client:
        client.create_topics([NewTopic(name=TOPIC, replica_assignments={0: [1, 2]})])
    produce_steadily(servers, TOPIC, client_id="load", bytes_per_second=4_000_000, seconds=3)
    assert leftovers(servers, folder) == []

    set_throttles(servers, brokers=dict.fromkeys((1, 2, 3), 1000), topics={TOPIC: "*"})
    wait_until(lambda: len(leftovers(servers, folder)) == 2)
    with admin_client(servers) as client:
        assert client.alter_partition_reassignments({partition: [2, 3]}) == {partition: None}
        assert partition in client.list_partition_reassignments()
        # At 1 kB/s the 12 MB take hours.
        assert leftovers(servers, folder) == []
        assert partition in client.list_partition_reassignments()

        set_throttles(servers, brokers=dict.fromkeys((1, 2, 3), 10**9), topics={})
        wait_until(lambda: client.list_partition_reassignments() == {})
    on_brokers, on_topics = leftovers(servers, folder)
    assert "broker 3 follower" in on_brokers
    assert f"list throttled replicas: '{TOPIC}'" in on_topics
    assert "for name in 1 2 3; do kafka-configs" in on_brokers
