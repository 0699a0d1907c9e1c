"""What guards that look beyond the changes do to plan and apply: the time, and another document of the same cluster."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from reconciler.model.plan import ApplyReport, ApplyResult, GuardStatus, Plan
from reconciler.model.state import ClusterIdentity
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.apply import UNASKED, Approval, apply_manifests
from reconciler.workflows.intent import load_intent
from reconciler.workflows.plan import make_plan
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster

FRIDAY = datetime.datetime(2026, 11, 20, 17, 30, tzinfo=datetime.UTC)
HEAD = "apiVersion: kafka-quotas/v1\n"
QUOTAS = HEAD + "kind: ClientQuotas\nspec:\n  quotas:\n    - match: {user: %s}\n      quotas: {producer_byte_rate: 1MiB}\n"
WEEKEND = "freeze: [{days: [fri], hours: 18:00-24:00, timeZone: Europe/Berlin}, {days: [sat, sun], timeZone: Europe/Berlin}]"


CALLED_C1 = FakeCluster(identity=ClusterIdentity(id="c1", kafka_version="4.3"))


def manifests(folder: Path, *lines: str, name: str = "alice") -> str:
    spec = "".join(f"  {line}\n" for line in ("prune: never", *lines))
    (folder / "cluster.yaml").write_text(f"{HEAD}kind: Cluster\nmetadata: {{name: prod}}\nspec:\n{spec}", encoding="utf-8")
    (folder / "quotas.yaml").write_text(QUOTAS % name, encoding="utf-8")
    return str(folder)


def applied(path: str, cluster: FakeCluster, now: datetime.datetime, *accepted: str) -> ApplyReport:
    intent = load_intent([path], cluster=None)
    return apply_manifests(
        intent, cluster, Approval(accepted=accepted), dialogue=UNASKED, clock=FakeClock(at=now, moves=True), progress=NO_PROGRESS
    )


def planned(path: str, cluster: FakeCluster, now: datetime.datetime, name: str | None = None) -> Plan:
    return make_plan(load_intent([path], cluster=name), cluster, accepted=(), clock=FakeClock(at=now, moves=True))


def test_outside_of_the_windows_and_when_accepted_it_is_written(tmp_path: Path) -> None:
    path = manifests(tmp_path, WEEKEND)
    before = FakeCluster()
    assert applied(path, before, FRIDAY - datetime.timedelta(hours=1)).result is ApplyResult.DONE
    accepted = FakeCluster()
    assert applied(path, accepted, FRIDAY, "freeze-window").result is ApplyResult.DONE
    assert before.entities == accepted.entities == {user("alice"): {"producer_byte_rate": 1048576.0}}


@pytest.mark.parametrize(
    ("ours", "theirs", "trips"),
    [
        ("clusterId: c1", "clusterId: c1", True),
        ("clusterId: c1", "clusterId: c2", False),
        (
            'clusterId: c1, connection: {bootstrapServers: ["b1:9092"]}',
            'clusterId: c1, connection: {bootstrapServers: ["b2:9092"]}',
            True,
        ),
        ('connection: {bootstrapServers: ["b1:9092"]}', 'connection: {bootstrapServers: ["b2:9092"]}', False),
        ('connection: {zookeeper: "zk:2181/a"}', 'connection: {zookeeper: "zk:2181/b"}', False),
        ("protected: []", "protected: []", False),
    ],
)
def test_two_documents_of_one_cluster_that_declare_one_entity_are_told_apart_from_two_clusters(
    tmp_path: Path, ours: str, theirs: str, *, trips: bool
) -> None:
    path = manifests(tmp_path)
    documents = (
        f"{HEAD}kind: Cluster\nmetadata: {{name: {name}}}\nspec: {{prune: never, {line}}}\n"
        for name, line in (("prod", ours), ("prod-b", theirs))
    )
    (tmp_path / "cluster.yaml").write_text("---\n".join(documents), encoding="utf-8")
    overlap = next(g for g in planned(path, CALLED_C1, FRIDAY, "prod").guards if g.id == "scope-overlap")
    assert (overlap.status is GuardStatus.NEEDS_ACCEPTANCE) == trips
    assert ("prod-b" in overlap.message) == trips
