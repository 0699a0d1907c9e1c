"""What a played bucket comes to: how much got through, in what shape, and how long its clients waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kernels.waiting_client import Played, Sent

_PULSE: Final = 1.5
"""A second that charges more than so many times the limit is of a pulse."""
_SAME_PULSE_S: Final = 3
"""Seconds from one such to the next that make them one pulse."""
_MOST_OF_IT: Final = 0.5
"""The share of what is charged that has to be in pulses for them to be its shape."""
_LATE_MS: Final = 100
"""What is charged so much later than recorded had to wait for its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulses:
    """The middle one of several. ``of_limit``: what it charges in all, in seconds of the limit."""

    of_limit: float
    length_s: float
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoopStats:
    """As ``model.backtest.Waiting`` has it, with amounts as they are recorded."""

    throughput: float
    throughput_of_limit: float
    waited: int
    wait_median_s: float
    wait_longest_s: float
    behind_longest_s: float
    pulses: Pulses | None


def outcome_of(sent: Sent, played: Played, *, limit: float, window: Window) -> ClosedLoopStats:
    """``limit`` in amounts a second. There must be a request."""
    first, last = int(sent.times_ms[0]), int(sent.times_ms[-1])
    recorded_s = max(1.0, (last - first) / 1000)
    waits = played.throttled_ms[played.throttled_ms > 0] / 1000
    done = played.done_ms >= 0
    behind = (played.done_ms - sent.times_ms)[done]
    begin, end = _busy(sent, played, window)
    inside = _inside(played.charged_ms, begin, end)
    length_s = float((end - begin).sum()) / 1000
    charged = float(played.amounts[inside].sum())
    shown = inside & (played.charged_ms <= last)
    return ClosedLoopStats(
        throughput=float(played.amounts[played.charged_ms <= last].sum()) / recorded_s,
        throughput_of_limit=charged / length_s / limit if length_s else 0.0,
        waited=len(waits),
        wait_median_s=float(np.median(waits)) if len(waits) else 0.0,
        wait_longest_s=float(waits.max()) if len(waits) else 0.0,
        behind_longest_s=max(0.0, float(behind.max()) / 1000) if len(behind) else 0.0,
        pulses=pulses(played.charged_ms[shown], played.amounts[shown], limit, longest_pause_s=2 * window.expiry_ms // 1000),
    )


def pulses(charged_ms: Integers, amounts: Integers, limit: float, *, longest_pause_s: int) -> Pulses | None:
    """``None``: fewer than two follow each other, or most of what is charged is not in pulses."""
    if not len(charged_ms):
        return None
    seconds, places = np.unique(charged_ms // 1000, return_inverse=True)
    a_second = np.bincount(places, weights=amounts)
    dense = a_second > _PULSE * limit
    if a_second[dense].sum() < _MOST_OF_IT * a_second.sum():
        return None
    numbers = np.flatnonzero(dense)
    runs = np.split(numbers, np.flatnonzero(np.diff(seconds[numbers]) > _SAME_PULSE_S) + 1)
    begins, ends, totals = [], [], []
    for run in runs:
        begins.append(int(charged_ms[np.searchsorted(places, run[0])]))
        ends.append(int(charged_ms[np.searchsorted(places, run[-1], side="right") - 1]))
        totals.append(float(a_second[run].sum()))
    apart = np.diff(begins) / 1000
    following = apart[apart <= longest_pause_s]
    if not len(following):
        return None
    return Pulses(
        of_limit=float(np.median(totals)) / limit,
        length_s=max(1.0, float(np.median(np.asarray(ends) - np.asarray(begins))) / 1000),
        every_s=float(np.median(following)),
    )


def _busy(sent: Sent, played: Played, window: Window) -> tuple[Integers, Integers]:
    """When work was waiting, and before that as far back as the samples go: begins and ends in ms, apart from each other."""
    late = np.flatnonzero((played.done_ms >= 0) & (played.done_ms - sent.times_ms > _LATE_MS))
    if not len(late):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    begin = np.maximum(sent.times_ms[late] - window.expiry_ms, sent.times_ms[0])
    end = np.maximum.accumulate(played.done_ms[late])
    fresh = np.concatenate(([True], begin[1:] > end[:-1]))
    closing = np.append(np.flatnonzero(fresh)[1:] - 1, len(end) - 1)
    return begin[fresh], end[closing]


def _inside(times: Integers, begin: Integers, end: Integers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if not len(begin):
        return np.zeros(len(times), dtype=np.bool_)
    place = np.searchsorted(begin, times, side="right") - 1
    return np.asarray((place >= 0) & (times <= end[np.maximum(place, 0)]), dtype=np.bool_)
