"""Verdicts of metrics. None of a limited quota group is ever ``clear``.

A quota group is ``throttled`` where a sample or a mean proves it, or a broker reported it (``metric_throttles``), else
``possible`` or ``inconclusive``.

A limited quota group is possible where a sample of the broker's own rate is above its limit, which proves no throttle: the rate
is compared with the limit when a request comes. It is possible, too, where the highest sample with the margin of its resolution
(``metric_advice``) is above the limit.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pyarrow as pa

from reconciler.model import (
    BucketVerdict,
    Member,
    MetricSamples,
    MetricSemantics,
    PeakBound,
    PeakRate,
    RecordedGroup,
    RowPlace,
    SecondsOver,
    Verdict,
)
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, Target, group_series
from reconciler.traffic.judging.judged_quotas import Quota, rows_of_quotas
from reconciler.traffic.judging.means import Mean, ReportedVerdict, gauges_of, margin_factor, verdict_of_reports
from reconciler.traffic.judging.verdicts import moment, target_fields, worst_first
from reconciler.traffic.kernels.sample_counts import NEVER, share_interval
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import ROUNDING, longest_throttle_ratio
from reconciler.traffic.kinds import SAMPLED, Kind

BY_MEAN: Final = "a recorded mean is above the limit"
BY_GAUGE: Final = "a recorded sample of the broker's own rate proves a throttle"
ABOVE: Final = "samples of the broker's own rate are above the limit, which proves no throttle by itself"
NEAR: Final = "the highest sample, with the margin for what samples miss, is above the limit"
ABOVE_MEAN: Final = "an average is above the limit, which proves no throttle by itself"
ONLY_MEANS: Final = "averages are recorded, which can prove throttling and never its absence"
ONLY_GAUGES: Final = "samples of the broker's own rate are recorded, which can prove throttling and never its absence"
FAR_APART: Final = "the samples of the broker's own rate are too far apart to show more than what they prove"
SPLIT: Final = "the metrics name the quota group as it was, and the proposed quotas split it"
QUOTAS_UNKNOWN: Final = (
    "the metrics name the quota group as it was, and the quotas of that time are not known: give --current, and it judges groups "
    "that no change splits"
)
TOKENS: Final = "a rate does not show how many tokens were left"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCounts:
    """The gauges of one quota group, those of one moment added up. ``highest``: amounts a second.

    ``proven``: the limit, in amounts a second, that moments of several series prove to be too low; 0 of one series.
    """

    moments: int
    over: int
    over_before: int
    highest: int
    first_over_ms: int | None
    proven: int


CountSamples: TypeAlias = Callable[[Sequence[Series], Grouping, Collection[int], Window], Mapping[int, SampleCounts]]
"""Of some targets of a grouping of series, by target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanVerdicts:
    """Verdicts of metrics. ``rows``: by quota the rows of the report whose clients it limits, before or after, or may limit."""

    verdicts: tuple[BucketVerdict, ...] = ()
    rows: Mapping[Quota, Collection[RowPlace]] = field(default_factory=dict)
    incomplete: frozenset[RowPlace] = frozenset()
    """Rows of quota groups to which clients of other series may belong, so that they may send more than these samples show."""

    def merge_into(self, verdicts: Sequence[BucketVerdict]) -> tuple[BucketVerdict, ...]:
        """All verdicts, worst first, one for each group, key and broker. ``verdicts``: worst first.

        What requests or whole seconds show of a group stays, unless only a metric proves a throttle.
        """
        if not self.verdicts:
            return tuple(verdicts)
        merged = {verdict.place: verdict for verdict in verdicts}
        for verdict in self.verdicts:
            known = merged.get(verdict.place)
            if known is None:
                merged[verdict.place] = verdict
                continue
            row = replace(known, metrics=verdict.metrics)
            if verdict.verdict is Verdict.THROTTLED and known.verdict is not Verdict.THROTTLED:
                row = replace(row, verdict=verdict.verdict, reason=verdict.reason)
            elif verdict.recorded.censored and known.verdict is Verdict.CLEAR:
                censored = replace(row.recorded, censored=True)
                row = replace(row, verdict=verdict.verdict, reason=verdict.reason, recorded=censored)
            merged[verdict.place] = row
        return tuple(sorted(merged.values(), key=worst_first))


def sample_counts(table: pa.Table) -> dict[int, SampleCounts]:
    """By group; ``table``: rows of ``kernels.sample_counts.SCHEMA``, one for each."""
    return {
        row["group"]: SampleCounts(
            moments=row["moments"],
            over=row["over"],
            over_before=row["over_before"],
            highest=row["highest"],
            first_over_ms=None if row["first_over_ms"] == NEVER else row["first_over_ms"],
            proven=row["proven"],
        )
        for row in table.to_pylist()
    }


