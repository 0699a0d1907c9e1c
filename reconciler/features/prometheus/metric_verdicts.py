"""Verdicts of metrics. None of a limited quota group is ever ``clear``.

A quota group is ``throttled`` where a sample proves it, or a broker reported it (``verdict_of_reports``), else ``possible`` or
``inconclusive``.

A limited quota group is possible where a sample of the broker's own rate is above its limit, which proves no throttle: the rate
is compared with the limit when a request comes. It is possible, too, where the highest sample with the margin of its resolution
(``metric_advice``) is above the limit.

A gauge is the broker's own rate at a moment. Between the last request and that moment samples only expire, so the rate at that
request was at least ``gauge x (N - 1) samples / longest window``. A throttle below half a millisecond is rounded to none, which
adds a millisecond to the window. Several series of one quota group prove no more than the one that proves most.

The interval of a share is the Wilson score interval for 95 %. With no hit at all it is the rule of three: the share is at most
``3 / samples`` in 95 of 100 such histories. Both take samples as independent. Gauges that are nearer to each other than the
window they are computed over share requests, so ``independent`` counts them as fewer.

Sources: E. B. Wilson, Journal of the American Statistical Association 22 (1927); J. A. Hanley and A. Lippman-Hand, JAMA 249
(1983).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import pyarrow as pa

from reconciler.features.prometheus.metric_advice import margin_factor, recommend_from_metrics
from reconciler.features.prometheus.sample_counts import SampleCounts, count_gauges
from reconciler.model import (
    BucketName,
    BucketVerdict,
    Member,
    MetricSamples,
    PeakBound,
    PeakRate,
    Provenance,
    RecordedGroup,
    SecondsOver,
    Verdict,
)
from reconciler.resolution import Resolved
from reconciler.text import amount, count_of
from reconciler.traffic import (
    ROUNDING,
    SAMPLED,
    BacktestRequest,
    Evidence,
    Gauge,
    Grouping,
    Kind,
    Rows,
    Tables,
    Target,
    Window,
    are_enough,
    bare_row,
    group_series,
    longest_throttle_ratio,
    moment,
    old_limit_reason,
    rows_of_quotas,
)


def judge_metrics(
    gauges: Sequence[Gauge],
    rows: Rows[pa.RecordBatch],
    question: BacktestRequest,
    tables: Sequence[Tables],
    provenance: Provenance,
) -> Evidence:
    """A group is throttled where a sample proves it. ``rows``: its gauges are read once more for some targets.

    ``tables``: the quotas before, where they are known, and after. A sensor that shows nothing at all makes no row: it may be
    left over, since brokers keep one for an hour after the last request of its quota group.
    """
    gauges = [gauge for gauge in gauges if gauge.series.amount or gauge.series.throttled]
    after = tables[-1]
    then = tables[0] if len(tables) > 1 or question.in_effect else None
    series = [gauge.series for gauge in gauges]
    grouping = group_series(series, then, after)
    worth = _worth_counting(gauges, grouping)
    counts = count_gauges(rows, series, grouping, worth) if worth else {}
    world = _World(gauges=gauges, grouping=grouping, window=question.broker.window, counts=counts, then_known=then is not None)
    verdicts = recommend_from_metrics(
        [_verdict(index, world) for index in range(len(grouping.targets))],
        incomplete={target.place for target in grouping.targets if target.may_have},
        provenance=provenance,
    )
    return Evidence(verdicts=verdicts, rows=rows_of_quotas(series, grouping, [after] if then is None else [then, after]))


def _worth_counting(gauges: Sequence[Gauge], grouping: Grouping) -> set[int]:
    """Targets of which the highest samples alone do not show whether any is above a limit, or what they add up to."""
    worth = set()
    for index, target in enumerate(grouping.targets):
        limits = [limit for limit in (target.after.value, _limit_before(index, grouping)) if limit is not None]
        if not limits or target.undecided or target.kind not in SAMPLED:
            continue
        total = sum(gauges[member].series.amount for member in target.members) / target.kind.amounts_a_unit
        if len(target.members) > 1 or total > min(limits):
            worth.add(index)
    return worth


def _limit_before(index: int, grouping: Grouping) -> float | None:
    """Return the limit that the members of a target shared before, with no others; ``None`` without one."""
    side = grouping.groups[index].before
    return None if side is None else side.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """All that metrics show. ``counts``: by target. ``then_known``: whether the quotas of the recording are known."""

    gauges: Sequence[Gauge]
    grouping: Grouping
    window: Window
    counts: Mapping[int, SampleCounts]
    then_known: bool


def _verdict(index: int, world: _World) -> BucketVerdict:
    grouping, window, counts = world.grouping, world.window, world.counts.get(index)
    target = grouping.targets[index]
    members = [world.gauges[member] for member in target.members]
    limit, unit = target.after.value, target.kind.amounts_a_unit
    peak = max(proven_rate(gauge, window) for gauge in members) / unit
    most = sum(possible_rate(gauge, window) for gauge in members) / unit
    is_proven = False
    if limit is not None and target.kind in SAMPLED and not target.undecided:
        fits = target.kind.is_capped or most < limit * longest_throttle_ratio(window) * (1 - ROUNDING)
        is_proven = fits and peak > limit * (1 + ROUNDING)
    metrics = _metrics(index, world)
    earlier = [grouping.before_of_series[member] for member in target.members]
    reports = verdict_of_reports(target, [*zip(members, earlier, strict=True)], metrics, then_known=world.then_known)
    first = (counts and counts.first) or moment(min(gauge.start_us for gauge in members))
    verdict, reason = _decided(target, metrics, reports, is_proven=is_proven, then_known=world.then_known)
    return replace(
        bare_row(index, grouping),
        verdict=verdict,
        reason=reason,
        recorded=RecordedGroup(
            members=_members(members, grouping, target),
            first=moment(min(gauge.start_us for gauge in members)),
            last=moment(max(gauge.end_us for gauge in members)),
            censored=reports is not None and reports.is_censored,
        ),
        # When a broker throttled is not in the totals of its reports.
        over=_over(metrics, verdict, first=first if is_proven else None),
        peak=PeakRate(rate=peak, bound=PeakBound.LOWER),
        metrics=metrics,
    )


def _decided(
    target: Target, metrics: MetricSamples, reports: ReportedVerdict | None, *, is_proven: bool, then_known: bool
) -> tuple[Verdict, str | None]:
    """The first case that applies."""
    limit, recorded = target.after.value, "samples of the broker's own rate"
    split = "the proposed quotas split it"
    if not then_known:
        split = "the quotas of that time are not known: give --current, and it judges groups that no change splits"
    verdict, reason = (None, None) if reports is None else (reports.verdict, reports.reason)
    highest = metrics.highest if limit is not None and target.kind in SAMPLED else 0.0
    cases: tuple[tuple[bool, Verdict | None, str | None], ...] = (
        (verdict is Verdict.THROTTLED, verdict, reason),
        (is_proven, Verdict.THROTTLED, "a recorded sample of the broker's own rate proves a throttle"),
        (target.undecided, Verdict.INCONCLUSIVE, f"the metrics name the quota group as it was, and {split}"),
        (highest > (limit or 0), Verdict.POSSIBLE, f"{recorded} are above the limit, which proves no throttle by itself"),
        (verdict is not None, verdict, reason),
        (limit is None, Verdict.CLEAR, None),
        (target.kind not in SAMPLED, Verdict.INCONCLUSIVE, "a rate does not show how many tokens were left"),
        (
            highest * (metrics.factor or 0) > (limit or 0),
            Verdict.POSSIBLE,
            "the highest sample, with the margin for what samples miss, is above the limit",
        ),
        (metrics.factor is None, Verdict.INCONCLUSIVE, f"the {recorded} are too far apart to show more than what they prove"),
    )
    rest = Verdict.INCONCLUSIVE, f"{recorded} are recorded, which can prove throttling and never its absence"
    return next(((verdict, reason) for applies, verdict, reason in cases if applies and verdict is not None), rest)


def _metrics(index: int, world: _World) -> MetricSamples:
    grouping, window, counts = world.grouping, world.window, world.counts.get(index)
    target = grouping.targets[index]
    unit, gauges = target.kind.amounts_a_unit, [world.gauges[member] for member in target.members]
    window_s = window.expiry_ms / 1000
    longest = max(gauges, key=lambda gauge: gauge.series.requests)
    every_s = longest.since_us / 1e6
    samples = longest.series.requests if counts is None else counts.moments
    highest = sum(gauge.series.amount for gauge in gauges) if counts is None else counts.highest
    limits = None if target.undecided else target.after.value, _limit_before(index, grouping)
    over = None if limits[0] is None else counts.over if counts is not None else _none_over(highest / unit, limits[0])
    over_before = (
        None if limits[1] is None else counts.over_before if counts is not None else _none_over(highest / unit, limits[1])
    )
    low, high = 0.0, 1.0
    if over is not None:
        low, high = share_interval(over, samples, samples * min(1.0, every_s / window_s) if every_s else None)
    return MetricSamples(
        samples=samples,
        highest=highest / unit,
        every_s=every_s,
        window_s=window_s,
        over=over,
        over_before=over_before,
        share_low=low,
        share_high=high,
        throttled_then=min(samples, max(gauge.series.throttled for gauge in gauges)),
        factor=margin_factor(every_s),
    )


def _none_over(highest: float, limit: float) -> int | None:
    """Return 0 where even the sum of the highest samples is within the limit; else ``None``, since nothing was counted."""
    return 0 if highest <= limit else None


def _over(metrics: MetricSamples, verdict: Verdict, *, first: datetime.datetime | None) -> SecondsOver:
    """Return the sampled time: all of it, the part over the limit, and the most that can be over it."""
    every_s = metrics.every_s or 1.0
    active = round(metrics.samples * every_s)
    if verdict not in (Verdict.THROTTLED, Verdict.POSSIBLE):
        return SecondsOver(active=active)
    over = round((metrics.over or 0) * every_s)
    least = int(verdict is Verdict.THROTTLED)
    most = round(metrics.share_high * active) if metrics.over is not None else least
    return SecondsOver(active=active, certain=least, seconds=max(over, least), possible=max(most, over, 1), first=first)


def _members(gauges: Sequence[Gauge], grouping: Grouping, target: Target) -> tuple[Member, ...]:
    """The clients, each once. ``share``: of their highest samples, which need not be of one moment."""
    highest: dict[tuple[str | None, str | None], int] = {}
    limits: dict[tuple[str | None, str | None], float | None] = {}
    for index, gauge in zip(target.members, gauges, strict=True):
        name = gauge.series.user, gauge.series.client_id
        if target.kind is Kind.CONNECTION:
            # Documents name an address where other members have their client-id.
            name = "", gauge.series.ip
        highest[name] = max(gauge.series.amount, highest.get(name, 0))
        earlier = grouping.before_of_series[index]
        limits[name] = earlier.value if earlier else None
    total = sum(highest.values())
    return tuple(
        Member(user=name[0], client_id=name[1], share=rate / total if total else 0.0, requests=0, limit_before=limits[name])
        for name, rate in sorted(highest.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or ""))
    )


class ReportedVerdict(NamedTuple):
    """``is_censored``: the limit of then held these clients back, so their samples are lower bounds of their need."""

    verdict: Verdict
    reason: str
    is_censored: bool = False


def verdict_of_reports(
    target: Target, members: Sequence[tuple[Gauge, Resolved | None]], metrics: MetricSamples, *, then_known: bool
) -> ReportedVerdict | None:
    """Return the verdict of throttles that brokers reported beside the rates (``throttle-time``); ``None``: they decide nothing.

    Under the limit of then, a broker throttled some request. Up to the first one it recorded every request, and so does a broker
    with a lower limit. So that request, or an earlier one, is throttled under each limit that is not higher. About a higher limit
    nothing follows: the group sent what the limit of then let through.

    Brokers report throttles of controller mutations that they forward under ``Request``. So a report of that kind counts only
    where a sample is above the limit, too.

    ``members``: of the target, with the quotas of then, which are known (``then_known``) or not.
    """
    throttled = [(gauge, then) for gauge, then in members if gauge.series.throttled]
    after, key = target.after.value, target.kind.key.value
    limits = [limit for gauge, then in throttled if (limit := _limit_of_then(gauge, then)) is not None]
    # No limit throttles no request. That is a doubt only where the change takes one away.
    if not throttled or target.undecided or (after is None and not limits):
        return None
    count = max(gauge.series.throttled for gauge, _ in throttled)
    reported, seen = "the broker reported throttles", f"in {count:,} of {count_of(metrics.samples, 'sample')}"
    if limits and target.kind is Kind.REQUEST and metrics.highest <= max(limits):
        mutations = "Brokers report throttles of controller_mutation_rate under Request, too"
        return ReportedVerdict(Verdict.INCONCLUSIVE, f"{reported} {seen}, and no sample is above the limit. {mutations}")
    if limits and after is not None and after <= max(limits):
        rest = "" if after in limits else f", when it was {amount(key, max(limits))}"
        reason = f"{reported} under this limit {seen}{rest}"
        return ReportedVerdict(Verdict.THROTTLED, reason, is_censored=are_enough(count, metrics.samples))
    if not are_enough(count, metrics.samples):
        return None
    if limits:
        reason = old_limit_reason(key, max(limits), after, f"these clients {seen}", peak=metrics.highest)
        return ReportedVerdict(Verdict.INCONCLUSIVE, reason, is_censored=True)
    others = f"{seen}, and the current quotas do not limit this quota group: others were in effect then"
    unknown = f"{seen} under quotas that are not known: give --current"
    return ReportedVerdict(Verdict.INCONCLUSIVE, f"{reported} {others if then_known else unknown}")


def _limit_of_then(gauge: Gauge, then: Resolved | None) -> float | None:
    """Return the limit of then; ``None`` where it is not known: also where the quotas of then have no such group."""
    series = gauge.series
    if then is None or (series.has_tags and then.bucket != BucketName(user=series.user or "", client_id=series.client_id or "")):
        return None
    return then.value


def proven_rate(gauge: Gauge, window: Window) -> float:
    """Amounts a second: every limit below this would have throttled a request. A rounded throttle may add a millisecond."""
    return gauge.series.amount * shortest_window_ms(window) / (window.longest_ms + 1)


def possible_rate(gauge: Gauge, window: Window) -> float:
    """Return the rate that no window can have exceeded, even if all of its amount came at once."""
    return gauge.series.amount * window.expiry_ms / shortest_window_ms(window)


def shortest_window_ms(window: Window) -> int:
    """The shortest time that a broker divides by."""
    return max(1, window.samples - 1) * window.sample_ms


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
