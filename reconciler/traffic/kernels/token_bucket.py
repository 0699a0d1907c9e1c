"""Controller mutations: Kafka's token bucket (KIP-599), permissive and strict, and what is proven without playing it.

Source: Kafka's ``TokenBucket`` and ``ControllerMutationQuotaManager``. A bucket has at most ``limit x samples x W`` tokens, is
full at first, and refills by ``limit`` a second. Permissive (older API versions) takes the tokens whatever is left; strict
refuses a topic while the tokens are below zero, and a refused one takes none. A request of several topics asks for each in turn,
so part of it may be refused. Requests are distinguished by their time, order and sender.

A broker drops a bucket's sensor when nothing was taken for an hour (``inactiveSensorExpirationTimeSeconds``, looked after every
30 s), with any debt that is left. The next topic finds a full bucket. What is refused takes nothing, and does not keep a sensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_stream import Judged, JudgedBatch
from reconciler.traffic.kernels.exact_totals import NONE, OF_ALL, Batch, Episodes, ReplayTotals, SideVerdict, VerdictColumns, pack
from reconciler.traffic.kernels.sampled_rate import (
    DEFAULT_WINDOW,
    Doubles,
    Flags,
    Integers,
    Window,
    divide_as_java,
    java_round,
    narrow_to_int,
)
from reconciler.traffic.kernels.second_sums import ROUNDING

_LONGEST_DELAY_S: Final = (2**31 - 1) / 1000
"""A longer delay wraps around, and a negative one delays no request."""


EXPIRY_MS: Final = 3_600_000
"""The debt of a bucket from which nothing was taken for longer is forgotten."""


_FIRST_STEP: Final = 1e-12
"""Of a limit that rounding makes a little too low."""


class TokenBucket:
    """The plain model. Times are whole milliseconds and never go back; amounts are partitions."""

    __slots__ = ("_burst", "_limit", "_since_ms", "_taken_ms", "tokens")

    def __init__(self, limit: float, window: Window = DEFAULT_WINDOW) -> None:
        self._limit = limit
        self._burst = limit * window.samples * (window.sample_ms / 1000)
        self._since_ms: int | None = None
        self._taken_ms: int | None = None
        self.tokens = self._burst

    def take(self, amount: float, now_ms: int, *, strict: bool) -> bool:
        """Ask for one topic's partitions; ``False`` when it is refused."""
        if self._taken_ms is not None and now_ms - self._taken_ms > EXPIRY_MS:
            self.tokens = self._burst
        self._refill(now_ms)
        if strict and self.tokens < 0:
            return False
        self._taken_ms = now_ms
        self.tokens = min(self._burst, self.tokens - amount)
        return True

    def throttle_ms(self) -> int:
        """Return the throttle in answers after the last ``take``: 0 while tokens are left. A limit of 0 delays no request."""
        return narrow_to_int(java_round(divide_as_java(-self.tokens, self._limit) * 1000)) if self.tokens < 0 else 0

    def _refill(self, now_ms: int) -> None:
        if self._since_ms is not None:
            self.tokens = min(self._burst, self.tokens + self._limit * ((now_ms - self._since_ms) / 1000))
        self._since_ms = now_ms


@dataclass(frozen=True, slots=True)
class Effects:
    """On each topic: whether it is delayed or refused, whether it is refused, and the throttle in ms of its answer."""

    held: Flags
    refused: Flags
    throttle: Integers


def play(times_ms: Integers, amounts: Integers, strict: Flags, limit: float, window: Window = DEFAULT_WINDOW) -> Effects:
    """One bucket, topic by topic, in the order given; a limit of NaN is unlimited.

    ``strict``: where the API version refuses; elsewhere it only delays.
    """
    if math.isnan(limit):
        none = np.zeros(len(times_ms), dtype=np.bool_)
        return Effects(none, none, none.astype(np.int64))
    bucket, refusals, throttles = TokenBucket(limit, window), [], []
    for at, amount, refuses in zip(times_ms.tolist(), amounts.tolist(), strict.tolist(), strict=True):
        refusals.append(not bucket.take(amount, at, strict=refuses))
        # Who is only ever refused hears of no delay while admitted, whatever is left.
        throttles.append(0 if refuses and not refusals[-1] else bucket.throttle_ms())
    refused, throttle = np.asarray(refusals, dtype=np.bool_), np.asarray(throttles, dtype=np.int64)
    return Effects(refused | (throttle > 0), refused, throttle)


def permissive_tokens(times_ms: Integers, amounts: Integers, limit: float, window: Window = DEFAULT_WINDOW) -> Doubles:
    """Tokens left after each topic when every one is taken: two running operations in place of a loop. No debt expires.

    A strict bucket never has fewer, so where the tokens before a topic are not below zero here, it is not refused there; and it
    refuses something exactly when this one is below zero before some topic.
    """
    if not len(times_ms):
        return np.empty(0)
    allowed = limit * ((times_ms - times_ms[0]) / 1000.0)
    total = np.cumsum(amounts.astype(np.float64))
    done = total + np.maximum.accumulate(allowed - burst_of(limit, window) - (total - amounts))
    return np.asarray(allowed - done, dtype=np.float64)


