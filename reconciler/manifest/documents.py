"""The kinds of manifest documents as values, every part with its place."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from reconciler.model import (
    ClusterSpec,
    DesiredEntity,
    DesiredQuota,
    ProfileChoice,
    QuotaKey,
    QuotaProfile,
    Selector,
    Severity,
    Span,
    WrittenQuota,
)
from reconciler.resolution import MemberKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """Which clusters a document or an override is for: names, or labels that a cluster must all have."""

    names: tuple[tuple[str, Span], ...] = ()
    labels: Mapping[str, str] | None = None
    span: Span

    def chooses(self, cluster: ClusterSpec) -> bool:
        """True when it is for this cluster."""
        if self.labels is not None:
            return all(cluster.labels.get(label) == value for label, value in self.labels.items())
        return any(name == cluster.name for name, _ in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Other values for some clusters; ``None`` drops a key. ``profile``: instead of that of the entry."""

    clusters: ClusterChoice
    quotas: Mapping[QuotaKey, WrittenQuota | None]
    profile: ProfileChoice | None = None
    span: Span


class QuotaEntry(NamedTuple):
    """One entity of a document: what it declares without its profile and overrides, and these."""

    declared: DesiredEntity
    profile: ProfileChoice | None = None
    overrides: tuple[Override, ...] = ()
    rightsize: bool = True
    """Whether ``rightsize`` may propose other values. If not, the note of ``declared`` states the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaGroup:
    """A group of a document: its members with their places, and the limits that they share."""

    name: str
    members: Mapping[tuple[MemberKind, str], Span]
    limits: DesiredEntity
    """As the plugin of groups has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotasDocument:
    """A ClientQuotas document. ``clusters`` is ``None`` for every cluster."""

    file: str
    span: Span
    name: str | None = None
    owner: str | None = None
    owner_span: Span | None = None
    clusters: ClusterChoice | None = None
    entries: tuple[QuotaEntry, ...] = ()
    groups: tuple[QuotaGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDocument:
    """A Cluster manifest. Its content is ``spec``."""

    file: str
    span: Span
    spec: ClusterSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who may declare what, where. ``None``: any path; every entity that no other owner lists; every cluster.

    ``paths`` are patterns relative to the root.
    """

    name: str
    paths: tuple[str, ...] | None = None
    entities: tuple[Selector, ...] | None = None
    clusters: ClusterChoice | None = None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueBounds:
    """The smallest and the largest value of one key; ``None`` is open."""

    least: DesiredQuota | None = None
    most: DesiredQuota | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLimit:
    """Bounds for the values of an owner, of some entities, on some clusters; ``None``: of all."""

    owner: str | None = None
    match: Selector | None = None
    clusters: ClusterChoice | None = None
    keys: Mapping[QuotaKey, ValueBounds]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule:
    """What the entities of an owner may have together on each broker, by key, on some clusters; ``None``: on all."""

    owner: str
    clusters: ClusterChoice | None = None
    quotas: Mapping[QuotaKey, DesiredQuota]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingRules:
    """When ``rightsize`` proposes another limit."""

    lower_below: float = 33.0
    """Percent of a limit: one that was never used above that can be lowered."""
    days: int = 90
    """How many days of history are read, and without traffic make a quota unused."""
    changes: int = 20
    """The most changes that are proposed to one owner at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryDocument:
    """The Repository document. ``lint`` gives severities by rule id; ``None`` switches a rule off.

    Without ``owners`` every folder may declare anything. ``include``: patterns of the files to read, or
    empty for all. ``cluster_paths``: patterns of where Cluster manifests may lie.
    """

    file: str
    span: Span
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    cluster_paths: tuple[str, ...] | None = None
    owners: Mapping[str, Owner] = field(default_factory=dict)
    limits: tuple[ValueLimit, ...] = ()
    lint: Mapping[str, Severity | None] = field(default_factory=dict)
    profiles: Mapping[str, QuotaProfile] = field(default_factory=dict)
    budgets: tuple[BudgetRule, ...] = ()
    rightsize: SizingRules = field(default_factory=SizingRules)
    stages: tuple[str, ...] = ()
    """Values of the label ``stage`` of clusters, in the order in which they are applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """Findings with these facts that may stay until a day, unless they are worse than ``severity``."""

    id: str
    subject: tuple[str, ...] = ()
    """The facts of the finding: its entity, key, and the names, amounts and numbers of its message."""
    severity: Severity = Severity.WARNING
    count: int = 1
    until: datetime.date | None = None
    """The last day. ``None``: that of the document."""
    reason: str | None = None
    """``None``: that of the document."""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsBaseline:
    """The findings that a repository knows. ``until`` and ``reason``: of entries without their own."""

    file: str
    span: Span
    until: datetime.date | None = None
    reason: str = ""
    reason_span: Span | None = None
    findings: tuple[KnownFinding, ...] = ()


Document: TypeAlias = ClientQuotasDocument | ClusterDocument | RepositoryDocument | FindingsBaseline
"""Any manifest document."""
