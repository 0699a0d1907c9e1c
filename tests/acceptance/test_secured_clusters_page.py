"""The properties files that docs/secured-clusters.md shows are taken as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.backends.broker.settings import SaslLogin, TokenFile, parse_client_properties
from tests.support.certificates import Authority

PAGE = (Path(__file__).parents[2] / "docs" / "secured-clusters.md").read_text("utf-8")
EXAMPLES = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
PASSWORD = "change-me"


@pytest.mark.parametrize("text", EXAMPLES, ids=[re.sub(r"\W+", "-", text[18:60]) for text in EXAMPLES])
def test_every_example_is_read_with_the_files_that_it_names(text: str, tmp_path: Path) -> None:
    authority = Authority()
    client = authority.sign("quotas-apply")
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "trust.p12").write_bytes(authority.trust_store(PASSWORD))
    (tmp_path / "client.p12").write_bytes(client.pkcs12(PASSWORD))
    (tmp_path / "client.pem").write_text(client.pem(PASSWORD))
    (tmp_path / "token").write_text("a.b.c\n")
    found = parse_client_properties(text.replace("/etc/kafka-quotas", str(tmp_path)).encode(), source="example").security
    assert found.tls is not None
    assert found.tls.check_host_name
    assert {Path(file).name for file in found.files} == set(re.findall(r"/etc/kafka-quotas/(\S+)", text))
    if "SCRAM" in text:
        assert found.sasl == SaslLogin(mechanism="SCRAM-SHA-512", username="quotas-apply", password=PASSWORD)
    if "OAUTHBEARER" in text:
        assert isinstance(found.sasl, TokenFile)
        assert found.sasl.token() == "a.b.c"


def test_all_four_examples_are_found() -> None:
    assert len(EXAMPLES) == 4
