"""Kafka's client.properties: what is taken, what is refused, and that no secret is repeated."""

from __future__ import annotations

import traceback

import pytest

from reconciler.backends.broker.settings import SaslLogin, Security, client_properties, parse_client_properties
from reconciler.backends.security.properties_file import parse_jaas
from reconciler.backends.security.tls import Tls
from reconciler.errors import UsageError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
SECRET = "s3cret-horse"


TOKENS = {"sasl_oauthbearer_token_endpoint_url": "https://id.example/token"}


def sasl(mechanism: str = "PLAIN", jaas: str = f'{PLAIN} required username="alice" password="{SECRET}";', **changes: str):
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return settings | {key.replace("_", "."): value for key, value in changes.items()}


def test_what_does_not_matter_for_connecting_is_ignored():
    found = client_properties({"acks": "all", "bootstrap.servers": "x:1", "client.id": "ci"}, source="f")
    assert (found.security, found.client_id) == (Security(), "ci")


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM), ("plain", PLAIN)]
)
def test_names_and_passwords(mechanism, module):
    jaas = f'{module} required username="alice" password="{SECRET}";'
    found = client_properties(sasl(mechanism, jaas), source="f").security
    assert found == Security(sasl=SaslLogin(mechanism=mechanism.upper(), username="alice", password=SECRET))
    assert found.protocol == "SASL_PLAINTEXT"


def test_a_file_is_read_as_java_reads_it(tmp_path):
    path = tmp_path / "client.properties"
    path.write_bytes(
        b"# comment\r\n! another\r\n  security.protocol : SASL_PLAINTEXT\r\nsasl.mechanism=PLAIN\r\n"
        b"sasl.jaas.config="
        + PLAIN.encode()
        + b' required \\\r\n   username="m\xfcller" \\\r\n   password=\'\\u20ac;=\\\\"\';\r\n'
    )
    assert parse_client_properties(path.read_bytes(), source="f").security.sasl == SaslLogin(
        mechanism="PLAIN", username="müller", password='€;="'
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('M required username="a" password="b";', {"username": "a", "password": "b"}),
        ("M required\n username='a'\n password='b c' ;", {"username": "a", "password": "b c"}),
        ('M required username=a password="\\"\\\\\\t\\101;=";', {"username": "a", "password": '"\\\tA;='}),
        ("M optional;", {}),
        ('M REQUIRED /* why */ username = "a" // how\n password="b";', {"username": "a", "password": "b"}),
    ],
)
def test_a_jaas_line_is_read_as_kafka_reads_it(text, options):
    line = parse_jaas(text, setting="sasl.jaas.config")
    assert (line.module, line.options) == ("M", options)
    assert "password" not in repr(line)


