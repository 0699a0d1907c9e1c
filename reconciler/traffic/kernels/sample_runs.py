"""What consecutive samples of several series of one quota group prove together.

After a change the group is the sum of some series, and each series is the broker's rate of a part of its requests. One series
proves most by its highest sample (``judging.means``). The samples of several at one moment prove less: their windows end at
different requests, and no window of the whole group need have all of these.

Notation: a broker keeps N samples of W each (``quota.window.num`` = 11, ``quota.window.size.seconds`` = 1 s). It divides by the
time since its oldest sample began, and by no less than a = (N - 1) W = 10 s. It drops a sample whose last request is N W old, and
a sample has requests of less than W. So all requests behind a rate are of the b = N W + W = 12 s before the moment. Up to Kafka
3.7 it drops a sample N W after its begin, and b = 11 s.

1. A series with rate g at moment t has recorded at least ``g a`` in the time ``(t - b, t]``, since it divides by at least a.
2. Moments ``t1 < ... < tn`` that are b or more apart have no request in common. With G_k the sum of the rates of all series at
   t_k, the group has recorded at least ``A = a (G_1 + ... + G_n)`` in ``(t1 - b, tn]``, a time of ``L = tn - t1 + b``.
3. So much in this time throttles a request under each limit below ``A / (L + b)``: the rule for averages (``judging.means``).

For n equal rates G, d seconds apart, that is ``G n a / ((n - 1) d + 2 b)``. By default one moment proves that a limit below
G / 2.4 throttles, eight moments 15 s apart G / 1.61, and many ``G a / d``, which is G / 1.5. Of samples closer than b, some are
left out.

All samples of a moment are taken as of that moment: a scrape reads the series of a broker within much less than a second.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_totals import group_of, time_of
from reconciler.traffic.kernels.sampled_rate import Doubles, Era, Integers, Window

LONGEST_TAIL: Final = 1024
"""As many moments of a group, before those that come next, may begin a run."""


def longest_window_ms(window: Window) -> int:
    """The longest time that a broker divides by, and the millisecond that a rounded throttle may add."""
    return window.expiry_ms + (window.sample_ms if window.era is Era.OVERLAPPING else 0) + 1


def shortest_window_ms(window: Window) -> int:
    """The shortest time that a broker divides by."""
    return max(1, window.samples - 1) * window.sample_ms


def proven_by_amount(amount: Doubles, length_ms: Integers | float, window: Window) -> Doubles:
    """Amounts a second. Each limit below it throttles a request where this amount came in this time."""
    return 1000 * amount / (length_ms * (1 + 1 / shortest_window_ms(window)) + longest_window_ms(window))


def proven_by_runs(keys: Integers, totals: Integers, window: Window) -> Doubles:
    """For each moment the highest rate that it, and runs of 2, 4, 8, ... moments from it on, prove.

    ``keys``: groups with moments (``exact_totals.pack``), rising, each once. ``totals``: the rates of all series of the group.
    """
    count, behind = len(keys), longest_window_ms(window) - 1
    at, end = time_of(keys), np.arange(count)
    amount = np.asarray(totals * (shortest_window_ms(window) / 1000), dtype=np.float64)
    after = np.searchsorted(keys, keys + behind)
    others = after < count
    others[others] = group_of(keys[others]) != group_of(keys[after[others]])
    after[others] = count
    is_run = np.ones(count, dtype=np.bool_)
    best: Doubles = proven_by_amount(amount, behind, window)
    while True:
        # A run of twice as many moments is a run, and the run that begins at the first moment after it.
        begins = np.flatnonzero(is_run & (after < count))
        begins = begins[is_run[after[begins]]]
        if not len(begins):
            return best
        second = after[begins]
        longer, last, then, is_run = np.zeros(count), end.copy(), np.full(count, count), np.zeros(count, dtype=np.bool_)
        longer[begins], last[begins], then[begins] = amount[begins] + amount[second], end[second], after[second]
        is_run[begins] = True
        amount, end, after = longer, last, then
        length = at[end[begins]] - at[begins] + behind
        best[begins] = np.maximum(best[begins], proven_by_amount(amount[begins], length, window))
