"""What a bucket of tokens does to mutations of which only the sums of whole seconds are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reconciler.traffic.kernels.runs import Runs
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict, SideVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kernels.token_bucket import EXPIRY_MS, TokenBounds, bounds_of_seconds, least_limit

_NOTHING = SideVerdict(certain=0, expected=0, possible=0, first_certain=None, first_possible=None, longest_s=0, longest_from=None)


def judge_seconds(group: int, seconds: Integers, amounts: Integers, limits: Sequence[float], window: Window) -> GroupVerdict:
    """One bucket; seconds in any order, several of one add up; a limit of NaN is unlimited.

    Whether requests are refused or delayed is not known: only the first second that is over can be proven to be, as what is
    refused takes no tokens.
    """
    found, places = np.unique(seconds, return_inverse=True)
    # Sums of doubles are exact here: partitions are far below 2^53.
    sums = np.bincount(places, weights=amounts).astype(np.int64)
    begins = (found - found[:1]).astype(np.float64)
    upper, expected = least_limit(begins, begins + 1, sums, window), least_limit(begins, begins, sums, window)
    return GroupVerdict(
        group=group,
        active=len(found),
        amount=int(sums.sum()),
        peak_upper=upper,
        peak_expected=expected,
        p999=upper,
        sides=tuple(_side(found, sums, limit, window) for limit in limits),
    )


def _bounds(seconds: Integers, amounts: Integers, limit: float, window: Window) -> TokenBounds:
    """Debt that an idle hour may have ended proves nothing, and may still be there."""
    whole = bounds_of_seconds(seconds, amounts, limit, window)
    pauses = np.flatnonzero(np.diff(seconds) >= EXPIRY_MS // 1000) + 1
    if not len(pauses) or limit <= 0:
        return whole
    pieces = zip(np.split(seconds, pauses), np.split(amounts, pauses), strict=True)
    parts = [bounds_of_seconds(some, of_some, limit, window) for some, of_some in pieces]
    overdrawn, estimate = (np.concatenate([getattr(part, name) for part in parts]) for name in ("overdrawn", "estimate"))
    return TokenBounds(overdrawn, whole.in_credit, estimate, whole.fits)


def _side(seconds: Integers, amounts: Integers, limit: float, window: Window) -> SideVerdict:
    if math.isnan(limit):
        return _NOTHING
    found = _bounds(seconds, amounts, limit, window)
    if limit <= 0:
        # Such limits refuse new clients and pass old ones by, and which these are is not known.
        nothing = np.zeros_like(found.overdrawn)
        found = TokenBounds(nothing, nothing, found.estimate, nothing)
    certain, possible = np.flatnonzero(found.overdrawn & found.fits), np.flatnonzero(~found.in_credit | found.overdrawn)
    over = ((found.estimate < 0) & ~found.in_credit) | found.overdrawn
    # Nothing of before a longer pause is missing in the bucket: that long, it fills whole.
    runs = Runs(math.ceil(window.expiry_ms / 1000))
    runs.feed(np.zeros_like(seconds), seconds, over)
    longest = runs.longest().get(0)
    return SideVerdict(
        certain=min(1, len(certain)),
        expected=int(over.sum()),
        possible=len(possible),
        first_certain=int(seconds[certain[0]]) if len(certain) else None,
        first_possible=int(seconds[possible[0]]) if len(possible) else None,
        longest_s=longest[0] if longest else 0,
        longest_from=longest[1] if longest else None,
    )
