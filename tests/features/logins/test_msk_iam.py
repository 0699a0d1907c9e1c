"""AWS_MSK_IAM: credentials that botocore finds or a role gives, and signatures as Amazon's own signer makes them."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.credentials import CredentialProvider, Credentials

from reconciler.backends.broker.connections import login_settings
from reconciler.backends.broker.settings import client_properties
from reconciler.errors import AuthenticationError, UsageError
from reconciler.features.logins.kinds import IamIdentity, IamLogin

KEY = "AKIAEXAMPLEEXAMPLE"
SECRET = "s3cr3t-horse-of-aws"
TOKEN = "session+token/with=signs"
REGION = "eu-west-1"
BROKER = f"b-1.demo.a1b2c3.c2.kafka.{REGION}.amazonaws.com"
MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
def nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials but those of the test, and no look at instance metadata."""
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none either"))


@pytest.fixture
def one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is signed at the same second."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: NOW)


def in_environment(monkeypatch: pytest.MonkeyPatch, token: str | None = TOKEN) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    if token is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)


class _Given(CredentialProvider):
    def __init__(self, token: str | None) -> None:
        super().__init__()
        self._token = token

    def load(self) -> Credentials:
        return Credentials(KEY, SECRET, self._token)


def signed_parts(token: str) -> dict[str, str]:
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    return dict(parse_qsl(urlsplit(url).query)) | {"host": urlsplit(url).netloc}


@pytest.mark.parametrize("session_token", [TOKEN, None])
def test_the_message_has_the_signature_of_the_vendors_signer_for_that_host(session_token, one_moment, monkeypatch):
    in_environment(monkeypatch, session_token)
    monkeypatch.setattr(MSKAuthTokenProvider, "ENDPOINT_URL_TEMPLATE", f"https://{BROKER}/")
    vendors, _ = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(REGION, _Given(session_token))
    message = json.loads(IamIdentity(IamLogin()).message(BROKER))
    theirs = {name.lower(): value for name, value in signed_parts(vendors).items() if name != "User-Agent"}

    assert {name: value for name, value in message.items() if name not in ("version", "user-agent")} == theirs
    assert message["version"] == "2020_10_22"
    assert SECRET not in json.dumps(message)


def test_a_profile_of_the_jaas_line_is_used_and_a_role_beside_it_is_refused(tmp_path, monkeypatch):
    (tmp_path / "credentials").write_text(f"[quotas]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
    jaas = f'{MODULE} required awsProfileName="quotas";'
    login = client_properties(settings | {"sasl.jaas.config": jaas}, source="f").security.sasl
    assert isinstance(login, IamLogin)
    assert KEY in IamIdentity(login).message(BROKER).decode()
    with pytest.raises(UsageError, match="awsRoleArn is not supported: name a profile"):
        client_properties(settings | {"sasl.jaas.config": f'{MODULE} required awsRoleArn="arn";'}, source="f")


def test_without_credentials_the_sentence_names_where_they_were_sought():
    with pytest.raises(AuthenticationError, match="neither the environment, a profile, a web identity nor instance metadata"):
        IamIdentity(IamLogin()).message(BROKER)


def test_a_host_that_shows_no_region_needs_one(monkeypatch):
    in_environment(monkeypatch)
    with pytest.raises(AuthenticationError, match=r"region of kafka\.internal is unknown.*AWS_DEFAULT_REGION"):
        IamIdentity(IamLogin()).message("kafka.internal")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    assert f"/{REGION}/kafka-cluster/" in IamIdentity(IamLogin()).message("kafka.internal").decode()


def test_the_message_goes_through_the_librarys_mechanism(monkeypatch):
    in_environment(monkeypatch)
    from kafka.net.sasl import get_sasl_mechanism

    settings = login_settings(IamLogin(), host=BROKER)
    mechanism = get_sasl_mechanism(settings["sasl_mechanism"])(host=BROKER, **settings)
    assert json.loads(mechanism.auth_bytes())["host"] == BROKER
    mechanism.receive(b'{"version":"2020_10_22","request-id":"r"}')
    assert (mechanism.is_done(), mechanism.is_authenticated()) == (True, True)


def test_iam_needs_tls_and_amazons_handler_is_no_foreign_class():
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": f"{MODULE} required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }
    assert client_properties(settings, source="f").security.sasl == IamLogin()
    with pytest.raises(UsageError, match=r"security\.protocol: logins with IAM need SASL_SSL"):
        client_properties(settings | {"security.protocol": "SASL_PLAINTEXT"}, source="f")
