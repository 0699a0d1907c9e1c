"""A change of one entity, planned and not yet written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from reconciler.apply import ApplySettings
from reconciler.errors import FrozenError, GuardRefusedError, NotAppliedError, RefusedError, StalePlanError
from reconciler.model import ApplyReport, ApplyResult, Entity, GuardStatus, Plan
from reconciler.workflows import Approval

_log: Final = logging.getLogger("reconciler.client")


class LoggedProgress:
    """Logs how far a write is to ``reconciler.client``, at INFO; nothing is ever printed."""

    def step(self, message: str) -> None:
        """One line."""
        _log.info("%s", message)


class PlannedAlteration:
    """What ``ClusterQuotas.plan_alter`` would write. Look at ``plan``, then call ``apply``; forget it, and nothing happens."""

    __slots__ = ("_entity", "_plan", "_warnings", "_write")

    def __init__(
        self, entity: Entity, plan: Plan, write: Callable[[Approval], ApplyReport], *, warnings: Sequence[str] = ()
    ) -> None:
        """For ``ClusterQuotas.plan_alter``."""
        self._entity = entity
        self._warnings = tuple(warnings)
        self._plan = plan
        self._write = write

    @property
    def entity(self) -> Entity:
        """What is altered."""
        return self._entity

    @property
    def plan(self) -> Plan:
        """The values before and after, the guards as they stand, and notes; ``plan.changes`` is empty when nothing changes."""
        return self._plan

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the name is most likely a mistake, though Kafka takes it: a literal ``<default>``, blanks, percent encoding."""
        return self._warnings

    def validate(self) -> ApplyReport:
        """Let the cluster check the change; nothing is written. Raises as ``apply``; every guard counts as accepted here."""
        every_guard = tuple(guard.id for guard in self.plan.guards)
        return succeeded(self._write(Approval(accepted=every_guard, settings=ApplySettings(validate_only=True))))

    def apply(self, *, accept: Sequence[str] = ()) -> ApplyReport:
        """Write the change, and read it back until every broker shows it. ``accept`` names the guards that may be passed.

        The cluster is read again first. Returns only when all is done and verified, or there was nothing to do. Raises
        ``GuardRefusedError`` for guards that were not accepted, ``StalePlanError`` when the cluster no longer has what the plan
        changes, other ``RefusedError`` (nothing was written in these cases), and ``NotAppliedError``, whose report has the
        outcome of the change. ``UsageError`` for an ``accept`` that names no guard; ``BackendError`` only if nothing was written.

        >>> with connect("b1:9092") as quotas:
        ...     change = quotas.plan_alter(entity(user=DEFAULT), add={"producer_byte_rate": "6MB"})
        ...     print([guard.id for guard in change.plan.tripped])
        ...     report = change.apply(accept=["default-entity"])
        ['default-entity']
        >>> report.result, report.verified
        (<ApplyResult.DONE: 'done'>, True)
        """
        if isinstance(accept, str):
            accept = (accept,)
        return succeeded(self._write(Approval(accepted=tuple(accept), expected_digest=self.plan.digest)))

    def __repr__(self) -> str:
        keys = [f"{key.key} {_shown(key.before)} -> {_shown(key.after)}" for change in self.plan.changes for key in change.keys]
        tripped = "".join(f"; guard {guard.id} needs acceptance" for guard in self.plan.tripped)
        tripped += "".join(f"; warning: {warning}" for warning in self.warnings)
        return f"<PlannedAlteration of {self.entity}: {', '.join(keys) or 'nothing to do'}{tripped}>"


def succeeded(report: ApplyReport) -> ApplyReport:
    """The report of a run that did what it was asked to. Raises for any other, so that no script goes on by mistake."""
    if report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO):
        return report
    message = report.message or "the change was not written"
    if report.result is not ApplyResult.REFUSED:
        raise NotAppliedError(message, report=report)
    if report.failure_reason == StalePlanError.failure_reason:
        raise StalePlanError(message)
    for kind in (FrozenError, GuardRefusedError):
        if report.failure_reason == kind.failure_reason:
            raise kind(message, guard_ids=[guard.id for guard in report.guards if guard.status is GuardStatus.NEEDS_ACCEPTANCE])
    raise RefusedError(message)


def _shown(value: float | None) -> str:
    return "not set" if value is None else repr(value)
