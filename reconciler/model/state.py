"""The two sides of a comparison: what the manifests want and what the cluster has."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from reconciler.model.entity import Entity, ForeignText, escaped
from reconciler.model.finding import Span
from reconciler.model.quota import LeaderSpread, QuotaKey, QuotaUnit, UnitQuota

Quotas: TypeAlias = Mapping[str, float]
"""Quota key (wire name) to value. Keys may be unknown to this tool when they come from a cluster."""


class DesiredQuota(NamedTuple):
    """One value of a manifest, after units and overrides: the value for the broker, and its place in the file."""

    value: float
    source: Span
    text: str
    """The value as written, e.g. ``10MiB``."""
    profile: str | None = None
    """The profile that sets it. Then ``source`` is a place in that profile."""
    unit: QuotaUnit | None = None
    """What ``value`` was computed from, for a value that is not written as a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiringQuota:
    """``{value: 20MiB, until: 2026-12-01, then: 10MiB}``: ``value`` before ``until`` (UTC), and from then on ``then``.

    Without ``then`` the expired value is as if it was not written: what it overrides applies, such as that of a profile.
    """

    value: DesiredQuota | UnitQuota
    until: datetime.datetime
    then: WrittenQuota | None = None
    source: Span


WrittenQuota: TypeAlias = DesiredQuota | UnitQuota | ExpiringQuota
"""A value as a manifest has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredExpiry:
    """The expiry of a key of an entity, seen from the moment of a desired state."""

    at: datetime.datetime
    expired: bool
    source: Span
    """Where the value stands that expires."""
    other: DesiredQuota | UnitQuota | None = None
    """Before the expiry the value that follows, after it the value that expired."""

    @property
    def of_value(self) -> ValueExpiry:
        """Return the expiry without places, and with numbers as far as they are computed."""
        other = self.other.value if isinstance(self.other, DesiredQuota) else None
        return ValueExpiry(at=self.at, expired=self.expired, other=other)


_NO_UNITS: Final[Mapping[QuotaKey, UnitQuota]] = {}
_NO_EXPIRING: Final[Mapping[QuotaKey, ExpiringQuota]] = {}
_NO_EXPIRIES: Final[Mapping[QuotaKey, DeclaredExpiry]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaProfile:
    """Named values for many entities. ``None`` as a value drops a key that an earlier profile of this name has."""

    name: str
    quotas: Mapping[QuotaKey, WrittenQuota | None]
    source: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChoice:
    """The name of a profile, where a manifest uses it."""

    name: str
    source: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredEntity:
    """An entity that the manifests declare for one cluster."""

    entity: Entity
    quotas: Mapping[QuotaKey, DesiredQuota]
    source: Span
    owner: str | None = None
    note: str | None = None
    units: Mapping[QuotaKey, UnitQuota] = field(default_factory=lambda: _NO_UNITS)
    """Values that still have to be computed. Their keys are not in ``quotas``."""
    expiring: Mapping[QuotaKey, ExpiringQuota] = field(default_factory=lambda: _NO_EXPIRING)
    """Values of which the moment decides. Their keys are not in ``quotas``. Empty in a desired state."""
    expiries: Mapping[QuotaKey, DeclaredExpiry] = field(default_factory=lambda: _NO_EXPIRIES)
    """Of a desired state: the keys whose value expires or has expired, also keys that have no value any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """Everything that the manifests declare for one cluster."""

    entities: Mapping[Entity, DesiredEntity] = field(default_factory=dict)
    complete: bool = True
    """False when the user named files: then only their entities are planned, and nothing is pruned."""
    with_units: tuple[Entity, ...] = ()
    """Entities with values that still have to be computed: the state can be planned once they are computed."""
    at: datetime.datetime | None = None
    """The moment for which values that expire were decided. ``None``: before every expiry."""
    notes: tuple[str, ...] = ()
    """What a reader of the values has to know: who shares what."""

    def next_expiry(self) -> datetime.datetime | None:
        """Return the moment when a value expires next. ``None`` when none will."""
        moments = (e.at for d in self.entities.values() for e in d.expiries.values() if not e.expired)
        return min(moments, default=None)

    def values(self) -> dict[Entity, dict[str, float]]:
        """Bare numbers, for resolution and the backtest."""
        return {e: {k.value: q.value for k, q in d.quotas.items()} for e, d in self.entities.items() if d.quotas}


