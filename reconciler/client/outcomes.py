"""Results of calls: typed values, the document that the command prints, rows for tables, and HTML for notebooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from reconciler.apply import ApplySettings
from reconciler.documents import BACKTEST, DRIFT, PLAN, Document
from reconciler.errors import FrozenError, GuardRefusedError, NotAppliedError, RefusedError, StalePlanError
from reconciler.formats import document_text
from reconciler.model import (
    ApplyReport,
    ApplyResult,
    BacktestReport,
    Drift,
    Entity,
    EntityName,
    EntityType,
    GuardStatus,
    Plan,
    Span,
    display_name,
)
from reconciler.ports import NoProgress
from reconciler.render import View, backtest_view, drift_view, plan_view, view_fragment
from reconciler.text import count_of
from reconciler.workflows import Approval

Cell: TypeAlias = EntityName | str | float | bool | None
"""A field of a row. ``DEFAULT`` stays what it is, so that nothing confuses it with a name."""

_log: Final = logging.getLogger("reconciler.client")


class Outcome:
    """The document that a command prints, and a table in notebooks: what a planned change, drift and judged traffic have."""

    __slots__ = ()

    @property
    def document(self) -> Mapping[str, Any]:
        """The result as the command prints it with ``--format json``."""
        codec, value, _ = self._forms()
        return codec.write(value)

    def to_json(self) -> str:
        """Return the document as text. ``apply --plan FILE`` takes that of a plan."""
        return document_text(dict(self.document))

    def _repr_html_(self) -> str:
        _, value, view = self._forms()
        return view_fragment(view(value))

    def _forms(self) -> tuple[Document[Any], Any, Callable[[Any], View]]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedChange(Outcome):
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

    def rows(self) -> list[dict[str, Cell]]:
        """Return a row for each key that changes.

        Fields: ``user``, ``client-id``, ``ip``, ``action``, ``key``, ``before``, ``after``, ``place``.

        >>> manifests(["quotas"]).plan().rows()[0]["after"]
        20971520.0
        """
        return [
            {
                **_names(change.entity),
                "action": change.action.value,
                "key": key.key,
                "before": key.before,
                "after": key.after,
                "place": _place(key.source),
            }
            for change in self.plan.changes
            for key in change.keys
        ]

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
        tripped = "".join(f", guard {guard.id} needs acceptance" for guard in self.plan.tripped)
        tripped += "".join(f", warning: {warning}" for warning in self.warnings)
        return f"<PlannedChange of {_cluster(self.plan)}: {self._summary()}{tripped}>"

    def _summary(self) -> str:
        if len(self.plan.changes) != 1:
            counts = self.plan.summary
            return f"{counts.create:,} to create, {counts.update:,} to update, {counts.delete:,} to delete"
        (change,) = self.plan.changes
        return f"{change.entity}: {', '.join(f'{key.key} {_shown(key.before)} -> {_shown(key.after)}' for key in change.keys)}"

    def _forms(self) -> tuple[Document[Any], Any, Callable[[Any], View]]:
        return PLAN, self.plan, plan_view


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FoundDrift(Outcome):
    """The result of ``ManifestCluster.drift``: how the live quotas differ from the declared ones."""

    drift: Drift
    """All entities of the scope. ``drift.differs``: whether any of them differs."""

    def rows(self) -> list[dict[str, Cell]]:
        """Return a row for each key that differs.

        Fields: ``user``, ``client-id``, ``ip``, ``drift``, ``key``, ``desired``, ``baseline``, ``live``, ``place``.

        >>> [(row["key"], row["desired"], row["live"]) for row in manifests(["quotas"]).drift().rows()]
        [('producer_byte_rate', 20971520.0, 20000000.0)]
        """
        return [
            {
                **_names(entity.entity),
                "drift": entity.drift.value,
                "key": key.key,
                "desired": key.desired,
                "baseline": key.baseline,
                "live": key.live,
                "place": _place(key.source),
            }
            for entity in self.drift.entities
            if entity.drift.is_difference
            for key in entity.keys
        ]

    def __repr__(self) -> str:
        differing = sum(entity.drift.is_difference for entity in self.drift.entities)
        return f"<FoundDrift of {_cluster(self.drift)}: {count_of(differing, 'entity differs', 'entities differ')}>"

    def _forms(self) -> tuple[Document[Any], Any, Callable[[Any], View]]:
        return DRIFT, self.drift, drift_view


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgedTraffic(Outcome):
    """The result of ``ManifestCluster.backtest`` and ``backtest_frame``: verdicts about recorded traffic, worst first."""

    report: BacktestReport
    """The verdicts, counts and findings. ``report.refused``: whether a rule of the Cluster manifest fails."""

    def rows(self) -> list[dict[str, Cell]]:
        """Return a row for each quota group on a broker, worst first.

        Fields: ``user``, ``client-id``, ``broker``, ``key``, ``verdict``, ``changed``, ``limit_before``, ``limit_after``,
        ``peak``, ``share_over``, ``recommended``. An absent name is ``None``, as is an unlimited or unknown limit.
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
            for row in self.report.verdicts
        ]

    def __repr__(self) -> str:
        refused = ", fails a rule" if self.report.refused else ""
        return f"<{type(self).__name__}: {count_of(self.report.counts.groups, 'quota group')}{refused}>"

    def _forms(self) -> tuple[Document[Any], Any, Callable[[Any], View]]:
        return BACKTEST, self.report, backtest_view


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


def _names(entity: Entity) -> dict[str, Cell]:
    absent: dict[str, Cell] = dict.fromkeys(kind.value for kind in EntityType)
    return {**absent, **dict(entity.parts)}


def _place(span: Span | None) -> str | None:
    return None if span is None else str(span)


def _shown(value: float | None) -> str:
    return "not set" if value is None else repr(value)


def _cluster(result: Plan | Drift) -> str:
    name = result.cluster.name or result.cluster.id
    return f"cluster {display_name(name)}" if name else "a cluster"
