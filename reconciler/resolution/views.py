"""States to resolve against."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model import ClusterIdentity, Entity, LeaderSpread, Observed, Quotas, QuotaUnit, ValueExpiry
from reconciler.resolution.effective_quotas import Caveats, EffectiveQuotas


class ViewKind(enum.StrEnum):
    """What a state is."""

    CLUSTER = "cluster"
    SNAPSHOT = "snapshot"
    MANIFESTS = "manifests"
    """What is declared, and nothing else."""
    PLANNED = "planned"
    """A cluster, or a snapshot, after the plan of the manifests was applied to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaView:
    """One state to resolve against, and notes about it. ``observed``: ``None`` for manifests alone."""

    kind: ViewKind
    """What was asked: a cluster, a recorded snapshot, the manifests alone, or one of the first two after the plan of the
    manifests.
    """
    entities: Mapping[Entity, Quotas]
    cluster: ClusterIdentity = field(default_factory=ClusterIdentity)
    """``None`` for what is not known."""
    observed: Observed | None = None
    """When (UTC) and from where the quotas were read. ``None`` for manifests alone."""
    caveats: Caveats = field(default_factory=Caveats)
    notes: tuple[str, ...] = ()
    profiles: Mapping[tuple[Entity, str], str] = field(default_factory=dict)
    """By entity and key, from which profile a manifest has the value."""
    units: Mapping[tuple[Entity, str], QuotaUnit] = field(default_factory=dict)
    """By entity and key, what a manifest's value was computed from."""
    expiries: Mapping[tuple[Entity, str], ValueExpiry] = field(default_factory=dict)
    """By entity and key, when a value expires, by the manifests."""
    brokers: tuple[int, ...] = ()
    """Ids of the brokers that were up. Empty: not known."""
    leaders: LeaderSpread | None = None
    """Which brokers lead partitions, where that was read."""

    def answers(self) -> EffectiveQuotas:
        """Build the tables of the quotas. Keep them for many questions."""
        return EffectiveQuotas(self.entities, self.caveats, self.profiles, self.units, self.expiries)
