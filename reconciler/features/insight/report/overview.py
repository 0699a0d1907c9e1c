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
    """Entity type to name. ``None`` is the default entity of that type."""
    drift: DriftClass | None
    """Of drift, as the command drift has it. ``None``: not compared."""
    declared: Quotas | None
    """``None``: no manifest declares it."""
    live: Quotas | None
    """``None``: not there, or the cluster was not read."""
    baseline: Quotas | None = None
    """What was applied last, for entities that differ, when a baseline was given."""
    owner: str | None = None
    """Owner in the manifest. ``None`` without one."""
    note: str | None = None
    """Note in the manifest. ``None`` without one."""
    source: Span | None = None
    """Where it is declared."""
    protected: bool = False
    """True when spec.protected covers the entity: it is never pruned."""
    in_scope: bool = True
    """False for an entity that no run of this repository writes."""
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
    """The owner."""
    key: str
    """The quota key."""
    budget: float
    """What the limits may add up to on each broker."""
    allocated: float
    """What they add up to."""
    entities: int
    """How many entities have a limit of this key."""
    used: float | None = None
    """The largest sum of the rates of the owner's quota groups on one broker. ``None`` where rates were not read."""

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
    """The cluster. A field is ``None`` when its value is not known."""
    prune: str | None = None
    """What an apply does with entities that no manifest declares. ``None`` when the cluster could not be read."""
    observed: Observed | None = None
    """When and from where the quotas were read. ``None`` when the cluster could not be read."""
    complete: bool = True
    """False when only some manifests were read."""
    baseline: BaselineOrigin | None = None
    """What was applied last, for the classes of drift. ``None`` when no baseline was given."""
    counts: Mapping[DriftClass, int] = field(default_factory=dict)
    """Entities by class of drift. ``None`` when the cluster could not be read."""
    entities: tuple[EntityOverview, ...] = ()
    """Declared or live, in canonical order."""
    callback: str | None = None
    """Why the brokers' quotas do not mean what Kafka's own code makes of them. ``None``: they do, as far as is known."""
    static_defaults: Mapping[str, str] = field(default_factory=dict)
    """By key, why a client without a quota may be limited all the same."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the result covers and what it does not."""
    findings: tuple[Finding, ...] = ()
    """Findings about the manifests and the cluster."""
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
    """UTC."""
    version: str
    source: ManifestCommit
    """The commit of the manifests, when they are in git."""
    clusters: tuple[ClusterOverview, ...]
    """One object for each cluster, by name."""
    runs: tuple[RunRecord, ...] = ()
    runs_left_out: int = 0
    """Older runs of the audit files that are not listed."""
    audited: bool = False
    """True when an audit file was given."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the result covers and what it does not."""
