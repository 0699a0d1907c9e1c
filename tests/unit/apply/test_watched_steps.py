"""Steps that are watched: what is given back, what stays, and that the report describes what the cluster has then."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from reconciler.apply.executor import ApplySettings
from reconciler.apply.stepping import SteppedExecutor
from reconciler.apply.steps import StepDown
from reconciler.documents.apply_report import APPLY_REPORT, AUDIT, AuditedRun, audit_line
from reconciler.errors import TrafficError
from reconciler.features.by_hand.revert import plan_way_back
from reconciler.model.cluster import Scope
from reconciler.model.effect import BucketName
from reconciler.model.plan import Action, ApplyReport, ApplyResult, Change, ChangeStatus, KeyChange, Plan, Reason
from reconciler.model.run_context import WatchedGroup, WatchedStep
from reconciler.ports import NO_PROGRESS
from reconciler.render.apply_text import apply_report_lines
from reconciler.render.terminal import plain
from tests.builders import NOON, plan, user
from tests.fakes import FakeClock, FakeCluster, Fault, Faults

RATE, OTHER = "producer_byte_rate", "consumer_byte_rate"
ALICE, BOB, CAROL = user("alice"), user("bob"), user("carol")
BEFORE = {ALICE: {RATE: 1000.0}, BOB: {RATE: 5.0}, CAROL: {RATE: 9.0}}
THROTTLED = WatchedGroup(
    bucket=BucketName(user="alice", client_id=""), key=RATE, broker="1", rate=300.0, limit=250.0, throttled=0.5, accepted=0.01
)


class Watcher:
    """Sees nothing throttled; at step ``at`` it does ``then`` and sees ``throttled``."""

    source = "http://metrics"

    def __init__(self, at: int = 0, then: Callable[[], None] = lambda: None, *throttled: WatchedGroup) -> None:
        self.watched: list[tuple[int, float]] = []
        self._at, self._then, self._throttled = at, then, throttled

    def begin(self, changes: Sequence[Change]) -> None:
        if self._at == 0:
            self._then()

    def watch(self, changes: Sequence[Change], *, step: int, since: datetime.datetime, seconds: float) -> WatchedStep:
        self.watched.append((step, seconds))
        if step == self._at:
            self._then()
        throttled = self._throttled if step == self._at else ()
        return WatchedStep(step=step, seconds=4.0, groups=3, throttled=throttled)


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def lowered() -> tuple[FakeCluster, Plan]:
    """Alice goes from 1000 to 200 in three steps and gets a first limit for reads; bob is raised; carol loses hers."""
    alice = (
        KeyChange(key=OTHER, before=None, after=7.0, reason=Reason.VALUE_DIFFERS),
        KeyChange(key=RATE, before=1000.0, after=200.0, reason=Reason.VALUE_DIFFERS),
    )
    bob = KeyChange(key=RATE, before=5.0, after=10.0, reason=Reason.VALUE_DIFFERS)
    carol = KeyChange(key=RATE, before=9.0, after=None, reason=Reason.ENTITY_NOT_IN_MANIFEST)
    changes = (
        Change(entity=BOB, action=Action.UPDATE, keys=(bob,)),
        Change(entity=ALICE, action=Action.UPDATE, keys=alice),
        Change(entity=CAROL, action=Action.DELETE, keys=(carol,)),
    )
    return FakeCluster(BEFORE), plan(*changes)


def execute(cluster: FakeCluster, what: Plan, watcher: Watcher, stop_wanted: Callable[[], bool] = bool) -> ApplyReport:
    steps, settings = StepDown(factor=2.0, watcher=watcher), ApplySettings(stop_wanted=stop_wanted)
    run = SteppedExecutor(cluster, clock=FakeClock(), progress=NO_PROGRESS, settings=settings, step_down=steps)
    return run.run(what)


def undone(report: ApplyReport, cluster: FakeCluster) -> FakeCluster:
    read = APPLY_REPORT.build(json.loads(APPLY_REPORT.text(report)))
    changes, _ = plan_way_back(read, cluster.entities, scope=Scope())
    after = FakeCluster(cluster.entities)
    if changes:
        after.alter([change.alteration() for change in changes], validate_only=False)
    return after


def test_every_step_is_watched_the_last_one_too() -> None:
    cluster, what = lowered()
    watcher = Watcher()
    report = execute(cluster, what, watcher)
    assert (report.result, report.verified) == (ApplyResult.DONE, True)
    assert watcher.watched == [(1, 11.0), (2, 11.0), (3, 11.0)]
    assert report.facts.watch is not None
    assert ([step.step for step in report.facts.watch.steps], report.facts.watch.given_back) == ([1, 2, 3], None)


def test_a_plan_of_one_step_is_watched_as_well() -> None:
    cluster = FakeCluster(BEFORE)
    alice = KeyChange(key=RATE, before=1000.0, after=900.0, reason=Reason.VALUE_DIFFERS)
    watcher = Watcher(1, lambda: None, THROTTLED)
    report = execute(cluster, plan(Change(entity=ALICE, action=Action.UPDATE, keys=(alice,))), watcher)
    assert (report.failure_reason, cluster.entities) == ("throttled", BEFORE)


def test_the_step_that_throttles_is_given_back_and_those_before_it_stay() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(2, lambda: None, THROTTLED))
    assert cluster.entities == {ALICE: {RATE: 500.0, OTHER: 7.0}, BOB: {RATE: 10.0}}
    assert (report.result, report.failure_reason, report.verified) == (ApplyResult.PARTIAL, "throttled", False)
    assert report.message == (
        "stopped at step 2 of 3: broker 1 throttled user alice for 50 % of 4 s at 300 B/s of 250 B/s, and 1 % is accepted. The "
        "step was given back, verified on every broker 0 s after its write"
    )
    bob, alice, carol = report.outcomes
    assert (bob.status, carol.status) == (ChangeStatus.APPLIED, ChangeStatus.APPLIED)
    assert (alice.status, alice.reached, alice.error) == (
        ChangeStatus.FAILED,
        {RATE: (500.0,)},
        "step 2 was given back: producer_byte_rate is at 500",
    )
    assert undone(report, cluster).entities == BEFORE


def test_a_first_step_is_given_back_with_all_that_it_wrote() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(1, lambda: None, THROTTLED))
    assert cluster.entities == BEFORE
    assert [str(a.entity) for a in cluster.requests[1]] == ["user=carol", "user=alice", "user=bob"], "what loosens comes first"
    assert report.result is ApplyResult.PARTIAL
    assert {outcome.error for outcome in report.outcomes} == {"step 1 was given back"}
    assert (report.wrote, undone(report, cluster).writes) == (False, 0)


def test_a_rollout_that_is_asked_to_stop_leaves_no_client_throttled() -> None:
    cluster, what = lowered()
    signals: list[str] = []
    report = execute(cluster, what, Watcher(2, lambda: signals.append("TERM"), THROTTLED), lambda: bool(signals))
    assert (cluster.entities[ALICE][RATE], report.failure_reason) == (500.0, "throttled")


def test_a_rollout_that_is_asked_to_stop_takes_no_further_step() -> None:
    cluster, what = lowered()
    signals: list[str] = []
    report = execute(cluster, what, Watcher(1, lambda: signals.append("TERM")), lambda: bool(signals))
    assert (cluster.entities[ALICE][RATE], report.failure_reason) == (500.0, "interrupted")


def test_a_throttle_that_is_accepted_stops_nothing() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(2, lambda: None, replace(THROTTLED, accepted=0.5)))
    assert report.result is ApplyResult.DONE
    assert report.facts.watch is not None
    assert [len(step.throttled) for step in report.facts.watch.steps] == [0, 1, 0]


def test_a_step_that_cannot_be_watched_to_its_end_is_given_back() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(3, raising(TrafficError("http://metrics does not answer."))))
    assert cluster.entities[ALICE] == {RATE: 250.0, OTHER: 7.0}
    assert (report.failure_reason, report.outcomes[1].reached) == ("source-lost", {RATE: (250.0,)})
    assert "cannot be watched any more: http://metrics does not answer. The step was given back" in (report.message or "")


def test_nothing_is_written_when_the_source_shows_nothing_at_the_begin() -> None:
    cluster, what = lowered()
    with pytest.raises(TrafficError):
        execute(cluster, what, Watcher(0, raising(TrafficError("no sample"))))
    assert (cluster.writes, cluster.entities) == (0, BEFORE)


def test_an_interrupt_leaves_the_step_and_the_report_names_its_values() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(2, raising(KeyboardInterrupt())))
    assert cluster.entities[ALICE] == {RATE: 250.0, OTHER: 7.0}
    assert (report.failure_reason, report.outcomes[1].reached) == ("interrupted", {RATE: (250.0,)})
    assert undone(report, cluster).entities == BEFORE


def test_a_fault_of_the_watcher_still_leaves_a_report() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(2, raising(ZeroDivisionError("x"))))
    assert (report.failure_reason, report.outcomes[1].reached) == ("internal", {RATE: (250.0,)})


def test_another_writer_is_not_overwritten_by_what_is_given_back() -> None:
    cluster, what = lowered()
    foreign = Watcher(2, lambda: cluster.write_from_outside(ALICE, {RATE: 77.0, OTHER: 7.0}), THROTTLED)
    report = execute(cluster, what, foreign)
    assert cluster.entities[ALICE] == {RATE: 77.0, OTHER: 7.0}
    assert report.failure_reason == "not-given-back"
    assert (
        "The step was not given back: changes by another writer stay: user=alice producer_byte_rate was 250 when planned and "
        "is 77 now. Revert the run by its report"
    ) in (report.message or "")
    assert report.outcomes[1].reached == {RATE: (250.0,)}, "what the run left, for revert to compare with"


def test_what_another_writer_left_alone_is_given_back() -> None:
    cluster, what = lowered()
    foreign = Watcher(1, lambda: cluster.write_from_outside(BOB, {RATE: 77.0}), THROTTLED)
    report = execute(cluster, what, foreign)
    assert cluster.entities == {**BEFORE, BOB: {RATE: 77.0}}
    assert (report.failure_reason, report.facts.watch is not None and report.facts.watch.given_back) == ("not-given-back", False)
    assert "given back for 2 of 3 entities: changes by another writer stay: user=bob" in (report.message or "")
    assert [outcome.status.value for outcome in report.outcomes] == ["applied", "failed", "failed"]


def test_a_step_that_another_writer_took_back_is_given_back() -> None:
    cluster, what = lowered()
    foreign = Watcher(2, lambda: cluster.write_from_outside(ALICE, {RATE: 500.0, OTHER: 7.0}), THROTTLED)
    report = execute(cluster, what, foreign)
    assert (report.failure_reason, report.outcomes[1].reached) == ("throttled", {RATE: (500.0,)})
    assert "given back, verified by a read" in (report.message or "")


def test_a_give_back_without_an_answer_names_both_values() -> None:
    cluster, what = lowered()

    def break_writes() -> None:
        cluster._faults = Faults(writes=dict.fromkeys(range(3, 100), Fault.BEFORE_APPLYING))

    report = execute(cluster, what, Watcher(2, break_writes, THROTTLED))
    alice = report.outcomes[1]
    assert (report.failure_reason, alice.status) == ("not-given-back", ChangeStatus.UNKNOWN)
    assert alice.reached == {RATE: (500.0, 250.0)}
    assert undone(report, cluster).entities == BEFORE


def test_two_watched_runs_at_once_leave_what_the_stopped_one_reports() -> None:
    cluster, what = lowered()
    other = plan(Change(entity=ALICE, action=Action.UPDATE, keys=(
        KeyChange(key=RATE, before=500.0, after=100.0, reason=Reason.VALUE_DIFFERS),
    )))  # fmt: skip
    second: list[ApplyReport] = []
    report = execute(cluster, what, Watcher(1, lambda: second.append(execute(cluster, other, Watcher()))))
    assert second[0].result is ApplyResult.DONE
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "stale-plan")
    assert cluster.entities[ALICE] == {RATE: 100.0, OTHER: 7.0}
    assert report.outcomes[1].reached == {RATE: (500.0,)}


def test_the_report_the_terminal_and_the_audit_line_have_the_figures() -> None:
    cluster, what = lowered()
    report = execute(cluster, what, Watcher(2, lambda: None, THROTTLED))
    written = json.loads(APPLY_REPORT.text(report))["watch"]
    assert (written["source"], written["given_back"]) == ("http://metrics", True)
    assert written["steps"][1]["throttled"] == [
        {
            "bucket": {"user": "alice"}, "key": RATE, "broker": "1", "rate": 300.0, "limit": 250.0, "throttled": 0.5,
            "accepted": 0.01,
        }
    ]  # fmt: skip
    shown = plain(apply_report_lines(report))
    assert "step 1: 3 quota groups watched for 4 s, none throttled" in shown
    assert "broker 1: user alice for 50 % of the time at 300 B/s of 250 B/s (1 % accepted)" in shown
    line = audit_line(AuditedRun(command="apply", started=NOON, os_user="root"), report, at=NOON)
    assert json.loads(line)["watched"] == {"steps": 2, "groups": 3, "throttled": 1, "given_back": True}
    assert AUDIT.build(json.loads(line)).failure_reason == "throttled"
    assert json.loads(line)["entities"] == [{"user": "alice"}, {"user": "bob"}, {"user": "carol"}]
