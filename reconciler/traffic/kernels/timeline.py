"""The live samples at every request, computed with vectors: the base of the fast form of ``sampled_rate``.

For brokers from 3.8 on, which samples are alive at a request depends on times alone, never on amounts or limits. With the
requests in order, s0 the first and each further sample start the first request at least W after the previous start, the live
samples at request i are a suffix: those whose last request is later than t_i - N x W. (The ring has N+1 slots; live samples
start W or more apart and after t_i - (N+1) x W, so none is overwritten early. Slots that were reset have nothing, and the
sample that was current at their reset has an earlier start and outlives them, so they never decide which is the oldest.)

Older brokers have no such form (a reset slot can be the oldest there); they are replayed by the model, request by request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from reconciler.traffic.kernels.sampled_rate import Window, throttle_ms

Integers: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]


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
        raise ValueError("the requests of a bucket must be in the order of their times")
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


def throttles(rate: Doubles, window_ms: Integers, limits: Doubles, caps_ms: Integers | None = None) -> Integers:
    """``sampled_rate.throttle_ms`` for many requests; a limit that is NaN throttles no request, a cap of ``UNCAPPED`` is none."""
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
