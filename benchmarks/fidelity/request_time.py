"""What a request log does not tell of request time: the part of the network threads.

A broker charges the time of its handlers, which the log has, and of its network threads, which it has not. How much more that is
depends on machine and traffic. Found here is the factor to the logged time with which the verdicts of a run under quotas come out
best: a measure of the missing part, that the predictions were not given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.fidelity.comparison import REQUEST, BucketId, Pair
from reconciler.traffic.kernels.exact_stream import judge_one
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW

FACTORS: Final = tuple(round(1 + step / 10, 1) for step in range(41))
_NANOS_A_PERCENT: Final = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTime:
    """One bucket: the share of requests whose verdict is right with the logged time alone, and with ``factor`` times it."""

    bucket: BucketId
    requests: int
    throttled: int
    agreement: float
    factor: float
    agreement_with_factor: float


def missing_time(own: Sequence[Pair]) -> list[MissingTime]:
    """Of buckets with requests throttled and not; ``own``: predicted from the run's own log."""
    parts: dict[BucketId, list[Pair]] = defaultdict(list)
    for one in own:
        if one.group == REQUEST:
            parts[one.bucket].append(one)
    return [
        _of(bucket, sorted(part, key=lambda one: one.at_ms))
        for bucket, part in sorted(parts.items())
        if len({one.observed_ms > 0 for one in part}) == 2
    ]


def _of(bucket: BucketId, part: Sequence[Pair]) -> MissingTime:
    shares = [_agreement(part, factor) for factor in FACTORS]
    best = max(shares)
    # The middle of those that do as well.
    good = [factor for factor, share in zip(FACTORS, shares, strict=True) if share == best]
    return MissingTime(
        bucket=bucket,
        requests=len(part),
        throttled=sum(one.observed_ms > 0 for one in part),
        agreement=shares[0],
        factor=good[len(good) // 2],
        agreement_with_factor=best,
    )


def _agreement(part: Sequence[Pair], factor: float) -> float:
    times = np.floor(np.asarray([one.at_ms for one in part])).astype(np.int64)
    nanos = np.round(np.asarray([one.amount for one in part]) * factor).astype(np.int64)
    limit = part[0].limit * _NANOS_A_PERCENT
    judged = judge_one(times, nanos, np.zeros_like(nanos), limit=limit, unrecords=False, window=DEFAULT_WINDOW)
    observed = np.asarray([one.observed_ms > 0 for one in part])
    return float(((judged.throttle > 0) == observed).mean())