def judge_means(
    means: Sequence[Mean], before: Tables | None, after: Tables, window: Window, count: CountSamples | None = None
) -> MeanVerdicts:
    """A group is throttled where a metric proves it. ``count``: goes through the gauges of some groups once more.

    ``before``: the quotas that were in effect when the metrics were recorded; ``None``: not known. A sensor that shows nothing at
    all makes no row: it may be left over, since brokers keep one for an hour after the last request of its quota group.
    """
    means = [mean for mean in means if mean.series.amount or mean.series.throttled]
    if not means:
        return MeanVerdicts()
    series = [mean.series for mean in means]
    grouping = group_series(series, before, after)
    rows = rows_of_quotas(series, grouping, [after] if before is None else [before, after])
    worth = _worth_counting(means, grouping)
    counts = count(series, grouping, worth, window) if count is not None and worth else {}
    world = _World(means=means, grouping=grouping, window=window, counts=counts, then_known=before is not None)
    verdicts = (_verdict(index, world) for index in range(len(grouping.targets)))
    incomplete = frozenset(target.place for target in grouping.targets if target.may_have)
    return MeanVerdicts(verdicts=tuple(verdicts), rows=rows, incomplete=incomplete)


def _worth_counting(means: Sequence[Mean], grouping: Grouping) -> set[int]:
    """Targets of which the highest samples alone do not show whether any is above a limit, or what they add up to."""
    worth = set()
    for index, target in enumerate(grouping.targets):
        gauges = gauges_of(means, target.members)
        limits = [limit for limit in (target.after.value, _limit_before(index, grouping)) if limit is not None]
        if not gauges or not limits or target.undecided or target.kind not in SAMPLED:
            continue
        total = sum(mean.series.amount for mean in gauges) / target.kind.amounts_a_unit
        if len(gauges) > 1 or total > min(limits):
            worth.add(index)
    return worth


def _limit_before(index: int, grouping: Grouping) -> float | None:
    """Of a target whose members shared one limit before, and with no others."""
    side = grouping.groups[index].before
    return None if side is None else side.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """All that metrics show. ``counts``: by target. ``then_known``: whether the quotas of the recording are known."""

    means: Sequence[Mean]
    grouping: Grouping
    window: Window
    counts: Mapping[int, SampleCounts]
    then_known: bool


def _verdict(index: int, world: _World) -> BucketVerdict:
    grouping, window, counts = world.grouping, world.window, world.counts.get(index)
    target = grouping.targets[index]
    members = [world.means[member] for member in target.members]
    limit, unit = target.after.value, target.kind.amounts_a_unit
    proven = max(mean.proven_rate(window) for mean in members)
    if counts is not None:
        proven = max(proven, counts.proven)
    peak, most = proven / unit, sum(mean.possible_rate(window) for mean in members) / unit
    is_proven = False
    if limit is not None and target.kind in SAMPLED and not target.undecided:
        fits = target.kind.is_capped or most < limit * longest_throttle_ratio(window) * (1 - ROUNDING)
        is_proven = fits and peak > limit * (1 + ROUNDING)
    metrics = _metrics(index, world)
    earlier = [grouping.before_of_series[member] for member in target.members]
    reports = verdict_of_reports(target, [*zip(members, earlier, strict=True)], metrics, then_known=world.then_known)
    verdict, reason = _decided(target, metrics, reports, is_proven=is_proven, then_known=world.then_known)
    return BucketVerdict(
        **target_fields(index, grouping),
        verdict=verdict,
        reason=reason,
        recorded=RecordedGroup(members=_members(members, grouping, target), censored=reports is not None and reports.is_censored),
        # When a broker throttled is not in the totals of its reports.
        over=_over(metrics, verdict, first=_first(members, counts) if is_proven else None),
        peak=PeakRate(rate=peak, bound=PeakBound.LOWER),
        metrics=metrics,
    )


def _decided(
    target: Target, metrics: MetricSamples, reports: ReportedVerdict | None, *, is_proven: bool, then_known: bool
) -> tuple[Verdict, str | None]:
    of_gauges = metrics.semantics is MetricSemantics.GAUGE
    if reports is not None and reports.verdict is Verdict.THROTTLED:
        return reports.verdict, reports.reason
    if is_proven:
        return Verdict.THROTTLED, BY_GAUGE if of_gauges else BY_MEAN
    if target.undecided:
        return Verdict.INCONCLUSIVE, SPLIT if then_known else QUOTAS_UNKNOWN
    if target.after.value is None:
        return (Verdict.CLEAR, None) if reports is None else (reports.verdict, reports.reason)
    return _not_proven(target, metrics, target.after.value, reports)


