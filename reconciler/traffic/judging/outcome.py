"""What one group's replay says, in the same words whether it was judged request by request or from seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model import Verdict
from reconciler.traffic.judging.exact import AFTER, BEFORE, ExactResult, SeriesCounts
from reconciler.traffic.judging.grouping import Group, Grouping, Series
from reconciler.traffic.kernels.exact_totals import ExactVerdict
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.topics import PARTLY, REFUSED
from reconciler.traffic.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """A target after the change. Seconds are of those with traffic; judged exactly, the three counts are one number.

    ``first_ms`` and ``longest_from`` are since 1970; ``peak`` is the largest rate, or its upper bound. What is counted in
    requests is ``None`` where only seconds are known. Rates are in the unit of the limit (percent of a thread, for requests).
    """

    verdict: Verdict
    active: int
    certain: int
    over: int
    possible: int
    over_before: int
    """Seconds over before the change, of the bucket (the worst of several) that the members came from."""
    first_ms: int | None
    longest_s: int
    longest_from: int | None
    peak: float
    peak_is_bound: bool
    p999: float
    """What 99.9 % of its seconds do not exceed."""
    least_safe: float
    """The smallest limit at which nothing is throttled, or its upper bound."""
    throttled: int | None
    throttled_before: int | None
    amount_over: Mapping[int, int] | None
    """By series, what it was charged in the seconds that are over."""
    refused: int | None = None
    """Of what is throttled, what is sent away: topics, connections. ``None``: nothing of this kind is, or it is not known."""
    partly: int | None = None
    """Requests for several topics of which only some are refused."""


def exact_outcomes(found: ExactResult, grouping: Grouping) -> dict[int, GroupOutcome]:
    """By target, of those whose group was judged."""
    return {index: _exact(found, grouping, index) for index in range(len(grouping.targets)) if index in found.groups}


def _exact(found: ExactResult, grouping: Grouping, index: int) -> GroupOutcome:
    whole = found.groups[index]
    side = whole.sides[AFTER]
    members, unit = grouping.targets[index].members, grouping.targets[index].kind.amounts_a_unit
    counts = {m: found.series.get(m, _NOTHING) for m in members}
    return GroupOutcome(
        verdict=Verdict.THROTTLED if side.throttled else Verdict.CLEAR,
        active=whole.active,
        certain=side.seconds_over,
        over=side.seconds_over,
        possible=side.seconds_over,
        over_before=max((found.groups[g].sides[BEFORE].seconds_over for g in groups_before(grouping, index)), default=0),
        first_ms=side.first_ms,
        longest_s=side.longest_s,
        longest_from=side.longest_from,
        peak=whole.peak / unit,
        peak_is_bound=False,
        p999=whole.p999 / unit,
        least_safe=whole.safe / unit,
        throttled=side.throttled,
        throttled_before=sum(one.throttled_before for one in counts.values()),
        amount_over={m: one.amount_over for m, one in counts.items()},
        refused=_refused(whole, grouping.targets[index].kind),
        partly=whole.sides[PARTLY].throttled if len(whole.sides) > PARTLY else None,
    )


def _refused(whole: ExactVerdict, kind: Kind) -> int | None:
    if kind is Kind.CONNECTION:
        return whole.sides[AFTER].throttled
    return whole.sides[REFUSED].throttled if len(whole.sides) > REFUSED else None


def seconds_outcomes(
    found: Mapping[int, GroupVerdict], series: Sequence[Series], grouping: Grouping, window: Window
) -> dict[int, GroupOutcome]:
    """By target, of those whose group was judged."""
    return {index: _seconds(found, series, grouping, index, window) for index in range(len(grouping.targets)) if index in found}


def _seconds(
    found: Mapping[int, GroupVerdict], series: Sequence[Series], grouping: Grouping, index: int, window: Window
) -> GroupOutcome:
    whole, group = found[index], grouping.groups[index]
    side = whole.sides[AFTER]
    certain = side.certain
    if group.kind.refuses and certain:
        # What is refused leaves no debt, so only the first is proven; and none is when sizes would have been cut.
        certain = 0 if group.kind is Kind.FETCH and _cut(series, grouping, index, group, window) else 1
    verdict = Verdict.THROTTLED if certain else Verdict.POSSIBLE if side.possible else Verdict.CLEAR
    first = side.first_certain if certain else side.first_possible
    before = (found[g].sides[BEFORE].expected for g in groups_before(grouping, index) if g in found)
    return GroupOutcome(
        verdict=verdict,
        active=whole.active,
        certain=certain,
        over=max(side.expected, certain),
        possible=side.possible,
        over_before=max(before, default=0),
        first_ms=None if first is None else first * 1000,
        longest_s=side.longest_s,
        longest_from=side.longest_from,
        peak=whole.peak_upper / group.kind.amounts_a_unit,
        peak_is_bound=True,
        p999=whole.p999 / group.kind.amounts_a_unit,
        least_safe=whole.peak_upper / group.kind.amounts_a_unit,
        throttled=None,
        throttled_before=None,
        amount_over=None,
    )


def groups_before(grouping: Grouping, target: int) -> tuple[int, ...]:
    """The groups that hold what the members of a target were before: its own, or those it was put together from."""
    if grouping.groups[target].before is not None:
        return (target,)
    found = {group for member in grouping.targets[target].members for group in grouping.groups_of_series[member]}
    return tuple(sorted(group for group in found if grouping.groups[group].before is not None))


def _cut(series: Sequence[Series], grouping: Grouping, index: int, group: Group, window: Window) -> bool:
    limit = group.after.limit if group.after else None
    largest = max(series[member].largest for member in grouping.targets[index].members)
    return limit is not None and largest > window.fetch_cap(limit)


_NOTHING = SeriesCounts()
