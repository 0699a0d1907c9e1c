"""How near quota groups are to their limits at one moment."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model import ClusterIdentity, Entity, Message, QuotaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """A broker throttled the group within the last minute. ``mean_ms``: of its throttles. ``None``: not known.

    ``since``: the first sample that shows it. ``None``: not known. ``or_earlier``: no sample before that one is known.
    """

    mean_ms: float | None = None
    """Mean of the throttles of the last minute in milliseconds. ``None`` when not known."""
    since: datetime.datetime | None = None
    """Time of the first sample that shows the throttling, in UTC."""
    or_earlier: bool = False
    """True when no sample before that one is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrend:
    """By how much the rate changed in the last ``seconds``."""

    change: float
    """Rate now less rate before."""
    seconds: float
    """How long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """One quota group on one broker. ``tags``: user, client-id or ip, as the group has them.

    ``limit`` is ``None`` where no quota limits the group. ``tokens``: of a mutation quota, negative in debt.
    """

    broker: str
    """Id of the broker, or the address of its exporter where no id is known."""
    key: QuotaKey
    """Quota key that limits the rate."""
    tags: Mapping[str, str]
    """Tags of the quota group: user, client-id or both, or an ip. A tag that the group does not have is absent."""
    rate: float
    """Rate at the moment, in the unit of the key. The text of a value that JSON has no number for."""
    limit: float | None = None
    """Limit. ``None`` when no quota limits the group."""
    source: Entity | None = None
    """Entity whose quota limits the group. ``None`` for a name is the default. ``None`` when no quota does."""
    level: int | None = None
    """Precedence level of the source, 1 is the strongest. ``None`` when no quota limits the group."""
    owner: str | None = None
    """Who declares the source in the manifests. ``None`` when not known."""
    trend: RateTrend | None = None
    """How the rate changed. ``None`` when no earlier sample is known."""
    throttling: Throttling | None = None
    """Set when the broker throttled the group within the last minute."""
    tokens: float | None = None
    """Tokens left of a mutation quota, negative in debt. Absent when not known."""

    @property
    def share(self) -> float | None:
        """Rate divided by limit. ``None`` without a limit."""
        if self.limit is None:
            return None
        return self.rate / self.limit if self.limit > 0 else float("inf") if self.rate > 0 else 0.0

    def is_above(self, share: float) -> bool:
        """Whether the rate is above this share of the limit."""
        return self.share is not None and self.share > share


@dataclass(frozen=True, slots=True, kw_only=True)
class MutedConnections:
    """Connections that a broker does not read from now, because of one kind of quota."""

    broker: str
    """Id of the broker, or the address of its exporter."""
    key: QuotaKey
    """Quota key of the throttle."""
    connections: int
    """Number of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """All quota groups with a rate at a moment, the nearest to its limit first. ``at``: ``None`` without any sample."""

    cluster: ClusterIdentity
    """``None`` for what is not known."""
    at: datetime.datetime | None
    """Time of the newest sample, in UTC. ``None`` when there is none."""
    groups: tuple[GroupLoad, ...]
    """Quota groups that were asked for, the nearest to its limit first."""
    muted: tuple[MutedConnections, ...] = ()
    """Connections that brokers do not read from now."""
    notes: tuple[Message, ...] = field(default_factory=tuple)
    """Messages about the reading."""

    @property
    def limited(self) -> tuple[GroupLoad, ...]:
        """The groups with a limit."""
        return tuple(group for group in self.groups if group.limit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLoad:
    """The groups of one owner. ``owner`` is ``None`` for those without one. ``worst``: the nearest to its limit."""

    owner: str | None
    """Name of the owner. ``None`` for groups without one."""
    groups: int
    """Quota groups with a limit."""
    above: int
    """Groups above --over, or above their limit."""
    throttled: int
    """Groups that a broker throttled within the last minute."""
    worst: GroupLoad


def by_owner(groups: Iterable[GroupLoad], *, above: float) -> tuple[OwnerLoad, ...]:
    """Owners of groups with limits, in the order of their worst groups. ``above``: the share from which groups are counted."""
    owned: dict[str | None, list[GroupLoad]] = {}
    for group in groups:
        if group.limit is not None:
            owned.setdefault(group.owner, []).append(group)
    loads = [
        OwnerLoad(
            owner=owner,
            groups=len(some),
            above=sum(group.is_above(above) for group in some),
            throttled=sum(group.throttling is not None for group in some),
            worst=max(some, key=lambda group: group.share or 0.0),
        )
        for owner, some in owned.items()
    ]
    return tuple(sorted(loads, key=lambda load: (-(load.worst.share or 0.0), load.owner is None, load.owner or "")))
