"""What findings about verdicts are made of, as parts that can be joined: each worst row, and counts of quota groups.

Verdicts of many quota groups are judged in shards. No two shards have rows of one quota group, so counts add up, and the worst
row of all is the worst of the shards' worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self, TypeAlias, TypeVar

from reconciler.model import BucketName, BucketVerdict, Entity, Verdict, worst_of_buckets
from reconciler.traffic.judging.verdicts import worst_first

Key = TypeVar("Key")
LimitSource: TypeAlias = Entity | BucketName
"""The limits of a quota callback are each bucket's own."""


def quota_of(verdict: BucketVerdict) -> LimitSource:
    """The entity whose quota limits a row, or the row's own quota group."""
    return verdict.limits.entity or verdict.name


class HitQuota(NamedTuple):
    """What a finding about throttles is about. ``certain``: throttled, not only possibly."""

    quota: LimitSource
    key: str
    changed: bool
    certain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Rows of one ``HitQuota``: the worst, of how many quota groups there are rows, and the largest rate that is safe."""

    worst: BucketVerdict
    groups: int
    safe: float | None
    """``None``: no rate is known to be, as where not all that was recorded is charged."""
    is_censored: bool = False
    """Whether quotas throttled clients of it when they were recorded, so that ``safe`` is a lower bound."""

    def joined(self, other: Self) -> Self:
        """With rows of other quota groups."""
        return replace(
            self,
            worst=min(self.worst, other.worst, key=worst_first),
            groups=self.groups + other.groups,
            safe=None if self.safe is None or other.safe is None else max(self.safe, other.safe),
            is_censored=self.is_censored or other.is_censored,
        )


def hits_of(verdicts: Sequence[BucketVerdict]) -> dict[HitQuota, Hits]:
    """Throttled rows by quota, and possibly throttled rows of quotas that change, in the order of their worst."""
    grouped: dict[HitQuota, list[BucketVerdict]] = {}
    for verdict in verdicts:
        certain = verdict.verdict is Verdict.THROTTLED
        if certain or (verdict.verdict is Verdict.POSSIBLE and verdict.changed):
            grouped.setdefault(HitQuota(quota_of(verdict), verdict.key, verdict.changed, certain), []).append(verdict)
    return {
        quota: Hits(
            worst=rows[0],
            groups=len({row.name for row in rows}),
            safe=None
            if any(map(_lacks_safe, rows))
            else max(row.peak.rate if row.advice.safe is None else row.advice.safe for row in rows),
            is_censored=any(row.recorded.censored for row in rows),
        )
        for quota, rows in grouped.items()
    }


def _lacks_safe(row: BucketVerdict) -> bool:
    return bool(row.recorded.uncharged) or (
        row.advice.safe is None and row.advice.recommended is None and row.advice.reason is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """Rows of changed quota groups that are inconclusive for one reason: the worst, and of how many quota groups there are."""

    worst: BucketVerdict
    groups: int

    def joined(self, other: Self) -> Self:
        """With rows of other quota groups."""
        return replace(self, worst=min(self.worst, other.worst, key=worst_first), groups=self.groups + other.groups)


CENSORED: Final = (
    "quotas throttled their clients when they were recorded, and the history does not show how much they would have sent. Raise "
    "their limits in steps, and judge the traffic of each step"
)
"""The reason of several such quota groups together."""


def reasons_of(verdicts: Iterable[BucketVerdict]) -> dict[str, Inconclusive]:
    """By reason, in the order of the worst rows. Clients that were throttled when they were recorded have one reason."""
    reasons: dict[str, list[BucketVerdict]] = {}
    for verdict in verdicts:
        if verdict.verdict is Verdict.INCONCLUSIVE and verdict.changed:
            reason = CENSORED if verdict.recorded.censored else verdict.reason
            reasons.setdefault(reason or "the history does not show enough", []).append(verdict)
    return {reason: Inconclusive(worst=rows[0], groups=len(worst_of_buckets(rows))) for reason, rows in reasons.items()}


UnkeptQuota: TypeAlias = tuple[str, LimitSource, str]
"""A finding's id, a quota and its key."""


class Unkept(NamedTuple):
    """A row whose limit a broker does not keep, and why."""

    worst: BucketVerdict
    words: str

    def joined(self, other: Self) -> Self:
        """The worse of both."""
        return min(self, other, key=lambda unkept: worst_first(unkept.worst))


Part = TypeVar("Part", Hits, Inconclusive, Unkept)


def by_worst(parts: Mapping[Key, Part]) -> list[tuple[Key, Part]]:
    """In the order of their worst rows."""
    return sorted(parts.items(), key=lambda item: worst_first(item[1].worst))
