"""SASL GSSAPI with a real KDC: a broker and its clients in one realm, and what is printed when Kerberos says no."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, client_properties, parse_servers
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import properties_text
from reconciler.features.sandbox.spec import Listener, Sandbox, SandboxSpec
from reconciler.ports import EntityFilter
from tests.support import manifests, raw_quotas
from tests.support.command import Done, run
from tests.support.kerberos import MODULE, REALM, Kdc, in_realm, running_kdc, server_module
from tests.support.refused_logins import first_refusal

pytestmark = [pytest.mark.interop, pytest.mark.kafka]

SERVICE = "kafka/127.0.0.1"
SESSION_MS = 2000
TICKET_S = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Realm:
    kdc: Kdc
    sandbox: Sandbox
    alice: Path
    """Her keytab."""

    def servers(self, listener: str = "KERBEROS") -> str:
        return self.sandbox.listeners[listener]

    def settings(self, jaas: str, **more: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": jaas,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def by_keytab(self, principal: str = f"alice@{REALM}") -> dict[str, str]:
        return self.settings(f'{MODULE} required useKeyTab=true keyTab="{self.alice}" principal="{principal}";')

    def by_cache(self, cache: Path) -> dict[str, str]:
        return self.settings(f'{MODULE} required useTicketCache=true ticketCache="FILE:{cache}";')

    def open(self, settings: Mapping[str, str], listener: str = "KERBEROS") -> BrokerCluster:
        security = client_properties(settings, source="f").security
        return BrokerCluster.open(ConnectionSettings(servers=parse_servers((self.servers(listener),)), security=security))


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        service, alice = kdc.keytab(SERVICE), kdc.keytab("alice")
        login = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "gssapi.sasl.jaas.config": server_module(service, SERVICE),
            "sasl.kerberos.service.name": "kafka",
        }
        spec = SandboxSpec(
            heap_mb=400,
            java_options=(kdc.java_option,),
            listeners=(
                Listener(name="KERBEROS", protocol="SASL_PLAINTEXT", properties=login),
                Listener(
                    name="SESSIONS",
                    protocol="SASL_PLAINTEXT",
                    properties={**login, "gssapi.connections.max.reauth.ms": str(SESSION_MS)},
                ),
            ),
            properties={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS;User:alice",
            },
        )
        with running(spec) as sandbox, in_realm(kdc):
            yield Realm(kdc=kdc, sandbox=sandbox, alice=alice)


def command(realm: Realm, folder: Path, name: str, settings: Mapping[str, str], *more: str) -> Done:
    (folder / "cluster.yaml").write_text(manifests.cluster(prune="never"))
    (folder / "quotas.yaml").write_text(manifests.quotas(({"user": folder.name}, {"producer_byte_rate": 1000.0})))
    (folder / "client.properties").write_text(properties_text(settings))
    arguments = (name, ".", "--bootstrap-server", realm.servers(), "--command-config", "client.properties", *more)
    return run(*arguments, cwd=folder, env=realm.kdc.environment, timeout=120)


def test_a_keytab_plans_and_applies(realm, tmp_path):
    assert command(realm, tmp_path, "plan", realm.by_keytab(), "--detailed-exitcode").code == 2
    applied = command(realm, tmp_path, "apply", realm.by_keytab(), "--auto-approve")

    assert applied.code == 0, applied.err
    has = raw_quotas.describe(realm.sandbox.bootstrap_servers)
    assert has[frozenset({("user", tmp_path.name)})] == {"producer_byte_rate": 1000.0}


def test_a_ticket_of_kinit_is_enough_and_the_service_name_may_stand_in_the_jaas_line(realm, tmp_path):
    cache = tmp_path / "tickets"
    realm.kdc.ticket(realm.alice, "alice", cache=cache)
    settings = realm.settings(f'{MODULE} required useTicketCache=true ticketCache="{cache}" serviceName="kafka";')
    del settings["sasl.kerberos.service.name"]

    assert command(realm, tmp_path, "plan", settings, "--detailed-exitcode").code == 2


def test_a_ticket_that_expires_while_the_connection_lives_is_one_sentence_and_a_new_one_repairs_it(realm, tmp_path):
    """The broker ends sessions after two seconds, so the connection logs in again and again."""
    cache = tmp_path / "tickets"
    realm.kdc.ticket(realm.alice, "alice", cache=cache, seconds=TICKET_S)
    opened = realm.open(realm.by_cache(cache), "SESSIONS")
    try:
        assert opened.describe(EntityFilter()) is not None
        refusal = first_refusal(opened)
        assert "the ticket has expired: run kinit, or name a keytab in sasl.jaas.config" in refusal
        assert str(cache) in refusal

        realm.kdc.ticket(realm.alice, "alice", cache=cache)
        assert opened.describe(EntityFilter()) is not None
    finally:
        opened.close()


def said(done: Done) -> str:
    assert done.code == 1, done.err
    lines = [line for line in done.err.splitlines() if line.startswith("kafka-quotas: ")]
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    return lines[0]


def test_without_any_ticket_the_remedy_is_kinit(realm, tmp_path):
    line = said(command(realm, tmp_path, "plan", realm.by_cache(tmp_path / "none")))

    assert "the ticket cache is empty: run kinit, or name a keytab in sasl.jaas.config" in line


def test_a_keytab_older_than_the_last_password_is_named(realm, tmp_path):
    keytab = realm.kdc.keytab("carol")
    realm.kdc.renew_key("carol")
    settings = realm.settings(f'{MODULE} required useKeyTab=true keyTab="{keytab}" principal="carol@{REALM}";')
    line = said(command(realm, tmp_path, "plan", settings))

    assert f"carol@{REALM}" in line
    assert "the KDC refuses the key of the client" in line


def test_without_the_right_the_acl_names_the_short_name_of_the_principal(realm, tmp_path):
    keytab = realm.kdc.keytab("dave/admin")
    settings = realm.settings(f'{MODULE} required useKeyTab=true keyTab="{keytab}" principal="dave/admin@{REALM}";')
    line = said(command(realm, tmp_path, "plan", settings)).replace("'", "")

    assert "--allow-principal User:dave --operation DescribeConfigs" in line


@pytest.mark.parametrize(
    ("listening", "reason"), [(False, "answers: check that it is up"), (True, "answers within 10 s")], ids=["down", "silent"]
)
def test_a_kdc_that_does_not_answer_is_one_sentence(realm, tmp_path, listening, reason):
    realm.kdc.stop()
    try:
        with socket.create_server(("127.0.0.1", realm.kdc.port)) if listening else contextlib.nullcontext():
            line = said(command(realm, tmp_path, "plan", realm.by_keytab()))
    finally:
        realm.kdc.start()

    assert f"no KDC of the realm {reason}" in line
