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
    since: datetime.datetime | None = None
    or_earlier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrend:
    """By how much the rate changed in the last ``seconds``."""

    change: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """One quota group on one broker. ``tags``: user, client-id or ip, as the group has them.

    ``limit`` is ``None`` where no quota limits the group. ``tokens``: of a mutation quota, negative in debt.
    """

    broker: str
    key: QuotaKey
    tags: Mapping[str, str]
    rate: float
    limit: float | None = None
    source: Entity | None = None
    level: int | None = None
    owner: str | None = None
    trend: RateTrend | None = None
    throttling: Throttling | None = None
    tokens: float | None = None

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
    key: QuotaKey
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """All quota groups with a rate at a moment, the nearest to its limit first. ``at``: ``None`` without any sample."""

    cluster: ClusterIdentity
    at: datetime.datetime | None
    groups: tuple[GroupLoad, ...]
    muted: tuple[MutedConnections, ...] = ()
    notes: tuple[Message, ...] = field(default_factory=tuple)

    @property
    def limited(self) -> tuple[GroupLoad, ...]:
        """The groups with a limit."""
        return tuple(group for group in self.groups if group.limit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLoad:
    """The groups of one owner. ``owner`` is ``None`` for those without one. ``worst``: the nearest to its limit."""

    owner: str | None
    groups: int
    above: int
    throttled: int
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
