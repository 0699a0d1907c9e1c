"""What the executor writes, and that its report tells the truth whatever goes wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.outcomes import Backoff
from reconciler.apply.writing import KEYS_IN_ZOOKEEPER, ChunkLimits, split_into_requests
from reconciler.errors import UnreachableError
from reconciler.model.plan import Action, Alteration, AlterationResult, ApplyReport, ApplyResult, Change, KeyChange, Plan, Reason
from reconciler.ports import NO_PROGRESS
from tests.builders import rate_plan, statuses, user
from tests.fakes import FakeClock, FakeCluster, Fault, Faults

RATE = "producer_byte_rate"
TWO_KEYS = ApplySettings(limits=ChunkLimits(keys=2))


def execute(cluster: FakeCluster, what: Plan, settings: ApplySettings = TWO_KEYS) -> ApplyReport:
    return Executor(cluster, clock=FakeClock(), progress=NO_PROGRESS, settings=settings).run(what)


def test_everything_is_validated_before_the_first_write_and_read_back_after_the_last() -> None:
    cluster = FakeCluster()
    report = execute(cluster, rate_plan(5))
    assert (report.result, report.verified) == (ApplyResult.DONE, True)
    assert (cluster.validations, cluster.writes) == (3, 3)
    assert [len(request) for request in cluster.requests] == [2, 2, 1]
    assert statuses(report) == ["applied"] * 5


class InZooKeeper(FakeCluster):
    """Brokers that write each entity to ZooKeeper before they answer."""

    def keeps_quotas_in_zookeeper(self) -> bool:
        return True


def test_brokers_with_zookeeper_get_requests_that_they_answer_in_time() -> None:
    many = rate_plan(KEYS_IN_ZOOKEEPER + 1)
    there, elsewhere = InZooKeeper(), FakeCluster()
    assert all(execute(cluster, many, ApplySettings()).verified for cluster in (there, elsewhere))
    assert [len(request) for request in there.requests] == [KEYS_IN_ZOOKEEPER, 1]
    assert [len(request) for request in elsewhere.requests] == [KEYS_IN_ZOOKEEPER + 1]


def test_one_refusal_by_validation_means_that_nothing_is_written() -> None:
    cluster = FakeCluster(faults=Faults(refuse={user("u3"): (42, "bad words")}))
    report = execute(cluster, rate_plan(5))
    assert (report.result, report.failure_reason) == (ApplyResult.FAILED, "refused-by-cluster")
    assert cluster.writes == 0
    assert statuses(report) == ["not_attempted"] * 3 + ["failed", "not_attempted"]
    assert (report.outcomes[3].error_code, report.outcomes[3].error) == (42, "bad words")


class ChangedWhileValidating(FakeCluster):
    """As ZooKeeper answers: one entity is not what the plan expects, and nothing else is wrong."""

    def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
        results = super().alter(alterations, validate_only=validate_only)
        return [
            one._replace(error_code=95, error="producer_byte_rate is 77 now", stale=True)
            if validate_only and one.entity == user("u3")
            else one
            for one in results
        ]


def test_one_entity_that_changed_before_validation_means_that_nothing_is_written() -> None:
    cluster = ChangedWhileValidating()
    report = execute(cluster, rate_plan(5))
    assert (report.result, report.failure_reason) == (ApplyResult.REFUSED, "stale-plan")
    assert report.message == "the cluster changed after planning: producer_byte_rate is 77 now. Plan again"
    assert (cluster.writes, statuses(report)) == (0, ["not_attempted"] * 5)


def test_validate_only_stops_after_validation() -> None:
    cluster = FakeCluster(faults=Faults(read_only=True))
    report = execute(cluster, rate_plan(1), ApplySettings(validate_only=True))
    assert (report.result, report.verified, statuses(report)) == (ApplyResult.DONE, False, ["not_attempted"])


def test_a_cluster_that_changed_after_planning_is_refused_with_entity_and_both_values() -> None:
    cluster = FakeCluster({user("u1"): {RATE: 77.0}}, faults=Faults(read_only=True))
    report = execute(cluster, rate_plan(3))
    assert (report.result, report.failure_reason) == (ApplyResult.REFUSED, "stale-plan")
    assert "user=u1 producer_byte_rate was not set when planned and is 77 now" in (report.message or "")
    assert "is 77 now" in (report.outcomes[1].error or "")
    assert statuses(report) == ["not_attempted"] * 3


def test_answers_that_stay_lost_are_reported_as_unknown_after_bounded_attempts() -> None:
    cluster = FakeCluster(faults=Faults(writes=dict.fromkeys(range(2, 100), Fault.BEFORE_APPLYING)))
    report = execute(cluster, rate_plan(5))
    assert (report.result, report.failure_reason, report.verified) == (ApplyResult.PARTIAL, "outcome-unknown", False)
    assert statuses(report) == ["applied", "applied", "unknown", "unknown", "not_attempted"]
    assert cluster.writes == 1 + Backoff().attempts


class Unreachable(FakeCluster):
    """Cannot be reached from its n-th write on; nothing of that request is sent."""

    fails_from = 1

    def alter(self, alterations, *, validate_only):
        if not validate_only and self.writes + 1 >= self.fails_from:
            raise UnreachableError("no broker answers")
        return super().alter(alterations, validate_only=validate_only)


def test_an_error_before_the_first_write_leaves_through_the_error() -> None:
    with pytest.raises(UnreachableError):
        execute(Unreachable(), rate_plan(3))


def test_reads_that_never_catch_up_are_a_partial_report() -> None:
    report = execute(FakeCluster(faults=Faults(lag=10_000)), rate_plan(1))
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "not-verified")
    assert "user=u0" in (report.message or "")
    assert statuses(report) == ["applied"]


@given(st.lists(st.integers(1, 4), max_size=30), st.integers(1, 6), st.integers(60, 600))
def test_requests_keep_the_order_split_no_entity_and_stay_within_the_limits(sizes: list[int], keys: int, size: int) -> None:
    names = ["a", "b", "c", "d"]
    changes = [
        Change(
            entity=user(f"u{n}"),
            action=Action.UPDATE,
            keys=tuple(KeyChange(key=k, before=None, after=1.0, reason=Reason.NOT_IN_CURRENT) for k in names[:count]),
        )
        for n, count in enumerate(sizes)
    ]
    requests = list(split_into_requests(changes, ChunkLimits(keys=keys, size=size)))
    assert [c for request in requests for c in request] == changes
    for request in requests:
        estimated = sum(40 + len(str(c.entity.name("user"))) + 40 * len(c.keys) for c in request)
        within = sum(len(c.keys) for c in request) <= keys and estimated <= size
        assert within or len(request) == 1