def _not_proven(target: Target, metrics: MetricSamples, limit: float, reports: ReportedVerdict | None) -> tuple[Verdict, str]:
    of_gauges = metrics.semantics is MetricSemantics.GAUGE
    if metrics.highest > limit and target.kind in SAMPLED:
        return Verdict.POSSIBLE, ABOVE if of_gauges else ABOVE_MEAN
    if reports is not None:
        return reports.verdict, reports.reason
    if target.kind not in SAMPLED:
        return Verdict.INCONCLUSIVE, TOKENS
    if metrics.factor is not None and metrics.highest * metrics.factor > limit:
        return Verdict.POSSIBLE, NEAR
    if metrics.factor is None:
        return Verdict.INCONCLUSIVE, FAR_APART if of_gauges else ONLY_MEANS
    return Verdict.INCONCLUSIVE, ONLY_GAUGES if of_gauges else ONLY_MEANS


def _metrics(index: int, world: _World) -> MetricSamples:
    """Of gauges where there are any; of deltas the length with the highest average."""
    means, grouping, window, counts = world.means, world.grouping, world.window, world.counts.get(index)
    target = grouping.targets[index]
    unit, gauges = target.kind.amounts_a_unit, gauges_of(means, target.members)
    window_s = window.expiry_ms / 1000
    if not gauges:
        deltas = [means[member] for member in target.members]
        top = max(deltas, key=lambda mean: mean.series.amount / mean.interval_us)
        length_s = top.interval_us / 1e6
        return MetricSamples(
            semantics=top.semantics,
            samples=sum(mean.series.requests for mean in deltas),
            highest=top.series.amount / length_s / unit,
            every_s=length_s,
            window_s=window_s,
            throttled_then=sum(mean.series.throttled for mean in deltas),
            most=max(mean.possible_rate(window) for mean in deltas) / unit,
            factor=margin_factor(top.semantics, length_s),
        )
    longest = max(gauges, key=lambda mean: mean.series.requests)
    every_s = longest.since_us / 1e6
    samples = longest.series.requests if counts is None else counts.moments
    highest = sum(mean.series.amount for mean in gauges) if counts is None else counts.highest
    limits = None if target.undecided else target.after.value, _limit_before(index, grouping)
    over = None if limits[0] is None else counts.over if counts is not None else _none_over(highest / unit, limits[0])
    over_before = (
        None if limits[1] is None else counts.over_before if counts is not None else _none_over(highest / unit, limits[1])
    )
    low, high = 0.0, 1.0
    if over is not None:
        low, high = share_interval(over, samples, samples * min(1.0, every_s / window_s) if every_s else None)
    return MetricSamples(
        semantics=MetricSemantics.GAUGE,
        samples=samples,
        highest=highest / unit,
        every_s=every_s,
        window_s=window_s,
        over=over,
        over_before=over_before,
        share_low=low,
        share_high=high,
        throttled_then=min(samples, max(mean.series.throttled for mean in gauges)),
        factor=margin_factor(MetricSemantics.GAUGE, every_s),
    )


def _none_over(highest: float, limit: float) -> int | None:
    """Without a count only that no sample is above the limit can be known."""
    return 0 if highest <= limit else None


def _over(metrics: MetricSamples, verdict: Verdict, *, first: datetime.datetime | None) -> SecondsOver:
    """Of the sampled time: all of it, what is over its limit, and the most that may be."""
    every_s = metrics.every_s or 1.0
    active = round(metrics.samples * every_s)
    if verdict not in (Verdict.THROTTLED, Verdict.POSSIBLE):
        return SecondsOver(active=active)
    over = round((metrics.over or 0) * every_s)
    least = int(verdict is Verdict.THROTTLED)
    most = round(metrics.share_high * active) if metrics.over is not None else least
    return SecondsOver(active=active, certain=least, seconds=max(over, least), possible=max(most, over, 1), first=first)


def _members(means: Sequence[Mean], grouping: Grouping, target: Target) -> tuple[Member, ...]:
    """The clients, each once. ``share``: of their highest samples, which need not be of one moment."""
    highest: dict[tuple[str | None, str | None], float] = {}
    limits: dict[tuple[str | None, str | None], float | None] = {}
    for index, mean in zip(target.members, means, strict=True):
        name = mean.series.user, mean.series.client_id
        if target.kind is Kind.CONNECTION:
            # Documents name an address where other members have their client-id.
            name = "", mean.series.ip
        rate = mean.series.amount / (mean.interval_us / 1e6 or 1.0)
        highest[name] = max(rate, highest.get(name, 0.0))
        earlier = grouping.before_of_series[index]
        limits[name] = earlier.value if earlier else None
    total = sum(highest.values())
    return tuple(
        Member(user=name[0], client_id=name[1], share=rate / total if total else 0.0, requests=0, limit_before=limits[name])
        for name, rate in sorted(highest.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or ""))
    )


def _first(members: Sequence[Mean], counts: SampleCounts | None) -> datetime.datetime:
    if counts is not None and counts.first_over_ms is not None:
        return moment(counts.first_over_ms * 1000)
    return moment(min(mean.start_us for mean in members))
