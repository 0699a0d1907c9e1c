"""What this tool does not write to, however much it is asked to: found out before the first write, on real ZooKeepers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE, make_acl, make_digest_acl

from reconciler.backends.security.logins import SaslLogin
from reconciler.backends.zookeeper.settings import ZooKeeperSecurity
from reconciler.errors import AuthorizationError, BackendError, UnreachableError, UnsupportedClusterError
from reconciler.features.sandbox.spec import Sandbox, SandboxSpec, ZooKeeperSpec
from reconciler.model.plan import Alteration
from tests.builders import client, pair, user
from tests.support import raw_quotas
from tests.support.kafka_tree import CONTROLLER, MIGRATION, everything, make_kafka
from tests.support.polling import wait_until
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server
from tests.support.zookeeper_session import zookeeper_cluster
from tests.support.zookeeper_tree import zookeeper_client

pytestmark = pytest.mark.kafka

ALICE = Alteration(entity=user("alice"), ops={"producer_byte_rate": 1024.0})


def test_the_brokers_among_which_totals_are_divided_are_those_that_are_registered(
    server: ZooKeeperServer, witness: KazooClient
) -> None:
    witness.create("/brokers/ids/12", b"{}")
    with zookeeper_cluster(f"{server.address}/one") as opened:
        assert opened.current_state().brokers == (1, 12)
    witness.delete("/brokers/ids/12")
    without_brokers(witness)
    with zookeeper_cluster(f"{server.address}/one") as opened:
        assert opened.current_state().brokers == ()


def during_migration(client: KazooClient) -> None:
    client.create("/migration", json.dumps(MIGRATION).encode())


def under_kraft(client: KazooClient) -> None:
    client.set("/controller", json.dumps({**CONTROLLER, "brokerid": 3000, "kraftControllerEpoch": 4}).encode())


def without_brokers(client: KazooClient) -> None:
    client.delete("/brokers/ids/1")


def read_only_users(client: KazooClient) -> None:
    client.set_acls("/config/users", READ_ACL_UNSAFE)


def secret_users(client: KazooClient) -> None:
    client.set_acls("/config/users", [make_digest_acl("kafka", "secret", all=True)])


def read_only_changes(client: KazooClient) -> None:
    client.set_acls("/config/changes", READ_ACL_UNSAFE)


@pytest.mark.parametrize(
    ("make_so", "kind", "words"),
    [
        (during_migration, UnsupportedClusterError, r"migrated to KRaft.*/migration.*bootstrapServers"),
        (under_kraft, UnsupportedClusterError, r"KRaft controller.*bootstrapServers"),
        (without_brokers, UnsupportedClusterError, r"no broker is registered.*all are down.*bootstrapServers"),
        (read_only_users, AuthorizationError, r"write /config/users\..*Log in"),
        (secret_users, AuthorizationError, r"write /config/users\..*Log in"),
        (read_only_changes, AuthorizationError, r"write /config/changes\..*Log in"),
    ],
)
def test_a_tree_that_must_not_be_written_is_found_out_before_anything_is(
    server: ZooKeeperServer, witness: KazooClient, make_so: Callable[[KazooClient], None], kind: type[BackendError], words: str
) -> None:
    make_so(witness)
    with zookeeper_client(server.address) as root:
        root.add_auth("digest", "super:super")
        before = everything(root)
        with zookeeper_cluster(f"{server.address}/one") as opened, pytest.raises(kind, match=words) as raised:
            opened.alter([ALICE], validate_only=False)
        assert everything(root) == before
        assert "Nothing was written" in str(raised.value)
        assert "secret" not in str(raised.value)


def test_a_controller_that_takes_over_between_the_checks_and_the_write_stops_it(
    server: ZooKeeperServer, witness: KazooClient
) -> None:
    with zookeeper_cluster(f"{server.address}/one") as opened:
        opened.alter([ALICE], validate_only=True)
        # As a KRaft controller registers itself: the epoch and /controller, together.
        witness.set("/controller_epoch", b"2")
        under_kraft(witness)
        before = everything(witness)
        [result] = opened.alter([ALICE], validate_only=False)
    assert "KRaft controller" in str(result.error)
    assert result.error_code != 0
    assert everything(witness) == before


def test_another_broker_that_became_the_controller_changes_nothing(server: ZooKeeperServer, witness: KazooClient) -> None:
    with zookeeper_cluster(f"{server.address}/one") as opened:
        opened.alter([ALICE], validate_only=True)
        witness.set("/controller_epoch", b"2")
        assert [result.error for result in opened.alter([ALICE], validate_only=False)] == [None]
    assert witness.exists("/config/users/alice")


def test_a_migrated_cluster_can_still_be_read(server: ZooKeeperServer, witness: KazooClient) -> None:
    witness.create("/config/users/alice", b'{"version":1,"config":{"producer_byte_rate":"1024"}}')
    during_migration(witness)
    without_brokers(witness)
    with zookeeper_cluster(f"{server.address}/one") as opened:
        assert opened.current_state().entities == {user("alice"): {"producer_byte_rate": 1024.0}}


def test_a_server_without_its_majority_is_read_and_never_written(tmp_path: Path) -> None:
    with zookeeper_server() as server:
        with zookeeper_client(server.address) as client:
            make_kafka(client)
            client.create("/config/users/alice", b'{"version":1,"config":{"producer_byte_rate":"1024"}}')
        server.alone_of_three(local_sessions=False)
        with pytest.raises(UnreachableError, match="its ensemble has no majority"), zookeeper_cluster(server.address):
            pass
        server.alone_of_three(local_sessions=True)
        with zookeeper_cluster(server.address) as opened:
            assert opened.current_state().entities == {user("alice"): {"producer_byte_rate": 1024.0}}
            with pytest.raises(UnsupportedClusterError, match=r"read-only: it has lost the majority.*Nothing was written"):
                opened.alter([ALICE], validate_only=True)


JAAS = """Server { org.apache.zookeeper.server.auth.DigestLoginModule required
    user_kafka="kafka-secret" user_other="other-secret"; };
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="kafka-secret"; };
"""


def test_below_the_acls_of_brokers_only_their_identity_writes_and_new_nodes_get_the_acls_of_their_siblings(
    start_kafka: Callable[[SandboxSpec], Sandbox], tmp_path: Path
) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(JAAS)
    option = f"-Djava.security.auth.login.config={jaas}"
    sandbox = start_kafka(
        SandboxSpec(
            properties={"zookeeper.set.acl": "true"},
            java_options=(option,),
            zookeeper=ZooKeeperSpec(
                chroot="/secured",
                properties={"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
                java_options=(option,),
            ),
        )
    )
    assert sandbox.zookeeper is not None
    raw_quotas.alter(sandbox.bootstrap_servers, {frozenset({("user", "sibling")}): {"producer_byte_rate": 1.0}})
    wanted = [
        Alteration(entity=entity, ops={"producer_byte_rate": 1024.0})
        for entity in (user("alice"), user("sibling"), pair("alice", "app"), client("app"))
    ]
    others = ZooKeeperSecurity(login=SaslLogin(mechanism="DIGEST-MD5", username="other", password="other-secret"))
    for security in (None, others):
        with (
            zookeeper_cluster(sandbox.zookeeper, security=security) as opened,
            pytest.raises(AuthorizationError, match=r"ACLs do not let this client write /config/changes\."),
        ):
            opened.alter(wanted, validate_only=False)
    assert raw_quotas.describe(sandbox.bootstrap_servers) == {frozenset({("user", "sibling")}): {"producer_byte_rate": 1.0}}

    brokers = ZooKeeperSecurity(login=SaslLogin(mechanism="DIGEST-MD5", username="kafka", password="kafka-secret"))
    with zookeeper_cluster(sandbox.zookeeper, security=brokers) as opened:
        with opened.exclusive("a test"):
            assert [result.error for result in opened.alter(wanted, validate_only=False)] == [None] * 4
        assert set(opened.current_state().entities) == {alteration.entity for alteration in wanted}
        found = {
            path: opened._client.get_acls(path)[0]
            for path in (
                "/config/users/sibling",
                "/config/users/alice",
                "/config/users/alice/clients",
                "/config/users/alice/clients/app",
                "/config/clients",
                "/config/clients/app",
            )
        }
    assert found["/config/users/alice"] == found["/config/users/sibling"] == [make_acl("sasl", "kafka", all=True)]
    assert found["/config/users/alice/clients"] == found["/config/users/alice/clients/app"] == found["/config/users/alice"]
    assert found["/config/clients/app"] == found["/config/clients"] != found["/config/users/alice"]
    alice = frozenset({("user", "alice")})
    wait_until(lambda: raw_quotas.describe(sandbox.bootstrap_servers).get(alice) == {"producer_byte_rate": 1024.0})
