"""A real broker with a listener for every way to be let in, principals with different rights, and their properties files."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import plain_server_module, properties_text
from reconciler.features.sandbox.spec import Listener, Login, Sandbox, SandboxSpec
from tests.support.certificates import Authority, Certified

MARK = "s3cr3t-horse"
"""Part of every password here, so that one search finds any of them."""

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

RIGHTS = {
    "writer": "ALTER_CONFIGS",
    "scram-writer": "ALTER_CONFIGS",
    "token-writer": "ALTER_CONFIGS",
    "CN=writer": "ALTER_CONFIGS",
    "reader": "DESCRIBE_CONFIGS",
    "CN=reader": "DESCRIBE_CONFIGS",
}
"""The one operation on the cluster that each principal may do; nobody else may do anything."""

USERS = ("writer", "reader", "stranger", "newcomer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredKafka:
    """The broker, its authority, and where files can be written."""

    sandbox: Sandbox
    authority: Authority
    folder: Path

    def servers(self, listener: str) -> str:
        """The bootstrap string of a listener."""
        return self.sandbox.listeners[listener]

    def properties(self, name: str, settings: Mapping[str, str]) -> Path:
        """A client.properties file that trusts the authority, unless ``settings`` say otherwise."""
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}
        path = self.folder / f"{name}.properties"
        path.write_text(properties_text({**trust, **settings}), "ascii")
        return path

    def store(self, name: str, content: str | bytes) -> str:
        """A file."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)


def password(user: str) -> str:
    """The password of a user."""
    return f"{user}-{MARK}"


def login(mechanism: str, user: str, *, secret: str | None = None, protocol: str = "SASL_SSL") -> dict[str, str]:
    """The settings with which a user logs in."""
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    jaas = f'{module} required username="{user}" password="{secret or password(user)}";'
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def token(subject: str, *, valid_seconds: int = 3600) -> str:
    """A token that Kafka's validator for development takes: signed by nobody."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now - 60, "exp": now + valid_seconds, "note": MARK})
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts), ""])


def oauth(file: str) -> dict[str, str]:
    """The settings with which the token in a file is shown."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH} required;",
        "sasl.oauthbearer.token.endpoint.url": Path(file).as_uri(),
    }


def mutual(kafka: SecuredKafka, certified: Certified, name: str) -> dict[str, str]:
    """The settings with which a certificate is shown, from a PKCS12 store."""
    return {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": kafka.store(f"{name}.p12", certified.pkcs12(MARK)),
        "ssl.keystore.password": MARK,
    }


@contextlib.contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """Start it, with SCRAM users and ACLs."""
    authority = Authority()
    good = authority.sign("localhost")
    (folder / "ca.pem").write_text(authority.pem)

    def tls(name: str, certified: Certified) -> dict[str, str]:
        (folder / f"{name}.pem").write_text(certified.pem())
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / f"{name}.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
        }

    logins = tuple(Login(name=user, password=password(user)) for user in USERS)
    every_login = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "plain.sasl.jaas.config": plain_server_module(logins),
        "scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "oauthbearer.sasl.jaas.config": f'{OAUTH} required unsecuredLoginStringClaim_sub="broker";',
    }
    spec = SandboxSpec(
        users=logins,
        heap_mb=400,
        listeners=(
            Listener(name="LOGIN", protocol="SASL_SSL", properties={**tls("good", good), **every_login}),
            Listener(name="MUTUAL", protocol="SSL", properties={**tls("good", good), "ssl.client.auth": "required"}),
            Listener(
                name="MUTUAL_OLD",
                protocol="SSL",
                properties={**tls("good", good), "ssl.client.auth": "required", "ssl.enabled.protocols": "TLSv1.2"},
            ),
            Listener(name="EXPIRED", protocol="SSL", properties=tls("expired", authority.sign("old", expired=True))),
            Listener(
                name="ELSEWHERE", protocol="SSL", properties=tls("elsewhere", authority.sign("x", hosts=("elsewhere.example",)))
            ),
        ),
        properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",  # whoever comes through the plaintext listener: the broker itself, and this set-up
        },
    )
    with running(spec) as sandbox:
        _grant(sandbox.bootstrap_servers)
        yield SecuredKafka(sandbox=sandbox, authority=authority, folder=folder)


def _grant(servers: str) -> None:
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        KafkaAdminClient,
        ResourcePattern,
        ResourceType,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    acls = [
        ACL(f"User:{name}", "*", ACLOperation[operation], ACLPermissionType.ALLOW, cluster) for name, operation in RIGHTS.items()
    ]
    scram = [
        UserScramCredentialUpsertion("scram-writer", mechanism, password("scram-writer"))
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    client = KafkaAdminClient(bootstrap_servers=servers.split(","))
    try:
        assert client.create_acls(acls)["failed"] == []
        for credential in scram:  # one a request: Kafka takes no user twice
            assert not any(client.alter_user_scram_credentials([credential]).values())
    finally:
        client.close()
