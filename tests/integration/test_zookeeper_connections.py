"""Connections to real ZooKeeper servers: plain, with a login, with TLS; and what is said when there is none."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.security import make_acl

from reconciler.backends.security.logins import SaslLogin
from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.backends.zookeeper.session import close_client, open_client
from reconciler.backends.zookeeper.settings import ZooKeeperSecurity, ZooKeeperSettings, parse_connection, zookeeper_security
from reconciler.errors import AuthenticationError, BackendError, UnreachableError, UnsupportedClusterError
from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from tests.support.bad_servers import hangs_up, refusing_port, serving, silent, speaks_http, speaks_tls_alerts
from tests.support.certificates import Authority
from tests.support.polling import wait_until
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server

pytestmark = pytest.mark.kafka

SECRET = 's3cr3t "hörse\\'
JAAS = """Server { org.apache.zookeeper.server.auth.DigestLoginModule required
    user_kafka="s3cr3t \\"h\u00f6rse\\\\" user_x="日本";
};"""


def settings(place: str, security: ZooKeeperSecurity | None = None, **others: float) -> ZooKeeperSettings:
    servers, chroot = parse_connection(place)
    return ZooKeeperSettings(servers=servers, chroot=chroot, security=security or ZooKeeperSecurity(), **others)


@contextlib.contextmanager
def opened(wanted: ZooKeeperSettings) -> Iterator[KazooClient]:
    client = open_client(wanted)
    try:
        yield client
    finally:
        close_client(client)


@pytest.fixture(scope="module")
def with_login(tmp_path_factory) -> Iterator[ZooKeeperServer]:
    jaas = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    jaas.write_text(JAAS, "utf-8")
    properties = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
    }
    with zookeeper_server(properties=properties, java_options=(f"-Djava.security.auth.login.config={jaas}",)) as server:
        yield server


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def stores(authority: Authority, tmp_path_factory) -> Path:
    """A folder with every store that the tests name."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "ca.p12").write_bytes(authority.trust_store("ca-secret"))
    (folder / "other.pem").write_text(Authority("Somebody Else").pem)
    (folder / "server.pem").write_text(authority.sign("localhost").pem())
    client = authority.sign("client")
    (folder / "client.pem").write_text(client.pem("key-secret"))
    (folder / "client.p12").write_bytes(client.pkcs12("key-secret"))
    return folder


def tls_options(stores: Path, name: str) -> dict[str, str]:
    [port] = free_ports(1)
    return {
        "secureClientPort": str(port),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(stores / f"{name}.pem"),
        "ssl.trustStore.location": str(stores / "ca.pem"),
        "ssl.clientAuth": "need",
    }


@pytest.fixture(scope="module")
def with_tls(stores: Path) -> Iterator[str]:
    options = tls_options(stores, "server")
    with zookeeper_server(properties=options):
        yield f"{LOOPBACK}:{options['secureClientPort']}"


def tls(stores: Path, **said: str) -> ZooKeeperSecurity:
    """``trust``, ``keys`` and the ``check`` of the name; each store has the password that its kind has."""
    properties = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.truststore.location": str(stores / said.get("trust", "ca.pem")),
        "zookeeper.ssl.truststore.password": "ca-secret",
        "zookeeper.ssl.endpoint.identification.algorithm": said.get("check", "HTTPS"),
    }
    if keys := said.get("keys", "client.pem"):
        properties |= {"zookeeper.ssl.keystore.location": str(stores / keys), "zookeeper.ssl.keystore.password": "key-secret"}
    return zookeeper_security(properties, source="zookeeper.properties")


def test_a_chroot_that_is_not_there_is_an_error_and_is_not_made(server: ZooKeeperServer) -> None:
    with pytest.raises(UnsupportedClusterError, match=rf"{server.address} has no node /kafka/one: .* does not create one"):
        open_client(settings(f"{server.address}/kafka/one"))
    with opened(settings(server.address)) as client:
        assert client.get_children("/") == ["zookeeper"]


def test_a_tree_without_a_kafka_is_no_cluster_and_one_below_is_named(server: ZooKeeperServer) -> None:
    with opened(settings(server.address)) as client:
        client.create("/here/brokers/ids", makepath=True)
        try:
            with pytest.raises(UnsupportedClusterError, match=r"at the root is not the tree of a Kafka.*is below /here"):
                ZooKeeperCluster.open(settings(server.address))
        finally:
            client.delete("/here", recursive=True)


