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
several moments (``kernels.sample_counts``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from reconciler.model import (
    NO_ADVICE,
    Advice,
    BucketName,
    BucketVerdict,
    MetricSamples,
    MetricSemantics,
    QuotaKey,
    RowPlace,
    Verdict,
)
from reconciler.resolution import Resolved
from reconciler.text import amount, count_of, length_text, rate
from reconciler.traffic.judging.grouping import Series, Target
from reconciler.traffic.judging.history_gaps import are_enough, held_back_changes, old_limit_reason
from reconciler.traffic.judging.recommendations import DAY_S, SMALLEST, broker_loss_factor, margin_of, safe_limit
from reconciler.traffic.kernels.sample_counts import longest_window_ms, proven_by_amount, shortest_window_ms
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


UNKNOWN_THEN: Final = "the broker reported throttles {seen} under quotas that are not known: give --current"
OTHERS_THEN: Final = (
    "the broker reported throttles {seen}, and the current quotas do not limit this quota group: others were in effect then"
)
PERHAPS_MUTATIONS: Final = (
    "the broker reported throttles {seen}, and no sample is above the limit. Brokers report throttles of "
    "controller_mutation_rate under Request, too"
)


class ReportedVerdict(NamedTuple):
    """``is_censored``: the limit of then held these clients back, so their samples are lower bounds of their need."""

    verdict: Verdict
    reason: str
    is_censored: bool = False


def verdict_of_reports(
    target: Target, members: Sequence[tuple[Mean, Resolved | None]], metrics: MetricSamples, *, then_known: bool
) -> ReportedVerdict | None:
    """What throttles that brokers reported beside the rates (``throttle-time``) decide; ``None``: nothing.

    Under the limit of then, a broker throttled some request. Up to the first one it recorded every request, and so does a broker
    with a lower limit. So that request, or an earlier one, is throttled under each limit that is not higher. About a higher limit
    nothing follows: the group sent what the limit of then let through.

    Brokers report throttles of controller mutations that they forward under ``Request``. So a report of that kind counts only
    where a sample is above the limit, too.

    ``members``: of the target, with the quotas of then, which are known (``then_known``) or not.
    """
    throttled = [(mean, then) for mean, then in members if mean.series.throttled]
    after, key = target.after.value, target.kind.key.value
    limits = [limit for mean, then in throttled if (limit := _limit_of_then(mean, then)) is not None]
    # No limit throttles no request. That is a doubt only where the change takes one away.
    if not throttled or target.undecided or (after is None and not limits):
        return None
    count = max(mean.series.throttled for mean, _ in throttled)
    seen = f"in {count:,} of {count_of(metrics.samples, 'sample')}"
    if limits and target.kind is Kind.REQUEST and metrics.highest <= max(limits):
        return ReportedVerdict(Verdict.INCONCLUSIVE, PERHAPS_MUTATIONS.format(seen=seen))
    if limits and after is not None and after <= max(limits):
        rest = "" if after in limits else f", when it was {amount(key, max(limits))}"
        reason = f"the broker reported throttles under this limit {seen}{rest}"
        return ReportedVerdict(Verdict.THROTTLED, reason, is_censored=are_enough(count, metrics.samples))
    if not are_enough(count, metrics.samples):
        return None
    if limits:
        reason = old_limit_reason(key, max(limits), after, f"these clients {seen}", peak=metrics.highest)
        return ReportedVerdict(Verdict.INCONCLUSIVE, reason, is_censored=True)
    return ReportedVerdict(Verdict.INCONCLUSIVE, (OTHERS_THEN if then_known else UNKNOWN_THEN).format(seen=seen))


def _limit_of_then(mean: Mean, then: Resolved | None) -> float | None:
    """``None``: not known, also where the quotas of then have no such group, so that others were in effect."""
    series = mean.series
    if then is None or (series.has_tags and then.bucket != BucketName(user=series.user or "", client_id=series.client_id or "")):
        return None
    return then.value


CENSORED_SHARE: Final = 0.01
"""Of the samples, those taken while a quota throttled the clients, from which on a recommendation is called a lower bound."""
_WORDS: Final = {MetricSemantics.GAUGE: "gauges", MetricSemantics.DELTA: "counters", MetricSemantics.MEAN: "averages"}
_NOT_ALL: Final = Advice(reason="clients of other series may belong to this quota group, so no value is recommended")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionMargin:
    """``factor``: a safe limit, divided by the highest sample, of samples ``every_s`` seconds apart."""

    every_s: float
    factor: float


_AVERAGES: Final = (ResolutionMargin(every_s=15, factor=2.8), ResolutionMargin(every_s=30, factor=5.3))
MARGINS: Final[Mapping[MetricSemantics, tuple[ResolutionMargin, ...]]] = {
    MetricSemantics.GAUGE: (
        ResolutionMargin(every_s=5, factor=1.3),
        ResolutionMargin(every_s=15, factor=1.9),
        ResolutionMargin(every_s=30, factor=2.9),
        ResolutionMargin(every_s=60, factor=3.3),
    ),
    MetricSemantics.DELTA: _AVERAGES,
    MetricSemantics.MEAN: _AVERAGES,
}
"""Rising in both. Safe in 99 % of runs, for the traffic that needs most. Gauges: of a day of history; an hour of gauges 15 s or
more apart has no factor that is of use for bursty clients. Averages: of an hour. Averages of 60 s have none: it would be 28.
A factor is the highest rate of a client, divided by its highest sample. It is an estimate and no proof: bursts that are shorter
and rarer than those of the measured traffic exceed it. Source: ``docs/traffic-sources.md``.
"""
_JITTER: Final = 1.1
"""Samples up to so many times the longest interval apart have its factor: no clock is exact."""


def margin_factor(semantics: MetricSemantics, every_s: float) -> float | None:
    """For samples so far apart (0: not known), between two rows of the table in proportion; ``None``: no recommendation."""
    rows = MARGINS[semantics]
    if every_s <= 0 or every_s > rows[-1].every_s * _JITTER:
        return None
    for below, above in itertools.pairwise(rows):
        if below.every_s * _JITTER < every_s <= above.every_s:
            part = (every_s - below.every_s) / (above.every_s - below.every_s)
            return round(below.factor + part * (above.factor - below.factor), 2)
    return next((row.factor for row in rows if every_s <= row.every_s * _JITTER), None)


def recommend_from_metrics(
    verdicts: Sequence[BucketVerdict], *, incomplete: Collection[RowPlace], days: float, brokers: int
) -> tuple[BucketVerdict, ...]:
    """The same with ``recommended`` and the reason, one value for all brokers of a quota group, where metrics alone are known.

    No value is called safe: no metric shows that no request was throttled. ``days``: the length of the history. ``incomplete``:
    rows of groups that may send more than their samples show.
    """
    part_of_it = {verdict.group for verdict in verdicts if verdict.place in incomplete}
    groups: dict[tuple[object, ...], list[tuple[BucketVerdict, MetricSamples]]] = {}
    for verdict in verdicts:
        if verdict.metrics is not None and not verdict.undecided:
            groups.setdefault(verdict.group, []).append((verdict, verdict.metrics))
    advice = {
        group: _NOT_ALL if group in part_of_it else _advice(everywhere, days, brokers) for group, everywhere in groups.items()
    }
    return tuple(
        verdict
        if verdict.recorded.requests or verdict.undecided
        else replace(held.applied_to(verdict), advice=advice.get(verdict.group, NO_ADVICE))
        for verdict, held in zip(verdicts, held_back_changes(verdicts), strict=True)
    )


def _advice(everywhere: Sequence[tuple[BucketVerdict, MetricSamples]], days: float, brokers: int) -> Advice:
    key = QuotaKey(everywhere[0][0].key)
    if key is QuotaKey.CONTROLLER_MUTATION_RATE:
        return NO_ADVICE
    coarse = next((samples for _, samples in everywhere if samples.factor is None), None)
    if coarse is not None:
        return Advice(reason=f"{_samples_words(coarse)} do not show how high short bursts are, so no value is recommended")
    _, factor, top = max(
        ((samples.highest * (samples.factor or 1), samples.factor or 1, samples) for _, samples in everywhere), key=lambda f: f[0]
    )
    margin, loss = margin_of(days), broker_loss_factor(key, brokers)
    wanted = safe_limit(key, top.highest * factor * (1 + margin) * loss)
    value, text = max(wanted, SMALLEST[key])
    reason = (
        f"{text}: highest {'sample' if top.semantics is MetricSemantics.GAUGE else 'average'} {rate(key.value, top.highest)} x "
        f"{factor:g} for {_samples_words(top)}, and {100 * margin:.0f} % because the history is {length_text(days * DAY_S)} long"
    )
    if loss > 1:
        reason += f", and {100 * (loss - 1):.0f} % because the traffic of a lost broker moves to the other {brokers - 1}"
    if value > wanted[0]:
        reason += f". Recommended values are {text} or more"
    if (share := max(samples.censored_share for _, samples in everywhere)) > CENSORED_SHARE:
        reason += f". Quotas throttled these clients in {100 * share:.0f} % of the samples, so it is a lower bound"
    return Advice(recommended=value, reason=reason, margin=round(factor * (1 + margin) * loss - 1, 6))


def _samples_words(metrics: MetricSamples) -> str:
    """``30 s gauges``."""
    every = f"{metrics.every_s:.0f} s " if metrics.every_s else ""
    return f"{every}{_WORDS[metrics.semantics]}"
