"""``plan --server-check`` and ``--show-effects`` as a user runs them; real brokers refuse what manifests let through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, run
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

ALICE = "    - match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}\n"
NOWHERE = "    - match: {ip: no-such-host.invalid}\n      quotas:\n        connection_creation_rate: 5\n"
"""A name that never resolves (RFC 2606): the broker alone can refuse it, once the repository lowers the lint rule."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    head = "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n"
    (tmp_path / "kafka-quotas.yaml").write_text(head + "  lint: {ip-host-name: warning}\n")
    return tmp_path


def quotas(folder: Path, *entries: str) -> None:
    head = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: team}\nspec:\n  quotas:\n"
    (folder / "quotas.yaml").write_text(head + "".join(entries))


def snapshot(folder: Path, kafka_version: str, *entities: tuple[dict[str, str | None], dict[str, float]]) -> None:
    document = {
        "format_version": "1.0",
        "cluster": {"name": "prod", "id": "c1", "kafka_version": kafka_version},
        "observed": {"at": "2026-01-02T12:00:00Z", "from": "broker"},
        "entities": [{"entity": names, "quotas": values} for names, values in entities],
    }
    (folder / "current.json").write_text(json.dumps(document))


def plan(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> Done:
    return run("plan", "--format", "json", *arguments, cwd=folder, env=env)


def refusals(document: dict) -> list[dict]:
    valid(document, "plan")
    return [f for f in document["findings"] if f["id"] == "refused-by-broker"]


def test_the_cluster_checks_a_good_plan_and_nothing_is_written(folder: Path, clean_kafka: Sandbox) -> None:
    quotas(folder, ALICE)
    done = plan(folder, "--bootstrap-server", clean_kafka.bootstrap_servers, "--server-check=cluster", "--show-effects")
    assert done.code == 0, done.err
    document = done.json()
    assert refusals(document) == []
    assert "checked by the cluster" in document["notes"]
    assert not [note for note in document["notes"] if "ZooKeeper" in note or "effects assume" in note]
    assert [move["client"] for move in document["effects"]["moves"]] == [{"user": "alice", "client-id": None}]
    assert raw_quotas.describe(clean_kafka.bootstrap_servers) == {}


def test_what_the_cluster_refuses_is_an_error_at_its_line_in_a_plan_that_is_still_printed(
    folder: Path, clean_kafka: Sandbox
) -> None:
    quotas(folder, ALICE, NOWHERE)
    server = ("--bootstrap-server", clean_kafka.bootstrap_servers)
    unchecked = plan(folder, *server)
    assert (unchecked.code, unchecked.json()["applyable"]) == (0, True)
    assert "effects" not in unchecked.json()
    done = plan(folder, *server, "--server-check=cluster", "--detailed-exitcode")
    assert done.code == 1
    document = done.json()
    (finding,) = refusals(document)
    assert "no-such-host.invalid is not a valid IP or resolvable host." in finding["message"]
    assert (finding["file"], finding["line"], finding["column"]) == ("quotas.yaml", 10, 35)
    assert finding["entity"] == {"ip": "no-such-host.invalid"}
    assert (document["errored"], document["applyable"]) == (True, False)
    assert len(document["changes"]) == 2
    assert document["digest"] == unchecked.json()["digest"]
    assert "refused-by-broker" in done.err
    assert raw_quotas.describe(clean_kafka.bootstrap_servers) == {}


@pytest.mark.parametrize(
    ("cluster_runs", "checked_by"),
    [
        ("4.4", "4.4.0"),
        pytest.param("4.1", "4.3.1", marks=pytest.mark.large),
        pytest.param("3.6", "3.9.2", marks=pytest.mark.large),
    ],
)
def test_a_local_kafka_checks_a_plan_against_a_snapshot_without_any_credentials(
    folder: Path, cluster_runs: str, checked_by: str
) -> None:
    quotas(folder, ALICE, NOWHERE)
    snapshot(
        folder,
        cluster_runs,
        ({"user": "alice"}, {"producer_byte_rate": 5}),
        ({"user": "zero"}, {"producer_byte_rate": 0}),
        ({"client-id-prefix": "x"}, {"producer_byte_rate": 5}),
    )
    temporary = folder / "temporary"
    temporary.mkdir()
    done = plan(folder, "--current", "current.json", "--server-check=sandbox", "--show-effects", env={"TMPDIR": str(temporary)})
    assert done.code == 1
    document = done.json()
    (finding,) = refusals(document)
    assert (finding["file"], finding["line"], finding["column"]) == ("quotas.yaml", 10, 35)
    assert "looked up on this machine" in finding["message"]
    assert f"checked by a local Kafka {checked_by}" in document["notes"]
    assert [note for note in document["notes"] if f"Kafka {cluster_runs}" in note]
    moved = {m["client"].get("user"): m["direction"] for m in document["effects"]["moves"] if "user" in m["client"]}
    assert moved == {"alice": "loosens"}
    assert list(temporary.iterdir()) == []


def test_a_snapshot_cannot_be_checked_by_its_cluster(folder: Path) -> None:
    quotas(folder, ALICE)
    snapshot(folder, "4.3")
    done = plan(folder, "--current", "current.json", "--server-check=cluster")
    assert done.code == 64
    assert "--server-check=sandbox" in done.err
