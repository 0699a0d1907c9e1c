"""The thread time that brokers charge and a request log does not have: that of network threads.

Measured on real brokers, the charged time was 1.6 to 3.2 times the logged time (docs/fidelity.md). So a request_percentage is
clear only where the largest factor leaves it clear, and what is recommended has room for that factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import BucketVerdict, QuotaKey, Verdict

LEAST_FACTOR: Final = 1.6
LARGEST_FACTOR: Final = 3.2
"""Charged time as a multiple of the logged time."""
_LOGGED: Final = frozenset({"request-log", "cells"})
"""Sources whose times are those of handlers only. Compacted traffic may be of logs."""


def unlogged_factor(key: str, source: str) -> float:
    """What a recorded peak of ``key`` may be short of, as a factor."""
    return LARGEST_FACTOR if key == QuotaKey.REQUEST_PERCENTAGE.value and source in _LOGGED else 1.0


def judged_by_logged_time(verdicts: Sequence[BucketVerdict], source: str) -> tuple[BucketVerdict, ...]:
    """What the time that is not logged could carry above the limit is inconclusive."""
    return tuple(_verdict(one, unlogged_factor(one.key, source)) for one in verdicts)


def _verdict(one: BucketVerdict, factor: float) -> BucketVerdict:
    if factor <= 1 or one.verdict is not Verdict.CLEAR or one.limit_after is None or one.peak * factor <= one.limit_after:
        return one
    return replace(
        one,
        verdict=Verdict.INCONCLUSIVE,
        reason=(
            f"the request log lacks the time of network threads. Brokers charged {LEAST_FACTOR:g} to {factor:g} times the logged "
            f"time, so a logged peak of {one.peak:.3g} % may be {one.peak * factor:.3g} %"
        ),
    )
