"""Brokers or a ZooKeeper: what the command line says replaces what the Cluster manifest says."""

from pathlib import Path

import pytest

from reconciler.errors import UnreachableError
from reconciler.features.starting.manifests import connection_to_write
from reconciler.model.cluster import ClusterSpec, Connection
from reconciler.workflows.connect import Access, known_principal, open_cluster, transport_security
from tests.builders import cluster_spec

NOWHERE = "127.0.0.1:1"
LOGIN = 'zookeeper.sasl.jaas.config=org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="s";\n'


@pytest.fixture
def old() -> ClusterSpec:
    return cluster_spec(connection=Connection(zookeeper=f"{NOWHERE}/kafka"))


def test_a_document_with_a_zookeeper_is_reached_there(old: ClusterSpec) -> None:
    with pytest.raises(UnreachableError, match=r"ZooKeeper at 127\.0\.0\.1:1"):
        open_cluster(old)


def test_the_command_line_replaces_either_by_the_other(old: ClusterSpec) -> None:
    with pytest.raises(UnreachableError) as by_brokers:
        open_cluster(old, Access(bootstrap_server=NOWHERE))
    with pytest.raises(UnreachableError) as by_zookeeper:
        open_cluster(cluster_spec(connection=Connection(bootstrap_servers=(NOWHERE,))), Access(zookeeper=NOWHERE))

    assert "ZooKeeper" not in str(by_brokers.value)
    assert "ZooKeeper" in str(by_zookeeper.value)


def test_the_principal_is_that_of_the_login_to_zookeeper(old: ClusterSpec, tmp_path: Path) -> None:
    (tmp_path / "zk.properties").write_text(LOGIN)

    assert known_principal(old, Access()) is None
    assert known_principal(old, Access(command_config=str(tmp_path / "zk.properties"))) == "kafka"
    assert known_principal(old, Access(command_config=str(tmp_path / "no such file"))) is None


def test_an_export_names_the_zookeeper_that_was_read(tmp_path: Path) -> None:
    access = Access(zookeeper=" zk1:2181/kafka ", command_config=str(tmp_path / "p"))
    written = connection_to_write(cluster_spec(), access, folder=tmp_path)

    assert written == Connection(zookeeper="zk1:2181/kafka", properties="p")


@pytest.mark.parametrize(
    ("lines", "by_brokers", "by_zookeeper"),
    [
        ("", "PLAINTEXT", "ZooKeeper"),
        ("security.protocol=SSL\n", "SSL", "ZooKeeper"),
        ("zookeeper.ssl.client.enable=true\n", "PLAINTEXT", "ZooKeeper over TLS"),
    ],
)
def test_the_encryption_of_a_connection_is_known_before_it_is_made(
    lines: str, by_brokers: str, by_zookeeper: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(lines)

    access = Access(bootstrap_server=NOWHERE, command_config=str(file))
    assert transport_security(cluster_spec(), access) == by_brokers
    access = Access(zookeeper=NOWHERE, command_config=str(file))
    assert transport_security(cluster_spec(), access) == by_zookeeper
