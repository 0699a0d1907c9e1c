"""What a Cluster document says: which cluster, what this repository owns there, and the limits of a change."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.backtest_policy import BacktestPolicy
from reconciler.model.entity import Entity
from reconciler.model.freeze import FreezeWindow
from reconciler.model.guard_limits import GuardLimits
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
        return not (self.exclude and any_matches(self.exclude, entity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach a cluster; secrets are only ever in the properties file, never here."""

    bootstrap_servers: tuple[str, ...] = ()
    properties: str | None = None
    """Path of a Java ``client.properties`` file."""
    zookeeper: str | None = None
    """``host:port,host:port/chroot`` for clusters whose quotas live in ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A guard accepted in the manifest, with a reason and (inclusive) last day; ``match`` narrows it to some entities."""

    guard: str
    reason: str
    until: datetime.date
    match: Selector | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackClass:
    """A Python class that stands for the brokers' ``client.quota.callback.class``. It is code: never loaded without trust."""

    name: str
    """``package.module:Class``."""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """One Cluster document, or the built-in stand-in when the manifests have none (``name`` is then ``None``).

    Two are equal when they mean the same, wherever they are written.
    """

    name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    connection: Connection | None = None
    scope: Scope = field(default_factory=Scope)
    prune: Prune = Prune.NEVER
    protected: tuple[Selector, ...] = ()
    guards: GuardLimits = field(default_factory=GuardLimits)
    freeze: tuple[FreezeWindow, ...] = ()
    accept: tuple[Acceptance, ...] = ()
    backtest: BacktestPolicy = field(default_factory=BacktestPolicy)
    capacity: Mapping[str, float] = field(default_factory=dict)
    """What one broker can do, by quota key; the backtest compares the sum of the limits with it."""
    broker_settings: Mapping[str, int] = field(default_factory=dict)
    """Brokers' settings that decide how quotas are enforced, by Kafka's names; those left out have Kafka's defaults."""
    quota_callback: CallbackClass | None = None
    span: Span | None = field(default=None, compare=False)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)
    """Where the fields of ``spec`` are, by their names in the manifest; those that are not written are not here."""

    def place(self, name: str) -> Span | None:
        """Where a field of ``spec`` is set; without it, the document."""
        return self.places.get(name, self.span)
