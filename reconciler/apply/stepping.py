"""Writing a plan whose large reductions go down in steps: rounds, each written and verified like a plan of its own.

A lower limit counts at once against what was sent within the last window: a client at its old rate is throttled for up to
``(rate / limit - 1) x window`` in one go (Kafka's ``QuotaUtils``). In steps each delay is short, and clients can follow. The
first round has every change, with the large reductions taken only one step down; each later round has the next steps. Between
two rounds the run waits. A round expects the values that the one before it wrote, so another writer in between stops the run.
What is approved is the whole plan; the values on the way are not part of its digest.

With a watcher, the run looks at the clients of each step before the next one, and also after the last. A step that throttles more
than is accepted, and one that the watcher cannot see any more, is given back: written and verified as it was before. So every
limit that stays has been watched. An interrupt writes nothing more: the step stays, and the report has its values.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.outcomes import Budget, Jitter, Stop
from reconciler.apply.steps import StepDown, rounds_of
from reconciler.apply.writing import differences, unlike
from reconciler.errors import BackendError, ReconcilerError
from reconciler.logs import log_event
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    Entity,
    Plan,
    RunFacts,
    Summary,
    WatchRecord,
    bucket_words,
    escaped,
)
from reconciler.ports import Clock, Progress, QuotaCluster, StepWatcher
from reconciler.text import amount, count_of, duration, list_some, percent_text, rate

if TYPE_CHECKING:
    import datetime

    from reconciler.model import WatchedGroup, WatchedStep

THROTTLED: Final = "throttled"
"""The ``failure_reason`` of a run whose last step throttled clients more than is accepted. The step was given back."""
SOURCE_LOST: Final = "source-lost"
"""That of a run whose last step could not be watched to its end. The step was given back."""
NOT_GIVEN_BACK: Final = "not-given-back"
"""That of a run whose last step was to be given back, and was not, or not verified."""
_NAMED: Final = 3
_GIVES_BACK: Final = frozenset({THROTTLED, SOURCE_LOST})
_log: Final = logging.getLogger(__name__)


class SteppedExecutor:
    """One run in rounds against one cluster; use it once. Waits between rounds do not count against its deadline."""

    def __init__(
        self,
        cluster: QuotaCluster,
        *,
        clock: Clock,
        progress: Progress,
        settings: ApplySettings,
        step_down: StepDown,
        jitter: Jitter = random.random,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._progress = progress
        self._settings = settings
        self._step_down = step_down
        self._jitter = jitter
        self._budget = Budget(clock, settings.run_seconds)
        self._outcomes: dict[Entity, ChangeOutcome] = {}
        self._nothing_written = True
        self._begun = clock.monotonic()
        self._brokers: int | None = None
        self._watcher: Final = step_down.watcher
        self._watch = None if step_down.watcher is None else WatchRecord(source=step_down.watcher.source)

    def run(self, plan: Plan) -> ApplyReport:
        """Write the plan. Raises ``BackendError``, and as ``StepWatcher.begin``, only when nothing was written."""
        rounds = rounds_of(plan.changes, self._step_down)
        if self._settings.validate_only or not plan.changes or (len(rounds) < 2 and self._watcher is None):
            return self._execute(plan, self._settings)
        # The values at the end are validated before the first step: a run must not stop half way for a reason known before.
        checked = self._execute(plan, replace(self._settings, validate_only=True))
        if checked.result is not ApplyResult.DONE:
            return replace(checked, validate_only=False)
        if self._watcher is not None:
            self._progress.step(f"looking at the clients before the first step: {self._watcher.source}")
            self._watcher.begin(plan.changes)
        self._outcomes = {c.entity: ChangeOutcome(change=c, status=ChangeStatus.NOT_ATTEMPTED) for c in plan.changes}
        try:
            return self._in_rounds(plan, rounds)
        except KeyboardInterrupt:
            if self._nothing_written:
                raise
            return self._report(plan, ApplyResult.PARTIAL, Stop(reason="interrupted", message="interrupted while writing"))
        except Exception as error:
            if self._nothing_written:
                raise
            # Whatever broke, such as a watcher: who wrote something owes a report of it.
            return self._report(plan, ApplyResult.PARTIAL, Stop.internal(error))

    def _in_rounds(self, plan: Plan, rounds: Sequence[tuple[Change, ...]]) -> ApplyReport:
        for number, changes in enumerate(rounds, start=1):
            self._progress.step(f"step {number} of {len(rounds)}: {len(changes)} changes")
            log_event(_log, "writing a step", step=number, steps=len(rounds), changes=len(changes))
            step = _Step(number=number, changes=changes, earlier=dict(self._outcomes), since=self._clock.now())
            begun = self._clock.monotonic()
            stopped = self._round(plan, changes, first=number == 1)
            if isinstance(stopped, ApplyReport):
                return stopped
            if stopped is None and self._watcher is not None:
                stopped = self._look(self._watcher, step, len(rounds))
                if stopped is not None and stopped.reason in _GIVES_BACK:
                    stopped = self._give_back(plan, step, stopped, begun)
            elif stopped is None and number < len(rounds):
                stopped = self._wait(number, len(rounds))
            if stopped is not None:
                stopped = replace(stopped, message=f"stopped at step {number} of {len(rounds)}: {stopped.message}")
                return self._report(plan, ApplyResult.PARTIAL, stopped)
        return self._report(plan, ApplyResult.DONE, None)

    def _round(self, plan: Plan, changes: tuple[Change, ...], *, first: bool) -> Stop | ApplyReport | None:
        """Write one round. A report: nothing was written at all, and this is why."""
        part = replace(plan, changes=changes, summary=Summary(update=len(changes)))
        try:
            report = self._execute(part, self._settings)
        except KeyboardInterrupt:
            if first:
                raise
            return Stop(reason="interrupted", message="interrupted while writing")
        except BackendError as error:
            if first:
                raise
            return Stop(reason=error.failure_reason, message=str(error))
        self._note(report.outcomes)
        if first and report.result in (ApplyResult.FAILED, ApplyResult.REFUSED):
            return self._report(plan, report.result, Stop(reason=report.failure_reason or "", message=report.message or ""))
        self._nothing_written = False
        self._brokers = report.brokers
        if report.result is ApplyResult.DONE:
            return None
        return Stop(reason=report.failure_reason or "failed", message=report.message or "the step was not done whole")

    def _wait(self, number: int, count: int) -> Stop | None:
        self._progress.step(f"step {number} of {count} is verified. Waiting {self._step_down.wait_seconds:g} s")
        try:
            with self._settings.breakable(), self._budget.paused():
                self._clock.sleep(self._step_down.wait_seconds)
        except KeyboardInterrupt:
            return Stop(reason="interrupted", message="interrupted while waiting. Apply again to go on")
        return None

    def _look(self, watcher: StepWatcher, step: _Step, count: int) -> Stop | None:
        """Watch a step that is verified. A stop: the step is not to stay, or the run was interrupted."""
        self._progress.step(f"step {step.number} of {count} is verified. Watching its clients: {watcher.source}")
        try:
            with self._settings.breakable(), self._budget.paused():
                seen = watcher.watch(step.changes, step=step.number, since=step.since, seconds=self._step_down.wait_seconds)
        except KeyboardInterrupt:
            message = "interrupted while the step was watched. Its values stay. Apply again to go on, or revert"
            return Stop(reason="interrupted", message=message)
        except ReconcilerError as error:
            return Stop(
                reason=SOURCE_LOST, message=f"the clients of the step cannot be watched any more: {str(error).rstrip('.')}"
            )
        self._watch = None if self._watch is None else replace(self._watch, steps=(*self._watch.steps, seen))
        log_event(_log, "watched a step", step=step.number, groups=seen.groups, throttled=len(seen.throttled))
        return Stop(reason=THROTTLED, message=_exceeding_words(seen)) if seen.exceeding else None

    def _give_back(self, plan: Plan, step: _Step, why: Stop, begun: float) -> Stop:
        """Write the values from before the step, in the opposite order, and read them back; the deadline begins anew.

        An entity that another writer changed since the step keeps that writer's values, and the others are given back.
        """
        self._progress.step(f"giving step {step.number} back: {why.message}")
        self._budget = Budget(self._clock, self._settings.run_seconds)
        back = tuple(_reversed(change) for change in reversed(step.changes))
        outcomes: tuple[ChangeOutcome, ...] = ()
        verified, where, reason, foreign = False, "on every broker", "", []
        done: tuple[Change, ...] = ()
        untouched = back
        try:
            # Without an answer, the write looks again before it begins.
            with contextlib.suppress(BackendError):
                live = self._cluster.current_state().entities
                done = tuple(change for change in back if unlike(change, live, written=True) is None)
                untouched = tuple(change for change in back if unlike(change, live, written=False) is None)
                others = [change for change in back if change not in (*done, *untouched)]
                foreign = [text for _, text in differences(others, live, written=False)]
            # A run that was asked to stop does not leave clients throttled: what is asked before each request is not asked here.
            settings = replace(self._settings, stop_wanted=bool)
            report = self._execute(replace(plan, changes=untouched, summary=Summary(update=len(untouched))), settings)
            outcomes = (*(ChangeOutcome(change=change, status=ChangeStatus.APPLIED) for change in done), *report.outcomes)
            verified, reason = report.verified, report.message or ""
            if report.brokers is None:
                where = "in ZooKeeper" if untouched else "by a read"
        except BackendError as error:
            reason = str(error)
        except KeyboardInterrupt:
            reason = "interrupted before it was given back"
        seconds = round(self._clock.monotonic() - begun, 3)
        for outcome in outcomes:
            self._note_given_back(step, outcome, verified=verified)
        if verified and foreign:
            reason = f"changes by another writer stay: {list_some(foreign, _NAMED, between='; ')}"
        is_back = verified and not foreign
        log_event(_log, "gave a step back", level=logging.INFO, step=step.number, verified=is_back, detail=reason)
        if self._watch is not None:
            self._watch = replace(self._watch, given_back=is_back, seconds_to_give_back=seconds)
        if is_back:
            end = f"The step was given back, verified {where} {duration(seconds)} after its write"
            return replace(why, message=f"{why.message}. {end}")
        how = (
            f"given back for {len(outcomes)} of {count_of(len(back), 'entity', 'entities')}"
            if verified and outcomes
            else "not given back"
        )
        end = f"The step was {how}: {reason.rstrip('.')}. Revert the run by its report"
        return Stop(reason=NOT_GIVEN_BACK, message=f"{why.message}. {end}")

    def _note_given_back(self, step: _Step, outcome: ChangeOutcome, *, verified: bool) -> None:
        """The outcome of one change, of which the values before the step, those of the step, or either may be on the cluster."""
        entity = outcome.change.entity
        before = step.earlier[entity]
        if outcome.status is ChangeStatus.APPLIED and verified:
            places = ", ".join(f"{key} is at {values[-1]:.17g}" for key, values in sorted(before.reached.items()))
            error = f"step {step.number} was given back{f': {places}' if places else ''}"
            self._outcomes[entity] = replace(before, status=ChangeStatus.FAILED, error=error)
        elif outcome.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN):
            written = {key.key: (key.before,) for key in outcome.change.keys if key.before is not None}
            reached = {key: (*before.reached.get(key, ()), *values) for key, values in written.items()}
            error = f"step {step.number} may be given back or not"
            self._outcomes[entity] = replace(
                before, status=ChangeStatus.UNKNOWN, error=error, reached={**before.reached, **reached}
            )

    def _execute(self, plan: Plan, settings: ApplySettings) -> ApplyReport:
        executor = Executor(
            self._cluster, clock=self._clock, progress=self._progress, settings=settings, jitter=self._jitter, budget=self._budget
        )
        return executor.run(plan)

    def _note(self, outcomes: Sequence[ChangeOutcome]) -> None:
        """Take over what a round did, in terms of the whole plan's changes."""
        for outcome in outcomes:
            entity = outcome.change.entity
            earlier = self._outcomes[entity]
            whole = earlier.change
            targets = {key.key: key.after for key in whole.keys}
            here = {k.key: k.after for k in outcome.change.keys if k.after is not None and k.after != targets[k.key]}
            if outcome.status is ChangeStatus.APPLIED:
                final = {k.key for k in outcome.change.keys} - here.keys()
                reached = {k: v for k, v in earlier.reached.items() if k not in final} | {k: (v,) for k, v in here.items()}
                status = ChangeStatus.FAILED if reached else ChangeStatus.APPLIED
                places = ", ".join(f"{key} is at {values[-1]:.17g}" for key, values in sorted(reached.items()))
                error = f"the change stopped on its way: {places}" if reached else None
                self._outcomes[entity] = ChangeOutcome(change=whole, status=status, error=error, reached=reached)
            elif outcome.status is ChangeStatus.UNKNOWN:
                tried = {k.key: (k.after,) for k in outcome.change.keys if k.after is not None and k.key in earlier.reached}
                either = {k: (*earlier.reached[k], *v) for k, v in tried.items()}
                maybe = {k: (v,) for k, v in here.items()}
                self._outcomes[entity] = replace(outcome, change=whole, reached={**earlier.reached, **maybe, **either})
            elif outcome.status is ChangeStatus.FAILED:
                self._outcomes[entity] = replace(outcome, change=whole, reached=earlier.reached)
            elif outcome.error is not None:
                self._outcomes[entity] = replace(earlier, error=outcome.error)

    def _report(self, plan: Plan, result: ApplyResult, stop: Stop | None) -> ApplyReport:
        return ApplyReport(
            cluster=plan.cluster,
            digest=plan.digest,
            result=result,
            outcomes=tuple(self._outcomes[change.entity] for change in plan.changes),
            verified=result is ApplyResult.DONE,
            seconds=round(self._clock.monotonic() - self._begun, 3),
            brokers=self._brokers if result is ApplyResult.DONE else None,
            failure_reason=stop.reason if stop else None,
            message=stop.message if stop else None,
            guards=plan.guards,
            origin=plan.observed.origin,
            facts=RunFacts(watch=self._watch),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One round. ``earlier``: the outcomes before it. ``since``: a moment before its write, UTC."""

    number: int
    changes: tuple[Change, ...]
    earlier: Mapping[Entity, ChangeOutcome]
    since: datetime.datetime


def _reversed(change: Change) -> Change:
    actions = {Action.CREATE: Action.DELETE, Action.DELETE: Action.CREATE}
    keys = tuple(replace(key, before=key.after, after=key.before) for key in change.keys)
    return replace(change, action=actions.get(change.action, change.action), keys=keys)


def _exceeding_words(seen: WatchedStep) -> str:
    worst, *others = seen.exceeding
    more = f", and {len(others)} more" if others else ""
    return f"{_group_words(worst, seen.seconds)}{more}"


def _group_words(group: WatchedGroup, seconds: float) -> str:
    limit = "" if group.limit is None else f" of {amount(group.key, group.limit)}"
    time = f"{percent_text(group.throttled)} of {duration(seconds)}"
    return (
        f"broker {escaped(group.broker)} throttled {bucket_words(group.bucket)} for {time} at {rate(group.key, group.rate)}"
        f"{limit}, and {percent_text(group.accepted)} is accepted"
    )
