"""Kafka's throttle times of many requests at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.traffic.kernels.sampled_rate import throttle_ms
from reconciler.traffic.kernels.timeline import Doubles, Integers

UNCAPPED: Final = 2**62


def throttles(rate: Doubles, window_ms: Integers, limits: Doubles, caps_ms: Integers | None = None) -> Integers:
    """``sampled_rate.throttle_ms`` for many requests; a limit that is NaN throttles nobody, a cap of ``UNCAPPED`` is none."""
    found = np.zeros(len(rate), dtype=np.int64)
    over = np.flatnonzero(rate > limits)
    plain = over[limits[over] > 0]
    exact = (rate[plain] - limits[plain]) / limits[plain] * window_ms[plain]
    floor = np.floor(exact)
    rounded = np.where(exact - floor >= 0.5, floor + 1, floor)
    most = float(UNCAPPED) if caps_ms is None else caps_ms[plain].astype(np.float64)
    found[plain] = np.minimum(rounded, most).astype(np.int64).astype(np.int32)
    for place in over[limits[over] <= 0].tolist():
        cap = None if caps_ms is None or caps_ms[place] == UNCAPPED else int(caps_ms[place])
        found[place] = throttle_ms(float(rate[place]), int(window_ms[place]), float(limits[place]), cap)
    return found