class ObservedFrom(enum.StrEnum):
    """Where a current state was read."""

    BROKER = "broker"
    ZOOKEEPER = "zookeeper"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """When (UTC) and from where a state was read."""

    at: datetime.datetime
    """Time of the read, UTC."""
    origin: ObservedFrom
    """What was read: the brokers, ZooKeeper, or a snapshot file."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ClusterIdentity:
    """Which cluster answered, and what decides about all quotas there. Every command prints all of it.

    ``kafka_version`` is the release, as far as the cluster reports it (``4.3``). ``quota_callback`` is the class with which the
    brokers replace Kafka's own rules (``client.quota.callback.class``). A broker or a file chose all texts: ``str()`` and
    f-strings escape what does not print.
    """

    name: ForeignText | None = None
    """Name of the Cluster manifest. ``None`` when the command ran without one."""
    id: ForeignText | None = None
    """Cluster id that the brokers report. ``None`` when it is not known."""
    kafka_version: ForeignText | None = None
    """Kafka version, as far as the cluster reports it. ``None`` when it is not known."""
    quota_callback: ForeignText | None = None
    """``None``: Kafka's own rules, or not known."""

    def __init__(
        self,
        *,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
        kafka_version: str | None = None,
        quota_callback: str | None = None,
    ) -> None:
        texts = {"name": name, "id": id, "kafka_version": kafka_version, "quota_callback": quota_callback}
        for field_name, text in texts.items():
            object.__setattr__(self, field_name, None if text is None else ForeignText(text[:]))

    def is_same(self, other: ClusterIdentity) -> bool:
        """Compare by the clusters' own ids where both are known, else by their names."""
        if self.id is not None and other.id is not None:
            return self.id == other.id
        return self.name is not None and self.name == other.name

    def named(self, name: str | None) -> ClusterIdentity:
        """The same cluster under the name of its manifest, if that has one."""
        return replace(self, name=None if (chosen := name or self.name) is None else ForeignText(chosen[:]))

    def with_callback(self, quota_callback: str | None) -> ClusterIdentity:
        """The same cluster, whose brokers have this class."""
        return replace(self, quota_callback=None if quota_callback is None else ForeignText(quota_callback[:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableNode:
    """A node in ZooKeeper that brokers cannot read, or not whole. It is shown and left as it is."""

    path: str
    reason: str
    """Quotes nothing of the node: it may have credentials."""
    entity: Entity | None = None
    """The entity of the node. ``None`` when its name is the name of none."""

    @property
    def message(self) -> str:
        """One sentence for a person."""
        whose = f" ({self.entity})" if self.entity is not None else ""
        return f"ZooKeeper's node {escaped(self.path)}{whose}: {escaped(self.reason)}"


NOT_ASKED: Final = "not asked"
"""The reason why a fact of a cluster is not known before a broker was asked, or where there is none to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentState:
    """All quotas of a cluster at one moment. ``notes``: what to know about how it was read."""

    cluster: ClusterIdentity
    """Which cluster answered. ``None`` for what is not known."""
    observed: Observed
    """When (UTC) and from where the quotas were read."""
    entities: Mapping[Entity, Quotas] = field(default_factory=dict)
    """Every entity with its quotas."""
    notes: tuple[str, ...] = ()
    unreadable: tuple[UnreadableNode, ...] = ()
    """What a cluster in ZooKeeper has beside ``entities``, sorted by path."""
    brokers: tuple[int, ...] = ()
    """Ids of the brokers that were up, sorted. Empty: not known."""
    leaders: LeaderSpread | None = None
    """Which of them lead partitions. ``None``: not asked."""
    callback_unknown: str | None = NOT_ASKED
    """Why ``cluster.quota_callback`` is not known. ``None``: it is known."""


def same_value(value: float | None, other: float | None) -> bool:
    """Equality of values as a broker compares them: doubles, where NaN equals itself. ``None`` is unset."""
    if value is None or other is None:
        return value is other
    return value == other or (value != value and other != other)  # noqa: PLR0124 - the portable test for NaN


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueExpiry:
    """The expiry of one value, seen from one moment: before it (``expired`` false) or from then on. ``at``: in UTC."""

    at: datetime.datetime
    """The moment, in UTC."""
    expired: bool
    """Whether that moment was over when the manifests were read."""
    other: float | None = None
    """For each broker: before the expiry the value that follows, after it the value that expired. ``None``: no value there."""