@pytest.mark.parametrize(
    "text",
    [
        "", "M", f'M username="a" password="{SECRET}";', f'M required password="{SECRET}"', f'M required password="{SECRET};',
        f"M required password {SECRET};", f'M required; N required password="{SECRET}";', f"M required password={SECRET} = x;",
        f"M required {SECRET};",
    ],
)  # fmt: skip
def test_a_broken_jaas_line_is_refused_without_repeating_it(text):
    with pytest.raises(UsageError, match=r"^f: sasl\.jaas\.config: ") as refused:
        client_properties(sasl(jaas=text), source="f")
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is not one of PLAINTEXT"),
        (sasl("GSSAPI"), "is not the Krb5LoginModule that GSSAPI takes"),
        ({"security.protocol": "SASL_SSL"}, "GSSAPI needs com.sun.security.auth.module.Krb5LoginModule required"),
        (sasl("GSSAPI", f"{KERBEROS} required;"), "sasl.kerberos.service.name: the value is missing"),
        (
            sasl("GSSAPI", f"{KERBEROS} required serviceName=kafka;"),
            "write useKeyTab=true with keyTab and principal, or useTicketCache=true",
        ),
        (sasl("GSSAPI", f"{KERBEROS} required serviceName=kafka useKeyTab=true;"), "useKeyTab=true needs keyTab and principal"),
        (sasl(sasl_mechanism="AWS_MSK_IAM"), "is not the IAMLoginModule that AWS_MSK_IAM takes"),
        (sasl("DIGEST-MD5"), "sasl.mechanism: DIGEST-MD5 is not supported"),
        (sasl("OAUTHBEARER"), "is not the OAuthBearerLoginModule"),
        (sasl("OAUTHBEARER", f"{OAUTH} required;"), "write the address of a token endpoint"),
        (
            sasl("OAUTHBEARER", f"{OAUTH} required;", **TOKENS),
            "sasl.oauthbearer.client.credentials.client.id: the value is missing",
        ),
        (
            sasl(
                "OAUTHBEARER",
                f'{OAUTH} required clientId="a" clientSecret="{SECRET}";',
                sasl_oauthbearer_token_endpoint_url="http://id.example/token",
            ),
            "sasl.oauthbearer.token.endpoint.url: write https:",
        ),
        (
            sasl("OAUTHBEARER", f"{OAUTH} required;", **TOKENS, sasl_oauthbearer_jwt_retriever_class="org.example.Retriever"),
            "sasl.oauthbearer.jwt.retriever.class: Java classes cannot be used here",
        ),
        (sasl(sasl_login_callback_handler_class="org.example.H"), "sasl.login.callback.handler.class: Java classes"),
        ({"security.protocol": "SSL", "ssl.engine.factory.class": "org.example.F"}, "ssl.engine.factory.class: Java classes"),
        (sasl("SCRAM-SHA-256"), "is not the ScramLoginModule"),
        (sasl(jaas=f'{PLAIN} required username="alice";'), "the username or the password is missing"),
        (sasl("SCRAM-SHA-256", f'{SCRAM} required username="a" password="b" tokenauth="true";'), "delegation tokens"),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/x.bks", "ssl.keystore.type": "BCFKS"},
            "ssl.keystore.type: BCFKS stores are not supported",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": "-----BEGIN"},
            "ssl.truststore.certificates: PEM text in the properties file needs ssl.truststore.type=PEM",
        ),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "x"}, "ssl.endpoint.identification.algorithm: "),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(changes, message):
    with pytest.raises(UsageError) as refused:
        client_properties(changes, source="client.properties")
    assert str(refused.value).startswith("client.properties: ")
    assert message in str(refused.value)
    assert SECRET not in str(refused.value)


def test_tls_without_stores_trusts_the_system_and_checks_names():
    found = client_properties({"security.protocol": "SSL"}, source="f").security
    assert (found.protocol, found.tls) == ("SSL", Tls())
    relaxed = client_properties({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}, source="f")
    assert relaxed.security.tls == Tls(check_host_name=False)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_store_that_is_no_pem_file_is_named(store, tmp_path):
    (tmp_path / "ca.pem").write_text("this is no certificate")
    for path, reason in [(tmp_path / "ca.pem", "PEM"), (tmp_path / "none.pem", "No such file"), (tmp_path, "ssl\\.")]:
        settings = {"security.protocol": "SSL", f"ssl.{store}.type": "PEM", f"ssl.{store}.location": str(path)}
        with pytest.raises(UsageError, match=reason) as refused:
            client_properties(settings, source="f")
        assert f"ssl.{store}.location" in str(refused.value)


def test_a_malformed_escape_is_refused_without_the_line(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(f"password={SECRET}\\uXYZ")
    with pytest.raises(UsageError, match="not a Java properties file") as refused:
        parse_client_properties(path.read_bytes(), source="f")
    assert SECRET not in str(refused.value)
    assert "XYZ" not in "".join(traceback.format_exception(refused.value))


def test_secrets_are_in_no_repr():
    login = SaslLogin(mechanism="PLAIN", username="alice", password=SECRET)
    assert SECRET not in repr(Security(sasl=login, tls=Tls(key_password=SECRET)))
