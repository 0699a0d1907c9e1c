"""Sending a request until its fate is known: what may have been done is looked for, and only what is as before is sent again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from reconciler.apply.budget import DEADLINE
from reconciler.apply.comparison import is_as_before, shows
from reconciler.apply.freshness import Freshness
from reconciler.apply.outcomes import Outcomes, Stop
from reconciler.apply.retry import Patience, passes_by_itself
from reconciler.errors import AuthorizationError, BackendError, OutcomeUnknownError, RequestRefusedError, StalePlanError
from reconciler.logs import log_event
from reconciler.model import Change, ChangeStatus
from reconciler.ports import QuotaCluster

_log: Final = logging.getLogger(__name__)


class RequestWriter:
    """Writes requests, one after the other, and keeps the outcomes true at every moment."""

    def __init__(self, cluster: QuotaCluster, outcomes: Outcomes, freshness: Freshness, *, patience: Patience) -> None:
        self._cluster = cluster
        self._outcomes = outcomes
        self._freshness = freshness
        self._patience = patience
        self._budget = patience.budget
        self._doubt: OutcomeUnknownError | None = None

    def write(self, request: Sequence[Change]) -> Stop | None:
        """Write these changes, each of them not attempted yet. ``None``: all are applied."""
        pending: Sequence[Change] = request
        self._doubt = None
        stop: Stop | None = None
        for attempt, wait in enumerate(self._patience.waits(), start=1):
            failed = self._send(pending)
            if failed is None:
                log_event(_log, "request written", changes=len(pending), attempt=attempt)
                break
            stop = Stop.of(failed)
            log_event(
                _log,
                "request failed",
                level=logging.INFO,
                changes=len(pending),
                attempt=attempt,
                failure_reason=failed.failure_reason,
                reason=str(failed),
                wait_seconds=round(wait, 3) if passes_by_itself(failed) else None,
            )
            if not passes_by_itself(failed):
                self._look_again(request)
                return stop
            self._budget.sleep(wait)
            pending, changed = self._settled(pending)
            if changed is not None:
                return changed
            if not pending:
                break
            if self._budget.spent:
                return Stop(reason=DEADLINE, message=f"{self._budget}; the last that was heard: {failed}")
        else:
            return stop
        return self._refusal(request)

    def _send(self, pending: Sequence[Change]) -> BackendError | None:
        """Send once; ``None``: there is an answer, and it is noted."""
        # Unknown until the answer is here, so that an interrupt in between is reported as what it is.
        self._outcomes.mark(pending, ChangeStatus.UNKNOWN, error=str(self._doubt or "no answer"))
        try:
            results = self._cluster.alter([change.alteration() for change in pending], validate_only=False)
        except BackendError as error:
            if isinstance(error, OutcomeUnknownError):
                self._doubt = error
            # What was sent before, and may have been done, stays unknown, whatever becomes of the same again.
            if self._doubt is not None:
                self._outcomes.mark(pending, ChangeStatus.UNKNOWN, error=str(self._doubt))
            elif isinstance(error, (RequestRefusedError, AuthorizationError)):
                self._outcomes.mark(pending, ChangeStatus.FAILED, error=str(error))
            else:
                self._outcomes.mark(pending, ChangeStatus.NOT_ATTEMPTED)
            return error
        self._outcomes.note(results, good=ChangeStatus.APPLIED)
        return None

    def _settled(self, pending: Sequence[Change]) -> tuple[Sequence[Change], Stop | None]:
        """Look what became of them; give those that are still to be sent. Sending again what nobody can see now is safe, too."""
        try:
            live = self._cluster.current_state().entities
        except BackendError:
            return pending, None
        if self._doubt is not None:
            self._outcomes.mark([c for c in pending if shows(c, live)], ChangeStatus.APPLIED)
            pending = [c for c in pending if not shows(c, live)]
        changed = self._freshness.compare(live, planned=[c for c in pending if not is_as_before(c, live)])
        return pending, changed

    def _refusal(self, request: Sequence[Change]) -> Stop | None:
        """Why not everything in a request that was answered is done. What is not attempted then, the cluster found changed."""
        self._look_again(request)
        left = [self._outcomes[c] for c in request if self._outcomes[c].status is not ChangeStatus.APPLIED]
        if not left:
            return None
        stale = [outcome for outcome in left if outcome.status is ChangeStatus.NOT_ATTEMPTED]
        if stale:
            return Stop.of(StalePlanError(f"the cluster changed after planning: {stale[0].error}; plan again"))
        return Stop(reason="refused-by-cluster", message="stopped after the first request that was not done whole")

    def _look_again(self, request: Sequence[Change]) -> None:
        """All this was accepted when it was validated: a refusal may be an answer that was garbled on its way."""
        refused = [change for change in request if self._outcomes[change].status is ChangeStatus.FAILED]
        if not refused:
            return
        try:
            live = self._cluster.current_state().entities
        except BackendError:
            return
        self._outcomes.mark([change for change in refused if shows(change, live)], ChangeStatus.APPLIED)
