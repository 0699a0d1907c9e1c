"""Writing a plan: validate everything, compare once more, write in chunks, read back, and state truthfully what happened.

Nothing here decides whether a plan may be written: guards, digests and questions come before. What comes out is always a report;
errors are raised only while nothing has been written yet.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.apply.outcomes import DEADLINE, Backoff, Budget, Jitter, Outcomes, RetryPolicy, Stop
from reconciler.apply.writing import KEYS_IN_ZOOKEEPER, ChunkLimits, ConflictCheck, RequestWriter, split_into_requests, verify
from reconciler.errors import BackendError, RefusedError, StalePlanError
from reconciler.logs import log_event
from reconciler.model import ApplyReport, ApplyResult, Change, ChangeStatus, Plan
from reconciler.ports import Clock, ModeInspector, Progress, QuotaCluster

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySettings:
    """How one run writes.

    ``verify_seconds``: how long brokers may show nothing new of what was written. ``run_seconds``: how long the whole may take;
    after it, no further request is begun. ``stop_wanted`` is asked before each request: true ends the run between two of them.
    ``breakable`` is entered where an interrupt may be raised: the run reports what it has done then.
    """

    limits: ChunkLimits = field(default_factory=ChunkLimits)
    backoff: Backoff = field(default_factory=Backoff)
    verify_seconds: float = 30.0
    run_seconds: float = 900.0
    validate_only: bool = False
    stop_wanted: Callable[[], bool] = bool
    breakable: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


class Executor:
    """One run against one cluster; use it once. ``budget``: that of a larger run which this one is part of."""

    def __init__(
        self,
        cluster: QuotaCluster,
        *,
        clock: Clock,
        progress: Progress,
        settings: ApplySettings,
        jitter: Jitter = random.random,
        budget: Budget | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._progress = progress
        self._settings = settings
        self._budget = budget or Budget(clock, settings.run_seconds)
        self._retry = RetryPolicy(backoff=settings.backoff, jitter=jitter, budget=self._budget)
        self._outcomes = Outcomes(())
        self._begun = clock.monotonic()
        self._interrupted = "interrupted while writing"

    def run(self, plan: Plan) -> ApplyReport:
        """Write the plan. Raises ``BackendError`` only when nothing was written."""
        self._outcomes = Outcomes(plan.changes)
        if not plan.changes:
            return self._report(plan, ApplyResult.NOTHING_TO_DO, verified=True)
        try:
            with self._settings.breakable():
                return self._run(plan)
        except KeyboardInterrupt:
            if not self._outcomes.may_have_written:
                raise
            return self._stopped(plan, Stop(reason="interrupted", message=self._interrupted))
        except BackendError as error:
            return self._stopped(plan, Stop.of(error))
        except Exception as error:
            if not self._outcomes.may_have_written:
                raise
            # Whatever broke: who wrote something owes a report of it.
            return self._stopped(plan, Stop.internal(error))

    def _run(self, plan: Plan) -> ApplyReport:
        limits = self._settings.limits
        if isinstance(self._cluster, ModeInspector) and self._cluster.keeps_quotas_in_zookeeper():
            limits = replace(limits, keys=min(limits.keys, KEYS_IN_ZOOKEEPER))
        requests = tuple(split_into_requests(plan.changes, limits))
        log_event(
            _log,
            "applying a plan",
            digest=plan.digest,
            changes=len(plan.changes),
            requests=len(requests),
            validate_only=self._settings.validate_only,
            seconds_left=round(self._budget.left, 3),
        )
        if (stop := self._validate(requests)) is not None:
            return self._stopped(plan, stop)
        if self._settings.validate_only:
            return self._report(plan, ApplyResult.DONE)
        if (stop := self._write(requests)) is not None:
            return self._stopped(plan, stop)
        return self._verified(plan)

    def _validate(self, requests: Sequence[tuple[Change, ...]]) -> Stop | None:
        self._progress.step(f"asking the cluster to validate {sum(map(len, requests))} changes")
        for request in requests:
            if not self._budget.left:
                return self._too_late()
            alterations = [change.alteration() for change in request]
            ask = functools.partial(self._cluster.alter, alterations, validate_only=True)
            results = self._retry.ask(ask, also_unreachable=False)
            self._outcomes.note(results, good=ChangeStatus.NOT_ATTEMPTED)
            if stale := [result for result in results if result.stale]:
                return Stop.of(StalePlanError(f"the cluster changed after planning: {stale[0].error}. Plan again"))
        if self._outcomes.having(ChangeStatus.FAILED):
            return Stop(reason="refused-by-cluster", message="the cluster refused the change set")
        return None

    def _write(self, requests: Sequence[tuple[Change, ...]]) -> Stop | None:
        conflicts = ConflictCheck(
            self._cluster, self._outcomes, clock=self._clock, retry=self._retry, lag_seconds=self._settings.verify_seconds
        )
        writer = RequestWriter(self._cluster, self._outcomes, conflicts, retry=self._retry)
        written, total = 0, sum(map(len, requests))
        for number, request in enumerate(requests, start=1):
            if self._clock.monotonic() >= conflicts.due_at:
                self._progress.step("checking the cluster for changes by other writers")
                if (stop := conflicts.look()) is not None:
                    return stop
            if not self._budget.left:
                return self._too_late()
            if self._settings.stop_wanted():
                return Stop(reason="interrupted", message=f"interrupted before request {number} of {len(requests)}")
            self._progress.step("writing the changes")
            if written:
                self._progress.count(written, total, "changes")
            if (stop := writer.write(request)) is not None:
                return stop
            written += len(request)
        return None

    def _verified(self, plan: Plan) -> ApplyReport:
        self._progress.step("reading back")
        self._interrupted = "everything was written, but the run was interrupted while it was read back"
        seconds = min(self._settings.verify_seconds, self._budget.left)
        begun = self._clock.monotonic()
        try:
            seen = verify(
                self._cluster, plan.changes, clock=self._clock, deadline_seconds=seconds, most_seconds=self._budget.left
            )
        except BackendError as error:
            return self._stopped(plan, Stop(reason="not-verified", message=f"everything was written, but: {error}"))
        milliseconds = round((self._clock.monotonic() - begun) * 1000, 1)
        log_event(_log, "read back", verified=seen.verified, reason=seen.message, milliseconds=milliseconds)
        if not seen.verified:
            message = seen.message or "the values read back differ from those written"
            return self._stopped(plan, Stop(reason="not-verified", message=f"everything was written, but {message}"))
        return replace(self._report(plan, ApplyResult.DONE, verified=True), brokers=seen.brokers or None)

    def _too_late(self) -> Stop:
        return Stop(reason=DEADLINE, message=str(self._budget))

    def _stopped(self, plan: Plan, stop: Stop) -> ApplyReport:
        """The report of a run that did not complete. Raises the error of one that wrote nothing because of it."""
        may_have_written = self._outcomes.may_have_written
        log_event(_log, "stopped", level=logging.INFO, reason=stop.reason, detail=stop.message, may_have_written=may_have_written)
        if self._outcomes.may_have_written:
            return self._report(plan, ApplyResult.PARTIAL, stop)
        if isinstance(stop.error, RefusedError):
            return self._report(plan, ApplyResult.REFUSED, stop)
        if stop.error is not None:
            raise stop.error
        return self._report(plan, ApplyResult.FAILED, stop)

    def _report(self, plan: Plan, result: ApplyResult, stop: Stop | None = None, *, verified: bool = False) -> ApplyReport:
        return ApplyReport(
            cluster=plan.cluster,
            digest=plan.digest,
            result=result,
            outcomes=self._outcomes.of(plan.changes),
            verified=verified,
            seconds=round(self._clock.monotonic() - self._begun, 3) if plan.changes else None,
            failure_reason=stop.reason if stop else None,
            message=stop.message if stop else None,
            validate_only=self._settings.validate_only,
            guards=plan.guards,
            origin=plan.observed.origin,
        )
