"""Leftovers of a Kafka 2.8.2 that is reached through its ZooKeeper: throttles, users without credentials, and empty nodes."""

from __future__ import annotations

import datetime
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from reconciler.features.sandbox.clients import admin_client, produce_steadily
from reconciler.features.sandbox.cluster import running, runtime_for
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from reconciler.text import moment_text
from tests.support import config_command, raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import quotas
from tests.support.polling import wait_until
from tests.support.zookeeper_tree import nodes_below, zookeeper_client

pytestmark = [pytest.mark.kafka, pytest.mark.large]

TOPIC = "moved"
SIDES = ("leader", "follower")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Sandbox]:
    with running(SandboxSpec(nodes=3, zookeeper=True, kafka_version="2.8.2", heap_mb=256)) as sandbox:
        yield sandbox


def run(kafka: Sandbox, folder: Path, command: str) -> Done:
    done = invoke(command, ".", "--zookeeper", kafka.zookeeper or "", "--format", "json", cwd=folder)
    assert done.code == 0, done.err
    return done


def leftovers(kafka: Sandbox, folder: Path, rule: str = "leftover-throttle") -> list[str]:
    return [found["message"] for found in run(kafka, folder, "drift").json()["findings"] if found["id"] == rule]


def set_throttles(kafka: Sandbox, rate: int) -> None:
    resources = [
        ConfigResource(kind, name, configs={f"{side}.replication.throttled.{what}": value for side in SIDES})
        for kind, name, what, value in (
            *((ConfigResourceType.BROKER, str(node.id), "rate", str(rate)) for node in kafka.nodes),
            (ConfigResourceType.TOPIC, TOPIC, "replicas", "*"),
        )
    ]
    with admin_client(kafka.bootstrap_servers) as client:
        client.alter_configs(resources, raise_on_unknown=False)


def last_change(kafka: Sandbox, node: str) -> str:
    with zookeeper_client(kafka.zookeeper or "") as client:
        return moment_text(datetime.datetime.fromtimestamp(client.get(f"/config/{node}")[1].mtime / 1000, datetime.UTC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "10MiB"})))
    return tmp_path


def test_a_throttle_is_named_before_and_after_a_reassignment_with_its_last_change_and_not_during_it(
    kafka: Sandbox, folder: Path
) -> None:
    servers, partition = kafka.bootstrap_servers, TopicPartition(TOPIC, 0)
    with admin_client(servers) as client:
        client.create_topics([NewTopic(name=TOPIC, replica_assignments={0: [1, 2]})])
    produce_steadily(servers, TOPIC, client_id="load", bytes_per_second=4_000_000, seconds=3)
    assert leftovers(kafka, folder) == []

    set_throttles(kafka, 1000)
    wait_until(lambda: len(leftovers(kafka, folder)) == 2, within_s=30)
    with admin_client(servers) as client:
        assert client.alter_partition_reassignments({partition: [2, 3]}) == {partition: None}
        assert partition in client.list_partition_reassignments()
        assert leftovers(kafka, folder) == []
        assert partition in client.list_partition_reassignments()
        set_throttles(kafka, 2**30)
        wait_until(lambda: client.list_partition_reassignments() == {}, within_s=60)
    on_brokers, on_topics = leftovers(kafka, folder)
    changed = {node: f"(since {last_change(kafka, node)} or earlier)" for node in (f"topics/{TOPIC}", "brokers/3")}
    assert f"list throttled replicas: '{TOPIC}' {changed[f'topics/{TOPIC}']}. " in on_topics
    assert f"broker 3 follower 1 GiB/s, leader 1 GiB/s {changed['brokers/3']}. " in on_brokers
    assert "not known" not in on_brokers + on_topics
    (check,) = (one for one in run(kafka, folder, "doctor").json()["checks"] if one["id"] == "leftovers")
    assert (check["status"], check["message"]) == ("warn", f"{on_brokers} {on_topics}")

    (command,) = re.findall(r"run: kafka-configs --bootstrap-server HOST:PORT (.*)", on_topics)
    config_command.run(kafka, *shlex.split(command))
    wait_until(lambda: len(leftovers(kafka, folder)) == 1, within_s=30)


def test_a_user_without_a_credential_in_zookeeper_and_nodes_without_a_setting_are_named_with_commands_that_remove_them(
    kafka: Sandbox, folder: Path
) -> None:
    limits = {"producer_byte_rate": 10.0 * 2**20}
    emptied: list[raw_quotas.RawEntity] = [
        frozenset({("user", "carol"), ("client-id", "a b")}),
        frozenset({("user", "bob")}),
        frozenset({("client-id", None)}),
    ]
    stays: list[raw_quotas.RawEntity] = [
        frozenset({("user", "alice")}),
        frozenset({("user", "dave")}),
        frozenset({("user", "bob"), ("client-id", "app")}),
    ]
    raw_quotas.alter(kafka.bootstrap_servers, dict.fromkeys((*emptied, *stays), limits))
    raw_quotas.alter(kafka.bootstrap_servers, {entity: dict.fromkeys(limits) for entity in emptied})
    # 2.8.2 answers no request that sets credentials.
    with zookeeper_client(kafka.zookeeper or "") as client:
        config = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=","producer_byte_rate":"10485760"}}'
        client.set("/config/users/alice", config)
    (of_users,) = leftovers(kafka, folder, "quota-without-user")
    assert of_users.startswith("2 of 3 users with quotas have no SCRAM credentials: 'bob', 'dave'.")

    (of_nodes,) = leftovers(kafka, folder, "empty-entity")
    assert of_nodes.startswith("ZooKeeper has 3 nodes of users, client-ids or addresses without any setting: ")
    (command,) = re.findall(r"run: printf '%s\\n' (.*) \| zookeeper-shell HOST:PORT", of_nodes)
    lines = shlex.split(command)
    assert "delete -v 1 /config/clients/<default>" in lines
    with zookeeper_client(kafka.zookeeper or "") as client:
        # Somebody sets a quota after the drift was read.
        client.set("/config/clients/<default>", b'{"version":1,"config":{"request_percentage":"50.0"}}')
        runtime = runtime_for(kafka.kafka_version)
        shell = [str(runtime.java), "-cp", ":".join(map(str, runtime.jars))]
        shell += ["org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", "-server", kafka.zookeeper or ""]
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(shell, input=text, text=True, capture_output=True, timeout=60, check=False)
        assert "version No is not valid : /config/clients/<default>" in done.stderr
        paths = nodes_below(client, "/config/users").keys() | nodes_below(client, "/config/clients").keys()
    users = {"alice", "bob", "bob/clients", "bob/clients/app", "dave"}
    assert paths == {f"/config/users/{path}" for path in users} | {"/config/clients/<default>"}
    assert leftovers(kafka, folder, "empty-entity") == []
