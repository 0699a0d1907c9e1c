"""Profiles as users meet them: in plans, comments, effective quotas, and in a pull request that changes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import user
from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, repository, snapshot
from tests.support.schemas import valid

PROFILES = {"gold": {"quotas": {"producer_byte_rate": "20MiB"}}, "iron": {"quotas": {"producer_byte_rate": "1MiB"}}}
ENTRIES = """\
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  quotas:
    - match: {user: [alice, bob]}
      profile: gold
    - match: {user: carol}
      profile: iron
      quotas: {consumer_byte_rate: 3MiB}
"""


@pytest.fixture
def merged(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path / "repository")
    made.write("kafka-quotas.yaml", repository(profiles=PROFILES))
    made.write("prod.yaml", cluster())
    made.write("quotas.yaml", ENTRIES)
    made.commit()
    (tmp_path / "live.json").write_text(snapshot({user("alice"): {"producer_byte_rate": 20.0 * 2**20}}))
    return made


def test_a_plan_names_the_profile_of_each_value(merged: GitRepository) -> None:
    document = invoke("plan", "--current", "../live.json", "--format", "json", cwd=merged.folder).json()
    valid(document, "plan")
    keys = {(change["entity"]["user"], key): row for change in document["changes"] for key, row in change["keys"].items()}

    assert {name: row.get("profile") for name, row in keys.items()} == {
        ("bob", "producer_byte_rate"): "gold",
        ("carol", "producer_byte_rate"): "iron",
        ("carol", "consumer_byte_rate"): None,
    }
    assert keys["bob", "producer_byte_rate"]["source"]["file"] == "kafka-quotas.yaml"
    assert keys["carol", "consumer_byte_rate"]["source"]["file"] == "quotas.yaml"
    text = invoke("plan", "--current", "../live.json", cwd=merged.folder).out
    assert "profile iron" in text
    comment = invoke("plan", "--current", "../live.json", "--format", "markdown", cwd=merged.folder).out
    assert ", profile `gold` |" in comment


def test_a_pull_request_that_changes_a_profile_is_planned_with_the_new_values(merged: GitRepository) -> None:
    merged.branch()
    merged.write("kafka-quotas.yaml", repository(profiles={**PROFILES, "gold": {"quotas": {"producer_byte_rate": "30MiB"}}}))
    merged.commit()
    document = invoke("plan", "--current", "../live.json", "--trusted-ref", "main", "--format", "json", cwd=merged.folder).json()

    after = {change["entity"]["user"]: change["keys"]["producer_byte_rate"]["after"] for change in document["changes"]}
    assert after == {"alice": 30.0 * 2**20, "bob": 30.0 * 2**20, "carol": 2.0**20}
