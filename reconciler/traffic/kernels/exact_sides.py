"""One side of a comparison: requests judged under one limit for each group, with what is still charged from earlier batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_totals import Batch, first_places, group_of, time_of
from reconciler.traffic.kernels.fetch_rollback import Unrecording
from reconciler.traffic.kernels.sampled_rate import SampledRate, Window, throttle_ms
from reconciler.traffic.kernels.throttles import UNCAPPED, throttles
from reconciler.traffic.kernels.timeline import Doubles, Integers, Spans

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
            self._unrecord(groups, limits, live, (rate, throttle))
        return Judged(amounts, np.asarray(rate, dtype=np.float64), throttle)

    def keep_from(self, place: int) -> None:
        """Forget what is in no live sample any more."""
        self._charged = self._charged[place:]

    def _caps(self, groups: Integers) -> Integers | None:
        if self._capped is None:
            return None
        return np.where(self._capped[groups], self._window.sample_ms, UNCAPPED)

    def _cap_ms(self, group: int) -> int | None:
        return self._window.sample_ms if self._capped is not None and self._capped[group] else None

    def _cut(self, records: Integers, limits: Doubles, groups: Integers) -> Integers:
        """A broker asks its log for no more than an empty window could serve."""
        if self._side is None or not np.any(self._side.unrecords):
            return records
        window = self._window
        cap = np.floor(limits * (window.samples - 1) * (window.sample_ms / 1000))
        cuts = self._side.unrecords if self._capped is None else self._side.unrecords & ~self._capped
        cap = np.where(cuts[groups] & ~np.isnan(limits), np.minimum(cap, _LONG_MAX), _LONG_MAX)
        return np.minimum(records, cap.astype(np.int64))

    def _unrecord(self, groups: Integers, limits: Doubles, live: Spans, found: tuple[Doubles, Integers]) -> None:
        """Go through the groups that violate, request by request: what stayed charged decides the next one."""
        assert self._side is not None
        rate, throttle = found
        kept = len(self._charged) - len(groups)
        first = first_places(groups)
        for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(groups)], strict=True):
            if not self._side.unrecords[groups[begin]] or not np.any(throttle[begin:end] > 0):
                continue
            # Only the first group of a batch can have requests that were kept.
            origin = int(live.first[kept + begin])
            charged = self._charged[origin : kept + end]
            one = Unrecording(
                before=kept + begin - origin,
                charged=charged,
                first=live.first[kept + begin : kept + end] - origin,
                window_ms=live.window_ms[kept + begin : kept + end],
                limit=float(limits[begin]),
                cap_ms=self._cap_ms(int(groups[begin])),
            )
            rate[begin:end], throttle[begin:end] = one.judge(float(rate[begin:end].max()))

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
