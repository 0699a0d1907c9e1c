"""The state of clusters at one moment, for people to look at: declared, live, drift, last runs, and rates against limits."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.features.insight.headroom.loads import Headroom
from reconciler.features.insight.runs import RunRecord
from reconciler.model import (
    BaselineOrigin,
    ClusterFailure,
    ClusterIdentity,
    DriftClass,
    Entity,
    Finding,
    ManifestCommit,
    Observed,
    Quotas,
    QuotaUnit,
    Span,
    ValueExpiry,
    display_name,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOverview:
    """One entity on all sides. ``None``: not there, or, for ``live`` of a cluster that was not read, not known.

    ``drift`` is ``None`` for what was not compared. ``baseline`` is only given where live and declared values differ.
    """

    entity: Entity
    drift: DriftClass | None
    declared: Quotas | None
    live: Quotas | None
    baseline: Quotas | None = None
    owner: str | None = None
    note: str | None = None
    source: Span | None = None
    protected: bool = False
    in_scope: bool = True
    units: Mapping[str, QuotaUnit] = field(default_factory=dict)
    """What values of ``declared`` were computed from, by key. Plain numbers are not here."""
    expiries: Mapping[str, ValueExpiry] = field(default_factory=dict)
    """By key, the declared values that expire, or expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """The budget of an owner for one key on each broker, and how much its entities have of it.

    ``used``: the largest sum of their rates on one broker, as ``loads`` has them. ``None``: not known.
    """

    owner: str
    key: str
    budget: float
    allocated: float
    entities: int
    used: float | None = None

    @property
    def free(self) -> float:
        """What is left. Negative above the budget."""
        return self.budget - self.allocated


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOverview:
    """One cluster. ``failure``: why it could not be read; then ``entities`` are what is declared, as far as that is known.

    ``callback`` and ``static_defaults`` (by key): why other limits than its quotas may apply, as ``resolve`` states it.
    ``counts`` has every class of drift when the cluster was read.
    """

    cluster: ClusterIdentity
    prune: str | None = None
    observed: Observed | None = None
    complete: bool = True
    baseline: BaselineOrigin | None = None
    counts: Mapping[DriftClass, int] = field(default_factory=dict)
    entities: tuple[EntityOverview, ...] = ()
    callback: str | None = None
    static_defaults: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    failure: ClusterFailure | None = None
    budgets: tuple[BudgetUse, ...] = ()
    """By owner and key."""
    loads: Headroom | None = None
    """Rates of quota groups beside their limits. ``None``: not read."""

    @property
    def shown_name(self) -> str:
        """What the cluster is called, ready to be shown."""
        name = self.cluster.name or self.cluster.id
        return display_name(name) if name else "the cluster"

    @property
    def differs(self) -> bool:
        """True when an entity is in a class of drift that is a difference."""
        return any(count for drift, count in self.counts.items() if drift.is_difference)

    @property
    def declared(self) -> int:
        """How many entities the manifests declare here."""
        return sum(1 for entity in self.entities if entity.declared is not None)

    @property
    def live(self) -> int | None:
        """How many entities the cluster has. ``None`` when it was not read."""
        return sum(1 for entity in self.entities if entity.live is not None) if self.observed is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All of it. ``runs`` are the latest first. ``runs_left_out`` older ones are in the audit files and not here."""

    at: datetime.datetime
    version: str
    source: ManifestCommit
    clusters: tuple[ClusterOverview, ...]
    runs: tuple[RunRecord, ...] = ()
    runs_left_out: int = 0
    audited: bool = False
    """True when an audit file was given."""
    notes: tuple[str, ...] = ()
