"""Writing a plan: validate everything, compare once more, write in chunks, read back, and say truthfully what happened.

Nothing here decides whether a plan may be written: guards, digests and questions come before. What comes out is always a report;
errors are raised only while nothing has been written yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.apply.chunks import ChunkLimits, chunks
from reconciler.apply.readback import shows, unlike_before, verify
from reconciler.errors import BackendError, OutcomeUnknownError, StalePlanError
from reconciler.model.change import AlterationResult, Change
from reconciler.model.entity import Entity
from reconciler.model.plan import Plan
from reconciler.model.report import ApplyReport, ApplyResult, ChangeOutcome, ChangeStatus
from reconciler.ports import Clock, Progress, QuotaCluster

_ATTEMPTS: Final = 3
_FIRST_BACKOFF: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySettings:
    """How one run writes. ``verify_seconds``: how long brokers may take to show what was written."""

    limits: ChunkLimits = field(default_factory=ChunkLimits)
    verify_seconds: float = 30.0
    validate_only: bool = False


class Executor:
    """One run against one cluster; use it once."""

    def __init__(self, cluster: QuotaCluster, *, clock: Clock, progress: Progress, settings: ApplySettings) -> None:
        self._cluster = cluster
        self._clock = clock
        self._progress = progress
        self._settings = settings
        self._outcomes: dict[Entity, ChangeOutcome] = {}

    def run(self, plan: Plan) -> ApplyReport:
        """Write the plan. Raises ``StalePlanError`` or ``BackendError`` only when nothing was written."""
        self._outcomes = {c.entity: ChangeOutcome(change=c, status=ChangeStatus.NOT_ATTEMPTED) for c in plan.changes}
        if not plan.changes:
            return self._report(plan, ApplyResult.NOTHING_TO_DO, verified=True)
        requests = tuple(chunks(plan.changes, self._settings.limits))
        if self._refused_by_validation(requests):
            message = "the cluster refused the change set; nothing was written"
            return self._report(plan, ApplyResult.FAILED, reason="refused-by-cluster", message=message)
        if self._settings.validate_only:
            return self._report(plan, ApplyResult.DONE)
        self._require_fresh(plan.changes)
        try:
            return self._write_and_verify(plan, requests)
        except KeyboardInterrupt:
            if not self._may_have_written():
                raise
            return self._report(plan, ApplyResult.PARTIAL, reason="interrupted", message="interrupted while writing")

    def _refused_by_validation(self, requests: Sequence[tuple[Change, ...]]) -> bool:
        self._progress.step(f"asking the cluster to validate {len(self._outcomes)} changes")
        for request in requests:
            results = self._cluster.alter([c.alteration() for c in request], validate_only=True)
            self._note(results, good=ChangeStatus.NOT_ATTEMPTED)
        return any(o.status is ChangeStatus.FAILED for o in self._outcomes.values())

    def _require_fresh(self, changes: Sequence[Change]) -> None:
        live = self._cluster.current_state().entities
        differences = [text for change in changes if (text := unlike_before(change, live))]
        if differences:
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            msg = f"the cluster changed after planning: {differences[0]}{more}; plan again"
            raise StalePlanError(msg)

    def _write_and_verify(self, plan: Plan, requests: Sequence[tuple[Change, ...]]) -> ApplyReport:
        for number, request in enumerate(requests, start=1):
            self._progress.step(f"writing request {number} of {len(requests)}: {len(request)} changes")
            try:
                self._write(request)
            except BackendError as error:
                if not self._may_have_written():
                    raise
                return self._report(plan, ApplyResult.PARTIAL, reason=error.failure_reason, message=str(error))
            if any(self._outcomes[c.entity].status is not ChangeStatus.APPLIED for c in request):
                return self._stopped(plan)
        return self._verified(plan)

    def _write(self, request: tuple[Change, ...]) -> None:
        """Send one request; an unknown outcome is settled by looking, and only what is still as before is sent again."""
        pending: Sequence[Change] = request
        for attempt in range(_ATTEMPTS):
            # Unknown until the answer is here, so that an interrupt in between is reported as what it is.
            self._mark(pending, ChangeStatus.UNKNOWN, error="no answer")
            try:
                self._note(self._cluster.alter([c.alteration() for c in pending], validate_only=False), good=ChangeStatus.APPLIED)
            except OutcomeUnknownError as error:
                self._mark(pending, ChangeStatus.UNKNOWN, error=str(error))
                self._clock.sleep(_FIRST_BACKOFF * 2**attempt)
                pending = self._settle(pending)
            except BackendError:
                self._mark(pending, ChangeStatus.NOT_ATTEMPTED)
                raise
            else:
                return
            if not pending:
                return

    def _settle(self, pending: Sequence[Change]) -> Sequence[Change]:
        """Look what became of changes; return those that are still as before, and so may be sent again."""
        try:
            live = self._cluster.current_state().entities
        except BackendError:
            # Nobody can tell now; sending again is safe, because alterations are idempotent.
            return pending
        self._mark([c for c in pending if shows(c, live)], ChangeStatus.APPLIED)
        return [c for c in pending if not shows(c, live) and unlike_before(c, live) is None]

    def _may_have_written(self) -> bool:
        return any(o.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) for o in self._outcomes.values())

    def _verified(self, plan: Plan) -> ApplyReport:
        self._progress.step("reading back")
        try:
            seen = verify(self._cluster, plan.changes, clock=self._clock, deadline_seconds=self._settings.verify_seconds)
        except BackendError as error:
            return self._report(plan, ApplyResult.PARTIAL, reason="not-verified", message=f"everything was written, but: {error}")
        if not seen.verified:
            return self._report(plan, ApplyResult.PARTIAL, reason="not-verified", message=seen.message)
        return self._report(plan, ApplyResult.DONE, verified=True)

    def _stopped(self, plan: Plan) -> ApplyReport:
        unknown = any(o.status is ChangeStatus.UNKNOWN for o in self._outcomes.values())
        return self._report(
            plan,
            ApplyResult.PARTIAL if self._may_have_written() else ApplyResult.FAILED,
            reason="outcome-unknown" if unknown else "refused-by-cluster",
            message="stopped after the first request that was not done whole",
        )

    def _note(self, results: Sequence[AlterationResult], *, good: ChangeStatus) -> None:
        for result in results:
            change = self._outcomes[result.entity].change
            status = good if result.error_code == 0 else ChangeStatus.FAILED
            code = result.error_code or None
            self._outcomes[result.entity] = ChangeOutcome(change=change, status=status, error_code=code, error=result.error)

    def _mark(self, changes: Sequence[Change], status: ChangeStatus, *, error: str | None = None) -> None:
        for change in changes:
            self._outcomes[change.entity] = ChangeOutcome(change=change, status=status, error=error)

    def _report(
        self, plan: Plan, result: ApplyResult, *, verified: bool = False, reason: str | None = None, message: str | None = None
    ) -> ApplyReport:
        outcomes: Mapping[Entity, ChangeOutcome] = self._outcomes
        return ApplyReport(
            cluster=plan.cluster,
            digest=plan.digest,
            result=result,
            outcomes=tuple(outcomes[c.entity] for c in plan.changes),
            verified=verified,
            failure_reason=reason,
            message=message,
            validate_only=self._settings.validate_only,
            guards=plan.guards,
        )
