"""Lint as a user meets it: in validate, and with the live state in plan; severities and --fail-on count."""

import json
from pathlib import Path

from tests.support.command import invoke

HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
CLIENT = HEAD + "    - {match: {client-id: etl}, quotas: {producer_byte_rate: 1MiB}}\n"


def snapshot(folder: Path, *entities: tuple[dict[str, str | None], dict[str, float]]) -> None:
    document = {
        "format_version": "1.0",
        "cluster": {"name": None, "id": "c1", "kafka_version": "4.3"},
        "observed": {"at": "2026-01-02T12:00:00Z", "from": "broker"},
        "entities": [{"entity": entity, "quotas": quotas} for entity, quotas in entities],
    }
    (folder / "now.json").write_text(json.dumps(document), encoding="utf-8")


def ids(document: dict[str, list[dict[str, str]]]) -> list[str]:
    return [one["id"] for one in document["findings"]]


def test_a_filter_hides_no_entity_from_lint(tmp_path: Path) -> None:
    (tmp_path / "kafka-quotas.yaml").write_text("apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {}\n", encoding="utf-8")
    (tmp_path / "a.yaml").write_text(CLIENT, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(CLIENT.replace("client-id: etl", "user: {default: true}"), encoding="utf-8")

    findings = invoke("validate", "--format", "json", "a.yaml", cwd=tmp_path).json()["findings"]

    assert [(one["id"], one["file"], one["related"][0]["file"]) for one in findings] == [
        ("default-hides-client-ids", "b.yaml", "a.yaml")
    ]


def test_a_plan_sees_what_is_only_on_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLIENT, encoding="utf-8")
    snapshot(tmp_path, ({"user": None}, {"producer_byte_rate": 1024.0}))

    assert ids(invoke("validate", "--format", "json", cwd=tmp_path).json()) == []
    done = invoke("plan", "--current", "now.json", "--format", "json", cwd=tmp_path)

    assert done.code == 0
    assert ids(done.json()) == ["client-id-never-wins", "overrides-declared"]


def test_fail_on_counts_for_findings_that_only_the_live_state_brings(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLIENT, encoding="utf-8")
    snapshot(tmp_path, ({"user": None}, {"producer_byte_rate": 1024.0}))

    done = invoke("plan", "--current", "now.json", "--format", "json", "--fail-on", "warning", cwd=tmp_path)

    assert done.code == 1
    assert ids(done.json()) == ["client-id-never-wins", "overrides-declared"]
    assert "client-id-never-wins" in done.err
