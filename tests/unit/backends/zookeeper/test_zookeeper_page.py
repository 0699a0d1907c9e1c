"""What docs/zookeeper.md shows is taken as it stands."""

import re
from pathlib import Path

from reconciler.backends.zookeeper.settings import parse_connection, parse_zookeeper_properties
from reconciler.workflows.validate import validate_manifests
from tests.support.certificates import Authority

PAGE = (Path(__file__).parents[4] / "docs" / "zookeeper.md").read_text(encoding="utf-8")


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


def test_every_place_is_one() -> None:
    places = re.findall(r"--zookeeper (\S+)", "".join(blocks("sh"))) + re.findall(r'zookeeper: "(.*?)"', PAGE)

    assert len(places) == 4
    assert {parse_connection(place)[1] for place in places} == {"/kafka"}
