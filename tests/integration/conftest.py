"""A bare ZooKeeper that looks like a Kafka cluster's, for the tests of what happens to runs on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from tests.support.kafka_tree import make_kafka
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server
from tests.support.zookeeper_tree import zookeeper_client


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    with zookeeper_server() as started:
        yield started


@pytest.fixture
def place(server: ZooKeeperServer) -> Iterator[str]:
    with zookeeper_client(server.address) as root:
        root.create("/one")
        make_kafka(root, "/one")
        yield f"{server.address}/one"
        root.delete("/one", recursive=True)


@pytest.fixture
def witness(place: str) -> Iterator[KazooClient]:
    with zookeeper_client(place) as client:
        yield client
