"""OAUTHBEARER with a token endpoint: a real broker checks the signature of each token with the endpoint's published keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
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
from tests.support.certificates import Authority
from tests.support.command import Done, run
from tests.support.polling import wait_until
from tests.support.refused_logins import first_refusal
from tests.support.secured_kafka import MARK, OAUTH
from tests.support.token_server import AUDIENCE, CLIENT_ID, ISSUER, SECRET, TokenServer, token_server

pytestmark = pytest.mark.kafka

VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
CLIENT = "sasl.oauthbearer.client.credentials.client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A broker and the provider that it believes."""

    sandbox: Sandbox
    endpoint: TokenServer
    folder: Path

    def settings(self, **more: str) -> dict[str, str]:
        """With the endpoint's own authority, and no proof of identity yet."""
        trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{self.folder / "ca.pem"}"'
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH} required {trust};",
            "sasl.oauthbearer.token.endpoint.url": self.endpoint.url,
            **more,
        }

    def by_secret(self, **more: str) -> dict[str, str]:
        return self.settings(
            **{f"{CLIENT}.id": CLIENT_ID, f"{CLIENT}.secret": SECRET, "sasl.oauthbearer.scope": "quotas", **more}
        )

    def session(self) -> BrokerCluster:
        """A connection that the broker ends with its token."""
        security = client_properties(self.by_secret(), source="f").security
        servers = parse_servers((self.sandbox.listeners["SESSIONS"],))
        return BrokerCluster.open(ConnectionSettings(servers=servers, security=security))


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    folder = tmp_path_factory.mktemp("provider")
    authority = Authority()
    (folder / "ca.pem").write_text(authority.pem)
    with token_server(folder, authority) as endpoint:
        jwks = endpoint.jwks().as_uri()
        login = {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": f"{OAUTH} required;",
            "oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": jwks,
            "oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            "oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        }
        reauth = {**login, "oauthbearer.connections.max.reauth.ms": "3000"}
        spec = SandboxSpec(
            heap_mb=400,
            java_options=(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks}",),
            listeners=(
                Listener(name="TOKENS", protocol="SASL_PLAINTEXT", properties=login),
                Listener(name="SESSIONS", protocol="SASL_PLAINTEXT", properties=reauth),
            ),
            properties={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS;User:token-writer",
            },
        )
        with running(spec) as sandbox:
            yield Provider(sandbox=sandbox, endpoint=endpoint, folder=folder)


@pytest.fixture(autouse=True)
def _well_behaved(provider: Provider) -> Iterator[None]:
    yield
    endpoint = provider.endpoint
    endpoint.valid_seconds, endpoint.status, endpoint.failures, endpoint.redirect_to = 3600, 200, 0, None
    endpoint.requests.clear()


def command(provider: Provider, folder: Path, name: str, settings: Mapping[str, str], *more: str) -> Done:
    (folder / "cluster.yaml").write_text(manifests.cluster(prune="never"))
    (folder / "quotas.yaml").write_text(manifests.quotas(({"user": folder.name}, {"producer_byte_rate": 1000.0})))
    (folder / "client.properties").write_text(properties_text(settings))
    servers = provider.sandbox.listeners["TOKENS"]
    done = run(
        name, ".", "--bootstrap-server", servers, "--command-config", "client.properties", "-vv", *more, cwd=folder, timeout=120
    )
    assert MARK not in done.out + done.err
    assert "eyJ" not in done.out + done.err  # what every token and assertion begins with
    assert "Basic cXVv" not in done.out + done.err  # the client id and the secret in base64
    return done


def said(done: Done) -> str:
    assert done.code == 1, done.err
    return done.err.rstrip("\n").splitlines()[-1]


def test_a_client_secret_plans_and_applies(provider, tmp_path):
    assert command(provider, tmp_path, "plan", provider.by_secret(), "--detailed-exitcode").code == 2
    assert [request["scope"] for request in provider.endpoint.requests] == ["quotas"]
    applied = command(provider, tmp_path, "apply", provider.by_secret(), "--auto-approve")

    assert applied.code == 0, applied.err
    has = raw_quotas.describe(provider.sandbox.bootstrap_servers)
    assert has[frozenset({("user", tmp_path.name)})] == {"producer_byte_rate": 1000.0}


def test_the_options_of_older_clients_in_the_jaas_line_are_taken_too(provider, tmp_path):
    settings = provider.settings()
    options = f'clientId="{CLIENT_ID}" clientSecret="{SECRET}" scope="old";'
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].removesuffix(";") + f" {options}"

    assert command(provider, tmp_path, "plan", settings, "--detailed-exitcode").code == 2
    assert [request["scope"] for request in provider.endpoint.requests] == ["old"]


def test_an_endpoint_that_fails_for_a_moment_is_asked_again(provider, tmp_path):
    provider.endpoint.failures = 2

    assert command(provider, tmp_path, "plan", provider.by_secret(), "--detailed-exitcode").code == 2
    assert len(provider.endpoint.requests) == 3


def test_tokens_are_renewed_before_they_expire_while_the_connection_lives(provider):
    """The broker ends a session with its token, so only a client with newer tokens stays connected."""
    provider.endpoint.valid_seconds = 4
    with closing(provider.session()) as opened:

        def renewed() -> bool:
            assert opened.describe(EntityFilter()) is not None
            return len(provider.endpoint.requests) >= 4

        wait_until(renewed)


def test_a_token_that_expired_mid_run_because_the_endpoint_refuses_is_one_sentence(provider):
    provider.endpoint.valid_seconds = 4
    with closing(provider.session()) as opened:
        assert opened.describe(EntityFilter()) is not None
        provider.endpoint.status = 401
        refusal = first_refusal(opened)
    assert refusal.startswith(f"No token from {provider.endpoint.url}: the endpoint answers with HTTP status 401 (invalid_client")


def test_a_wrong_secret_is_refused_with_the_words_of_the_endpoint(provider, tmp_path):
    line = said(command(provider, tmp_path, "plan", provider.by_secret(**{f"{CLIENT}.secret": f"wrong-{MARK}"})))

    assert "HTTP status 401 (invalid_client: bad credentials" in line
    assert "Check the client_id" in line


def test_an_endpoint_with_another_authority_is_named_with_the_options_that_repair_it(provider, tmp_path):
    settings = provider.by_secret() | {"sasl.jaas.config": f"{OAUTH} required;"}
    line = said(command(provider, tmp_path, "plan", settings))

    assert "the endpoint's certificate is not trusted (" in line
    assert "ssl.truststore.location into sasl.jaas.config" in line


def test_a_redirect_is_not_followed_for_the_request_has_the_secret(provider, tmp_path):
    provider.endpoint.redirect_to = "https://elsewhere.example/"
    line = said(command(provider, tmp_path, "plan", provider.by_secret()))

    assert "the endpoint answers with HTTP status 307" in line
