"""Where ZooKeeper is and how to log in there, as the command line, Cluster manifests and properties files say it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.backends.security.logins import SaslLogin
from reconciler.backends.zookeeper.login import DigestError, digest_answer
from reconciler.backends.zookeeper.settings import (
    connection_text,
    parse_connection,
    parse_zookeeper_properties,
    zookeeper_security,
)
from reconciler.errors import UsageError
from reconciler.workflows.intent import validate_manifests
from tests.support.certificates import Authority

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
SECRET = "s3cr3t-horse"


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk1:2181", (("zk1", 2181),), ""),
        ("zk1", (("zk1", 2181),), ""),
        ("zk1:2181,zk2:2182/kafka", (("zk1", 2181), ("zk2", 2182)), "/kafka"),
        (" zk1:1 , zk2:2/a/b/ ", (("zk1", 1), ("zk2", 2)), "/a/b"),
        ("[::1]:2181/k", (("::1", 2181),), "/k"),
        ("[::1]", (("::1", 2181),), ""),
        ("zk1:2181/", (("zk1", 2181),), ""),
    ],
)
def test_a_connection_is_servers_and_a_chroot(text: str, servers: tuple[tuple[str, int], ...], chroot: str) -> None:
    assert parse_connection(text) == (servers, chroot)
    assert parse_connection(connection_text(servers, chroot)) == (servers, chroot)


@pytest.mark.parametrize(
    "text",
    ["", "/kafka", ",", "zk1:0", "zk1:65536", "zk1:x", "::1:2181", "z k:1", "zk:1//a", "zk:1/a/../b", "zk:1/a\nb", ":2181"],
)
def test_what_is_no_connection_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_connection(text)


def test_the_login_is_a_jaas_line() -> None:
    line = f'{MODULE} required username="kafka" password="{SECRET}";'
    found = zookeeper_security({"zookeeper.sasl.jaas.config": line}, source="x")
    assert found.login == SaslLogin(mechanism="DIGEST-MD5", username="kafka", password=SECRET)
    assert (found.principal, found.tls, found.files) == ("kafka", None, ())
    assert SECRET not in repr(found)
    off = zookeeper_security({"zookeeper.sasl.jaas.config": line, "zookeeper.sasl.client": "false"}, source="x")
    assert off.login is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f'{MODULE} required username="{SECRET}"', "semicolon"),
        (f'com.sun.security.auth.module.Krb5LoginModule required keyTab="{SECRET}";', "useTicketCache=true"),
        (f'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="{SECRET}";', "keyTab and principal"),
        (f'org.example.LoginModule required password="{SECRET}";', "DigestLoginModule"),
        (f'{MODULE} required username="kafka";', "the username or the password is missing"),
        (f'{MODULE} required password="{SECRET}";', "the username or the password is missing"),
    ],
)
def test_a_jaas_line_that_cannot_be_used_is_refused_without_repeating_it(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=rf"x: zookeeper\.sasl\.jaas\.config: .*{words}") as raised:
        zookeeper_security({"zookeeper.sasl.jaas.config": line}, source="x")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("suffix", ["p12", "pfx", "pem"])
def test_a_store_s_kind_is_told_by_its_name(tmp_path, suffix: str) -> None:
    authority = Authority()
    store = tmp_path / f"trust.{suffix}"
    store.write_bytes(authority.pem.encode() if suffix == "pem" else authority.trust_store(SECRET))
    settings = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.truststore.location": str(store),
        "zookeeper.ssl.truststore.password": SECRET,
    }
    tls = zookeeper_security(settings, source="x").tls
    assert tls is not None
    assert (tls.check_host_name, tls.files) == (True, (str(store),))
    settings["zookeeper.ssl.endpoint.identification.algorithm"] = ""
    unchecked = zookeeper_security(settings, source="x").tls
    assert unchecked is not None
    assert unchecked.check_host_name is False


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"zookeeper.ssl.client.enable": "yes"}, r"zookeeper\.ssl\.client\.enable: write true or false"),
        (
            {"zookeeper.ssl.client.enable": "true", "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"},
            r"zookeeper\.clientCnxnSocket: TLS needs org\.apache\.zookeeper\.ClientCnxnSocketNetty",
        ),
        (
            {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": "{jks}"},
            r"zookeeper\.ssl\.truststore\.location: .* the file is a JKS .* \(zookeeper\.ssl\.truststore\.password\)",
        ),
        (
            {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.keystore.location": "{key}"},
            r"zookeeper\.ssl\.keystore\.location: .* or zookeeper\.ssl\.keystore\.password is wrong",
        ),
    ],
)
def test_what_tls_cannot_use_is_named_as_it_is_in_the_file(tmp_path, settings: dict[str, str], words: str) -> None:
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed" + b"x" * 20)
    (tmp_path / "key.pem").write_text(Authority().sign("me").pem(SECRET))
    places = {"{jks}": str(tmp_path / "store.jks"), "{key}": str(tmp_path / "key.pem")}
    with pytest.raises(UsageError, match=words):
        zookeeper_security({key: places.get(value, value) for key, value in settings.items()}, source="x")


def test_the_example_of_the_rfc_comes_out() -> None:
    """RFC 2831, section 4, with the algorithm's name that it leaves out."""
    challenge = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
    answer = digest_answer(
        challenge, username="chris", password="secret", uri="imap/elwood.innosoft.com", cnonce="OA6MHXh6VqTrRk"
    )
    assert b"response=d388dad90d4bbd760a152321f2143af7" in answer.token
    answer.check(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")
    for wrong in (b"rspauth=ea40f60335c427b5527b84dbabcdfffe", b"", b"rspauth"):
        with pytest.raises(DigestError):
            answer.check(wrong)
    assert "secret" not in repr(answer)


@pytest.mark.parametrize(
    "challenge",
    [b"", b'nonce="a"', b'nonce="a",algorithm=md5', b'nonce="a",algorithm=md5-sess,qop="auth-conf"', b'nonce="a', b"\xff"],
)
def test_a_challenge_that_asks_for_something_else_is_refused(challenge: bytes) -> None:
    with pytest.raises(DigestError):
        digest_answer(challenge, username="a", password="b", uri="c/d", cnonce="e")


@pytest.mark.parametrize("text", [SECRET, f":{SECRET}"])
def test_a_digest_is_a_user_and_a_password(text: str) -> None:
    assert zookeeper_security({"zookeeper.auth.digest": f"ops:{SECRET}"}, source="x").digest == f"ops:{SECRET}"
    with pytest.raises(UsageError, match=r"zookeeper\.auth\.digest: write USER:PASSWORD") as refused:
        zookeeper_security({"zookeeper.auth.digest": text}, source="x")
    assert SECRET not in str(refused.value)


PAGE = (Path(__file__).parents[3] / "docs" / "zookeeper.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_properties_log_in_over_tls(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "quotas.pem").write_text(authority.sign("kafka").pem())
    text, _ = blocks("properties")
    there = text.replace("/etc/kafka-quotas", str(tmp_path))
    security = parse_zookeeper_properties(there.encode(), source="docs/zookeeper.md")

    assert security.principal == "kafka"
    assert {Path(file).name for file in security.files} == {"ca.pem", "quotas.pem"}


def test_the_kerberos_line_names_the_brokers_principal_and_their_keytab() -> None:
    _, text = blocks("properties")
    security = parse_zookeeper_properties(text.encode(), source="docs/zookeeper.md")

    assert (security.principal, security.files) == ("kafka@EXAMPLE.COM", ("/etc/kafka-quotas/kafka.keytab",))


def test_the_cluster_document_is_good(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    (tmp_path / "cluster.yaml").write_text(text, encoding="utf-8")

    assert validate_manifests([str(tmp_path)]).findings == ()
