"""Whatever goes wrong while a plan is written: the report is true, nothing is half done, and the next run finishes the work."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.writing import ChunkLimits
from reconciler.errors import AuthorizationError, BackendError, RequestRefusedError, UnreachableError
from reconciler.model.cluster import Prune, Scope
from reconciler.model.entity import Entity
from reconciler.model.plan import ApplyReport, ApplyResult, ChangeStatus, Plan
from reconciler.model.state import CurrentState, Observed, ObservedFrom
from reconciler.planning.diff import difference, sort_for_writing
from reconciler.ports import NO_PROGRESS
from tests.builders import NOON, declared, desired, plan, user
from tests.fakes import IDENTITY, FakeClock, FakeCluster, Fault, Faults

State = Mapping[Entity, Mapping[str, float]]

KEYS = ("producer_byte_rate", "consumer_byte_rate")
USERS = [user(name) for name in "abcdefg"]
QUOTAS = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 4).map(float), min_size=1)
STATES = st.dictionaries(st.sampled_from(USERS), QUOTAS)
ERRORS = st.sampled_from(
    [
        UnreachableError("gone"),
        RequestRefusedError("no controller", error_code=41),
        RequestRefusedError("policy", error_code=44),
        AuthorizationError("no"),
        KeyboardInterrupt(),
    ]
)
WRITES = st.dictionaries(st.integers(1, 12), st.one_of(st.sampled_from(list(Fault)), ERRORS))
READS = st.dictionaries(st.integers(1, 12), st.sampled_from([UnreachableError("gone"), KeyboardInterrupt()]))
OTHERS = st.dictionaries(st.integers(1, 8), st.tuples(st.sampled_from(USERS), QUOTAS))
DEADLINES = st.one_of(st.just(900.0), st.floats(0.1, 20.0))


def plan_from(cluster: FakeCluster, target: State) -> Plan:
    live = CurrentState(cluster=IDENTITY, observed=Observed(at=NOON, origin=ObservedFrom.BROKER), entities=dict(cluster.entities))
    wanted = desired(*(declared(entity, **quotas) for entity, quotas in target.items()))
    found = difference(wanted, live, scope=Scope(), prune=Prune.ALWAYS).changes
    return plan(*sort_for_writing(found, live.entities))


def run(cluster: FakeCluster, what: Plan, clock: FakeClock, seconds: float = 900.0) -> ApplyReport | None:
    """The report, or ``None`` when an error said that nothing was written."""
    settings = ApplySettings(limits=ChunkLimits(keys=3), run_seconds=seconds)
    try:
        return Executor(cluster, clock=clock, progress=NO_PROGRESS, settings=settings, jitter=lambda: 0.5).run(what)
    except (BackendError, KeyboardInterrupt):
        return None


class Storm:
    """Faults at numbered writes and reads, another writer at numbered writes, and requests that take their time."""

    def __init__(self, before: State, writes: Mapping, reads: Mapping, others: Mapping, *, lag: int, seconds: float) -> None:
        self.clock = FakeClock()
        self._writes, self._reads, self._others, self._seconds = writes, reads, others, seconds
        faults = {number: fault for number, fault in writes.items() if isinstance(fault, Fault)}
        self.cluster = FakeCluster(
            before, faults=Faults(writes=faults, lag=lag), before_write=self._write, before_read=self._read
        )

    def _write(self, cluster: FakeCluster) -> None:
        self.clock.seconds += self._seconds
        if cluster.writes in self._others:
            cluster.write_from_outside(*self._others[cluster.writes])
        fault = self._writes.get(cluster.writes)
        if isinstance(fault, BaseException):
            raise fault

    def _read(self, cluster: FakeCluster) -> None:
        if cluster.describes in self._reads:
            raise self._reads[cluster.describes]


def assert_truthful(report: ApplyReport | None, what: Plan, cluster: FakeCluster, others: Mapping = {}) -> None:
    done = {alteration.entity for alteration in cluster.took_effect}
    # After a lost answer, nobody can tell our value from the same one of somebody else.
    elsewhere = {entity for entity, _ in others.values()}
    if report is None:
        assert not done
        return
    assert [outcome.change for outcome in report.outcomes] == list(what.changes)
    for outcome in report.outcomes:
        if outcome.status is ChangeStatus.APPLIED:
            assert outcome.change.entity in done | elsewhere
        elif outcome.status is not ChangeStatus.UNKNOWN:
            assert outcome.change.entity not in done
    assert (report.result is ApplyResult.PARTIAL) == (report.wrote and not report.verified)
    if report.result in (ApplyResult.FAILED, ApplyResult.REFUSED):
        assert not done
    assert report.verified == (report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO))
    assert (report.failure_reason is None) == report.verified


@given(STATES, STATES, WRITES, READS, st.integers(0, 3), st.sampled_from([0.0, 2.0]), DEADLINES)
def test_without_another_writer_reports_are_true_and_a_second_run_finishes(
    before: State, after: State, writes: Mapping, reads: Mapping, lag: int, seconds: float, deadline: float
) -> None:
    storm = Storm(before, writes, reads, {}, lag=lag, seconds=seconds)
    cluster = storm.cluster
    what = plan_from(cluster, after)
    report = run(cluster, what, storm.clock, deadline)
    assert_truthful(report, what, cluster)
    # No entity is half written: each is as before, or as wanted.
    for entity in {*before, *after}:
        assert cluster.entities.get(entity) in (before.get(entity), after.get(entity))
    if report is not None and report.verified:
        assert cluster.entities == after
    calm = FakeCluster(cluster.entities)
    second = run(calm, plan_from(calm, after), FakeClock())
    assert second is not None
    assert second.verified
    assert calm.entities == after
    third = run(calm, plan_from(calm, after), FakeClock())
    assert third is not None
    assert third.result is ApplyResult.NOTHING_TO_DO


@given(STATES, STATES, WRITES, OTHERS, st.sampled_from([0.0, 2.0, 4.0]))
def test_with_another_writer_reports_stay_true_and_a_later_run_finishes(
    before: State, after: State, writes: Mapping, others: Mapping, seconds: float
) -> None:
    storm = Storm(before, writes, {}, others, lag=0, seconds=seconds)
    cluster = storm.cluster
    what = plan_from(cluster, after)
    report = run(cluster, what, storm.clock)
    assert_truthful(report, what, cluster, others)
    if report is not None and report.verified:
        for change in what.changes:
            live = cluster.entities.get(change.entity, {})
            assert {key.key: live.get(key.key) for key in change.keys} == {key.key: key.after for key in change.keys}
    calm = FakeCluster(cluster.entities)
    second = run(calm, plan_from(calm, after), FakeClock())
    assert second is not None
    assert second.verified
    assert calm.entities == after


@given(STATES, STATES, WRITES, st.lists(st.integers(1, 8), max_size=3))
def test_no_entity_is_ever_twice_in_a_request_and_each_goes_with_all_its_keys(
    before: State, after: State, writes: Mapping, interrupted: list[int]
) -> None:
    storm = Storm(before, {**writes, **dict.fromkeys(interrupted, Fault.AFTER_APPLYING)}, {}, {}, lag=0, seconds=0.0)
    what = plan_from(storm.cluster, after)
    whole = {change.entity: change.alteration() for change in what.changes}
    run(storm.cluster, what, storm.clock)
    for request in storm.cluster.requests:
        assert len({alteration.entity for alteration in request}) == len(request)
        assert all(alteration == whole[alteration.entity] for alteration in request)
