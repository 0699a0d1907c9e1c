"""Kafka's sampled rate and throttle time: request by request, the plain model, and for many requests at once with vectors.

Source: Kafka's ``Rate``, ``SampledStat``, ``WindowedSum`` and ``QuotaUtils``. Times are whole milliseconds of the broker's clock;
amounts are bytes (any number works, as in Kafka, where sums are doubles; integers below 2^53 are exact).

The vectors (``live_samples``, ``throttles``): for brokers from 3.8 on, which samples are alive at a request depends on times
alone, never on amounts or limits. With the requests in order, s0 the first and each further sample start the first request at
least W after the previous start, the live samples at request i are a suffix: those whose last request is later than t_i - N x W.
(The ring has N+1 slots; live samples start W or more apart and after t_i - (N+1) x W, so none is overwritten early. Slots that
were reset have nothing, and the sample that was current at their reset has an earlier start and outlives them, so they never
decide which is the oldest.) Older brokers have no such form, since a reset slot can be the oldest there: the model replays them.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
_LONG_MAX: Final = 2**63 - 1
_LONG_MIN: Final = -(2**63)


class Era(enum.StrEnum):
    """Which brokers: 3.8 changed when an old sample is dropped."""

    OVERLAPPING = "3.8 and newer"
    """One spare sample; a sample is dropped when its last event is N x W old."""
    DROPPING = "3.7 and older"
    """No spare sample; a sample is dropped when its start is N x W old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The broker's era and window settings: ``quota.window.num`` and, times 1000, ``quota.window.size.seconds``."""

    samples: int = 11
    sample_ms: int = 1000
    era: Era = Era.OVERLAPPING
    wraps: bool = True
    """A longer throttle of produce or fetch than 2^31 - 1 ms wraps around, as before Kafka 4.4. Else it is as long as that."""

    @property
    def expiry_ms(self) -> int:
        """N x W, the age at which a sample is dropped."""
        return self.samples * self.sample_ms

    @property
    def longest_ms(self) -> int:
        """No rate is divided by more."""
        return self.expiry_ms + (self.sample_ms if self.era is Era.OVERLAPPING else 0)

    def fetch_cap(self, limit: float) -> int:
        """The most record bytes one fetch may ask of the log: ``limit x (N-1) x W`` seconds, floored."""
        return min(_LONG_MAX, math.floor(limit * (self.samples - 1) * (self.sample_ms / 1000)))


DEFAULT_WINDOW: Final = Window()


class SampledRate:
    """One sensor: a ring of samples, each with its start, last event and sum."""

    __slots__ = ("_current", "_lasts", "_ring", "_starts", "_sums", "_window")

    def __init__(self, window: Window = DEFAULT_WINDOW) -> None:
        self._window = window
        self._ring = window.samples + 1 if window.era is Era.OVERLAPPING else window.samples
        self._current = 0
        self._starts: list[int] = []
        self._lasts: list[int] = []
        self._sums: list[float] = []

    def record(self, amount: float, now_ms: int) -> None:
        """Add an amount (negative: un-record) at a time; times must not go back."""
        if not self._starts:
            self._append(now_ms)
        elif now_ms - self._starts[self._current] >= self._window.sample_ms:
            self._current = (self._current + 1) % self._ring
            if self._current >= len(self._starts):
                self._append(now_ms)
            else:
                self._reset(self._current, now_ms)
        self._sums[self._current] += amount
        self._lasts[self._current] = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        """The rate per second and the window in ms, after dropping obsolete samples."""
        expiry = self._window.expiry_ms
        ages = self._lasts if self._window.era is Era.OVERLAPPING else self._starts
        for index, reference in enumerate(ages):
            if now_ms - reference >= expiry:
                self._reset(index, now_ms)
        if not self._starts:
            self._append(now_ms)
        window_ms = self._topped_up(now_ms - min(self._starts))
        return math.fsum(self._sums) / (window_ms / 1000.0), window_ms

    def _topped_up(self, elapsed_ms: int) -> int:
        full = elapsed_ms // self._window.sample_ms
        missing = max(0, self._window.samples - 1 - full)
        return max(1, elapsed_ms + missing * self._window.sample_ms)

    def _append(self, now_ms: int) -> None:
        self._starts.append(now_ms)
        self._lasts.append(now_ms)
        self._sums.append(0)

    def _reset(self, index: int, now_ms: int) -> None:
        self._starts[index] = now_ms
        self._lasts[index] = now_ms
        self._sums[index] = 0


