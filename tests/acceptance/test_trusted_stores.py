"""``--trusted-ref`` and what a properties file names: a pull request cannot swap an authority, a certificate or a token."""

from __future__ import annotations

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


@pytest.mark.parametrize("kind", ["trust store", "token"])
def test_a_pull_request_cannot_swap_a_file_that_the_properties_name(kind, tmp_path):
    made = GitRepository(tmp_path / "repository")
    (made.folder / "secret").mkdir()
    contents = [Authority().trust_store("x"), Authority().trust_store("x")] if kind == "trust store" else [b"a.b.c", b"d.e.f"]
    made.write("prod.yaml", cluster(connection={"bootstrapServers": ["127.0.0.1:1"], "properties": "client.properties"}))
    made.write("quotas.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": 1000})))
    made.write("client.properties", TRUST if kind == "trust store" else OAUTH.format(made.folder))
    (made.folder / "secret/file").write_bytes(contents[0])
    made.commit()
    made.branch()
    same = invoke("plan", "--trusted-ref", "main", cwd=made.folder)
    assert "127.0.0.1:1: connection refused" in same.err
    (made.folder / "secret/file").write_bytes(contents[1])
    made.commit()
    swapped = invoke("plan", "--trusted-ref", "main", cwd=made.folder)
    assert swapped.code == 3
    assert "differs from main. A change to it counts only after merge" in swapped.err
