"""Errors after which a write may have been done, or can be tried again: what is sent, how often, and what is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.outcomes import Backoff, Budget
from reconciler.apply.writing import ChunkLimits
from reconciler.errors import AuthorizationError, BackendError, OutcomeUnknownError, RequestRefusedError, UnreachableError
from reconciler.model.plan import Alteration, AlterationResult, ApplyReport, ApplyResult
from reconciler.ports import NO_PROGRESS
from tests.builders import rate_plan, statuses, user
from tests.fakes import FakeClock, FakeCluster, Fault, Faults

RATE = "producer_byte_rate"
TWO_KEYS = ApplySettings(limits=ChunkLimits(keys=2))
GONE = UnreachableError("no broker answers")
NO_CONTROLLER = RequestRefusedError("not the controller", error_code=41)
POLICY = RequestRefusedError("policy", error_code=44)
NOT_ALLOWED = AuthorizationError("not allowed")
LOST = OutcomeUnknownError("the server closed the connection")


def failing(errors: Mapping[int, BackendError]) -> Callable[[FakeCluster], None]:
    """At the n-th writing request, before anything is done."""

    def fail(cluster: FakeCluster) -> None:
        if cluster.writes in errors:
            raise errors[cluster.writes]

    return fail


def execute(
    cluster: FakeCluster, count: int, settings: ApplySettings = TWO_KEYS, clock: FakeClock | None = None, chance: float = 0.5
) -> ApplyReport:
    executor = Executor(cluster, clock=clock or FakeClock(), progress=NO_PROGRESS, settings=settings, jitter=lambda: chance)
    return executor.run(rate_plan(count))


@pytest.mark.parametrize("error", [GONE, NO_CONTROLLER, LOST], ids=["restart", "failover", "lost"])
def test_what_passes_by_itself_is_tried_again_until_it_has_passed(error: BackendError) -> None:
    cluster = FakeCluster(before_write=failing(dict.fromkeys(range(2, 6), error)))
    report = execute(cluster, 5)
    assert (report.result, report.verified, statuses(report)) == (ApplyResult.DONE, True, ["applied"] * 5)
    assert cluster.writes == 3 + 4


@pytest.mark.parametrize("error", [POLICY, NOT_ALLOWED])
def test_what_does_not_pass_is_not_tried_again(error: BackendError) -> None:
    cluster = FakeCluster(before_write=failing(dict.fromkeys(range(2, 100), error)))
    report = execute(cluster, 5)
    assert (report.result, report.failure_reason, cluster.writes) == (ApplyResult.PARTIAL, error.failure_reason, 2)
    assert statuses(report) == ["applied", "applied", "failed", "failed", "not_attempted"]
    assert {outcome.error for outcome in report.outcomes[2:4]} == {str(error)}


def test_a_refusal_of_what_the_cluster_shows_was_garbled_on_its_way() -> None:
    class Garbling(FakeCluster):
        """Does the work of the second request, and answers that it did not."""

        def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
            results = super().alter(alterations, validate_only=validate_only)
            if not validate_only and self.writes == 2:
                raise POLICY
            return results

    report = execute(Garbling(), 5)
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, POLICY.failure_reason)
    assert statuses(report) == ["applied", "applied", "applied", "applied", "not_attempted"]


@pytest.mark.parametrize("error", [GONE, NO_CONTROLLER, POLICY])
def test_a_write_in_doubt_stays_in_doubt_when_the_next_attempt_cannot_even_be_sent(error: BackendError) -> None:
    unreadable: list[int] = []

    def nobody_home(cluster: FakeCluster) -> None:
        if cluster.writes:
            unreadable.append(cluster.describes)
            raise GONE

    cluster = FakeCluster(
        faults=Faults(writes={1: Fault.AFTER_APPLYING}),
        before_write=failing(dict.fromkeys(range(2, 100), error)),
        before_read=nobody_home,
    )
    report = execute(cluster, 2)
    assert cluster.entities == {user(f"u{n}"): {RATE: 2.0} for n in range(2)}
    assert (report.result, statuses(report)) == (ApplyResult.PARTIAL, ["unknown", "unknown"])
    assert report.failure_reason == error.failure_reason
    assert "closed the connection" in (report.outcomes[0].error or "")
    assert unreadable


def test_waits_double_up_to_a_bound_and_half_of_each_is_left_to_chance() -> None:
    backoff = Backoff(attempts=6, first=1.0, longest=8.0)
    assert list(backoff.waits(lambda: 0.0)) == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert list(backoff.waits(lambda: 0.5)) == [0.75, 1.5, 3.0, 6.0, 6.0, 6.0]
    assert all(wait < 8.0 for wait in backoff.waits(lambda: 0.999_999))


@pytest.mark.parametrize("code", [7, 41])
def test_validation_waits_for_a_controller(code: int) -> None:
    left = {"failures": 3}

    class NoController(FakeCluster):
        def alter(self, alterations, *, validate_only):
            if validate_only and left["failures"]:
                left["failures"] -= 1
                raise RequestRefusedError("no controller", error_code=code)
            return super().alter(alterations, validate_only=validate_only)

    assert execute(NoController(), 3).result is ApplyResult.DONE
    assert left["failures"] == 0


@pytest.mark.parametrize("seconds", [0.0, 4.0], ids=["reading back", "looking again"])
def test_a_broker_that_restarts_while_it_is_read_is_waited_for(seconds: float) -> None:
    clock = FakeClock()
    left = {"failures": 5}

    def slow(_: FakeCluster) -> None:
        clock.seconds += seconds

    def restarting(cluster: FakeCluster) -> None:
        if cluster.writes == 3 and left["failures"]:
            left["failures"] -= 1
            raise GONE

    cluster = FakeCluster(before_write=slow, before_read=restarting)
    report = execute(cluster, 6 if seconds == 0 else 8, clock=clock)
    assert (report.result, report.verified, left["failures"]) == (ApplyResult.DONE, True, 0)


def test_a_broker_that_stays_away_after_the_last_write_is_told_as_not_verified() -> None:
    def gone(cluster: FakeCluster) -> None:
        if cluster.writes == 3:
            raise GONE

    report = execute(FakeCluster(before_read=gone), 6)
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "not-verified")
    assert "everything was written, but: no broker answers" in (report.message or "")


def test_past_the_deadline_no_further_request_is_written() -> None:
    clock = FakeClock()

    def slow(_: FakeCluster) -> None:
        clock.seconds += 4.0

    cluster = FakeCluster(before_write=slow)
    report = execute(cluster, 8, ApplySettings(limits=ChunkLimits(keys=2), run_seconds=7.0), clock=clock)
    assert (report.result, report.failure_reason, cluster.writes) == (ApplyResult.PARTIAL, "deadline", 2)
    assert "deadline of 7 s" in (report.message or "")
    assert statuses(report) == ["applied"] * 4 + ["not_attempted"] * 4


def test_past_the_deadline_no_further_attempt_is_made() -> None:
    clock = FakeClock()
    cluster = FakeCluster(before_write=failing(dict.fromkeys(range(1, 100), LOST)))
    report = execute(cluster, 2, ApplySettings(run_seconds=1.0), clock=clock)
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "deadline")
    assert "closed the connection" in (report.message or "")
    assert (clock.seconds, statuses(report)) == (1.0, ["unknown", "unknown"])


def test_a_deadline_that_passes_before_the_first_write_is_a_failure_that_wrote_nothing() -> None:
    clock = FakeClock()

    def slow(_: FakeCluster) -> None:
        clock.seconds += 10.0

    cluster = FakeCluster(before_read=slow, faults=Faults(read_only=True))
    report = execute(cluster, 2, ApplySettings(run_seconds=5.0), clock=clock)
    assert (report.result, report.failure_reason) == (ApplyResult.FAILED, "deadline")


def test_what_was_written_in_time_is_read_back_once_even_when_it_is_late() -> None:
    clock = FakeClock()

    def slow(_: FakeCluster) -> None:
        clock.seconds += 10.0

    report = execute(FakeCluster(before_write=slow), 2, ApplySettings(run_seconds=5.0), clock=clock)
    assert (report.result, report.verified) == (ApplyResult.DONE, True)
    late = execute(FakeCluster(before_write=slow, faults=Faults(lag=100)), 2, ApplySettings(run_seconds=5.0), clock=clock)
    assert (late.result, late.failure_reason) == (ApplyResult.PARTIAL, "not-verified")


def test_pauses_are_not_counted() -> None:
    clock = FakeClock()
    budget = Budget(clock, 5.0)
    with budget.paused():
        clock.sleep(100.0)
    clock.sleep(3.0)
    assert budget.left == 2.0
    budget.sleep(50.0)
    assert (clock.seconds, budget.left) == (105.0, 0.0)


def test_an_error_that_nobody_thought_of_ends_a_run_that_wrote_with_its_report() -> None:
    class Broken(FakeCluster):
        def alter(self, alterations, *, validate_only):
            results = super().alter(alterations, validate_only=validate_only)
            if not validate_only and self.writes == 2:
                raise ZeroDivisionError("oops")
            return results

    report = execute(Broken(), 5)
    assert (report.result, report.failure_reason) == (ApplyResult.PARTIAL, "internal")
    assert statuses(report) == ["applied", "applied", "unknown", "unknown", "not_attempted"]
    assert "ZeroDivisionError: oops" in (report.message or "")
