"""Results of ``ManifestCluster``: typed values, the document that the command prints, rows for tables, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reconciler.apply import ApplySettings
from reconciler.client.description import shown_source
from reconciler.documents import BACKTEST, DRIFT, PLAN
from reconciler.model import (
    ApplyReport,
    BacktestReport,
    Drift,
    Entity,
    EntityName,
    EntityType,
    Finding,
    GuardResult,
    Plan,
    Span,
)
from reconciler.render import backtest_view, drift_view, plan_view, view_fragment
from reconciler.resolution import ViewKind
from reconciler.text import count_of
from reconciler.workflows import Approval

Cell: TypeAlias = EntityName | str | float | bool | None
"""A field of a row. ``DEFAULT`` stays what it is, so that nothing confuses it with a name."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedManifests:
    """What ``ManifestCluster.plan`` would write. Nothing happens before ``apply``.

    ``write``: what ``apply`` and ``validate`` call.
    """

    plan: Plan
    accepted: tuple[str, ...]
    """The guards that were accepted when the plan was made."""
    write: Callable[[Approval], ApplyReport]

    @property
    def tripped(self) -> tuple[GuardResult, ...]:
        """Guards that need acceptance before anything is written."""
        return self.plan.tripped

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the manifests and of the live state, in the order of their places. An error stops ``apply``."""
        return self.plan.findings

    @property
    def document(self) -> Mapping[str, Any]:
        """The plan as ``kafka-quotas plan --format json`` prints it."""
        return PLAN.write(self.plan)

    def to_json(self) -> str:
        """The same as text, byte for byte. ``apply --plan FILE`` takes such a file."""
        return PLAN.text(self.plan)

    def rows(self) -> list[dict[str, Cell]]:
        """One row for each key that changes.

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
        """Let the cluster check every change, and write nothing. Every guard counts as accepted here.

        Raises ``StalePlanError`` when another plan would be written now, and as ``ManifestCluster.apply``.
        """
        every_guard = tuple(dict.fromkeys(guard.id for guard in self.plan.guards))
        settings = ApplySettings(validate_only=True)
        return self.write(Approval(accepted=every_guard, expected_digest=self.plan.digest, settings=settings))

    def apply(self, *, accept: Sequence[str] | None = None) -> ApplyReport:
        """Write exactly this plan, and read it back until every broker shows it.

        ``accept``: the guards that may be passed, by name. ``None``: those of ``plan``. Manifests and cluster are read again
        first. Raises ``StalePlanError`` when they give another plan now, and as ``ManifestCluster.apply``.

        >>> report = manifests(["quotas"]).plan().apply(accept=["large-reduction"])
        >>> report.result, report.verified
        (<ApplyResult.DONE: 'done'>, True)
        """
        accepted = self.accepted if accept is None else names_of_guards(accept)
        return self.write(Approval(accepted=accepted, expected_digest=self.plan.digest))

    def __repr__(self) -> str:
        tripped = "".join(f", guard {guard.id} needs acceptance" for guard in self.tripped)
        count = count_of(len(self.plan.changes), "change")
        return f"<PlannedManifests of {_cluster(self.plan)}: {count}{tripped}>"

    def _repr_html_(self) -> str:
        return view_fragment(plan_view(self.plan))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FoundDrift:
    """The result of ``ManifestCluster.drift``: how the live quotas differ from the declared ones."""

    drift: Drift

    @property
    def differs(self) -> bool:
        """Whether any entity in the scope differs. The command exits with 2 then, with ``--detailed-exitcode``."""
        return self.drift.differs

    @property
    def document(self) -> Mapping[str, Any]:
        """The drift as ``kafka-quotas drift --format json`` prints it."""
        return DRIFT.write(self.drift)

    def to_json(self) -> str:
        """The same as text, byte for byte."""
        return DRIFT.text(self.drift)

    def rows(self) -> list[dict[str, Cell]]:
        """One row for each key that differs.

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
        return f"<FoundDrift of {_cluster(self.drift)}: {self._counted()}>"

    def _repr_html_(self) -> str:
        return view_fragment(drift_view(self.drift))

    def _counted(self) -> str:
        differing = sum(entity.drift.is_difference for entity in self.drift.entities)
        return f"{count_of(differing, 'entity differs', 'entities differ')}" if differing else "none"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgedTraffic:
    """The result of ``ManifestCluster.backtest``: the verdicts about recorded traffic under the manifests, worst first."""

    report: BacktestReport

    @property
    def refused(self) -> bool:
        """Whether a rule of the Cluster manifest fails. The command would exit with 1."""
        return self.report.refused

    @property
    def document(self) -> Mapping[str, Any]:
        """The report as ``kafka-quotas backtest --format json`` prints it."""
        return BACKTEST.write(self.report)

    def to_json(self) -> str:
        """The same as text, byte for byte."""
        return BACKTEST.text(self.report)

    def rows(self) -> list[dict[str, Cell]]:
        """One row for each quota group on a broker, worst first.

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
        refused = ", refused by a rule" if self.refused else ""
        return f"<JudgedTraffic: {count_of(self.report.counts.groups, 'quota group')}{refused}>"

    def _repr_html_(self) -> str:
        return view_fragment(backtest_view(self.report))


def names_of_guards(accept: Sequence[str]) -> tuple[str, ...]:
    """A single name is one guard, not one for each letter."""
    return (accept,) if isinstance(accept, str) else tuple(accept)


def _names(entity: Entity) -> dict[str, Cell]:
    absent: dict[str, Cell] = dict.fromkeys(kind.value for kind in EntityType)
    return {**absent, **dict(entity.parts)}


def _place(span: Span | None) -> str | None:
    return None if span is None else str(span)


def _cluster(result: Plan | Drift) -> str:
    return shown_source(ViewKind.CLUSTER, result.cluster, None)
