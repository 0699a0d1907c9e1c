"""The faults of the cluster in memory: other tests lean on them."""

from __future__ import annotations

import pytest

from reconciler.errors import OutcomeUnknownError
from reconciler.model.plan import Alteration
from tests.builders import ip, user
from tests.fakes import FakeCluster, Fault, Faults


def set_to(value: float | None, name: str = "a") -> list[Alteration]:
    return [Alteration(entity=user(name), ops={"producer_byte_rate": value})]


def test_a_write_may_break_off_before_or_after_it_was_done():
    cluster = FakeCluster(faults=Faults(writes={1: Fault.BEFORE_APPLYING, 2: Fault.AFTER_APPLYING}))
    with pytest.raises(OutcomeUnknownError):
        cluster.alter(set_to(1.0), validate_only=False)
    assert cluster.entities == {}
    with pytest.raises(OutcomeUnknownError):
        cluster.alter(set_to(2.0), validate_only=False)
    assert cluster.entities == {user("a"): {"producer_byte_rate": 2.0}}
    cluster.alter(set_to(3.0), validate_only=False)
    assert (cluster.writes, cluster.validations) == (3, 0)


def test_reads_may_lag_a_write():
    cluster = FakeCluster({user("a"): {"producer_byte_rate": 1.0}}, faults=Faults(lag=2))
    cluster.alter(set_to(None), validate_only=False)
    seen = [len(cluster.current_state().entities) for _ in range(3)]
    assert seen == [1, 1, 0]


def test_entities_may_be_refused_and_host_names_known():
    faults = Faults(refuse={user("a"): (44, "policy")}, resolvable=frozenset({"web-1"}))
    cluster = FakeCluster(faults=faults)
    addresses = [Alteration(entity=ip(name), ops={"connection_creation_rate": 1.0}) for name in ("web-1", "web-2")]
    results = cluster.alter([*set_to(1.0), *addresses], validate_only=False)
    assert [r.error_code for r in results] == [44, 0, 42]
    assert set(cluster.entities) == {ip("web-1")}


def test_a_cluster_that_must_not_be_written_says_so():
    cluster = FakeCluster(faults=Faults(read_only=True))
    cluster.alter(set_to(1.0), validate_only=True)
    with pytest.raises(AssertionError, match="must not be written"):
        cluster.alter(set_to(1.0), validate_only=False)


def test_another_writer_may_come_first():
    cluster = FakeCluster(before_write=lambda it: it.write_from_outside(user("b"), {"producer_byte_rate": 9.0}))
    cluster.alter(set_to(1.0), validate_only=False)
    assert set(cluster.entities) == {user("a"), user("b")}
