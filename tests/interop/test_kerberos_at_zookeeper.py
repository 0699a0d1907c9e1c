"""SASL GSSAPI at a real ZooKeeper with a real KDC: the identity that ACLs name, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.security import make_acl

from reconciler.backends.zookeeper.session import close_client, open_client
from reconciler.backends.zookeeper.settings import ZooKeeperSettings, parse_connection, zookeeper_security
from reconciler.errors import AuthenticationError
from tests.support.kerberos import MODULE, REALM, Kdc, in_realm, running_kdc, server_module
from tests.support.zookeeper_server import ZooKeeperServer, zookeeper_server

pytestmark = [pytest.mark.interop, pytest.mark.kafka]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kdc, ZooKeeperServer, Path]]:
    folder = tmp_path_factory.mktemp("kdc")
    with running_kdc(folder) as kdc, in_realm(kdc):
        service, brokers = kdc.keytab("zookeeper/127.0.0.1"), kdc.keytab("kafka")
        jaas = folder / "jaas.conf"
        jaas.write_text(f"Server {{ {server_module(service, 'zookeeper/127.0.0.1')} }};\n")
        options = (kdc.java_option, f"-Djava.security.auth.login.config={jaas}")
        provider = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
        with zookeeper_server(properties=provider, java_options=options) as server:
            yield kdc, server, brokers


def settings(server: ZooKeeperServer, line: str) -> ZooKeeperSettings:
    servers, chroot = parse_connection(server.address)
    security = zookeeper_security({"zookeeper.sasl.jaas.config": line}, source="f")
    return ZooKeeperSettings(servers=servers, chroot=chroot, security=security, connect_seconds=60.0)


def test_a_keytab_gives_the_identity_that_acls_name(realm):
    _, server, keytab = realm
    line = f'{MODULE} required useKeyTab=true keyTab="{keytab}" principal="kafka@{REALM}";'
    client = open_client(settings(server, line))
    try:
        client.create("/owned", b"mine", acl=[make_acl("sasl", f"kafka@{REALM}", all=True)])
        assert client.get("/owned")[0] == b"mine"
    finally:
        close_client(client)


def test_without_a_ticket_the_refusal_names_the_property(realm, tmp_path):
    _, server, _ = realm
    line = f'{MODULE} required useTicketCache=true ticketCache="{tmp_path}/none";'
    with pytest.raises(
        AuthenticationError,
        match=r"refused the login with SASL GSSAPI .*the ticket cache is empty: run kinit, or name a keytab in zookeeper\.sasl",
    ):
        open_client(settings(server, line))