def burst_of(limit: float, window: Window) -> float:
    """The tokens of a full bucket."""
    return limit * window.samples * (window.sample_ms / 1000)


def least_limit(early_s: Doubles, late_s: Doubles, amounts: Integers, window: Window, *, spared: Flags | None = None) -> float:
    """The least limit at which a bucket is never overdrawn, when amount i comes between ``late_s[i]`` and ``early_s[i]``.

    Known times are both; of a whole second, ``early_s`` is its beginning and ``late_s`` its end. Tokens after i are above zero
    while, for each j up to i, what was asked from j to i is at most limit x (burst seconds + the time from j to i); so the least
    limit is the largest of these ratios. Dinkelbach's method finds it: each round takes the ratio of the pair that exceeds the
    last one's limit most, until none does.

    ``spared``: amounts that may overdraw the bucket themselves, and must only find it in credit. All arrays have shape (n,).
    """
    if not len(amounts):
        return 0.0
    burst_s = burst_of(1.0, window)
    total = np.cumsum(amounts.astype(np.float64))
    before = total - amounts
    asked_at = total if spared is None else np.where(spared, before, total)
    limit = float((asked_at - before).max()) / burst_s
    while True:
        open_ = limit * late_s - before
        best = np.maximum.accumulate(open_)
        excess = asked_at[1:] - limit * (early_s[1:] + burst_s) + best[:-1]
        if not len(excess):
            return limit
        last = int(np.argmax(excess))
        first = int(np.argmax(open_[: last + 1]))
        asked, seconds = asked_at[last + 1] - before[first], burst_s + max(0.0, early_s[last + 1] - late_s[first])
        if not asked / seconds > limit:
            return limit
        limit = float(asked / seconds)


def least_unthrottled(times_ms: Integers, amounts: Integers, strict: Flags, window: Window = DEFAULT_WINDOW) -> float:
    """The smallest limit at which ``play`` refuses nothing and delays nothing, partitions/s; 0 when any limit does.

    All arrays have shape (n,), in the order of charging. A strict topic may overdraw the bucket and is refused only when it finds
    the bucket overdrawn, so a rare large topic needs far less than ``least_limit``, which keeps every topic within the burst. A
    bucket is full again after an idle hour. Rounding is made up for by playing the result.
    """
    limit = 0.0
    for part in np.split(np.arange(len(times_ms)), np.flatnonzero(np.diff(times_ms) > EXPIRY_MS) + 1):
        since = (times_ms[part] - times_ms[part[:1]]) / 1000.0
        limit = max(limit, least_limit(since, since, amounts[part], window, spared=strict[part]))
    step = _FIRST_STEP
    while limit and play(times_ms, amounts, strict, limit, window).held.any():
        limit, step = limit * (1 + step), step * 10
    return limit


@dataclass(frozen=True, slots=True)
class TokenBounds:
    """For each second with traffic, what is proven about its tokens without the single requests.

    ``overdrawn``: after the last request before it, and still at its own first one, a permissive bucket is below zero: so
    that earlier request was delayed, or one up to this was refused. ``in_credit``: never below zero in it. ``estimate``: tokens
    left, when everything of a second comes at once. ``fits``: never so far below zero that a delay does not fit into 32 bits.
    """

    overdrawn: Flags
    in_credit: Flags
    estimate: Doubles
    fits: Flags


def bounds_of_seconds(seconds: Integers, amounts: Integers, limit: float, window: Window) -> TokenBounds:
    """``seconds`` rise strictly. What is asked in one of them may come in any parts, at any times within it."""
    at = (seconds - seconds[0]).astype(np.float64)
    burst = burst_of(limit, window)
    total = np.cumsum(amounts.astype(np.float64))
    before = total - amounts
    slack = ROUNDING * (burst + total[-1])
    # Least: everything before comes as late, and everything of this second as early as it can.
    latest = np.concatenate(([-np.inf], np.maximum.accumulate(limit * (at + 1) - before)[:-1]))
    least = np.minimum(burst - amounts, burst - total + limit * at - latest)
    # Most, at the first request of a second: everything before as early, and this one as late as it can.
    earliest = np.maximum.accumulate(limit * at - before)
    most = np.concatenate(([burst], burst - total[:-1] + limit * (at[1:] + 1) - earliest[:-1]))
    estimate = permissive_tokens(seconds * 1000, amounts, limit, window)
    fits = np.minimum.accumulate(least) > -limit * _LONGEST_DELAY_S * (1 - ROUNDING)
    return TokenBounds(most < -slack, least >= slack, estimate, fits)


