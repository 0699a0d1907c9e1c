"""Results of calls: typed values, the document that the command prints, rows for tables, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from reconciler.apply import ApplySettings
from reconciler.documents import BACKTEST, DRIFT, PLAN
from reconciler.formats import document_text
from reconciler.model import (
    ApplyReport,
    BacktestReport,
    ClusterIdentity,
    Drift,
    Entity,
    EntityName,
    EntityType,
    Finding,
    GuardResult,
    Observed,
    Plan,
    Quotas,
    Span,
    display_name,
)
from reconciler.render import backtest_view, drift_view, plan_view, view_fragment
from reconciler.resolution import ClientDifference, QuotaView, ViewKind
from reconciler.text import count_of
from reconciler.workflows import Approval

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Cell: TypeAlias = EntityName | str | float | bool | None
"""A field of a row. ``DEFAULT`` stays what it is, so that nothing confuses it with a name."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedManifests:
    """The plan of ``ManifestCluster.plan``. Nothing happens before ``apply``.

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
        """Findings of the manifests and of the live state. An error stops ``apply``."""
        return self.plan.findings

    @property
    def document(self) -> Mapping[str, Any]:
        """The plan as ``kafka-quotas plan --format json`` prints it."""
        return PLAN.write(self.plan)

    def to_json(self) -> str:
        """Return the document as text. ``apply --plan FILE`` takes such a file."""
        return PLAN.text(self.plan)

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
        """Whether any entity in the scope differs."""
        return self.drift.differs

    @property
    def document(self) -> Mapping[str, Any]:
        """The drift as ``kafka-quotas drift --format json`` prints it."""
        return DRIFT.write(self.drift)

    def to_json(self) -> str:
        """Return the document as text."""
        return DRIFT.text(self.drift)

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
        """Whether a rule of the Cluster manifest fails."""
        return self.report.refused

    @property
    def document(self) -> Mapping[str, Any]:
        """The report as ``kafka-quotas backtest --format json`` prints it."""
        return BACKTEST.write(self.report)

    def to_json(self) -> str:
        """Return the document as text."""
        return BACKTEST.text(self.report)

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
        refused = ", fails a rule" if self.refused else ""
        return f"<JudgedTraffic: {count_of(self.report.counts.groups, 'quota group')}{refused}>"

    def _repr_html_(self) -> str:
        return view_fragment(backtest_view(self.report))


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestFrames:
    """The result of ``ManifestCluster.backtest_frame``. The DataFrames are on the session of the traffic.

    ``document``: the report, as ``kafka-quotas backtest --format json`` prints it. ``verdicts``: a row for each quota group on
    each broker (``VERDICTS_SCHEMA``). ``recommendations``: a row for each quota group with a recommended limit
    (``RECOMMENDATIONS_SCHEMA``).
    """

    document: Mapping[str, Any]
    verdicts: DataFrame
    recommendations: DataFrame

    @property
    def refused(self) -> bool:
        """Whether a rule of the Cluster manifest fails."""
        return bool(self.document["summary"]["refused"])

    def to_json(self) -> str:
        """Return the report as text."""
        return document_text(dict(self.document))


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Description:
    """Entities with all their quotas: key to value, per broker, in the unit of the key.

    Types and keys that this version does not know are among them.
    """

    kind: ViewKind
    """What was asked: a cluster, a snapshot, manifests, or a cluster after its plan."""
    cluster: ClusterIdentity
    observed: Observed | None
    """When (UTC) and from where it was read. ``None`` for manifests alone."""
    entities: Mapping[Entity, Quotas]

    def rows(self) -> list[dict[str, EntityName | float | None]]:
        """Return a row for each quota: ``user``, ``client-id`` and ``ip`` (``None``: absent), ``key``, ``value``.

        A default entity stays ``DEFAULT``, so that nothing confuses it with a name. Types that Kafka does not have get columns
        of their own.

        >>> with connect("b1:9092") as quotas:
        ...     rows = quotas.describe(matching(user="payments")).rows()
        >>> rows[0]["user"], rows[0]["client-id"], rows[0]["key"], rows[0]["value"]
        ('payments', None, 'consumer_byte_rate', 40000000.0)
        """
        absent: dict[str, EntityName | float | None] = dict.fromkeys(kind.value for kind in EntityType)
        return [
            {**absent, **dict(entity.parts), "key": key, "value": value}
            for entity, quotas in sorted(self.entities.items(), key=lambda item: item[0].sort_key)
            for key, value in sorted(quotas.items())
        ]

    def __repr__(self) -> str:
        count = count_of(len(self.entities), "entity", "entities")
        return f"<Description of {shown_source(self.kind, self.cluster, self.observed)}: {count}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Differences:
    """Whose limits differ between two states, in value or in the entity that sets them."""

    clients: tuple[ClientDifference, ...]
    unknown: str | None
    """Why the limits of users and client ids are not known. ``None``: they are."""
    left_out: int
    """Number of further differences that are not listed."""
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        if self.unknown is not None:
            return f"<Differences: {self.unknown}>"
        more = f" and {self.left_out:,} left out" if self.left_out else ""
        return f"<Differences: {count_of(len(self.clients), 'client')}{more}>"


def shown_view(view: QuotaView) -> str:
    """A state in a few words, without anything that strangers could make it print."""
    return shown_source(view.kind, view.cluster, view.observed)


def shown_source(kind: ViewKind, cluster: ClusterIdentity, observed: Observed | None) -> str:
    """The same of its parts."""
    name = cluster.name or cluster.id
    text = f"{kind.value} {display_name(name)}" if name else kind.value
    return text if observed is None else f"{text} at {observed.at:%Y-%m-%d %H:%M:%S} UTC"
