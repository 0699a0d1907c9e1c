"""Writing requests: a plan is cut by keys and size, never through an entity, and each request is sent until its fate is known.

Changes that may have been done are looked for on the cluster, and only those that are still as before are sent again.

A KRaft controller refuses a request of more than 10,000 changed keys as a whole (since 3.5), and one atomic batch must fit its
8 MiB raft batch; requests stay far below both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.apply.outcomes import Outcomes, Stop
from reconciler.apply.readback import ConflictCheck, is_unchanged, is_written
from reconciler.apply.retry import DEADLINE, RetryPolicy, is_transient
from reconciler.errors import AuthorizationError, BackendError, OutcomeUnknownError, RequestRefusedError, StalePlanError
from reconciler.logs import log_event
from reconciler.model import Change, ChangeStatus
from reconciler.ports import QuotaCluster

_KEY_OVERHEAD: Final = 40
_ENTITY_OVERHEAD: Final = 40

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Upper bounds of one request; an entity that is larger alone still goes, alone."""

    keys: int = 5_000
    size: int = 400 * 1024
    """Bytes, estimated from the names' UTF-8 lengths."""


def split_into_requests(changes: Sequence[Change], limits: ChunkLimits) -> Iterator[tuple[Change, ...]]:
    """Yield the changes in order, in requests within the limits."""
    pending: list[Change] = []
    keys = size = 0
    for change in changes:
        change_size = estimated_size(change)
        if pending and (keys + len(change.keys) > limits.keys or size + change_size > limits.size):
            yield tuple(pending)
            pending, keys, size = [], 0, 0
        pending.append(change)
        keys += len(change.keys)
        size += change_size
    if pending:
        yield tuple(pending)


def estimated_size(change: Change) -> int:
    """Bytes that a change takes in a request, rounded up."""
    names = sum(len(n.encode("utf-8", "surrogatepass")) for _, n in change.entity.parts if isinstance(n, str))
    return _ENTITY_OVERHEAD + names + _KEY_OVERHEAD * len(change.keys)


class RequestWriter:
    """Writes requests, one after the other, and keeps the outcomes true at every moment."""

    def __init__(self, cluster: QuotaCluster, outcomes: Outcomes, conflicts: ConflictCheck, *, retry: RetryPolicy) -> None:
        self._cluster = cluster
        self._outcomes = outcomes
        self._conflicts = conflicts
        self._retry = retry
        self._budget = retry.budget
        self._doubt: OutcomeUnknownError | None = None

    def write(self, request: Sequence[Change]) -> Stop | None:
        """Write these changes, each of them not attempted yet. ``None``: all are applied."""
        pending: Sequence[Change] = request
        self._doubt = None
        stop: Stop | None = None
        for attempt, wait in enumerate(self._retry.waits(), start=1):
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
                wait_seconds=round(wait, 3) if is_transient(failed) else None,
            )
            if not is_transient(failed):
                self._look_again(request)
                return stop
            self._budget.sleep(wait)
            pending, changed = self._settled(pending)
            if changed is not None:
                return changed
            if not pending:
                break
            if self._budget.spent:
                return Stop(reason=DEADLINE, message=f"{self._budget}. The last error: {failed}")
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
        """Read the cluster again and return the alterations still to be sent. Sending one again is safe: they are idempotent."""
        try:
            live = self._cluster.current_state().entities
        except BackendError:
            return pending, None
        if self._doubt is not None:
            self._outcomes.mark([c for c in pending if is_written(c, live)], ChangeStatus.APPLIED)
            pending = [c for c in pending if not is_written(c, live)]
        changed = self._conflicts.compare(live, planned=[c for c in pending if not is_unchanged(c, live)])
        return pending, changed

    def _refusal(self, request: Sequence[Change]) -> Stop | None:
        """Why not everything in a request that was answered is done. What is not attempted then, the cluster found changed."""
        self._look_again(request)
        left = [self._outcomes[c] for c in request if self._outcomes[c].status is not ChangeStatus.APPLIED]
        if not left:
            return None
        stale = [outcome for outcome in left if outcome.status is ChangeStatus.NOT_ATTEMPTED]
        if stale:
            return Stop.of(StalePlanError(f"the cluster changed after planning: {stale[0].error}. Plan again"))
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
        self._outcomes.mark([change for change in refused if is_written(change, live)], ChangeStatus.APPLIED)
