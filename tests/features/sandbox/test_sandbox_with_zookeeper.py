"""Sandboxes whose brokers keep their metadata in ZooKeeper: every version starts, answers, and stops whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.errors import SandboxError
from reconciler.features.sandbox.clients import admin_client, brokers_up, cluster_id
from reconciler.features.sandbox.cluster import start
from reconciler.features.sandbox.jars import ZOOKEEPER_VERSIONS
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec, ZooKeeperSpec
from tests.support import raw_quotas
from tests.support.polling import wait_until
from tests.support.zookeeper_tree import nodes_below, zookeeper_client

pytestmark = pytest.mark.kafka

Start = Callable[[SandboxSpec], Sandbox]
ALICE = frozenset({("user", "alice@corp")})
NEWEST, *OLDER = ZOOKEEPER_VERSIONS


@pytest.mark.parametrize("version", [NEWEST, *(pytest.param(version, marks=pytest.mark.large) for version in OLDER)])
def test_quotas_of_a_broker_are_in_the_zookeeper_that_the_sandbox_names(version: str, start_kafka: Start) -> None:
    spec = SandboxSpec(kafka_version=version, zookeeper=True, zookeeper_server=ZooKeeperSpec(chroot="/one"))
    sandbox = start_kafka(spec)
    assert sandbox.zookeeper is not None
    assert sandbox.zookeeper.endswith("/one")
    with admin_client(sandbox.bootstrap_servers) as client:
        assert (brokers_up(client), cluster_id(client)) == ({1}, sandbox.cluster_id)
    raw_quotas.alter(sandbox.bootstrap_servers, {ALICE: {"producer_byte_rate": 1000.0}})
    with zookeeper_client(sandbox.zookeeper) as client:
        nodes = nodes_below(client, "/config/users")
    assert nodes == {"/config/users/alice%40corp": b'{"version":1,"config":{"producer_byte_rate":"1000"}}'}


def test_the_shared_broker_forgets_what_an_earlier_test_left(zookeeper_kafka: Sandbox) -> None:
    raw_quotas.alter(zookeeper_kafka.bootstrap_servers, {ALICE: {"request_percentage": 50.0}})
    assert raw_quotas.describe(zookeeper_kafka.bootstrap_servers) == {ALICE: {"request_percentage": 50.0}}
    assert zookeeper_kafka.zookeeper is not None
    from tests.support import zookeeper_tree

    with zookeeper_client(zookeeper_kafka.zookeeper) as client:
        zookeeper_tree.remove_all(client)
    wait_until(lambda: raw_quotas.describe(zookeeper_kafka.bootstrap_servers) == {})


def test_a_zookeeper_that_does_not_start_is_named_with_its_log_and_nothing_is_left_running(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    broken = ZooKeeperSpec(properties={"tickTime": "soon"})
    with pytest.raises(SandboxError, match=r"ZooKeeper ended while it started.*zookeeper\.log"):
        start(SandboxSpec(zookeeper=True, zookeeper_server=broken), folder)
    assert not (folder / "zookeeper" / "data").exists()
    assert not (folder / "node-1" / "kafka.log").exists()


def test_a_broker_that_does_not_start_takes_its_zookeeper_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with pytest.raises(SandboxError, match="Kafka node 1 ended while it started"):
        start(SandboxSpec(zookeeper=True, properties={"num.io.threads": "none"}), folder)
    assert not (folder / "zookeeper" / "data").exists()
    assert not [line for line in commands() if bytes(folder) in line]


def commands() -> list[bytes]:
    """The command lines of all processes that are there while they are asked."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" "))
    return lines
