"""One bare ZooKeeper for all tests of what happens to runs on it, below a chroot that looks like a Kafka cluster's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl_credential

from tests.support.kafka_tree import make_kafka
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server
from tests.support.zookeeper_tree import zookeeper_client

SUPER = f"-Dzookeeper.DigestAuthenticationProvider.superDigest={make_digest_acl_credential('super', 'super')}"
"""Whom no ACL holds back: to clear away what a test made."""


@pytest.fixture(scope="session")
def bare_zookeeper() -> Iterator[ZooKeeperServer]:
    with zookeeper_server(java_options=(SUPER,)) as started:
        yield started


@pytest.fixture
def server(bare_zookeeper: ZooKeeperServer) -> ZooKeeperServer:
    return bare_zookeeper


@pytest.fixture
def place(server: ZooKeeperServer) -> Iterator[str]:
    with zookeeper_client(server.address) as root:
        root.add_auth("digest", "super:super")
        root.create("/one")
        make_kafka(root, "/one")
        yield f"{server.address}/one"
        root.delete("/one", recursive=True)


@pytest.fixture
def witness(place: str) -> Iterator[KazooClient]:
    with zookeeper_client(place) as client:
        yield client
