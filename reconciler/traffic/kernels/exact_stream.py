"""Requests in, the exact verdict on each of them out: a stream of any length in constant memory, for many groups at once.

A group is one quota group on one broker. Keys of two groups are further apart than any window, so the vector form of the sampled
rate (``live_samples``) runs over all groups in one go. What a batch needs of those before it is the requests that are still in
live samples: they begin at a sample's start, so the chain of samples goes on from there as if nothing had been cut. The last
second of a batch waits for the next one, so that neither seconds nor requests of one moment are torn.

``QuotaReplay`` judges one side of a comparison under one limit for each group. Brokers un-record throttled fetches, so each
decision depends on which earlier fetches stayed recorded (``FetchRollback``). That is sequential, so the loop does as little as
can be: for every width of the window there is a largest sum of which Kafka makes no throttle, and a request stays recorded when
the sum with it is not above that. Rates and throttles follow with vectors.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_totals import Batch, ReplayTotals, VerdictColumns, first_places, group_of, time_of
from reconciler.traffic.kernels.sampled_rate import (
    LONGEST_THROTTLE_MS,
    UNCAPPED,
    Doubles,
    Era,
    Flags,
    Integers,
    SampledRate,
    Spans,
    Window,
    live_samples,
    throttle_ms,
    throttles,
)


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """Requests in the order of charging; for each side one ``Judged``, and which requests are in a second that is over."""

    requests: Batch
    sides: tuple[Judged, ...]
    over: tuple[Flags, ...]


class ExactStream:
    """Feed batches in the order of their keys, then ``finish``; totals by group come last."""

    def __init__(self, sides: Sequence[GroupLimits], window: Window, *, near: Doubles | None = None) -> None:
        """``near``: by group, from which rate on a second is near, for the totals."""
        self._window = window
        self._open = QuotaReplay(None, window)
        self._charges = tuple(QuotaReplay(side, window) for side in sides)
        self._totals = ReplayTotals(len(sides), window, near=near)
        self._held = Batch.empty()
        self._tail = np.empty(0, dtype=np.int64)

    def feed(self, batch: Batch) -> JudgedBatch | None:
        """Take more requests and return those that became decided. Raises ``ValueError`` when keys go back."""
        both = self._held.then(batch) if len(self._held) else batch
        if not len(both):
            return None
        if np.any(np.diff(both.keys) < 0) or (len(self._tail) and both.keys[0] < self._tail[-1]):
            raise ValueError("requests must be in the order of their groups and times")
        second = both.keys[-1] - time_of(both.keys[-1:])[0] % 1000
        whole = int(np.searchsorted(both.keys, second))
        self._held = both.part(slice(whole, None))
        return self._judge(both.part(slice(whole))) if whole else None

    def finish(self) -> JudgedBatch | None:
        """Decide and return the requests that were still waiting."""
        held, self._held = self._held, Batch.empty()
        return self._judge(held) if len(held) else None

    def totals(self) -> VerdictColumns:
        """One row a group, by number. Ends the stream."""
        return self._totals.columns()

    def _judge(self, batch: Batch) -> JudgedBatch:
        batch = batch.in_order()
        live = self._live(batch.keys)
        opened = self._open.judge(batch, live)
        sides = tuple(charges.judge(batch, live) for charges in self._charges)
        over = self._totals.add(batch.keys, opened.rate, [side.throttle > 0 for side in sides])
        keys, begin = np.concatenate((self._tail, batch.keys)), -1
        if live is not None:
            begin = int(live.first[-1])
            for charges in (self._open, *self._charges):
                charges.keep_from(begin)
        self._tail = keys[begin:].copy()
        return JudgedBatch(batch, sides, over)

    def _live(self, keys: Integers) -> Spans | None:
        """Brokers up to 3.7 have no such form: there, a slot that was reset can be the oldest."""
        if self._window.era is Era.DROPPING:
            return None
        return live_samples(np.concatenate((self._tail, keys)), self._window)


def judge_one(
    times_ms: Integers, records: Integers, overhead: Integers, *, limit: float | None, unrecords: bool, window: Window
) -> Judged:
    """One bucket's whole history, in the order of charging, under one limit (``None``: unlimited)."""
    numbers = np.arange(len(times_ms), dtype=np.int64)
    side = GroupLimits(np.asarray([np.nan if limit is None else limit]), np.asarray([unrecords]))
    stream = ExactStream([side], window)
    batch = Batch(times_ms, numbers, records, overhead, numbers)
    parts = [part.sides[0] for part in (stream.feed(batch), stream.finish()) if part is not None]
    return Judged(*(np.concatenate([getattr(part, name) for part in parts]) for name in Judged.__slots__))


