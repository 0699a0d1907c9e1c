"""Somebody else writes during a run: it is seen before the next request, told with all three values, and never overwritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.writing import ChunkLimits
from reconciler.model.plan import Alteration, AlterationResult, ApplyReport, ApplyResult
from reconciler.ports import NO_PROGRESS
from tests.builders import rate_plan, statuses, user
from tests.fakes import FakeClock, FakeCluster

RATE = "producer_byte_rate"
ONE_KEY = ApplySettings(limits=ChunkLimits(keys=1))


class Slow:
    """A run against a cluster whose writes and reads take their time; something happens at the n-th write."""

    def __init__(self, *, write_seconds: float = 0.0, read_seconds: float = 0.0) -> None:
        self.clock = FakeClock()
        self.looks: list[float] = []
        self.at_write: dict[int, Callable[[], None]] = {}
        self._write_seconds = write_seconds
        self._read_seconds = read_seconds
        self.cluster = FakeCluster(before_write=self._write, before_read=self._read)

    def run(self, count: int) -> ApplyReport:
        return Executor(self.cluster, clock=self.clock, progress=NO_PROGRESS, settings=ONE_KEY).run(rate_plan(count))

    def _write(self, cluster: FakeCluster) -> None:
        self.clock.seconds += self._write_seconds
        self.at_write.get(cluster.writes, lambda: None)()

    def _read(self, cluster: FakeCluster) -> None:
        self.clock.seconds += self._read_seconds
        self.looks.append(cluster.writes)


def test_a_long_run_looks_again_every_three_seconds() -> None:
    slow = Slow(write_seconds=1.0)
    assert slow.run(10).verified
    assert sorted(set(slow.looks)) == [0, 3, 6, 9, 10]


def test_looks_that_cost_much_are_taken_less_often() -> None:
    slow = Slow(write_seconds=1.0, read_seconds=1.0)
    assert slow.run(20).verified
    assert [n for n in sorted(set(slow.looks)) if 0 < n < 20] == [9]


@pytest.mark.parametrize(
    ("victim", "says"),
    [
        ("u4", "user=u4 producer_byte_rate was not set when planned and is 77 now"),
        ("u0", "user=u0 producer_byte_rate was not set when planned, was written as 2, and is 77 now"),
        ("u2", "user=u2 producer_byte_rate was not set when planned, was written as 2, and is 77 now"),
    ],
)
def test_another_writer_stops_the_run_before_the_next_request(victim: str, says: str) -> None:
    slow = Slow(write_seconds=1.0)

    def meddle(_: FakeCluster) -> None:
        if slow.cluster.writes == 3:
            slow.cluster.write_from_outside(user(victim), {RATE: 77.0})

    # The second look comes after three requests; the one who is seen wrote just before it.
    slow.cluster._before_read = meddle
    report = slow.run(6)
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "stale-plan")
    assert says in (report.message or "")
    assert statuses(report) == ["applied"] * 3 + ["not_attempted"] * 3
    assert slow.cluster.entities[user(victim)] == {RATE: 77.0}
    assert slow.cluster.writes == 3
    assert [o.error for o in report.outcomes if o.error] == [says]


def test_what_nobody_planned_may_change_meanwhile() -> None:
    slow = Slow(write_seconds=1.0)
    slow.at_write[2] = lambda: slow.cluster.write_from_outside(user("stranger"), {RATE: 77.0})
    assert slow.run(6).verified


def test_what_was_put_back_after_the_write_is_seen_when_it_is_the_last_one_written() -> None:
    slow = Slow(write_seconds=1.0)
    slow.cluster._before_read = lambda cluster: cluster.write_from_outside(user("u2"), {}) if cluster.writes == 3 else None
    report = slow.run(6)
    assert (report.result, report.failure_reason, slow.cluster.writes) == (ApplyResult.PARTIAL, "not-verified", 3)
    assert "user=u2" in (report.message or "")


def test_reads_that_lag_are_no_other_writer() -> None:
    slow = Slow(write_seconds=1.0)
    lag = {"left": 0}

    class Lagging(FakeCluster):
        def describe(self, entity_filter, *, broker=None):
            if self.writes == 3 and lag["left"] < 5:
                lag["left"] += 1
                return {}
            return super().describe(entity_filter, broker=broker)

    slow.cluster = Lagging(before_write=slow._write, before_read=slow._read)
    assert slow.run(6).verified
    assert lag["left"] == 5


def test_a_value_that_somebody_changed_after_the_last_write_is_not_waited_for() -> None:
    clock = FakeClock()
    cluster = FakeCluster(before_read=lambda c: c.write_from_outside(user("u0"), {RATE: 77.0}) if c.writes == 2 else None)
    report = Executor(cluster, clock=clock, progress=NO_PROGRESS, settings=ONE_KEY).run(rate_plan(2))
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "not-verified")
    assert "was written as 2, and is 77 now" in (report.message or "")
    assert clock.seconds == 0


class ComparesAndSets(FakeCluster):
    """Refuses, as ZooKeeper does, what is no longer as the alteration expects."""

    def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
        if validate_only:
            return super().alter(alterations, validate_only=True)
        if self._before_write is not None:
            self._before_write(self)
        stale = [a for a in alterations if any(self.entities.get(a.entity, {}).get(k) != v for k, v in (a.before or {}).items())]
        fresh = [a for a in alterations if a not in stale]
        results = list(super().alter(fresh, validate_only=False)) if fresh else []
        return [*results, *(AlterationResult(entity=a.entity, error_code=-1, error="it is 77", stale=True) for a in stale)]


@pytest.mark.parametrize(("count", "limit", "result"), [(1, 1, ApplyResult.REFUSED), (4, 2, ApplyResult.PARTIAL)])
def test_a_change_that_the_cluster_itself_finds_stale_is_not_attempted(count: int, limit: int, result: ApplyResult) -> None:
    cluster = ComparesAndSets(before_write=lambda c: c.write_from_outside(user("u0"), {RATE: 77.0}))
    settings = ApplySettings(limits=ChunkLimits(keys=limit))
    report = Executor(cluster, clock=FakeClock(), progress=NO_PROGRESS, settings=settings).run(rate_plan(count))
    assert (report.result, report.failure_reason) == (result, "stale-plan")
    assert (report.outcomes[0].status.value, report.outcomes[0].error) == ("not_attempted", "it is 77")
    assert statuses(report)[1:] == ["applied", "not_attempted", "not_attempted"][: count - 1]
    assert cluster.entities[user("u0")] == {RATE: 77.0}
