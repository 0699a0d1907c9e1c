"""Leftovers of a Kafka 2.8.2 that is reached through its ZooKeeper: users without credentials, and empty nodes."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec, ZooKeeperSpec
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import quotas
from tests.support.zookeeper_tree import nodes_below, zookeeper_client

pytestmark = [pytest.mark.kafka, pytest.mark.large]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Sandbox]:
    with running(SandboxSpec(zookeeper=ZooKeeperSpec(), kafka_version="2.8.2", heap_mb=256)) as sandbox:
        yield sandbox


def run(kafka: Sandbox, folder: Path, command: str) -> Done:
    done = invoke(command, ".", "--zookeeper", kafka.zookeeper or "", "--format", "json", cwd=folder)
    assert done.code == 0, done.err
    return done


def leftovers(kafka: Sandbox, folder: Path, rule: str) -> list[str]:
    return [found["message"] for found in run(kafka, folder, "drift").json()["findings"] if found["id"] == rule]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "10MiB"})))
    return tmp_path


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
