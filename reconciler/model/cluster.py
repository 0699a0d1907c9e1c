"""What a Cluster document says: which cluster, what this repository owns there, and the limits of a change."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.entity import Entity
from reconciler.model.selector import Selector, any_matches
from reconciler.model.source import Span


class Prune(enum.StrEnum):
    """What happens to whole entities in scope that no manifest declares."""

    NEVER = "never"
    CONFIRM = "confirm"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What this repository owns on a cluster; nothing outside is ever written."""

    include: tuple[Selector, ...] = ()
    """Empty: every entity of the three known types."""
    exclude: tuple[Selector, ...] = ()

    def contains(self, entity: Entity) -> bool:
        """True when the entity is owned; shapes that this tool does not know never are."""
        if not entity.is_known:
            return False
        if self.include and not any_matches(self.include, entity):
            return False
        return not any_matches(self.exclude, entity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach a cluster; secrets are only ever in the properties file, never here."""

    bootstrap_servers: tuple[str, ...] = ()
    properties: str | None = None
    """Path of a Java ``client.properties`` file."""
    zookeeper: str | None = None
    """``host:port,host:port/chroot`` for clusters whose quotas live in ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalLimit:
    """How many entities may lose limits in one run before the guard ``too-many-removals`` asks; exceeding either trips it."""

    percent: float = 10.0
    count: int = 5
    set_in: Span | None = None
    """Where the manifest sets it; absent for the built-in limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A guard accepted in the manifest, with a reason and (inclusive) last day; ``match`` narrows it to some entities."""

    guard: str
    reason: str
    until: datetime.date
    match: Selector | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """One Cluster document, or the built-in stand-in when the manifests have none (``name`` is then ``None``)."""

    name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    connection: Connection | None = None
    scope: Scope = field(default_factory=Scope)
    prune: Prune = Prune.NEVER
    protected: tuple[Selector, ...] = ()
    removal_limit: RemovalLimit = field(default_factory=RemovalLimit)
    accept: tuple[Acceptance, ...] = ()
    span: Span | None = None
