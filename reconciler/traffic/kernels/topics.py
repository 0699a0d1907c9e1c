"""What a bucket of tokens does to mutations, request by request: each topic admitted, delayed or refused, in the order asked.

A request of several topics is asked topic by topic, so part of it may be refused. Requests are told apart by their time, order
and sender.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from reconciler.traffic.kernels.band import REPLAYS, noise_ms
from reconciler.traffic.kernels.exact_batch import Batch, first_places, pack
from reconciler.traffic.kernels.exact_sides import Judged
from reconciler.traffic.kernels.exact_stream import JudgedBatch
from reconciler.traffic.kernels.exact_totals import ExactColumns, Totals
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Flags
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kernels.token_bucket import least_limit, least_unthrottled, play

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
    totals = Totals(4, window)
    rates = np.full(len(keys), peak)
    over = totals.add(keys, rates, [*(one.held for one in found), refused, partly_refused(topics, refused)])
    batch = Batch(keys, topics.order, topics.amounts, np.zeros_like(topics.amounts), topics.series)
    sides = tuple(Judged(topics.amounts, rates, np.where(one.held, np.maximum(one.throttle, 1), 0)) for one in found)
    safe = least_unthrottled(topics.times_ms, topics.amounts, topics.strict, window)
    return replace(totals.columns(), safe=np.full(1, safe)), JudgedBatch(batch, sides, over)
