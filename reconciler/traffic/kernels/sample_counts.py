"""Samples of quota groups against their limits: how many moments there are, and in how many the rate is above a limit.

The gauges of one group at one moment are added up: a client has two series when its quota moved to another level, and each of
its requests is in exactly one of them.

The interval of a share is the Wilson score interval for 95 %. With no hit at all it is the rule of three: the share is at most
``3 / samples`` in 95 of 100 such histories. Both take samples as independent. Gauges that are nearer to each other than the
window they are computed over share requests, so ``independent`` counts them as fewer.

A quota group that is the sum of several series after a change (N samples of W each, ``quota.window.num`` = 11 and
``quota.window.size.seconds`` = 1 s) is proven to be throttled by consecutive samples. A broker divides by the time since its
oldest sample began, and by no less than a = (N - 1) W = 10 s. It drops a sample whose last request is N W old, and a sample has
requests of less than W. So all requests behind a rate are of the b = N W + W = 12 s before the moment. Up to Kafka 3.7 it drops a
sample N W after its begin, and b = 11 s.

1. A series with rate g at moment t has recorded at least ``g a`` in the time ``(t - b, t]``, since it divides by at least a.
2. Moments ``t1 < ... < tn`` that are b or more apart have no request in common. With G_k the sum of the rates of all series at
   t_k, the group has recorded at least ``A = a (G_1 + ... + G_n)`` in ``(t1 - b, tn]``, a time of ``L = tn - t1 + b``.
3. So much in this time throttles a request under each limit below ``A / (L + b)``: the rule for averages (``judging.means``).

Of samples closer than b, some are left out. All samples of a moment are taken as of that moment: a scrape reads the series of a
broker within much less than a second.

Sources: E. B. Wilson, Journal of the American Statistical Association 22 (1927); J. A. Hanley and A. Lippman-Hand, JAMA 249
(1983).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.traffic.kernels.exact_totals import group_of, time_of
from reconciler.traffic.kernels.sampled_rate import Doubles, Era, Integers, Window

SCHEMA: Final = pa.schema(
    [(name, pa.int64()) for name in ("group", "moments", "over", "over_before", "highest", "first_over_ms", "proven")]
)
"""``proven``: the highest limit that moments of several series prove to be too low (``sample_runs``), rounded down."""
FOLDS: Final = {"moments": "sum", "over": "sum", "over_before": "sum", "highest": "max", "first_over_ms": "min", "proven": "max"}
_Moments: TypeAlias = tuple[Integers, Integers]
"""Keys, each once, and the rates of all series of the group, added up."""
NEVER: Final = np.iinfo(np.int64).max
"""As ``first_over_ms``: at no moment."""


def count_samples(
    pieces: Iterable[Sequence[Integers]], before: Doubles, after: Doubles, window: Window
) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``, one or more for each group. A piece has keys (``exact_totals.pack``), which rise, and amounts.

    ``before``, ``after``: limits by group number, NaN for none.
    """
    nothing = np.empty(0, dtype=np.int64)
    kept_keys, kept_amounts, tail = nothing, nothing, (nothing, nothing)
    for keys, amounts, *_ in pieces:
        every_key = np.concatenate([kept_keys, keys.astype(np.int64)])
        every_amount = np.concatenate([kept_amounts, amounts.astype(np.int64)])
        if not len(every_key):
            continue
        # The last moment may go on in the next piece.
        cut = int(np.searchsorted(every_key, every_key[-1]))
        kept_keys, kept_amounts = every_key[cut:], every_amount[cut:]
        if cut:
            moments = _added_up(every_key[:cut], every_amount[:cut])
            yield _counted(*moments, tail, before, after, window)
            known = _after_tail(tail, moments)
            tail = known[0][-LONGEST_TAIL:], known[1][-LONGEST_TAIL:]
    if len(kept_keys):
        yield _counted(*_added_up(kept_keys, kept_amounts), tail, before, after, window)


def _added_up(keys: Integers, amounts: Integers) -> _Moments:
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[first], np.add.reduceat(amounts, first)


def _counted(
    moments: Integers, totals: Integers, tail: _Moments, before: Doubles, after: Doubles, window: Window
) -> pa.RecordBatch:
    """``tail``: moments that were counted, with which a run may begin."""
    group = group_of(moments)
    begin = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    over = totals > after[group]
    columns = (
        group[begin],
        np.diff(begin, append=len(group)),
        np.add.reduceat(over.astype(np.int64), begin),
        np.add.reduceat((totals > before[group]).astype(np.int64), begin),
        np.maximum.reduceat(totals, begin),
        np.minimum.reduceat(np.where(over, time_of(moments), NEVER), begin),
        np.maximum.reduceat(_proven(moments, totals, tail, window), begin),
    )
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


def _after_tail(tail: _Moments, moments: _Moments) -> _Moments:
    return np.concatenate((tail[0], moments[0])), np.concatenate((tail[1], moments[1]))


def _proven(moments: Integers, totals: Integers, tail: _Moments, window: Window) -> Integers:
    """By moment; a run that begins in the tail counts where the piece begins."""
    keys, rates = _after_tail(tail, (moments, totals))
    proven = np.floor(proven_by_runs(keys, rates, window)).astype(np.int64)
    here, count = proven[len(tail[0]) :], len(tail[0])
    goes_on = group_of(keys[:count]) == group_of(moments[:1])
    if goes_on.any():
        here[0] = max(here[0], proven[:count][goes_on].max())
    return here


_Z: Final = 1.959963984540054
"""Of a standard normal variable, the quantile of 97.5 %."""
_RULE_OF_THREE: Final = 3.0


def share_interval(hits: int, samples: int, independent: float | None = None) -> tuple[float, float]:
    """The least and the largest share, 0 to 1. ``independent``: how many of the samples count, all of them if not given.

    Raises ``ValueError`` for hits that are not among the samples.
    """
    if not 0 <= hits <= samples:
        raise ValueError(f"{hits} of {samples} samples")
    count = float(samples) if independent is None else max(min(1.0, samples), min(independent, samples))
    if count <= 0:
        return 0.0, 1.0
    if not hits:
        return 0.0, min(1.0, _RULE_OF_THREE / count)
    share = hits / samples
    middle = (share + _Z * _Z / (2 * count)) / (1 + _Z * _Z / count)
    half = _Z / (1 + _Z * _Z / count) * math.sqrt(share * (1 - share) / count + _Z * _Z / (4 * count * count))
    return max(0.0, middle - half), 1.0 if hits == samples else min(1.0, middle + half)


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
