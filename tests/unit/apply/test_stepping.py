"""Lowering in steps: what is written when, and that the report tells the truth when a run stops on the way."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.apply.executor import ApplySettings
from reconciler.apply.stepping import SteppedExecutor
from reconciler.apply.steps import StepDown, rounds_of, stepping_notes
from reconciler.model.entity import Entity
from reconciler.model.plan import Action, ApplyReport, ApplyResult, Change, ChangeStatus, KeyChange, Plan, Reason
from reconciler.ports import NO_PROGRESS
from tests.builders import plan, user
from tests.fakes import FakeClock, FakeCluster, Fault, Faults

RATE, OTHER = "producer_byte_rate", "consumer_byte_rate"
HALVES = StepDown(factor=2.0, wait_seconds=11.0)


class Waits(FakeClock):
    """A clock that passes time only in waits; the long ones, between steps, are seen, and may do something."""

    def __init__(self, then: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self.long = 0
        self._then = then

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if seconds == HALVES.wait_seconds:
            self.long += 1
            self._then(self.long)


def change(entity: Entity, **keys: tuple[float | None, float | None]) -> Change:
    changed = tuple(KeyChange(key=k, before=b, after=a, reason=Reason.VALUE_DIFFERS) for k, (b, a) in sorted(keys.items()))
    return Change(entity=entity, action=Action.UPDATE, keys=changed)


def execute(cluster: FakeCluster, what: Plan, clock: Waits, settings: ApplySettings | None = None) -> ApplyReport:
    run = SteppedExecutor(cluster, clock=clock, progress=NO_PROGRESS, settings=settings or ApplySettings(), step_down=HALVES)
    return run.run(what)


def lowered() -> tuple[FakeCluster, Plan]:
    """Alice goes from 1000 to 200 and gets a first limit for reads; bob is raised."""
    cluster = FakeCluster({user("alice"): {RATE: 1000.0}, user("bob"): {RATE: 5.0}})
    alice = change(user("alice"), **{RATE: (1000.0, 200.0), OTHER: (None, 7.0)})
    return cluster, plan(change(user("bob"), **{RATE: (5.0, 10.0)}), alice)


def written(cluster: FakeCluster) -> list[list[tuple[str, dict[str, float | None]]]]:
    return [[(str(a.entity), dict(a.ops)) for a in request] for request in cluster.requests]


def test_reductions_go_down_step_by_step_and_everything_else_at_once() -> None:
    cluster, what = lowered()
    clock = Waits()
    report = execute(cluster, what, clock)
    assert written(cluster) == [
        [("user=bob", {RATE: 10.0}), ("user=alice", {OTHER: 7.0, RATE: 500.0})],
        [("user=alice", {RATE: 250.0})],
        [("user=alice", {RATE: 200.0})],
    ]
    assert (report.result, report.verified, report.digest) == (ApplyResult.DONE, True, what.digest)
    assert [(o.change, o.status, o.reached) for o in report.outcomes] == [(c, ChangeStatus.APPLIED, {}) for c in what.changes]
    assert clock.long == 2


def test_the_value_at_the_end_is_validated_before_the_first_step() -> None:
    cluster = FakeCluster({user("alice"): {RATE: 1000.0}}, faults=Faults(refuse={user("alice"): (42, "no")}, read_only=True))
    report = execute(cluster, plan(change(user("alice"), **{RATE: (1000.0, 1.0)})), Waits())
    assert (report.result, report.failure_reason, cluster.writes) == (ApplyResult.FAILED, "refused-by-cluster", 0)
    assert not report.validate_only


def test_whoever_writes_between_two_steps_is_not_overwritten() -> None:
    cluster, what = lowered()
    clock = Waits(lambda _: cluster.write_from_outside(user("alice"), {RATE: 77.0}))
    report = execute(cluster, what, clock)
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "stale-plan")
    assert "was 500 when planned and is 77 now" in (report.message or "")
    assert cluster.entities[user("alice")] == {RATE: 77.0}
    assert report.outcomes[1].status is ChangeStatus.FAILED


def test_a_step_without_an_answer_names_both_values_that_it_may_have_now() -> None:
    cluster, what = lowered()
    cluster._faults = Faults(writes=dict.fromkeys(range(2, 100), Fault.BEFORE_APPLYING))
    report = execute(cluster, what, Waits())
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "outcome-unknown")
    alice = report.outcomes[1]
    assert (alice.status, alice.reached) == (ChangeStatus.UNKNOWN, {RATE: (500.0, 250.0)})


def test_a_step_that_the_broker_refuses_keeps_its_words_and_tells_where_the_limit_is() -> None:
    cluster, what = lowered()

    def refuse(_: int) -> None:
        cluster._faults = Faults(refuse={user("alice"): (41, "not any more")})

    report = execute(cluster, what, Waits(refuse))
    alice = report.outcomes[1]
    assert (report.result, alice.status, alice.error_code) == (ApplyResult.PARTIAL, ChangeStatus.FAILED, 41)
    assert alice.reached == {RATE: (500.0,)}


def test_rounds_hold_an_entity_once_and_only_while_it_has_steps_left() -> None:
    _, what = lowered()
    deep = change(user("carol"), **{RATE: (800.0, 100.0), OTHER: (40.0, 10.0)})
    rounds = rounds_of((*what.changes, deep), HALVES)
    assert [[str(c.entity) for c in one] for one in rounds] == [
        ["user=bob", "user=alice", "user=carol"],
        ["user=alice", "user=carol"],
        ["user=alice", "user=carol"],
    ]
    assert [[(k.key, k.before, k.after) for k in one[-1].keys] for one in rounds] == [
        [(OTHER, 40.0, 20.0), (RATE, 800.0, 400.0)],
        [(OTHER, 20.0, 10.0), (RATE, 400.0, 200.0)],
        [(RATE, 200.0, 100.0)],
    ]


def test_the_note_says_how_many_steps_and_how_long() -> None:
    _, what = lowered()
    note, *ways = stepping_notes(what.changes, HALVES)
    assert note.startswith("1 of 2 changes go down in steps of at most a factor of 2: 3 rounds with 11 s between them, 22 s")
    assert ways == ["producer_byte_rate of user=alice in 3 steps: 1000 B/s → 500 B/s → 250 B/s → 200 B/s."]
    assert list(stepping_notes(what.changes[:1], HALVES)) == []
