"""Lint as a user meets it: in validate, and with the live state in plan; severities and --fail-on count."""

from pathlib import Path

from tests.builders import user
from tests.support.command import invoke
from tests.support.manifests import quotas, repository, snapshot

CLIENT = quotas(({"client-id": "etl"}, {"producer_byte_rate": "1MiB"}))


def ids(document: dict[str, list[dict[str, str]]]) -> list[str]:
    return [one["id"] for one in document["findings"]]


def test_a_filter_hides_no_entity_from_lint(tmp_path: Path) -> None:
    (tmp_path / "kafka-quotas.yaml").write_text(repository(), encoding="utf-8")
    (tmp_path / "a.yaml").write_text(CLIENT, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(quotas(({"user": {"default": True}}, {"producer_byte_rate": "1MiB"})), encoding="utf-8")

    findings = invoke("validate", "--format", "json", "a.yaml", cwd=tmp_path).json()["findings"]

    assert [(one["id"], one["file"], one["related"][0]["file"]) for one in findings] == [
        ("default-hides-client-ids", "b.yaml", "a.yaml")
    ]


def test_a_plan_sees_what_is_only_on_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLIENT, encoding="utf-8")
    (tmp_path / "now.json").write_text(snapshot({user(): {"producer_byte_rate": 1024.0}}))

    assert ids(invoke("validate", "--format", "json", cwd=tmp_path).json()) == []
    for options, code in ((), 0), (("--fail-on", "warning"), 1):
        done = invoke("plan", "--current", "now.json", "--format", "json", *options, cwd=tmp_path)

        assert done.code == code
        assert ids(done.json()) == ["client-id-never-wins", "overrides-declared"]