_LONG_MAX: Final = float(2**63 - 2048)
"""The largest double that is a 64-bit integer."""


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """By group number: the limit (NaN: unlimited), and whether the requests are un-recorded when they violate, as fetches are.

    ``capped``: whether a throttle is at most one sample long; such requests are not cut. ``None``: none is.
    """

    limits: Doubles
    unrecords: np.ndarray[tuple[int], np.dtype[np.bool_]]
    capped: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What the broker computes at each request: the amount charged, the rate a second, and the throttle in ms.

    The rate is the one that was judged, an un-recorded request included. A throttle is as Kafka narrows it: negative or zero is
    none.
    """

    amount: Integers
    rate: Doubles
    throttle: Integers


class QuotaReplay:
    """Judges the batches of one side in turn. Without a ``GroupLimits`` nothing is limited, cut or un-recorded."""

    def __init__(self, side: GroupLimits | None, window: Window) -> None:
        self._side = side
        self._window = window
        self._charged = np.empty(0, dtype=np.int64)
        self._sensor = SampledRate(window)
        self._sensor_of: int | None = None
        some = side is not None and side.capped is not None and bool(side.capped.any())
        self._capped = side.capped if side is not None and some else None

    def judge(self, batch: Batch, live: Spans | None) -> Judged:
        """``live``: of what was kept and this batch; ``None`` for brokers whose rates have no such form."""
        groups = group_of(batch.keys)
        limits = np.full(len(batch), np.nan) if self._side is None else self._side.limits[groups]
        amounts = batch.overhead + self._cut(batch.records, limits, groups)
        if live is None:
            return self._by_model(batch, groups, amounts, limits)
        kept = len(self._charged)
        self._charged = np.concatenate((self._charged, amounts))
        total = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self._charged)))
        width = live.window_ms[kept:]
        rate = (total[kept + 1 :] - total[live.first[kept:]]) / (width / 1000.0)
        throttle = throttles(rate, width, limits, self._caps(groups))
        if self._side is not None and np.any((throttle > 0) & self._side.unrecords[groups]):
            self._roll_back(groups, limits, live, (rate, throttle))
        return Judged(amounts, np.asarray(rate, dtype=np.float64), throttle)

    def keep_from(self, place: int) -> None:
        """Forget what is in no live sample any more."""
        self._charged = self._charged[place:]

    def _caps(self, groups: Integers) -> Integers | None:
        longest = UNCAPPED if self._window.wraps else LONGEST_THROTTLE_MS
        if self._capped is None:
            return None if self._window.wraps else np.full(len(groups), longest)
        return np.where(self._capped[groups], self._window.sample_ms, longest)

    def _cap_ms(self, group: int) -> int | None:
        if self._capped is not None and self._capped[group]:
            return self._window.sample_ms
        return None if self._window.wraps else LONGEST_THROTTLE_MS

    def _cut(self, records: Integers, limits: Doubles, groups: Integers) -> Integers:
        """A broker asks its log for no more than an empty window could serve."""
        if self._side is None or not np.any(self._side.unrecords):
            return records
        window = self._window
        cap = np.floor(limits * (window.samples - 1) * (window.sample_ms / 1000))
        cuts = self._side.unrecords if self._capped is None else self._side.unrecords & ~self._capped
        cap = np.where(cuts[groups] & ~np.isnan(limits), np.minimum(cap, _LONG_MAX), _LONG_MAX)
        return np.minimum(records, cap.astype(np.int64))

    def _roll_back(self, groups: Integers, limits: Doubles, live: Spans, replayed: tuple[Doubles, Integers]) -> None:
        """Go through the groups that violate, request by request: what stayed charged decides the next one."""
        assert self._side is not None
        rate, throttle = replayed
        kept = len(self._charged) - len(groups)
        first = first_places(groups)
        for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(groups)], strict=True):
            if not self._side.unrecords[groups[begin]] or not np.any(throttle[begin:end] > 0):
                continue
            # Only the first group of a batch can have requests that were kept.
            origin = int(live.first[kept + begin])
            charged = self._charged[origin : kept + end]
            rollback = FetchRollback(
                before=kept + begin - origin,
                charged=charged,
                first=live.first[kept + begin : kept + end] - origin,
                window_ms=live.window_ms[kept + begin : kept + end],
                limit=float(limits[begin]),
                cap_ms=self._cap_ms(int(groups[begin])),
            )
            rate[begin:end], throttle[begin:end] = rollback.judge(float(rate[begin:end].max()))

    def _by_model(self, batch: Batch, groups: Integers, amounts: Integers, limits: Doubles) -> Judged:
        rates, asked = [], []
        unrecords = np.zeros(len(batch), dtype=np.bool_) if self._side is None else self._side.unrecords[groups]
        columns = (v.tolist() for v in (groups, time_of(batch.keys), amounts, limits, unrecords))
        for group, now, amount, limit, unrecord in zip(*columns, strict=True):
            if group != self._sensor_of:
                self._sensor, self._sensor_of = SampledRate(self._window), group
            self._sensor.record(amount, now)
            rate, width = self._sensor.measure(now)
            rates.append(rate)
            asked.append(0 if math.isnan(limit) else throttle_ms(rate, width, limit, self._cap_ms(group)))
            if unrecord and asked[-1] > 0:
                self._sensor.record(-amount, now)
        return Judged(amounts, np.asarray(rates, dtype=np.float64), np.asarray(asked, dtype=np.int64))


_EXACT: Final = 2**52
"""Far enough below the size from which doubles skip whole numbers."""
_NEAR: Final = 3
"""A largest sum is so near to what its formula gives in doubles, or nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRollback:
    """Requests of one group: ``before`` earlier ones that may still be charged, then those to be judged.

    ``charged``: their amounts; what is taken back is set to 0 in it. ``first``: for each to be judged the place in ``charged`` of
    the first request of its oldest live sample; ``window_ms``: how long its window is.
    """

    before: int
    charged: Integers
    first: Integers
    window_ms: Integers
    limit: float
    cap_ms: int | None

    def judge(self, highest: float) -> tuple[Doubles, Integers]:
        """The rate that was judged and the throttle of each. No rate is above ``highest``, what it would be if all stayed."""
        largest = self._largest_sums(highest)
        stays = self._one_by_one() if largest is None else self._by_sums(largest)
        amounts = self.charged[self.before :].copy()
        self.charged[self.before :] = np.where(stays, amounts, 0)
        sums = np.append(0, np.cumsum(self.charged))
        rate = (sums[self.before : -1] + amounts - sums[self.first]) / (self.window_ms / 1000.0)
        caps = np.full(len(amounts), UNCAPPED if self.cap_ms is None else self.cap_ms, dtype=np.int64)
        return rate, throttles(rate, self.window_ms, np.full(len(amounts), self.limit), caps)

    def _largest_sums(self, highest: float) -> Integers | None:
        """Return, for each request, the largest sum that is not throttled; ``None`` where no such sum exists.

        A throttle that 32 bits narrow to a negative number throttles no request.
        """
        if self.limit <= 0 or highest * float(self.window_ms.max()) >= _EXACT:
            return None
        if self.cap_ms is None and (highest - self.limit) / self.limit * float(self.window_ms.max()) >= LONGEST_THROTTLE_MS:
            return None
        low, high = int(self.window_ms.min()), int(self.window_ms.max())
        if high - low < len(self.window_ms):
            # Cheaper than looking which of them there are.
            widths, of = np.arange(low, high + 1), self.window_ms - low
        else:
            widths, of = np.unique(self.window_ms, return_inverse=True)
        near = np.floor(self.limit * (widths / 1000.0) * (1 + 0.5 / widths)).astype(np.int64)
        candidates = near[:, None] + np.arange(-_NEAR, _NEAR + 1)
        wide = np.broadcast_to(widths[:, None], candidates.shape)
        rate = (candidates / (wide / 1000.0)).ravel()
        free = (throttles(rate, wide.ravel(), np.full(rate.shape, self.limit)) <= 0).reshape(candidates.shape)
        # Sums that are free come before those that are not.
        if not free[:, 0].all() or free[:, -1].any():
            return None
        return np.asarray((near - _NEAR - 1 + free.sum(axis=1))[of], dtype=np.int64)

    def _by_sums(self, largest: Integers) -> Flags:
        """Return the requests that stay charged."""
        amounts = self.charged[self.before :].tolist()
        spaces = (largest - self.charged[self.before :]).tolist()
        # Where everything that stays is, and the sums of it; the first one is of nothing.
        places, sums = list(range(self.before)), self._sums_before()
        begins = first_places(self.first)
        for begin, end, oldest in zip(
            begins.tolist(), [*begins[1:].tolist(), len(spaces)], self.first[begins].tolist(), strict=True
        ):
            earlier = sums[bisect_left(places, oldest)]
            inside = sums[-1] - earlier
            for place, space in enumerate(spaces[begin:end], begin):
                if inside <= space:
                    inside += amounts[place]
                    places.append(self.before + place)
                    sums.append(earlier + inside)
        stays = np.zeros(len(amounts), dtype=np.bool_)
        stays[np.asarray(places[self.before :], dtype=np.int64) - self.before] = True
        return stays

    def _one_by_one(self) -> Flags:
        """The same with the throttle of each."""
        sums, stays = self._sums_before(), []
        amounts = self.charged[self.before :].tolist()
        for amount, oldest, width in zip(amounts, self.first.tolist(), self.window_ms.tolist(), strict=True):
            total = sums[-1] + amount
            asked = throttle_ms((total - sums[oldest]) / (width / 1000.0), width, self.limit, self.cap_ms)
            # Only a delay above zero sends the fetch away empty: a violation that rounds to 0 ms stays charged.
            stays.append(asked <= 0)
            sums.append(total if asked <= 0 else sums[-1])
        return np.asarray(stays, dtype=np.bool_)

    def _sums_before(self) -> list[int]:
        return [0, *np.cumsum(self.charged[: self.before]).tolist()]
