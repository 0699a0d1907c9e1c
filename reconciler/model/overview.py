"""The state of clusters at one moment, for people to look at: declared, live, drift, last runs, and traffic against limits."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster_outcome import ClusterFailure
from reconciler.model.drift import BaselineOrigin, DriftClass
from reconciler.model.entity import Entity
from reconciler.model.expiry import ValueExpiry
from reconciler.model.finding import Finding, Span
from reconciler.model.metric_samples import Observations
from reconciler.model.plan import ManifestCommit
from reconciler.model.quota_use import UnjudgedChange
from reconciler.model.state import ClusterIdentity, Observed, Quotas
from reconciler.model.units import QuotaUnit
from reconciler.model.verdict import BucketVerdict, Form


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

    ``used``: their largest sum on one broker, of peaks in recorded traffic or of rates at a moment. ``None``: not known.
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
class OwnedRate:
    """The rate of a quota group on a broker. ``entity``: of the quota that limits it. ``owner``: as the file has it."""

    broker: str
    key: str
    rate: float
    entity: Entity | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomOverview:
    """What a report reads of a file of ``headroom``."""

    file: str
    cluster: str | None
    at: datetime.datetime | None
    rates: tuple[OwnedRate, ...]


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
class RunRecord:
    """One run of an audit file."""

    file: str
    started: datetime.datetime
    ended: datetime.datetime
    command: str
    cluster: ClusterIdentity
    result: str
    """``done``, ``nothing_to_do``, ``refused``, ``partial`` or ``failed``."""
    failure_reason: str | None
    verified: bool
    validate_only: bool
    applied: int
    failed: int
    unknown: int
    not_attempted: int
    accepted: tuple[str, ...]
    principal: str | None
    os_user: str
    commit: str | None
    dirty: bool | None

    def is_of(self, cluster: ClusterIdentity) -> bool:
        """By the cluster's own id where both are known, else by name."""
        if self.cluster.id is not None and cluster.id is not None:
            return self.cluster.id == cluster.id
        return self.cluster.name is not None and self.cluster.name == cluster.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficOverview:
    """The file of a backtest, as far as it is shown. Buckets are as it has them, the worst first."""

    file: str
    form: Form
    semantics: str
    start: datetime.datetime
    end: datetime.datetime
    requests: int
    current_known: bool
    cluster: str | None = None
    """The name of its Cluster manifest."""
    headline: str = ""
    """Its answer, in the backtest's own words."""
    buckets: tuple[BucketVerdict, ...] = ()
    unjudged: tuple[UnjudgedChange, ...] = ()
    observations: tuple[Observations, ...] = ()
    """What the rows of its history are."""


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
    traffic: tuple[TrafficOverview, ...] = ()
    notes: tuple[str, ...] = ()
