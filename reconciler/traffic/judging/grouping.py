"""Which recorded series are replayed together: one group for each bucket, under the quotas before and after a change.

Pure, and on the driver: it sees distinct series, never requests. A bucket whose members are the same before and after is
replayed once for both limits; others are replayed in their own group on each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.resolution.levels import Bucket, Resolved, Resolver
from reconciler.traffic.kinds import KEY_OF_KIND, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One client's requests of one kind on one broker. ``key``: its number, as ``series_key`` makes it."""

    broker: int
    kind: Kind
    user: str
    client_id: str
    requests: int
    amount: int
    key: int = 0
    largest: int = 0
    """The most record bytes of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Under which limit a group is replayed on one side of the change; ``None`` is unlimited."""

    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bucket of the proposed quotas on one broker: one row of the report. ``members`` are indexes of series."""

    broker: int
    kind: Kind
    bucket: Bucket
    after: Resolved
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What one worker replays at a time. ``before`` and ``after`` are ``None`` when the group is not of that side."""

    kind: Kind
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Targets by index; groups by index, first those of the targets; then by series its groups, target and earlier limit."""

    targets: tuple[Target, ...]
    groups: tuple[Group, ...]
    groups_of_series: tuple[tuple[int, ...], ...]
    target_of_series: tuple[int, ...]
    before_of_series: tuple[Resolved | None, ...]


def group_series(series: Sequence[Series], before: Mapping[str, Resolver] | None, after: Mapping[str, Resolver]) -> Grouping:
    """Resolvers are by key. ``before`` is ``None`` when the earlier quotas are not known: then there is one side only."""
    after_of = [after[KEY_OF_KIND[s.kind]].resolve(s.user, s.client_id) for s in series]
    before_of = [None if before is None else before[KEY_OF_KIND[s.kind]].resolve(s.user, s.client_id) for s in series]
    targets = tuple(
        Target(broker=broker, kind=kind, bucket=bucket, after=after_of[members[0]], members=members)
        for (broker, kind, bucket), members in sorted(_members(series, after_of).items())
    )
    earlier = {members: place for place, members in _members(series, before_of).items()}
    groups: list[Group] = []
    groups_of: list[list[int]] = [[] for _ in series]
    target_of = [0] * len(series)
    for index, target in enumerate(targets):
        side = _side(before_of[target.members[0]]) if earlier.pop(target.members, None) else None
        groups.append(Group(kind=target.kind, before=side, after=_side(target.after)))
        for member in target.members:
            groups_of[member].append(len(groups) - 1)
            target_of[member] = index
    for members in sorted(earlier):
        groups.append(Group(kind=series[members[0]].kind, before=_side(before_of[members[0]]), after=None))
        for member in members:
            groups_of[member].append(len(groups) - 1)
    return Grouping(
        targets=targets,
        groups=tuple(groups),
        groups_of_series=tuple(tuple(g) for g in groups_of),
        target_of_series=tuple(target_of),
        before_of_series=tuple(before_of),
    )


def _side(resolved: Resolved | None) -> Side | None:
    return Side(limit=resolved.value) if resolved else None


def _members(series: Sequence[Series], resolved: Sequence[Resolved | None]) -> dict[tuple[int, Kind, Bucket], tuple[int, ...]]:
    found: dict[tuple[int, Kind, Bucket], list[int]] = {}
    for index, (one, result) in enumerate(zip(series, resolved, strict=True)):
        if result is not None:
            found.setdefault((one.broker, one.kind, result.bucket), []).append(index)
    return {place: tuple(members) for place, members in found.items()}
