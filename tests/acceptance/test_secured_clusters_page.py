"""The properties files that docs/secured-clusters.md shows are taken as they stand."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from reconciler.backends.broker.settings import SaslLogin, Security, parse_client_properties
from reconciler.features.logins.kerberos import KerberosLogin
from reconciler.features.logins.kinds import IamLogin
from reconciler.features.logins.tokens import TokenEndpoint, TokenFile
from tests.support.certificates import Authority

PAGE = (Path(__file__).parents[2] / "docs" / "secured-clusters.md").read_text("utf-8")
BLOCKS = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = [text for text in BLOCKS if text.startswith("security.protocol=")]
TOKEN_FILE, REFERENCES = (text for text in BLOCKS if text not in EXAMPLES)
(ENDPOINT,) = (text for text in EXAMPLES if "OAUTHBEARER" in text)
PASSWORD = "change-me"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files of the examples are, and the variables that they name."""
    authority = Authority()
    client = authority.sign("quotas-apply")
    for name in ("ca.pem", "id-ca.pem"):
        (tmp_path / name).write_text(authority.pem)
    (tmp_path / "trust.p12").write_bytes(authority.trust_store(PASSWORD))
    (tmp_path / "client.p12").write_bytes(client.pkcs12(PASSWORD))
    (tmp_path / "client.pem").write_text(client.pem(PASSWORD))
    (tmp_path / "token").write_text("a.b.c\n")
    (tmp_path / "kafka.properties").write_text(f"keystore.password={PASSWORD}\n")
    (tmp_path / "key-password").write_text(f"{PASSWORD}\n")
    for name in ("QUOTAS_CLIENT_SECRET", "KAFKA_PASSWORD"):
        monkeypatch.setenv(name, PASSWORD)
    return tmp_path


def read(text: str, folder: Path) -> Security:
    here = text.replace("/etc/kafka-quotas", str(folder)).replace("/run/secrets", str(folder))
    return parse_client_properties(here.encode(), source="example").security


@pytest.mark.parametrize("text", EXAMPLES, ids=[re.sub(r"\W+", "-", text[18:60]) for text in EXAMPLES])
def test_every_example_is_read_with_the_files_that_it_names(text: str, folder: Path) -> None:
    found = read(text, folder)
    assert found.tls is not None
    assert found.tls.check_host_name
    assert {Path(file).name for file in found.files} == set(re.findall(r"/etc/kafka-quotas/([\w.-]+)", text))
    if "SCRAM" in text:
        assert found.sasl == SaslLogin(mechanism="SCRAM-SHA-512", username="quotas-apply", password=PASSWORD)
    if "GSSAPI" in text:
        assert isinstance(found.sasl, KerberosLogin)
        assert found.sasl.principal == "quotas@EXAMPLE.COM"
    if "AWS_MSK_IAM" in text:
        assert found.sasl == IamLogin()


def test_the_endpoint_gets_the_secret_of_the_environment(folder: Path) -> None:
    login = read(ENDPOINT, folder).sasl
    assert isinstance(login, TokenEndpoint)
    assert (base64.b64decode(login.basic).decode(), login.secret) == (f"quotas-ci:{PASSWORD}", PASSWORD)
    assert (login.scope, [Path(file).name for file in login.tls.files]) == ("kafka", ["id-ca.pem"])


def test_the_line_of_a_file_replaces_the_endpoint(folder: Path) -> None:
    login = read(ENDPOINT + TOKEN_FILE, folder).sasl
    assert isinstance(login, TokenFile)
    assert login.token() == "a.b.c"


def test_references_are_replaced_by_their_values(folder: Path) -> None:
    scram = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
    assert read(scram + REFERENCES, folder).sasl == SaslLogin(
        mechanism="SCRAM-SHA-512", username="quotas-apply", password=PASSWORD
    )
    store = "security.protocol=SSL\nssl.keystore.type=PKCS12\nssl.keystore.location=/etc/kafka-quotas/client.p12\n"
    assert {Path(file).name for file in read(store + REFERENCES, folder).files} >= {"client.p12", "kafka.properties"}


def test_all_examples_are_found() -> None:
    assert (len(BLOCKS), len(EXAMPLES)) == (8, 6)
