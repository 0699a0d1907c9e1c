"""What a bucket of tokens does to mutations, request by request: each topic admitted, delayed or refused, in the order asked.

A request of several topics is asked topic by topic, so part of it may be refused. Requests are told apart by their time, order
and sender.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.traffic.kernels.band import REPLAYS, noise_ms
from reconciler.traffic.kernels.episodes import Episodes
from reconciler.traffic.kernels.exact_sides import Judged
from reconciler.traffic.kernels.exact_stream import JudgedBatch
from reconciler.traffic.kernels.exact_totals import Batch, ExactColumns, ReplayTotals, first_places, pack
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Flags
from reconciler.traffic.kernels.seconds_judge import GroupVerdict, SideVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kernels.token_bucket import (
    EXPIRY_MS,
    TokenBounds,
    bounds_of_seconds,
    least_limit,
    least_unthrottled,
    play,
)

REFUSED = 2
PARTLY = 3
"""Places of ``sides`` after those before and after the change: what is refused, and the requests of which only part is."""


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics asked of one bucket, in the order of charging. ``amounts``: partitions; ``strict``: refused, not delayed."""

    times_ms: Integers
    order: Integers
    amounts: Integers
    strict: Flags
    series: Integers

    def part(self, chosen: Integers) -> Topics:
        """Some of them, or all in another order."""
        return Topics(*(getattr(self, name)[chosen] for name in self.__slots__))


def topic_order(topics: Topics, parts: Integers) -> Integers:
    """The order of charging: by time, then by what identifies the request, then by the topic's place in it."""
    return np.asarray(np.lexsort((topics.amounts, parts, topics.series, topics.order, topics.times_ms)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Effects:
    """On each topic: whether it is delayed or refused, whether it is refused, and the throttle in ms that its answer tells."""

    held: Flags
    refused: Flags
    throttle: Integers


def effects(topics: Topics, limit: float, window: Window) -> Effects:
    """Under one limit; NaN is unlimited."""
    if math.isnan(limit):
        none = np.zeros(len(topics.times_ms), dtype=np.bool_)
        return Effects(none, none, none.astype(np.int64))
    found = play(topics.times_ms, topics.amounts, topics.strict.astype(np.int64), limit, window)
    return Effects(~found.admitted | (found.throttle > 0), ~found.admitted, found.throttle)


def throttle_band(topics: Topics, limit: float, window: Window) -> tuple[Integers, Integers]:
    """The least and the most that each topic's throttle is when times are off by the noise of ``band``."""
    found = [effects(topics, limit, window).throttle]
    for number in range(REPLAYS):
        # The topics of a request come at one time.
        times = topics.times_ms + noise_ms(topics.order, number)
        moved = np.argsort(times, kind="stable")
        throttle = np.empty_like(times)
        throttle[moved] = effects(replace(topics, times_ms=times).part(moved), limit, window).throttle
        found.append(throttle)
    return np.minimum.reduce(found), np.maximum.reduce(found)


def partly_refused(topics: Topics, refused: Flags) -> Flags:
    """The first topic of each request of which some topics are refused and some are not."""
    first = np.zeros(len(refused), dtype=np.bool_)
    if not len(refused):
        return first
    same = (topics.times_ms, topics.order, topics.series)
    begins = np.unique(np.concatenate([first_places(column) for column in same]))
    some, every = np.logical_or.reduceat(refused, begins), np.logical_and.reduceat(refused, begins)
    first[begins[some & ~every]] = True
    return first


def judge_bucket(group: int, topics: Topics, limits: tuple[float, float], window: Window) -> tuple[ExactColumns, JudgedBatch]:
    """One bucket before and after the change. Its peak is the least limit that would never have left it overdrawn.

    Its safe limit is the least that would have throttled nothing. Its one row's sides are before, after, ``REFUSED`` and
    ``PARTLY``.
    """
    found = [effects(topics, limit, window) for limit in limits]
    refused = found[-1].refused
    keys = pack(np.full(len(topics.times_ms), group, dtype=np.int64), topics.times_ms)
    since_first = (topics.times_ms - topics.times_ms[:1]) / 1000.0
    peak = least_limit(since_first, since_first, topics.amounts, window)
    totals = ReplayTotals(4, window)
    rates = np.full(len(keys), peak)
    over = totals.add(keys, rates, [*(one.held for one in found), refused, partly_refused(topics, refused)])
    batch = Batch(keys, topics.order, topics.amounts, np.zeros_like(topics.amounts), topics.series)
    sides = tuple(Judged(topics.amounts, rates, np.where(one.held, np.maximum(one.throttle, 1), 0)) for one in found)
    safe = least_unthrottled(topics.times_ms, topics.amounts, topics.strict, window)
    return replace(totals.columns(), safe=np.full(1, safe)), JudgedBatch(batch, sides, over)


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
    runs = Episodes(math.ceil(window.expiry_ms / 1000))
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
