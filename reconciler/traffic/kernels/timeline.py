"""The sampled rate at every request of one bucket on one broker, with vectors: the fast form of ``sampled_rate``.

For brokers from 3.8 on, which samples are alive at a request depends on times alone, never on amounts or limits. With the
requests in order, s0 the first and each further sample start the first request at least W after the previous start, the live
samples at request i are a suffix: those whose last request is later than t_i - N x W. (The ring has N+1 slots; live samples
start W or more apart and after t_i - (N+1) x W, so none is overwritten early. Slots that were reset hold nothing, and the
sample that was current at their reset has an earlier start and outlives them, so they never decide which is the oldest.)

Older brokers have no such form (a reset slot can be the oldest there); they are replayed by the model, request by request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from reconciler.traffic.kernels.sampled_rate import Era, SampledRate, Window, throttle_ms

Integers: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the broker computes at each request, in the order given. Rates are per second, windows and throttles in ms."""

    rate: Doubles
    throttle: Integers
    """As Kafka narrows it: negative or zero is not throttled."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Per request, the index of the first request of the oldest live sample, and the window in ms."""

    first: Integers
    window_ms: Integers


def spans(times_ms: Integers, window: Window) -> Spans:
    """Live samples for times in order (brokers 3.8 and newer). Raises ``ValueError`` when times go back."""
    if len(times_ms) == 0:
        return Spans(times_ms, times_ms)
    if np.any(np.diff(times_ms) < 0):
        raise ValueError("the requests of a bucket must be in the order of their times")
    starts = _sample_starts(times_ms, window.sample_ms)
    last_times = np.append(times_ms[starts[1:] - 1], times_ms[-1])
    oldest = np.searchsorted(last_times, times_ms - window.expiry_ms, side="right")
    first = starts[oldest]
    elapsed = times_ms - times_ms[first]
    missing = np.maximum(0, window.samples - 1 - elapsed // window.sample_ms)
    return Spans(first, np.maximum(1, elapsed + missing * window.sample_ms))


def _sample_starts(times_ms: Integers, sample_ms: int) -> Integers:
    following = np.searchsorted(times_ms, times_ms + sample_ms, side="left").tolist()
    starts = []
    index, count = 0, len(following)
    while index < count:
        starts.append(index)
        index = following[index]
    return np.asarray(starts, dtype=np.int64)


class Timeline:
    """The charge times (whole ms, in order) of one bucket's requests: what every replay of the bucket has in common."""

    def __init__(self, times_ms: Integers, window: Window) -> None:
        """Raises ``ValueError`` when times go back."""
        self._times = times_ms
        self._window = window
        self._live = None if window.era is Era.DROPPING else spans(times_ms, window)

    def open_loop_rates(self, amounts: Integers) -> Doubles:
        """The rate at every request when every request is charged whatever the limit, as produce is."""
        if self._live is None:
            return _by_model(self._times, amounts, None, self._window, unrecord=False).rate
        before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(amounts)))
        return np.asarray((before[1:] - before[self._live.first]) / (self._live.window_ms / 1000.0), dtype=np.float64)

    def produce(self, amounts: Integers, limit: float | None) -> Replayed:
        """Every request is charged, then judged. ``limit`` ``None`` is unlimited."""
        if self._live is None:
            return _by_model(self._times, amounts, limit, self._window, unrecord=False)
        rate = self.open_loop_rates(amounts)
        return Replayed(rate, _throttles(rate, self._live.window_ms, limit))

    def fetch(self, overhead: Integers, records: Integers, limit: float | None) -> Replayed:
        """Record bytes are cut to what a broker would ask of its log; a violating fetch is un-recorded and leaves no debt.

        The rate returned is the one that was judged, the violating fetch included.
        """
        if limit is None:
            return self.produce(overhead + records, None)
        amounts = overhead + np.minimum(records, self._window.fetch_cap(limit))
        if self._live is None:
            return _by_model(self._times, amounts, limit, self._window, unrecord=True)
        plain = self.produce(amounts, limit)
        if not np.any(plain.throttle > 0):
            return plain
        rate = np.asarray(_unrecorded_rates(amounts, self._live, limit), dtype=np.float64)
        return Replayed(rate, _throttles(rate, self._live.window_ms, limit))


def open_loop_rates(times_ms: Integers, amounts: Integers, window: Window) -> Doubles:
    """One bucket's open-loop rates; see ``Timeline``."""
    return Timeline(times_ms, window).open_loop_rates(amounts)


def replay_produce(times_ms: Integers, amounts: Integers, limit: float | None, window: Window) -> Replayed:
    """One bucket's produce requests under one limit; see ``Timeline``."""
    return Timeline(times_ms, window).produce(amounts, limit)


def replay_fetch(times_ms: Integers, overhead: Integers, records: Integers, limit: float | None, window: Window) -> Replayed:
    """One bucket's fetches under one limit; see ``Timeline``."""
    return Timeline(times_ms, window).fetch(overhead, records, limit)


def _unrecorded_rates(amounts: Integers, live: Spans, limit: float) -> list[float]:
    """One pass: the sum of what stayed charged up to each request decides the next."""
    charged = [0]
    total = 0
    rates = []
    for amount, first, width in zip(amounts.tolist(), live.first.tolist(), live.window_ms.tolist(), strict=True):
        rate = (total + amount - charged[first]) / (width / 1000.0)
        rates.append(rate)
        # Only a delay above zero sends the fetch away empty: a violation that rounds to 0 ms stays charged.
        if rate <= limit or throttle_ms(rate, width, limit) <= 0:
            total += amount
        charged.append(total)
    return rates


def _throttles(rate: Doubles, window_ms: Integers, limit: float | None) -> Integers:
    throttles = np.zeros(len(rate), dtype=np.int64)
    if limit is None:
        return throttles
    over = np.flatnonzero(~(rate <= limit))
    if limit > 0:
        exact = (rate[over] - limit) / limit * window_ms[over]
        floor = np.floor(exact)
        rounded = np.where(exact - floor >= 0.5, floor + 1, floor)
        throttles[over] = _narrowed(np.minimum(rounded, float(2**62)).astype(np.int64))
    else:
        pairs = zip(rate[over].tolist(), window_ms[over].tolist(), strict=True)
        throttles[over] = [throttle_ms(r, w, limit) for r, w in pairs]
    return throttles


def _narrowed(values: Integers) -> Integers:
    return values.astype(np.int32).astype(np.int64)


def _by_model(times_ms: Integers, amounts: Integers, limit: float | None, window: Window, *, unrecord: bool) -> Replayed:
    sensor = SampledRate(window)
    rates, throttles = [], []
    for at, amount in zip(times_ms.tolist(), amounts.tolist(), strict=True):
        sensor.record(amount, at)
        rate, width = sensor.measure(at)
        rates.append(rate)
        throttles.append(0 if limit is None else throttle_ms(rate, width, limit))
        if unrecord and throttles[-1] > 0:
            sensor.record(-amount, at)
    return Replayed(np.asarray(rates, dtype=np.float64), np.asarray(throttles, dtype=np.int64))
