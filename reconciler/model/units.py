"""Values of manifests that are computed: a total of the whole cluster, shares of a capacity.

Kafka stores one number for all brokers. Fields described as computed are ``None`` until that number is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from reconciler.model.finding import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTotal:
    """``{clusterTotal: 60MiB}``: what all brokers together allow. ``value``: in the unit of the key."""

    value: float
    """What all brokers together allow, in the unit of the key."""
    brokers: int | None = None
    """Computed: among how many brokers it is divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """``{shares: 2, of: 200MiB}``: a part of the capacity of one broker. ``of`` is ``None`` for ``spec.capacity``."""

    count: Fraction
    """How many shares the entity has."""
    of: float | None = None
    """The capacity of one broker that the shares divide, or the owner's budget."""
    total: Fraction | None = None
    """Computed: the shares of all entities that divide this capacity. Then ``of`` is the capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShare:
    """``{budget: 25%}``: a part of the owner's budget. ``percent``: more than 0, at most 100."""

    percent: Fraction
    """Percent of the owner's budget."""
    of: float | None = None
    """Computed: the budget of the owner, for each broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportional:
    """``{proportional: 60MiB, to: leaders}``: a total that brokers share by the partitions they lead. ``value``: the total.

    ``topics``: those whose partitions count. ``None``: all topics.
    """

    value: float
    """The total that brokers share by the partitions they lead, in the unit of the key."""
    topics: tuple[str, ...] | None = None
    """Those whose partitions count. Absent: all topics."""
    leaders: tuple[tuple[int, int], ...] | None = None
    """Computed: how many of the partitions each broker leads, by id."""
    partitions: int | None = None
    """Computed: how many partitions there are, those without a leader included."""

    @property
    def most(self) -> int:
        """How many partitions the broker with the most leaders leads."""
        return max((count for _, count in self.leaders or ()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPart:
    """What a member of a group has of the group's limit."""

    group: str
    """The group whose limit this is. Its members share it, or each has an equal part."""
    members: int | None = None
    """Among how many members the limit is divided. ``None``: the plugin of groups lets all of them share it."""
    limit: float
    """Of the whole group, on each broker."""


WrittenUnit: TypeAlias = ClusterTotal | Shares | BudgetShare | Proportional
"""A value of a manifest that is computed for a cluster."""
QuotaUnit: TypeAlias = WrittenUnit | GroupPart
"""How a value was declared that is not a number for each broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitQuota:
    """One value of a manifest that has to be computed for a cluster before it is a number."""

    unit: WrittenUnit
    source: Span
    text: str
    """The value as written, e.g. ``clusterTotal: 60MiB``."""
    profile: str | None = None
    """The profile that sets it. Then ``source`` is a place in that profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSpread:
    """Which brokers lead the partitions of a cluster."""

    partitions: tuple[tuple[int, int], ...] = ()
    """How many partitions each broker leads, by id. Those that lead none are not here."""
    leaderless: int = 0
    """Partitions without a leader."""
    by_topic: Mapping[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    """By topic: the leader of each partition that has one, and how many partitions there are. Empty: not known."""
    absent: tuple[int, ...] = ()
    """Brokers that have replicas and are not up, sorted."""

    def largest_share(self, brokers: int) -> float | None:
        """How many times its even part the broker with the most leaders leads. ``None`` without any leader."""
        led = sum(count for _, count in self.partitions)
        return max(count for _, count in self.partitions) * brokers / led if led else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """What totals are computed from."""

    brokers: tuple[int, ...] = ()
    """Ids of the brokers among which totals are divided, sorted. Empty when the manifests declare no total."""
    leaders: LeaderSpread | None = None
    """Which of them lead partitions, where that was read."""
