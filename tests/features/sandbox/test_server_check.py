"""A plan that a broker was asked about: what it refuses becomes findings, who was asked becomes notes."""

from __future__ import annotations

import pytest

from reconciler.features.sandbox.jars import KAFKA_VERSIONS
from reconciler.features.sandbox.server_check import check_on_cluster, check_plan, nearest_version
from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from reconciler.ports import NO_PROGRESS
from tests.builders import plan, user
from tests.fakes import FakeCluster, Faults

GONE = KeyChange(key="producer_byte_rate", before=1.0, after=None, reason=Reason.ENTITY_NOT_IN_MANIFEST)


class ZooKeeperCluster(FakeCluster):
    def keeps_quotas_in_zookeeper(self) -> bool:
        return True


def checked(one: Plan, cluster: FakeCluster) -> Plan:
    return check_on_cluster(one, cluster, progress=NO_PROGRESS)


def test_a_removal_that_no_manifest_asks_for_has_no_place() -> None:
    change = Change(entity=user("old"), action=Action.DELETE, keys=(GONE,))
    (finding,) = checked(plan(change), FakeCluster(faults=Faults(refuse={user("old"): (-1, "")}))).findings
    assert finding.span is None
    assert "user=old" in finding.message


def test_an_empty_plan_asks_nobody() -> None:
    cluster = FakeCluster()
    for where in ("cluster", "sandbox"):
        done = check_plan(plan(), where, cluster, progress=NO_PROGRESS)
        assert done.notes == ("the plan has nothing for a broker to check",)
    assert cluster.validations == 0


def test_in_zookeeper_mode_a_note_says_that_passing_is_no_proof() -> None:
    done = checked(plan(Change(entity=user("alice"), action=Action.DELETE, keys=(GONE,))), ZooKeeperCluster())
    assert [n for n in done.notes if "ZooKeeper" in n and "can still be refused" in n]


@pytest.mark.parametrize(
    ("version", "chosen", "says"),
    [
        ("4.4", "4.4.0", []),
        ("4.3", "4.3.1", []),
        ("4.0", "4.3.1", ["Kafka 4.0"]),
        ("10.2", "4.4.0", ["Kafka 10.2"]),
        ("3.9", "3.9.2", ["without ZooKeeper"]),
        ("2.8", "3.9.2", ["Kafka 2.8", "without ZooKeeper"]),
        (None, "4.4.0", ["not known"]),
        ("", "4.4.0", ["not known"]),
        ("latest", "4.4.0", ["not known"]),
    ],
)
def test_the_local_kafka_is_of_the_pinned_version_nearest_to_the_clusters(
    version: str | None, chosen: str, says: list[str]
) -> None:
    found, notes = nearest_version(version)
    assert found == chosen
    assert found in KAFKA_VERSIONS
    assert len(notes) == len(says)
    assert all(part in note for part, note in zip(says, notes, strict=True))
