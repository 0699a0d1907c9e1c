"""``--trusted-ref``: a pull request swaps neither the ZooKeeper nor an authority, a certificate or a token."""

from __future__ import annotations

import secrets

import pytest

from tests.support.certificates import Authority
from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas

TRUST = "security.protocol=SSL\nssl.truststore.type=PKCS12\nssl.truststore.location=secret/file\nssl.truststore.password=x\n"
OAUTH = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=file://{}/secret/file\n"
    "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;\n"
)

ZOOKEEPER_TLS = (
    "zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.type=PEM\nzookeeper.ssl.truststore.location={}/secret/file\n"
)
BROKERS = {"bootstrapServers": ["127.0.0.1:1"]}


def trust_store() -> bytes:
    return Authority().trust_store("x")


def token() -> bytes:
    return secrets.token_hex(9).encode()


def authority() -> bytes:
    return Authority().pem.encode()


@pytest.mark.parametrize(
    ("properties", "content", "place"),
    [(TRUST, trust_store, BROKERS), (OAUTH, token, BROKERS), (ZOOKEEPER_TLS, authority, {"zookeeper": "127.0.0.1:1/kafka"})],
)
def test_a_pull_request_cannot_swap_a_file_that_the_properties_name(properties, content, place, tmp_path):
    made = GitRepository(tmp_path / "repository")
    (made.folder / "secret").mkdir()
    made.write("prod.yaml", cluster(connection={**place, "properties": "client.properties"}))
    made.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1000})))
    made.write("client.properties", properties.format(made.folder))
    (made.folder / "secret/file").write_bytes(content())
    made.commit()
    made.branch()
    same = invoke("plan", "--trusted-ref", "main", cwd=made.folder)
    assert same.code == 1
    assert "127.0.0.1:1: connection refused" in same.err or "ZooKeeper at 127.0.0.1:1 cannot be reached" in same.err
    (made.folder / "secret/file").write_bytes(content())
    made.commit()
    swapped = invoke("plan", "--trusted-ref", "main", cwd=made.folder)
    assert swapped.code == 3
    assert "differs from main. A change to it counts only after merge" in swapped.err


def test_another_zookeeper_counts_only_after_merge(tmp_path):
    made = GitRepository(tmp_path / "repository")
    made.write("prod.yaml", cluster(connection={"zookeeper": "127.0.0.1:1/kafka"}))
    made.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1000})))
    made.commit()
    made.branch()
    made.write("prod.yaml", cluster(connection={"zookeeper": "127.0.0.2:2/mine"}))
    made.commit()

    assert "ZooKeeper at 127.0.0.1:1 " in invoke("plan", "--trusted-ref", "main", cwd=made.folder).err
    assert "ZooKeeper at 127.0.0.2:2 " in invoke("plan", cwd=made.folder).err
