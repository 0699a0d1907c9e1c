"""Writing a plan whose large reductions go down in steps: rounds, each written and verified like a plan of its own.

A lower limit counts at once against what was sent within the last window: a client at its old rate is throttled for up to
``(rate / limit - 1) x window`` in one go (Kafka's ``QuotaUtils``). In steps each delay is short, and clients can follow. The
first round has every change, with the large reductions taken only one step down; each later round has the next steps. Between
two rounds the run waits. A round expects the values that the one before it wrote, so another writer in between stops the run.
What is approved is the whole plan; the values on the way are not part of its digest.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.outcomes import Budget, Jitter, Stop
from reconciler.errors import BackendError, UsageError
from reconciler.logs import log_event
from reconciler.model import (
    KNOWN_KEYS,
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    Entity,
    KeyChange,
    Message,
    Plan,
    QuotaKey,
    Summary,
    ValueType,
    compose,
    key_part,
)
from reconciler.ports import Clock, Progress, QuotaCluster
from reconciler.text import amount

WINDOW_SECONDS: Final = 11.0
"""The longest window of a rate with Kafka's default settings; after it, nothing of the old rate counts any more."""

LEAST_FACTOR: Final = 1.01
_SHOWN: Final = 10
"""Limits whose way down a note shows."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDown:
    """How reductions go down. ``factor``: above 1, the most that one step divides by; ``wait_seconds``: between two steps."""

    factor: float
    wait_seconds: float = WINDOW_SECONDS

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for a factor that lowers nothing, or too little for a run that ends."""
        if not LEAST_FACTOR <= self.factor < math.inf:
            raise UsageError(
                f"a step-down takes a factor from {LEAST_FACTOR} on (2 halves a limit per step), not {self.factor:g}"
            )


def way_down(key: KeyChange, factor: float) -> tuple[float, ...]:
    """The values to write one after the other, the planned one last; a single one for a change that is not a large reduction.

    The values between are whole for integer keys, and fall strictly. No step divides by more than ``factor``, except that one
    unit is always taken where whole numbers leave no smaller step.
    """
    if key.after is None:
        return ()
    way = [] if key.before is None or not is_stepped(key, factor) else [key.before]
    while way and way[-1] / factor > key.after:
        lower = way[-1] / factor
        if QuotaKey(key.key).value_type is not ValueType.DOUBLE:
            lower = min(float(math.ceil(lower)), way[-1] - 1)
        way.append(min(lower, math.nextafter(way[-1], 0.0)))
    return (*(value for value in way[1:] if value > key.after), key.after)


def is_stepped(key: KeyChange, factor: float) -> bool:
    """True when the key falls by more than the factor, from a limit to a lower one."""
    before, after = key.before, key.after
    if before is None or after is None or key.key not in KNOWN_KEYS:
        return False
    return math.isfinite(before) and 0 < after < before / factor


def rounds_of(changes: Sequence[Change], step_down: StepDown) -> tuple[tuple[Change, ...], ...]:
    """The changes of each round, in the plan's order. A single round when nothing goes down by more than the factor."""
    rounds: list[tuple[Change, ...]] = []
    pending = [(change, {key.key: way_down(key, step_down.factor) for key in change.keys}) for change in changes]
    number = 0
    while here := [(change, ways) for change, ways in pending if number == 0 or any(len(way) > number for way in ways.values())]:
        rounds.append(tuple(_in_round(change, ways, number) for change, ways in here))
        number += 1
    return tuple(rounds)


def _in_round(change: Change, ways: dict[str, tuple[float, ...]], number: int) -> Change:
    if number == 0:
        return replace(change, keys=tuple(replace(k, after=ways[k.key][0]) if ways[k.key] else k for k in change.keys))
    keys = tuple(
        replace(k, before=ways[k.key][number - 1], after=ways[k.key][number]) for k in change.keys if len(ways[k.key]) > number
    )
    return replace(change, action=Action.UPDATE, keys=keys)


def stepping_notes(changes: Sequence[Change], step_down: StepDown) -> Iterator[Message]:
    """What a person should know before agreeing, with the values of the steps; nothing when nothing goes in steps."""
    stepped = [(change.entity, key) for change in changes for key in change.keys if is_stepped(key, step_down.factor)]
    if not stepped:
        return
    count = len(rounds_of(changes, step_down))
    seconds = (count - 1) * step_down.wait_seconds
    yield compose(
        "{stepped} of {all} changes go down in steps of at most a factor of {factor}: {count} rounds with {wait} s between them, "
        "{seconds} s of waiting in all. The digest is that of the final values.",
        stepped=len({entity for entity, _ in stepped}),
        all=len(changes),
        factor=f"{step_down.factor:g}",
        count=count,
        wait=f"{step_down.wait_seconds:g}",
        seconds=f"{seconds:g}",
    )
    for entity, key in stepped[:_SHOWN]:
        way = [amount(key.key, value) for value in (key.before, *way_down(key, step_down.factor))]
        yield compose(
            "{key} of {entity} in {count} steps: {way}.",
            key=key_part(key.key),
            entity=entity,
            count=len(way) - 1,
            way=" → ".join(way if len(way) <= _SHOWN else (*way[:2], "…", *way[-2:])),
        )


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

    def run(self, plan: Plan) -> ApplyReport:
        """Write the plan. Raises ``BackendError`` only when nothing was written."""
        rounds = rounds_of(plan.changes, self._step_down)
        if len(rounds) < 2 or self._settings.validate_only:
            return self._execute(plan, self._settings)
        # The values at the end are validated before the first step: a run must not stop half way for a reason known before.
        checked = self._execute(plan, replace(self._settings, validate_only=True))
        if checked.result is not ApplyResult.DONE:
            return replace(checked, validate_only=False)
        self._outcomes = {c.entity: ChangeOutcome(change=c, status=ChangeStatus.NOT_ATTEMPTED) for c in plan.changes}
        try:
            return self._in_rounds(plan, rounds)
        except KeyboardInterrupt:
            if self._nothing_written:
                raise
            return self._report(plan, ApplyResult.PARTIAL, Stop(reason="interrupted", message="interrupted while writing"))

    def _in_rounds(self, plan: Plan, rounds: Sequence[tuple[Change, ...]]) -> ApplyReport:
        for number, changes in enumerate(rounds, start=1):
            self._progress.step(f"step {number} of {len(rounds)}: {len(changes)} changes")
            log_event(_log, "writing a step", step=number, steps=len(rounds), changes=len(changes))
            stopped = self._round(plan, changes, first=number == 1)
            if isinstance(stopped, ApplyReport):
                return stopped
            if stopped is None and number < len(rounds):
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

    def _execute(self, plan: Plan, settings: ApplySettings) -> ApplyReport:
        executor = Executor(
            self._cluster,
            clock=self._clock,
            progress=self._progress,
            settings=settings,
            jitter=self._jitter,
            budget=self._budget,
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
        )
