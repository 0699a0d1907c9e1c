"""However far limits fall: a stepped run ends where a plain one does, keeps to its factor, and can be undone anywhere."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reconciler.apply.executor import ApplySettings
from reconciler.apply.stepping import SteppedExecutor
from reconciler.apply.steps import StepDown
from reconciler.documents import APPLY_REPORT
from reconciler.errors import ReconcilerError, TrafficError
from reconciler.features.by_hand.revert import plan_way_back
from reconciler.formats import plan_digest
from reconciler.model.cluster import Prune, Scope
from reconciler.model.effect import BucketName
from reconciler.model.entity import Entity
from reconciler.model.plan import ApplyReport, ApplyResult, Change
from reconciler.model.quota import KNOWN_KEYS
from reconciler.model.run_context import WatchedGroup, WatchedStep
from reconciler.model.state import CurrentState, Observed, ObservedFrom
from reconciler.planning.diff import difference, sort_for_writing
from reconciler.ports import NO_PROGRESS
from tests.builders import NOON, declared, desired, plan, user
from tests.fakes import IDENTITY, FakeClock, FakeCluster

LONG_WAIT = 1000.0
KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
VALUES = st.integers(1, 2**40).map(float)
QUOTAS = st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1)
STATES = st.dictionaries(st.sampled_from([user("a"), user("b"), user("c"), user()]), QUOTAS)


class Clock(FakeClock):
    """Interrupts the wait with this number."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        super().__init__()
        self.waits = 0
        self._interrupt_at = interrupt_at

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if seconds == LONG_WAIT:
            self.waits += 1
            if self.waits == self._interrupt_at:
                raise KeyboardInterrupt


State = dict[Entity, dict[str, float]]


def run(cluster: FakeCluster, target: State, factor: float, clock: Clock, watcher: Watcher | None = None) -> ApplyReport:
    live = CurrentState(cluster=IDENTITY, observed=Observed(at=NOON, origin=ObservedFrom.BROKER), entities=dict(cluster.entities))
    wanted = desired(*(declared(entity, **quotas) for entity, quotas in target.items()))
    found = difference(wanted, live, scope=Scope(), prune=Prune.ALWAYS).changes
    changes = sort_for_writing(found, live.entities)
    executor = SteppedExecutor(
        cluster,
        clock=clock,
        progress=NO_PROGRESS,
        settings=ApplySettings(),
        step_down=StepDown(factor=factor, wait_seconds=LONG_WAIT, watcher=watcher),
    )
    return executor.run(plan(*changes, digest=plan_digest("c1", changes)))


@given(STATES, STATES, st.floats(1.3, 50))
def test_it_ends_where_it_should_and_no_write_lowers_by_more_than_the_factor(before: State, after: State, factor: float) -> None:
    cluster = FakeCluster(before)
    report = run(cluster, after, factor, Clock())
    assert report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO)
    assert cluster.entities == after
    assert all(not outcome.reached for outcome in report.outcomes)
    now = {entity: dict(quotas) for entity, quotas in before.items()}
    for alteration in (a for request in cluster.requests for a in request):
        quotas = now.setdefault(alteration.entity, {})
        for key, value in alteration.ops.items():
            was = quotas.get(key)
            if was is not None and value is not None:
                assert value >= was / factor or value == was - 1
            quotas[key] = value  # type: ignore[assignment]  # a removed key is None here


@given(STATES, STATES, st.floats(1.3, 50), st.integers(1, 10))
def test_a_run_interrupted_at_any_step_can_be_undone_or_gone_on_with(
    before: State, after: State, factor: float, step: int
) -> None:
    cluster = FakeCluster(before)
    report = run(cluster, after, factor, Clock(interrupt_at=step))
    read = APPLY_REPORT.build(json.loads(APPLY_REPORT.text(report)))
    changes, _ = plan_way_back(read, cluster.entities, scope=Scope())
    undone = FakeCluster(cluster.entities)
    if changes:
        undone.alter([change.alteration() for change in changes], validate_only=False)
    assert undone.entities == before
    assert {key.key for change in changes for key in change.keys} <= KNOWN_KEYS
    run(cluster, after, factor, Clock())
    assert cluster.entities == after


class Watcher:
    """Sees a client throttled after the step with this number, or loses its source there."""

    source = "metrics"

    def __init__(self, at: int, error: ReconcilerError | None) -> None:
        self._at, self._error = at, error

    def begin(self, changes: Sequence[Change]) -> None:
        pass

    def watch(self, changes: Sequence[Change], *, step: int, since: datetime.datetime, seconds: float) -> WatchedStep:
        if step == self._at and self._error is not None:
            raise self._error
        group = WatchedGroup(
            bucket=BucketName(user="a", client_id=""), key=KEYS[0], broker="1", rate=2.0, limit=1.0, throttled=1.0, accepted=0.01
        )
        return WatchedStep(step=step, seconds=1.0, groups=1, throttled=(group,) if step == self._at else ())


@given(STATES, STATES, st.floats(1.3, 50), st.integers(1, 10), st.sampled_from([None, TrafficError("lost")]))
def test_a_watched_step_that_is_given_back_leaves_the_state_of_the_step_before_it(
    before: State, after: State, factor: float, step: int, error: ReconcilerError | None
) -> None:
    cluster = FakeCluster(before)
    states: list[State] = []
    cluster._before_write = lambda now: states.append({entity: dict(quotas) for entity, quotas in now.entities.items()})
    report = run(cluster, after, factor, Clock(), Watcher(step, error))
    if report.failure_reason is None:
        assert cluster.entities == after
        return
    assert report.failure_reason == ("throttled" if error is None else "source-lost")
    assert cluster.entities == states[step - 1]
    read = APPLY_REPORT.build(json.loads(APPLY_REPORT.text(report)))
    changes, _ = plan_way_back(read, cluster.entities, scope=Scope())
    undone = FakeCluster(cluster.entities)
    if changes:
        undone.alter([change.alteration() for change in changes], validate_only=False)
    assert undone.entities == before
    run(cluster, after, factor, Clock())
    assert cluster.entities == after
