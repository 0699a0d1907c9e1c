"""How much of their limits and of the brokers' capacity recorded clients use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.model import BucketVerdict, CapacityUse, Entity, Fit, QuotaFit, Verdict
from reconciler.resolution import Bucket
from reconciler.traffic.judging.assumptions import unlogged_factor
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.kinds import KEY_OF_KIND, Kind

NEAR: Final = 0.8
LOOSE: Final = 0.2
"""Shares of the limit, as Envoy's and Kubernetes' recommenders have them: near from above the one, loose below the other."""


def quota_fits(verdicts: Sequence[BucketVerdict], *, source: str = "") -> tuple[QuotaFit, ...]:
    """One for each (entity, key) whose fullest bucket is near its limit, or far below; near ones first, the nearest first.

    A bucket is as full as its rate is in 99.9 % of its seconds. Quotas that throttle, or may, are not among them. ``source``: as
    ``Provenance`` has it.
    """
    limited: dict[tuple[Entity, str], list[BucketVerdict]] = {}
    for one in verdicts:
        if one.entity is not None and one.limit_after and one.active_seconds:
            limited.setdefault((one.entity, one.key), []).append(one)
    fits = [fit for found in limited.values() if (fit := _fit(found, source)) is not None]
    return tuple(sorted(fits, key=lambda f: (f.fit is Fit.LOOSE, -f.share, f.entity.sort_key, f.key)))


def _fit(found: Sequence[BucketVerdict], source: str) -> QuotaFit | None:
    if any(one.verdict is Verdict.THROTTLED for one in found):
        return None
    fullest = max(found, key=lambda one: (_share(one), -one.broker, one.name))
    share = _share(fullest)
    if (
        share > 1
        or LOOSE / unlogged_factor(fullest.key, source) <= share <= NEAR
        or fullest.entity is None
        or fullest.limit_after is None
    ):
        return None
    return QuotaFit(
        entity=fullest.entity,
        key=fullest.key,
        limit=fullest.limit_after,
        fit=Fit.NEAR if share > NEAR else Fit.LOOSE,
        share=share,
        buckets=len(found),
        fullest=fullest.name,
        broker=fullest.broker,
    )


def _share(one: BucketVerdict) -> float:
    # A bin of the histogram that p999 is read from may end above the peak.
    return min(one.p999, one.peak) / (one.limit_after or 1.0)


@dataclass(slots=True)
class _Sum:
    limits: float = 0.0
    buckets: int = 0
    unlimited: int = 0

    def add(self, limit: float | None) -> None:
        if limit is None:
            self.unlimited += 1
        else:
            self.limits += limit
            self.buckets += 1


def capacity_uses(grouping: Grouping, capacity: Mapping[str, float]) -> tuple[CapacityUse, ...]:
    """For each broker and each key that has a capacity, in order; a bucket counts where it has recorded clients."""
    return tuple(_uses(grouping, capacity)) if capacity else ()


def _uses(grouping: Grouping, capacity: Mapping[str, float]) -> Iterator[CapacityUse]:
    after: dict[tuple[int, Kind], _Sum] = {}
    before: dict[tuple[int, Kind], _Sum] = {}
    seen: set[tuple[int, Kind, Bucket]] = set()
    for target in grouping.targets:
        if target.undecided:
            continue
        after.setdefault((target.broker, target.kind), _Sum()).add(target.after.value)
        for member in target.members:
            earlier = grouping.before_of_series[member]
            if earlier is None or (target.broker, target.kind, earlier.bucket) in seen:
                continue
            seen.add((target.broker, target.kind, earlier.bucket))
            before.setdefault((target.broker, target.kind), _Sum()).add(earlier.value)
    for (broker, kind), found in sorted(after.items(), key=lambda item: (item[0][0], item[0][1].value)):
        key = KEY_OF_KIND[kind].value
        if key in capacity:
            known = before.get((broker, kind))
            yield CapacityUse(
                broker=broker,
                key=key,
                capacity=capacity[key],
                before=known.limits if known else None,
                after=found.limits,
                buckets=found.buckets,
                unlimited=found.unlimited,
            )