def throttle_ms(rate: float, window_ms: int, limit: float, cap_ms: int | None = None) -> int:
    """The delay that Kafka asks for: 0 within the limit, else ``round((rate - limit) / limit x window)`` as Java rounds.

    Produce and fetch delays have no cap before Kafka 4.4, but they are narrowed to 32 bits: a limit far too small for the traffic
    wraps around, in Kafka as here, and a negative result throttles no request. Those of requests and connections are at most one
    sample (``cap_ms``), which counts before they are narrowed.
    """
    if rate <= limit:
        return 0
    asked = java_round(divide_as_java(rate - limit, limit) * window_ms)
    return narrow_to_int(asked if cap_ms is None else min(asked, cap_ms))


def java_round(value: float) -> int:
    """``Math.round(double)``: half up, NaN is 0, clamped to 64 bits."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return _LONG_MAX if value > 0 else _LONG_MIN
    floor = math.floor(value)
    return min(_LONG_MAX, max(_LONG_MIN, floor + 1 if value - floor >= 0.5 else floor))


def divide_as_java(numerator: float, denominator: float) -> float:
    """Divide as Java divides doubles: by zero, too."""
    if denominator == 0:
        return math.nan if numerator == 0 else math.copysign(math.inf, numerator)
    return numerator / denominator


def narrow_to_int(value: int) -> int:
    """A long as an int: the lower 32 bits."""
    return (value + 2**31) % 2**32 - 2**31


@dataclass(frozen=True, slots=True)
class Spans:
    """Per request, the index of the first request of the oldest live sample, and the window in ms."""

    first: Integers
    window_ms: Integers


def live_samples(times_ms: Integers, window: Window) -> Spans:
    """Live samples for times in order (brokers 3.8 and newer). Raises ``ValueError`` when times go back."""
    if len(times_ms) == 0:
        return Spans(times_ms, times_ms)
    if np.any(np.diff(times_ms) < 0):
        raise ValueError("the requests of a quota group must be in the order of their times")
    starts = _sample_starts(times_ms, window.sample_ms)
    last_times = np.append(times_ms[starts[1:] - 1], times_ms[-1])
    oldest = np.searchsorted(last_times, times_ms - window.expiry_ms, side="right")
    first = starts[oldest]
    elapsed = times_ms - times_ms[first]
    missing = np.maximum(0, window.samples - 1 - elapsed // window.sample_ms)
    return Spans(first, np.maximum(1, elapsed + missing * window.sample_ms))


def _sample_starts(times_ms: Integers, sample_ms: int) -> Integers:
    # A request so long after the one before begins a sample whatever was before; from there on each start decides the next. All
    # these chains are followed at once, a step at a time.
    begin = np.flatnonzero(np.diff(times_ms, prepend=times_ms[0] - sample_ms) >= sample_ms)
    end = np.append(begin[1:], len(times_ms))
    starts = [begin]
    while len(begin):
        following = np.searchsorted(times_ms, times_ms[begin] + sample_ms)
        goes_on = following < end
        begin, end = following[goes_on], end[goes_on]
        starts.append(begin)
    return np.sort(np.concatenate(starts))


UNCAPPED: Final = 2**62
LONGEST_THROTTLE_MS: Final = 2**31 - 1


def throttles(rate: Doubles, window_ms: Integers, limits: Doubles, caps_ms: Integers | None = None) -> Integers:
    """``throttle_ms`` for many requests; a limit that is NaN throttles no request, a cap of ``UNCAPPED`` is none."""
    throttle = np.zeros(len(rate), dtype=np.int64)
    over = np.flatnonzero(rate > limits)
    plain = over[limits[over] > 0]
    exact = (rate[plain] - limits[plain]) / limits[plain] * window_ms[plain]
    floor = np.floor(exact)
    rounded = np.where(exact - floor >= 0.5, floor + 1, floor)
    most = float(UNCAPPED) if caps_ms is None else caps_ms[plain].astype(np.float64)
    throttle[plain] = np.minimum(rounded, most).astype(np.int64).astype(np.int32)
    for place in over[limits[over] <= 0].tolist():
        cap = None if caps_ms is None or caps_ms[place] == UNCAPPED else int(caps_ms[place])
        throttle[place] = throttle_ms(float(rate[place]), int(window_ms[place]), float(limits[place]), cap)
    return throttle
