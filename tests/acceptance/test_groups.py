"""Groups as users meet them: planned, explained, and told apart from what brokers do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.resolution.reserved_users import GROUP_CALLBACK
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid

MIB = 2.0**20
GROUPS = {"payments": {"users": ["alice", "bob", "carol"], "quotas": {"producer_byte_rate": "60MiB"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "live.json").write_text(snapshot({}))
    (tmp_path / "quotas" / "quotas.yaml").write_text(quotas(groups=GROUPS))
    (tmp_path / "quotas" / "prod.yaml").write_text(cluster())
    return tmp_path


def run(folder: Path, *arguments: str) -> Done:
    return invoke(arguments[0], "quotas", "--current", "live.json", *arguments[1:], cwd=folder)


def test_a_plan_without_the_plugin_shows_the_parts_and_that_members_cannot_borrow(folder: Path) -> None:
    document = run(folder, "plan", "--format", "json").json()
    valid(document, "plan")
    declared = {"group": "payments", "members": 3, "limit": 60 * MIB}
    assert [change["keys"]["producer_byte_rate"]["declared"] for change in document["changes"]] == [declared] * 3
    text = " ".join(run(folder, "plan").out.split())
    assert "not set -> 20 MiB/s" in text
    assert "declared: 1 of 3 equal parts of group payments, 60 MiB/s" in text
    assert "none can borrow what another leaves" in text


def test_a_plan_with_the_plugin_writes_the_limit_once(folder: Path) -> None:
    (folder / "quotas" / "prod.yaml").write_text(cluster(quotaCallback={"class": GROUP_CALLBACK}))
    document = run(folder, "plan", "--format", "json").json()
    entities = [change["entity"] for change in document["changes"]]
    assert {"user": "kafka-quotas:group:payments"} in entities
    assert {"user": "kafka-quotas:group:payments", "client-id": "user:carol"} in entities
    assert len(entities) == 4
    assert "The members of group payments share one limit on each broker" in " ".join(run(folder, "plan").out.split())


@pytest.fixture
def shared(folder: Path) -> Path:
    """A cluster whose brokers have the plugin, with two groups on it."""
    groups = {
        "payments": {"users": ["alice", "bob", "carol"], "quotas": {"producer_byte_rate": "60MiB"}},
        "services": {"users": ["svc-"], "match": "prefix", "quotas": {"producer_byte_rate": "30MiB"}},
    }
    (folder / "quotas" / "quotas.yaml").write_text(quotas(({"user": "carol"}, {"producer_byte_rate": "5MiB"}), groups=groups))
    (folder / "quotas" / "prod.yaml").write_text(cluster(quotaCallback={"class": GROUP_CALLBACK}))
    return folder


def resolve(folder: Path, user: str, *arguments: str) -> Done:
    return run(folder, "resolve", "--names", f"user={user},client-id=app", "--state", "planned", *arguments)


def test_resolve_names_the_group_and_who_else_shares_its_limit(shared: Path) -> None:
    document = resolve(shared, "bob", "--format", "json").json()
    valid(document, "resolve")
    answer = document["quotas"]["producer_byte_rate"]
    assert (answer["value"], answer["bucket"]) == (60 * MIB, {"group": "payments"})
    assert answer["source"] == {"user": "kafka-quotas:group:payments"}
    assert answer["declared"] == {"group": "payments", "limit": 60 * MIB}
    text = " ".join(resolve(shared, "bob").out.split())
    assert "declared 60 MiB/s shared by all members of group payments" in text
    assert "carol" not in text
    assert "the brokers have the plugin of groups" in text


@pytest.fixture
def stored(shared: Path) -> Path:
    """The same, with a snapshot ``stored.json`` after the plan was applied."""
    plan = run(shared, "plan", "--format", "json").json()
    entities = [
        {"entity": change["entity"], "quotas": {key: row["after"] for key, row in change["keys"].items()}}
        for change in plan["changes"]
    ]
    document = json.loads((shared / "live.json").read_text())
    (shared / "stored.json").write_text(json.dumps({**document, "entities": entities}))
    return shared


def test_describe_explains_reserved_users(stored: Path) -> None:
    def notes(*paths: str) -> str:
        done = invoke("describe", *paths, "--current", "stored.json", cwd=stored)
        assert done.code == 0, done.err
        return " ".join(done.err.split())

    text = notes()
    assert "of these entities stand for groups and totals of the plugin of groups" in text
    assert "Nothing shows whether the brokers have the plugin of groups" in text
    assert "Nothing shows" not in notes("quotas")
    assert "group" not in invoke("describe", "--current", "live.json", cwd=stored).err
    assert invoke("describe", "--current", "stored.json", "--quiet", cwd=stored).err == ""
