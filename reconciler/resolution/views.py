"""A state to resolve against, and a pair of them compared: what a question is asked of, with what is to be said about it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model import ClusterIdentity, Entity, Observed, Quotas
from reconciler.resolution.answers import Answers, Doubts
from reconciler.resolution.compared import Comparison


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
    """One state to resolve against, and what is to be said about it. ``observed``: ``None`` for manifests alone."""

    kind: ViewKind
    entities: Mapping[Entity, Quotas]
    cluster: ClusterIdentity = field(default_factory=ClusterIdentity)
    observed: Observed | None = None
    doubts: Doubts = field(default_factory=Doubts)
    notes: tuple[str, ...] = ()

    def answers(self) -> Answers:
        """Its tables, built anew; keep them for many questions."""
        return Answers(self.entities, self.doubts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewComparison:
    """Two states and whose limits differ between them. ``asked``: how many were asked about; ``None``: all known clients."""

    before: QuotaView
    after: QuotaView
    comparison: Comparison
    asked: int | None
    notes: tuple[str, ...] = ()
