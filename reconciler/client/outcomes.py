"""What a planned change can do, the JSON of results, and the errors of runs that were not completed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.apply import ApplySettings
from reconciler.documents import APPLY_REPORT, BACKTEST, DRIFT, PLAN, Document
from reconciler.errors import FrozenError, GuardRefusedError, NotAppliedError, RefusedError, StalePlanError
from reconciler.model import ApplyReport, ApplyResult, BacktestReport, Drift, GuardStatus, Plan, display_name
from reconciler.ports import NoProgress
from reconciler.workflows import Approval

_log: Final = logging.getLogger("reconciler.client")
_DOCUMENTS: Final[dict[type, Document[Any]]] = {Plan: PLAN, Drift: DRIFT, BacktestReport: BACKTEST, ApplyReport: APPLY_REPORT}


def to_json(result: Plan | Drift | BacktestReport | ApplyReport) -> str:
    """Return the document that the command of this result prints with ``--format json``. ``saved_plan`` takes that of a plan."""
    return _DOCUMENTS[type(result)].text(result)


def verdict_rows(report: BacktestReport) -> list[dict[str, str | float | bool | None]]:
    """Return a row for each quota group on a broker, worst first, for a table or a DataFrame.

    An absent name is ``None``, as is an unlimited or unknown limit. Limits, peak and ``recommended`` are in the unit of the key.
    """
    return [
        {
            "user": row.name.user or None,
            "client-id": row.name.client_id or None,
            "broker": row.broker,
            "key": row.key,
            "verdict": row.verdict.value,
            "changed": row.changed,
            "limit_before": row.limits.lowest_before,
            "limit_after": row.limits.after,
            "peak": row.peak.rate,
            "share_over": row.over.share,
            "recommended": row.advice.recommended,
        }
        for row in report.verdicts
    ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedChange:
    """What ``plan`` or ``plan_alter`` would write. Nothing happens before ``apply``: look at ``plan`` first.

    ``write``: what ``apply`` and ``validate`` call.
    """

    plan: Plan
    """The values before and after, guards, findings and notes. ``plan.changes`` is empty when nothing changes."""
    write: Callable[[Approval], ApplyReport]
    accepted: tuple[str, ...] = ()
    """The guards that were accepted when the plan was made."""
    warnings: tuple[str, ...] = ()
    """Why a name is probably a mistake: a literal ``<default>``, blanks, percent encoding."""

    def validate(self) -> ApplyReport:
        """Let the cluster check every change, without writing. Every guard counts as accepted here.

        Raises ``StalePlanError`` when another plan would be written now, and as ``apply``.
        """
        every_guard = tuple(dict.fromkeys(guard.id for guard in self.plan.guards))
        settings = ApplySettings(validate_only=True)
        return self.write(Approval(accepted=every_guard, expected_digest=self.plan.digest, settings=settings))

    def apply(self, *, accept: Sequence[str] | None = None) -> ApplyReport:
        """Write exactly this plan, and read it back until every broker shows it.

        ``accept``: the guards that may be passed, by name. ``None``: those that were accepted in the plan. Everything is read
        again first. Returns only when all is done and verified, or there was nothing to do.

        Raises ``GuardRefusedError`` for guards that were not accepted, ``StalePlanError`` when another plan would be written now,
        and other ``RefusedError``, ``UsageError`` for an unknown guard, and ``BackendError``. Nothing was written in these cases.
        Raises ``NotAppliedError``, whose report has the outcome of every change.

        >>> with connect("b1:9092") as quotas:
        ...     change = quotas.plan_alter({entity(user=DEFAULT): {"producer_byte_rate": "6MB"}})
        ...     print([guard.id for guard in change.plan.tripped])
        ...     report = change.apply(accept=["default-entity"])
        ['default-entity']
        >>> report.result, report.verified
        (<ApplyResult.DONE: 'done'>, True)
        """
        accepted = self.accepted if accept is None else names_of_guards(accept)
        return self.write(Approval(accepted=accepted, expected_digest=self.plan.digest))

    def __repr__(self) -> str:
        counts, name = self.plan.summary, self.plan.cluster.name or self.plan.cluster.id
        cluster = f"cluster {display_name(name)}" if name else "a cluster"
        tripped = "".join(f", guard {guard.id} needs acceptance" for guard in self.plan.tripped)
        tripped += "".join(f", warning: {warning}" for warning in self.warnings)
        words = f"{counts.create:,} to create, {counts.update:,} to update, {counts.delete:,} to delete"
        return f"<PlannedChange of {cluster}: {words}{tripped}>"


class LoggedProgress(NoProgress):
    """Logs how far a write is to ``reconciler.client``, at INFO. Nothing is ever printed."""

    def step(self, message: str) -> None:
        """Log one line."""
        if message:
            _log.info("%s", message)


def names_of_guards(accept: Sequence[str]) -> tuple[str, ...]:
    """A single name is one guard, not one for each letter."""
    return (accept,) if isinstance(accept, str) else tuple(accept)


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