REFUSED: Final = 2
"""The place of ``sides`` after those before and after the change: what is refused."""


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics asked of one bucket, in the order of charging. ``amounts``: partitions; ``strict``: refused, not delayed."""

    times_ms: Integers
    order: Integers
    amounts: Integers
    strict: Flags
    series: Integers

    def part(self, chosen: Integers) -> Topics:
        """Return some of them, or all in another order."""
        return Topics(*(getattr(self, name)[chosen] for name in self.__slots__))


def topic_order(topics: Topics, parts: Integers) -> Integers:
    """The order of charging: by time, then by what identifies the request, then by the topic's place in it."""
    return np.asarray(np.lexsort((topics.amounts, parts, topics.series, topics.order, topics.times_ms)), dtype=np.int64)


NEAR: Final = 0.9
"""Of an earlier limit: a second is near it where a bucket of so much less does not allow it. Paced clients overdraw none."""


def judge_bucket(group: int, topics: Topics, limits: tuple[float, float], window: Window) -> tuple[VerdictColumns, JudgedBatch]:
    """One bucket before and after the change. Its peak is the least limit that would never have left it overdrawn.

    Its safe limit is the least that would have throttled nothing. Its one row's sides are before, after and ``REFUSED``.
    """
    judged = [play(topics.times_ms, topics.amounts, topics.strict, limit, window) for limit in limits]
    keys = pack(np.full(len(topics.times_ms), group, dtype=np.int64), topics.times_ms)
    since_first = (topics.times_ms - topics.times_ms[:1]) / 1000.0
    peak = least_limit(since_first, since_first, topics.amounts, window)
    totals = ReplayTotals(3, window)
    rates = np.full(len(keys), peak)
    over = totals.add(keys, rates, [*(side.held for side in judged), judged[-1].refused])
    batch = Batch(keys, topics.order, topics.amounts, np.zeros_like(topics.amounts), topics.series)
    sides = tuple(Judged(topics.amounts, rates, np.where(side.held, np.maximum(side.throttle, 1), 0)) for side in judged)
    safe = least_unthrottled(topics.times_ms, topics.amounts, topics.strict, window)
    columns = totals.columns()
    near = play(topics.times_ms, topics.amounts, topics.strict, NEAR * limits[0], window).held
    columns.counts[OF_ALL.index("near")] = len(np.unique(topics.times_ms[near] // 1000))
    return replace(columns, safe=np.full(1, safe)), JudgedBatch(batch, sides, over)


def judge_seconds(group: int, seconds: Integers, amounts: Integers, limits: Sequence[float], window: Window) -> VerdictColumns:
    """The one row of a bucket; seconds in any order, several of one add up; a limit of NaN is unlimited.

    Whether requests are refused or delayed is not known: only the first second that is over can be proven to be, as what is
    refused takes no tokens.
    """
    distinct, places = np.unique(seconds, return_inverse=True)
    # Sums of doubles are exact here: partitions are far below 2^53.
    sums = np.bincount(places, weights=amounts).astype(np.int64)
    begins = (distinct - distinct[:1]).astype(np.float64)
    upper = least_limit(begins, begins + 1, sums, window)
    near = int(seconds_over(distinct, sums, NEAR * limits[0], window)[1].sum())
    counts = [len(distinct), near, *(count for limit in limits for count in _side(distinct, sums, limit, window))]
    column = np.asarray([NONE if count is None else count for count in counts], dtype=np.int64)
    return VerdictColumns(np.full(1, group), column[:, None], np.full(1, upper), np.full(1, upper))


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


def seconds_over(seconds: Integers, amounts: Integers, limit: float, window: Window) -> tuple[Flags, Flags, Flags]:
    """Whether each second is certainly, probably and possibly over. ``seconds`` rise strictly. A limit of NaN is unlimited.

    Of the certain ones only the first: what is refused takes no tokens.
    """
    if math.isnan(limit):
        none = np.zeros(len(seconds), dtype=np.bool_)
        return none, none, none
    bounded = _bounds(seconds, amounts, limit, window)
    if limit <= 0:
        # Such limits refuse new clients and pass old ones by, and which these are is not known.
        nothing = np.zeros_like(bounded.overdrawn)
        bounded = TokenBounds(nothing, nothing, bounded.estimate, nothing)
    certain = bounded.overdrawn & bounded.fits
    certain &= np.cumsum(certain) == 1
    over = ((bounded.estimate < 0) & ~bounded.in_credit) | bounded.overdrawn
    return certain, over, ~bounded.in_credit | bounded.overdrawn


def _side(seconds: Integers, amounts: Integers, limit: float, window: Window) -> SideVerdict:
    if math.isnan(limit):
        return SideVerdict()
    flags, over, maybe = seconds_over(seconds, amounts, limit, window)
    first = next((int(seconds[marked][0]) * 1000 for marked in (over, maybe) if marked.any()), None)
    # Nothing of before a longer pause is missing in the bucket: that long, it fills whole.
    runs = Episodes(math.ceil(window.expiry_ms / 1000))
    runs.feed(np.zeros_like(seconds), seconds, over)
    (longest_s,), (longest_from,) = runs.columns(np.zeros(1, dtype=np.int64)).tolist()
    return SideVerdict(
        certain=int(flags.sum()),
        expected=int(over.sum()),
        possible=int(maybe.sum()),
        first_ms=first,
        longest_s=longest_s,
        longest_from=longest_from,
    )
