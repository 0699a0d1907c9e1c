"""Bounds from metrics: they can prove a throttle, and never its absence.

A mean over a time shows nothing about the seconds in it. But a broker lets no more through without a throttle than its limit
allows over the windows that cover that time. Take the last request of an interval of L seconds, then the last one before its
window, and so on. Each window has the rate ``S / w <= limit`` when nothing is throttled. A window that Kafka fills up to N - 1
samples ends at least as long behind the request before it, so the lengths add up to no more than L and one longest window. An
amount A in L seconds hence proves a throttle under every limit below ``A / (L + longest window)``. A throttle below half a
millisecond is rounded to none, which adds a millisecond to each window. The counter's difference before it may end in the same
window, so no rate exceeds ``(A + A before) / shortest window``.

A gauge is the broker's own rate at a moment. Between the last request and that moment samples only expire, so the rate at that
request was at least ``gauge x (N - 1) samples / longest window``. Several series of one quota group prove less, and more over
several moments (``kernels.sample_runs``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from reconciler.model import MetricSemantics
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kernels.sample_runs import longest_window_ms, proven_by_amount, shortest_window_ms
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kinds import Kind

CLIENT: Final = ("broker", "kind", "user", "client_id", "ip", "semantics", "interval_us")
MEAN_FOLDS: Final = {
    "amount": "max", "rows": "sum", "first_us": "min", "last_us": "max",
    "throttled": "sum", "since_us": "sum", "since_rows": "sum",
}  # fmt: skip
"""How the rows of one client and length become one: its largest amount, how many rows, the first and the last time, how many
were throttled, and of gauges the time since the samples before them, with how many have one."""
MEANS: Final = pa.schema(
    [
        ("broker", pa.int32()), ("kind", pa.string()), ("user", pa.string()), ("client_id", pa.string()),
        ("ip", pa.string()), ("semantics", pa.string()), *((name, pa.int64()) for name in ("interval_us", *MEAN_FOLDS)),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The largest mean of one client over times of one length. A gauge has none: its amount is that of a second.

    The amount of a mean over a time is that of the whole time, as that of a delta.

    ``requests`` of ``series`` counts the rows, ``amount`` of it is the largest, ``throttled`` counts censored rows.
    """

    series: Series
    semantics: MetricSemantics
    interval_us: int
    start_us: int
    end_us: int
    since_us: int = 0
    """Of gauges, the usual time between two samples; 0: not known."""

    @property
    def is_gauge(self) -> bool:
        """Whether it is of moments."""
        return self.semantics is MetricSemantics.GAUGE

    def proven_rate(self, window: Window) -> float:
        """Amounts a second: every limit below this would have throttled a request."""
        if self.is_gauge:
            return self.series.amount * shortest_window_ms(window) / longest_window_ms(window)
        return float(proven_by_amount(np.asarray([self.series.amount], dtype=np.float64), self.interval_us / 1000, window)[0])

    def possible_rate(self, window: Window) -> float:
        """What no rate can have exceeded, if all of a window's amount came at once."""
        shortest_s = shortest_window_ms(window) / 1000
        if self.is_gauge:
            return self.series.amount * window.expiry_ms / 1000 / shortest_s
        parts = math.ceil(longest_window_ms(window) * 1000 / self.interval_us) + 1
        return self.series.amount * parts / shortest_s


def means_of(grouped: pa.Table) -> tuple[Mean, ...]:
    """``grouped``: one row for each combination of ``CLIENT``, with the columns of ``MEAN_FOLDS``. Sorted."""
    means = (
        Mean(
            series=Series(
                broker=row["broker"],
                kind=Kind(row["kind"]),
                user=row["user"],
                client_id=row["client_id"],
                ip=row["ip"],
                requests=row["rows"],
                amount=row["amount"],
                throttled=row["throttled"],
                has_tags=row["semantics"] == MetricSemantics.GAUGE,
            ),
            semantics=MetricSemantics(row["semantics"]),
            interval_us=row["interval_us"],
            start_us=row["first_us"] - row["interval_us"],
            end_us=row["last_us"],
            since_us=_since(row),
        )
        for row in grouped.to_pylist()
    )
    return tuple(sorted(means, key=lambda mean: (mean.series.sort_key, mean.interval_us)))


def _since(row: dict[str, int]) -> int:
    """Of gauges the usual time between two samples; where rows do not have it, from the first and the last one."""
    if row["interval_us"]:
        return 0
    if row["since_rows"]:
        return row["since_us"] // row["since_rows"]
    return (row["last_us"] - row["first_us"]) // (row["rows"] - 1) if row["rows"] > 1 else 0


def gauges_of(means: Sequence[Mean], members: Sequence[int]) -> list[Mean]:
    """Those of some members that are gauges."""
    return [means[member] for member in members if means[member].is_gauge]
