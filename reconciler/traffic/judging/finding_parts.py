"""What findings about verdicts are made of, as parts that can be joined: each worst row, and counts of quota groups.

Verdicts of many quota groups are judged in shards. No two shards have rows of one quota group, so counts add up, and the worst
row of all is the worst of the shards' worst.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from reconciler.model import BucketName, BucketVerdict, Entity, Verdict, worst_of_buckets
from reconciler.traffic.judging.verdicts import worst_first

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


def join_hits(parts: Iterable[Mapping[HitQuota, Hits]]) -> dict[HitQuota, Hits]:
    """Hits of parts of the verdicts, no two of which have rows of one quota group."""
    joined: dict[HitQuota, Hits] = {}
    for quota, hits in itertools.chain.from_iterable(part.items() for part in parts):
        known = joined.get(quota)
        joined[quota] = (
            hits
            if known is None
            else Hits(
                worst=min(known.worst, hits.worst, key=worst_first),
                groups=known.groups + hits.groups,
                safe=None if known.safe is None or hits.safe is None else max(known.safe, hits.safe),
                is_censored=known.is_censored or hits.is_censored,
            )
        )
    return dict(sorted(joined.items(), key=lambda hit: worst_first(hit[1].worst)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inconclusive:
    """Rows of changed quota groups that are inconclusive for one reason: the worst, and of how many quota groups there are."""

    worst: BucketVerdict
    groups: int


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


def join_reasons(parts: Iterable[Mapping[str, Inconclusive]]) -> dict[str, Inconclusive]:
    """Reasons of parts of the verdicts, no two of which have rows of one quota group."""
    joined: dict[str, Inconclusive] = {}
    for reason, rows in itertools.chain.from_iterable(part.items() for part in parts):
        known = joined.get(reason, rows)
        joined[reason] = Inconclusive(
            worst=min(known.worst, rows.worst, key=worst_first), groups=rows.groups + (known.groups if known is not rows else 0)
        )
    return dict(sorted(joined.items(), key=lambda part: worst_first(part[1].worst)))


UnkeptQuota: TypeAlias = tuple[str, LimitSource, str]
"""A finding's id, a quota and its key."""


class Unkept(NamedTuple):
    """A row whose limit a broker does not keep, and why."""

    verdict: BucketVerdict
    words: str


def join_unkept(parts: Iterable[Mapping[UnkeptQuota, Unkept]]) -> dict[UnkeptQuota, Unkept]:
    """The worst rows of parts of the verdicts."""
    joined: dict[UnkeptQuota, Unkept] = {}
    for quota, row in itertools.chain.from_iterable(part.items() for part in parts):
        joined[quota] = min(joined.get(quota, row), row, key=lambda unkept: worst_first(unkept.verdict))
    return dict(sorted(joined.items(), key=lambda part: (*worst_first(part[1].verdict), part[0][0])))