def test_nobody_there_is_said_at_once_with_each_server_s_reason() -> None:
    closed = (refusing_port(), refusing_port())
    place = ",".join(f"{LOOPBACK}:{port}" for port in closed) + ",no-such-host.invalid:2181"
    with pytest.raises(UnreachableError) as raised:
        open_client(settings(place, connect_seconds=60.0))
    for port in closed:
        assert f"{LOOPBACK}:{port}: Connection refused" in str(raised.value)
    with pytest.raises(UnreachableError, match=r"no-such-host\.invalid:2181: "):
        open_client(settings("no-such-host.invalid:2181", connect_seconds=60.0))


def speaks_two_bytes(connection: socket.socket) -> None:
    """Answers with a frame that is too short for any answer of ZooKeeper."""
    connection.recv(1024)
    connection.sendall(b"\x00\x00\x00\x02ab")


@pytest.mark.parametrize("server", [silent, hangs_up, speaks_http, speaks_tls_alerts, speaks_two_bytes])
def test_what_is_no_zookeeper_is_unreachable(server: Callable[[socket.socket], None]) -> None:
    with serving(server) as port:
        place = f"{LOOPBACK}:{port}"
        with pytest.raises((UnreachableError, UnsupportedClusterError), match=rf"ZooKeeper at {place} can"):
            open_client(settings(place, connect_seconds=1.5, session_seconds=3.0))


def login(username: str, password: str) -> ZooKeeperSecurity:
    return ZooKeeperSecurity(login=SaslLogin(mechanism="DIGEST-MD5", username=username, password=password))


@pytest.mark.parametrize(("username", "password"), [("kafka", SECRET), ("x", "日本")])
def test_a_login_gives_the_identity_that_acls_name(with_login: ZooKeeperServer, username: str, password: str) -> None:
    with opened(settings(with_login.address, login(username, password))) as client:
        client.create(f"/of-{username}", b"mine", acl=[make_acl("sasl", username, all=True)])
        try:
            assert client.get(f"/of-{username}")[0] == b"mine"
        finally:
            client.delete(f"/of-{username}")


@pytest.mark.parametrize(("username", "password"), [("kafka", f"{SECRET}!"), ("nobody", "s3cr3t")])
def test_a_wrong_login_is_refused_by_name_and_its_password_is_said_nowhere(
    with_login: ZooKeeperServer, caplog, capfd, username: str, password: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(
        AuthenticationError, match=rf"refused the login of {username} .*the user or the password is wrong"
    ) as raised:
        open_client(settings(with_login.address, login(username, password), connect_seconds=60.0))
    out, err = capfd.readouterr()
    assert "s3cr3t" not in f"{raised.value!r} {raised.value.__cause__!r} {out} {err} {caplog.text}"


def test_a_server_that_wants_a_login_is_told_apart_from_one_that_is_away(with_login: ZooKeeperServer) -> None:
    with pytest.raises(AuthenticationError, match=r"Perhaps it wants a login \(zookeeper\.sasl\.jaas\.config"):
        open_client(settings(with_login.address))


@pytest.mark.parametrize("kinds", [("ca.pem", "client.pem"), ("ca.p12", "client.p12")])
def test_tls_with_stores_of_either_kind(with_tls: str, stores: Path, kinds: tuple[str, str]) -> None:
    with opened(settings(with_tls, tls(stores, trust=kinds[0], keys=kinds[1]))) as client:
        assert client.get_children("/") == ["zookeeper"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"trust": "other.pem"}, "the server's certificate is refused: .*zookeeper.ssl.truststore.location"),
        ({"keys": ""}, "TLS failed .*client certificate|closes the connection"),
    ],
)
def test_tls_that_fails_says_why(with_tls: str, stores: Path, said: dict[str, str], words: str) -> None:
    with pytest.raises(BackendError, match=words) as raised:
        open_client(settings(with_tls, tls(stores, **said)))
    assert "secret" not in str(raised.value)


def test_a_request_waits_for_a_server_that_comes_back_but_not_for_ever() -> None:
    with zookeeper_server() as server:
        wanted = dataclasses.replace(settings(server.address), request_seconds=12.0)
        with opened(wanted) as client:
            server.kill()
            for _ in range(2):  # the first one may notice that the connection breaks, the second one never had one
                with pytest.raises(ConnectionLoss):
                    client.get_children("/")
            server.start()
            # A slow machine may need longer to start a server than one request waits.
            wait_until(lambda: client.connected)
            assert client.retry(client.get_children, "/") == ["zookeeper"]
