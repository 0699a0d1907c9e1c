"""The state of every change during a run: planned, written, verified or failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.errors import ReconcilerError
from reconciler.model import AlterationResult, Change, ChangeOutcome, ChangeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why nothing more is written. ``error``: to be raised instead of reported, when nothing was written at all."""

    reason: str
    message: str
    error: ReconcilerError | None = None

    @classmethod
    def of(cls, error: ReconcilerError) -> Stop:
        """The stop that an error makes."""
        return cls(reason=error.failure_reason, message=str(error), error=error)


class Outcomes:
    """One outcome for each change, always; they start as not attempted."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._of = {c.entity: ChangeOutcome(change=c, status=ChangeStatus.NOT_ATTEMPTED) for c in changes}

    def __getitem__(self, change: Change) -> ChangeOutcome:
        return self._of[change.entity]

    def note(self, results: Iterable[AlterationResult], *, good: ChangeStatus) -> None:
        """Take over the cluster's answers; ``good`` is what code 0 means. Entities that were not sent are passed over."""
        for result in results:
            known = self._of.get(result.entity)
            if known is None:
                continue
            status = good if result.error_code == 0 else ChangeStatus.FAILED
            if result.stale:
                status = ChangeStatus.NOT_ATTEMPTED
            code = result.error_code or None
            if (known.status, known.error_code, known.error) != (status, code, result.error):
                self._set(known.change, status, error=result.error, code=code)

    def mark(self, changes: Iterable[Change], status: ChangeStatus, *, error: str | None = None) -> None:
        """Set them all to one status."""
        for change in changes:
            self._set(change, status, error=error)

    def explain(self, change: Change, text: str) -> None:
        """Keep its status and add to its message."""
        self._set(change, self[change].status, error=text)

    def having(self, *statuses: ChangeStatus) -> tuple[Change, ...]:
        """The changes with one of these, in the plan's order."""
        return tuple(outcome.change for outcome in self._of.values() if outcome.status in statuses)

    @property
    def may_have_written(self) -> bool:
        """True when something may be on the cluster that was not there before."""
        return any(o.status in (ChangeStatus.APPLIED, ChangeStatus.UNKNOWN) for o in self._of.values())

    def in_order(self) -> tuple[ChangeOutcome, ...]:
        """All of them, in the plan's order."""
        return tuple(self._of.values())

    def _set(self, change: Change, status: ChangeStatus, *, error: str | None = None, code: int | None = None) -> None:
        self._of[change.entity] = ChangeOutcome(change=change, status=status, error_code=code, error=error)
