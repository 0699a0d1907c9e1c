"""The address of a ZooKeeper leads to the ZooKeeper of another cluster later: nothing is read for true or written there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.errors import OtherClusterError, OutcomeUnknownError, UnreachableError
from reconciler.model.plan import Alteration
from reconciler.ports import EntityFilter
from tests.builders import user
from tests.support.bad_servers import Relay, serving
from tests.support.kafka_tree import everything, make_kafka
from tests.support.polling import wait_until
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server
from tests.support.zookeeper_session import zookeeper_cluster
from tests.support.zookeeper_tree import zookeeper_client

pytestmark = pytest.mark.kafka

REQUESTS: dict[str, Callable[[ZooKeeperCluster], object]] = {
    "write": lambda cluster: cluster.alter([limit(2.0)], validate_only=False),
    "validation": lambda cluster: cluster.alter([limit(2.0)], validate_only=True),
    "read": lambda cluster: cluster.current_state(),
    "read of one entity": lambda cluster: cluster.describe(EntityFilter()),
}


def limit(value: float) -> Alteration:
    return Alteration(entity=user("a"), ops={"producer_byte_rate": value})


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    """One of its own, which is not ahead of the other's transactions."""
    with zookeeper_server() as started:
        yield started


@pytest.fixture(scope="module")
def other() -> Iterator[ZooKeeperServer]:
    with zookeeper_server() as server, zookeeper_client(f"127.0.0.1:{server.port}") as client:
        client.create("/one")
        make_kafka(client, "/one")
        for _ in range(300):  # a server refuses sessions of clients that have seen a later transaction than its own last one
            client.set("/one/cluster/id", b'{"version":"1","id":"another"}')
        yield server


@pytest.mark.parametrize("request_of", REQUESTS)
def test_an_address_that_leads_to_another_cluster_later_gets_no_write(
    server: ZooKeeperServer, place: str, witness: KazooClient, other: ZooKeeperServer, request_of: str
) -> None:
    del place, witness
    proxy = Relay(server.port)
    with serving(proxy) as port, zookeeper_cluster(f"127.0.0.1:{port}/one") as cluster:
        assert cluster.alter([limit(1.0)], validate_only=False)[0].error_code == 0
        with zookeeper_client(f"127.0.0.1:{other.port}") as there:
            before = everything(there)
            proxy.lead_to(other.port)

            def stopped() -> bool:
                with contextlib.suppress(UnreachableError, OutcomeUnknownError):
                    with pytest.raises(OtherClusterError, match=r"has cluster another now, .* cluster 4L6g3nShT-eMCtK--X86sw\."):
                        REQUESTS[request_of](cluster)
                    return True
                return False

            wait_until(stopped)
            assert everything(there) == before
