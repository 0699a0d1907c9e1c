"""Drift: how what is live differs from what is declared, and whether that was merged, changed by hand, or removed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import Prune
from reconciler.model.effect import Limit
from reconciler.model.entity import Entity
from reconciler.model.finding import Count, Finding, Span
from reconciler.model.plan import ManifestCommit
from reconciler.model.quota import QuotaUnit
from reconciler.model.state import ClusterIdentity, Observed, ValueExpiry


class DriftClass(enum.StrEnum):
    """What became of one entity. ``DIFFERS`` stands for the three before it without a baseline to distinguish them by."""

    IN_SYNC = "in-sync"
    """Live as declared."""
    UNAPPLIED = "unapplied"
    """Live as at the baseline, declared otherwise now: merged, not applied."""
    CHANGED = "changed"
    """Live with other values than at the baseline: changed by hand."""
    MISSING = "missing"
    """In the baseline and not live: removed by hand."""
    DIFFERS = "differs"
    """Not as declared, and no baseline shows why."""
    ADDED = "added"
    """In the scope and declared nowhere. The next apply removes it (prune: confirm or always), or it overrides a declared limit
    (prune: never), where it only may, as a new entity since the baseline.
    """
    UNMANAGED = "unmanaged"
    """Live and declared nowhere, and neither of what is added. Not a difference."""

    @property
    def is_difference(self) -> bool:
        """True when cluster and manifests differ: the exit code with ``--detailed-exitcode`` is then 2."""
        return self not in (DriftClass.IN_SYNC, DriftClass.UNMANAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDrift:
    """One key on the three sides. ``None``: not set there (or, for ``baseline``, no baseline)."""

    key: str
    desired: float | None
    """``None``: not set."""
    baseline: float | None
    """``None``: not set."""
    live: float | None
    """``None``: not set."""
    source: Span | None = None
    """Where the manifest declares it."""
    overrides: Limit | None = None
    """Of an undeclared entity under ``prune: never``: a declared limit that this key overrides for some client."""
    unit: QuotaUnit | None = None
    """What ``desired`` was computed from."""
    brokers_before: int | None = None
    """``live`` is the part of the same total for so many brokers."""
    expiry: ValueExpiry | None = None
    """When ``desired`` expires, or which value expired before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDrift:
    """One entity that is not in sync. ``keys`` are those that differ, for one that nothing declares all that it has. Sorted."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    drift: DriftClass
    """Class of drift. kafka-quotas explain CLASS describes each."""
    keys: tuple[KeyDrift, ...]
    """The keys that differ. For an added or unmanaged entity all that it has."""
    source: Span | None = None
    """Where the manifest declares it. ``None`` when none does."""
    declared: bool = False
    """True when a manifest declares it."""
    in_scope: bool = True
    """False for what no run of this repository ever writes."""


class BaselineKind(enum.StrEnum):
    """Where a baseline comes from."""

    REF = "ref"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineOrigin:
    """Which baseline was compared with. ``name`` as the user gave it. ``commit`` of its manifests when that is known."""

    kind: BaselineKind
    """Ref: a commit of the repository. File: a baseline that an apply wrote."""
    name: str
    """The reference or file name as given."""
    commit: str | None = None
    """Commit id of the baseline. ``None`` when a file names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What was declared when the cluster was last known to agree: values by entity, keys by their wire names."""

    entities: Mapping[Entity, Mapping[str, float]]
    origin: BaselineOrigin
    unmanaged: frozenset[Entity] | None = None
    """Entities in the scope that no manifest declared then. ``None``: not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """All of it, in canonical order of entities. ``counts`` has every class, also those that no entity is in."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    source: ManifestCommit
    """Commit of the manifests. Its fields are ``None`` outside of git."""
    observed: Observed
    """When and from where the quotas were read."""
    complete: bool
    """False when only some manifests were read. Then only what they declare was compared."""
    prune: Prune
    """What an apply does with entities in the scope that no manifest declares."""
    baseline: BaselineOrigin | None
    """What was compared with. ``None`` without a baseline, and then the classes unapplied, changed and missing are one:
    differs.
    """
    entities: tuple[EntityDrift, ...]
    """Every entity that is not in sync, in canonical order."""
    counts: Mapping[DriftClass, Count]
    """Number of entities by class."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the result covers and what it does not."""
    findings: tuple[Finding, ...] = field(default=())
    """Findings about the manifests and the cluster."""

    @property
    def differs(self) -> bool:
        """True when an entity is in a class that is a difference."""
        return any(count for drift, count in self.counts.items() if drift.is_difference)

    @property
    def unmanaged_in_scope(self) -> tuple[EntityDrift, ...]:
        """Unmanaged entities that the scope contains, where only the manifests should decide."""
        return tuple(entity for entity in self.entities if entity.drift is DriftClass.UNMANAGED and entity.in_scope)
