"""Proposed quotas that are nearly reached, and those that are many times what anybody used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.model import BucketVerdict, Entity, Fit, QuotaFit, Verdict
from reconciler.traffic.judging.unlogged_time import unlogged_factor

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
    if any(one.verdict is Verdict.CERTAIN for one in found):
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
