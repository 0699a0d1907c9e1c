"""Several write the same nodes of a ZooKeeper at once: nothing of anybody's is lost, and whoever comes late is told."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.model.entity import Entity
from reconciler.model.plan import Alteration
from tests.builders import ip, pair, user
from tests.support.zookeeper_session import zookeeper_cluster

pytestmark = pytest.mark.kafka

KEY = "producer_byte_rate"
OPEN = [make_acl("world", "anyone", all=True)]


@pytest.fixture
def nodes(witness: KazooClient) -> KazooClient:
    return witness


@pytest.fixture
def cluster(place: str) -> Iterator[ZooKeeperCluster]:
    with zookeeper_cluster(place) as found:
        yield found


def setting(entity: Entity, value: float | None, *, before: float | None = None) -> Alteration:
    return Alteration(entity=entity, ops={KEY: value}, before={KEY: before})


def together(*acts: Callable[[], None]) -> None:
    """All at once, each in a thread; fails when one does."""
    failures: list[BaseException] = []

    def run(act: Callable[[], None]) -> None:
        try:
            act()
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


class Meddler:
    """A client that lets somebody else act just before its next transaction is sent, after the node was read."""

    def __init__(self, real: KazooClient, act: Callable[[], None]) -> None:
        self._real = real
        self._acts = [act]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def transaction(self) -> Any:
        while self._acts:
            self._acts.pop()()
        return self._real.transaction()


def test_many_clients_of_new_users_are_written_at_once_and_all_are_there(place: str, nodes: KazooClient) -> None:
    def writer(number: int) -> Callable[[], None]:
        mine = [setting(pair(f"user-{n % 7}", f"client-{number}-{n}"), 1.0 + n) for n in range(140)]

        def act() -> None:
            with zookeeper_cluster(place) as cluster:
                assert {result.error_code for result in cluster.alter(mine, validate_only=False)} == {0}

        return act

    together(*(writer(number) for number in range(3)))
    with zookeeper_cluster(place) as cluster:
        live = cluster.current_state().entities
        assert live == {pair(f"user-{n % 7}", f"client-{number}-{n}"): {KEY: 1.0 + n} for number in range(3) for n in range(140)}
        gone = cluster.alter([setting(entity, None, before=quotas[KEY]) for entity, quotas in live.items()], validate_only=False)
        assert {result.error_code for result in gone} == {0}
    with zookeeper_cluster(place) as cluster:
        assert cluster.current_state().entities == {}


def test_of_two_that_planned_the_same_one_writes_and_the_other_is_stale(place: str, cluster: ZooKeeperCluster) -> None:
    entities = [user(f"u{n}") for n in range(100)]
    cluster.alter([setting(entity, 1.0) for entity in entities], validate_only=False)
    results: dict[float, list[bool]] = {}

    def writer(value: float) -> Callable[[], None]:
        def act() -> None:
            with zookeeper_cluster(place) as mine:
                made = mine.alter([setting(entity, value, before=1.0) for entity in entities], validate_only=False)
                assert all(result.stale == (result.error_code != 0) for result in made)
                results[value] = [result.error_code == 0 for result in made]

        return act

    together(writer(2.0), writer(3.0))
    live = cluster.current_state().entities
    assert [two != three for two, three in zip(results[2.0], results[3.0], strict=True)] == [True] * len(entities)
    assert [live[entity][KEY] for entity in entities] == [2.0 if two else 3.0 for two in results[2.0]]


def test_a_node_that_came_between_keeps_what_it_has(cluster: ZooKeeperCluster, nodes: KazooClient) -> None:
    credential = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x"}}'
    cluster._client = Meddler(cluster._client, lambda: nodes.create("/config/users/new", credential))
    (result,) = cluster.alter([setting(user("new"), 5.0)], validate_only=False)

    assert result.error_code == 0
    assert nodes.get("/config/users/new")[0] == b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x","producer_byte_rate":"5"}}'


def test_a_node_made_anew_with_the_same_version_is_noticed(cluster: ZooKeeperCluster, nodes: KazooClient) -> None:
    """The one case that a version does not tell: deleted and made again between reading and writing."""
    nodes.create("/config/users/again", b'{"version":1,"config":{"producer_byte_rate":"1"}}')

    def make_anew() -> None:
        nodes.delete("/config/users/again")
        nodes.create("/config/users/again", b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x"}}')

    cluster._client = Meddler(cluster._client, make_anew)
    (result,) = cluster.alter([setting(user("again"), 5.0, before=1.0)], validate_only=False)

    assert result.error_code != 0
    assert "made anew" in (result.error or "")


def test_a_client_that_came_between_keeps_its_user(cluster: ZooKeeperCluster, nodes: KazooClient) -> None:
    cluster.alter([setting(user("u"), 1.0)], validate_only=False)
    cluster._client = Meddler(cluster._client, lambda: nodes.create("/config/users/u/clients", b""))
    (result,) = cluster.alter([setting(user("u"), None, before=1.0)], validate_only=False)

    assert result.error_code == 0
    assert cluster.current_state().entities == {}


@contextlib.contextmanager
def users_with(nodes: KazooClient, *acl: Any) -> Iterator[None]:
    """The folder of users with this ACL."""
    nodes.set_acls("/config/users", list(acl))
    try:
        yield
    finally:
        nodes.add_auth("digest", "broker:secret")
        nodes.set_acls("/config/users", OPEN)


def test_an_acl_that_is_not_shown_whole_is_never_copied(place: str, nodes: KazooClient) -> None:
    """To whoever may not administer a node, ZooKeeper shows no digests: what was copied would lock the brokers out."""
    anybody = make_acl("world", "anyone", read=True, write=True, create=True, delete=True)
    with users_with(nodes, make_digest_acl("broker", "secret", all=True), anybody), zookeeper_cluster(place) as cluster:
        for validate_only in (True, False):
            (result,) = cluster.alter([setting(user("v"), 1.0)], validate_only=validate_only)
            assert result.error_code == 31
            assert "the whole ACL of /config/users" in (result.error or "")
        assert nodes.get_children("/config/users") == []


def test_a_kafka_from_before_addresses_had_quotas_is_not_given_one(place: str, nodes: KazooClient) -> None:
    nodes.delete("/config/ips")
    try:
        with zookeeper_cluster(place) as cluster:
            for validate_only in (True, False):
                address = Alteration(entity=ip("10.0.0.1"), ops={"connection_creation_rate": 5.0})
                refused, good = cluster.alter([address, setting(user("v"), 1.0)], validate_only=validate_only)
                assert (refused.error_code, good.error_code) == (42, 0)
                assert "too old" in (refused.error or "")
            assert cluster.current_state().entities == {user("v"): {KEY: 1.0}}
    finally:
        nodes.create("/config/ips", b"")
