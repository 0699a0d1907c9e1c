"""Judged groups as rows of the report: counts, who shared before, what to write, and whether the history shows enough.

Pure, and the same for any input order.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypedDict

from reconciler.model import (
    BucketName,
    BucketVerdict,
    Entity,
    HistoryNeeds,
    Member,
    PeakBound,
    PeakRate,
    Provenance,
    RecordedGroup,
    Regrouped,
    ReplayCounts,
    RowLimits,
    RowPlace,
    SecondsOver,
    Verdict,
    worst_of_buckets,
)
from reconciler.resolution import Resolved
from reconciler.text import count_of
from reconciler.traffic.judging.exact import AFTER, BEFORE, ExactResult, SeriesCounts
from reconciler.traffic.judging.grouping import Grouping, Series, Target, groups_before
from reconciler.traffic.judging.history_gaps import Recording, doubts_of, held_back_changes, throttled_recording
from reconciler.traffic.judging.recommendations import advice_for
from reconciler.traffic.kernels.exact_totals import ExactVerdict
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import GroupVerdict
from reconciler.traffic.kernels.token_bucket import PARTLY, REFUSED
from reconciler.traffic.kinds import Kind

_RANK: Final = {v: rank for rank, v in enumerate((Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR))}
_NOTHING: Final = SeriesCounts()
_MOST_NAMED: Final = 20

_Place: TypeAlias = tuple[int, Kind, BucketName]


class TargetFields(TypedDict):
    """The fields of a ``BucketVerdict`` that its target decides, whatever the traffic."""

    key: str
    broker: int
    name: BucketName
    undecided: bool
    limits: RowLimits
    changed: bool


def target_fields(index: int, grouping: Grouping) -> TargetFields:
    """Of the target with this number."""
    target = grouping.targets[index]
    before = [grouping.before_of_series[m] for m in target.members]
    key, broker, name, undecided = target.place
    return TargetFields(
        key=key,
        broker=broker,
        name=name,
        undecided=undecided,
        limits=RowLimits(
            entity=target.after.source,
            before=_earlier_limits(before),
            after=target.after.value,
            entities_before=_earlier_entities(before, target),
        ),
        changed=_is_changed(index, grouping, before),
    )


def request_verdicts(
    result: ExactResult, series: Sequence[Series], grouping: Grouping, *, stated: bool
) -> dict[int, BucketVerdict]:
    """By target, of those whose group was judged request by request. ``stated``: requests state whether they were throttled."""
    judged = (index for index in range(len(grouping.targets)) if index in result.groups)
    return {index: _of_requests(result, series, grouping, index, stated=stated) for index in judged}


def seconds_verdicts(
    judged_groups: Mapping[int, GroupVerdict],
    series: Sequence[Series],
    grouping: Grouping,
    window: Window,
    *,
    stated: bool,
) -> dict[int, BucketVerdict]:
    """By target, of those whose group was judged by whole seconds. ``stated``: as ``request_verdicts``."""
    judged = (index for index in range(len(grouping.targets)) if index in judged_groups)
    return {index: _of_seconds(judged_groups, series, grouping, index, window, stated=stated) for index in judged}


def _of_requests(result: ExactResult, series: Sequence[Series], grouping: Grouping, index: int, *, stated: bool) -> BucketVerdict:
    target, fields, whole = grouping.targets[index], target_fields(index, grouping), result.groups[index]
    side, unit, known = whole.sides[AFTER], target.kind.amounts_a_unit, bool(fields["limits"].before)
    counts = {m: result.series.get(m, _NOTHING) for m in target.members}
    verdict, reason = _decided(
        target, Verdict.THROTTLED if side.throttled else Verdict.CLEAR, proven=target.kind is Kind.MUTATION
    )
    recording = throttled_recording(index, series, grouping, result.groups, stated=stated)
    verdict, reason = _doubted(verdict, reason, recording, fields, whole.peak / unit)
    over_before = max((result.groups[g].sides[BEFORE].seconds_over for g in groups_before(grouping, index)), default=0)
    members = _members(target, series, grouping, {m: count.amount_over for m, count in counts.items()})
    return BucketVerdict(
        **fields,
        verdict=verdict,
        reason=reason,
        recorded=_recorded(target, series, members, recording),
        over=SecondsOver(
            active=whole.active,
            certain=side.seconds_over,
            seconds=side.seconds_over,
            possible=side.seconds_over,
            before=over_before if known else None,
            first=None if side.first_ms is None else moment(side.first_ms * 1000),
            longest_s=side.longest_s,
            longest_from=None if side.longest_from is None else moment(side.longest_from * 1_000_000),
        ),
        peak=PeakRate(rate=whole.peak / unit, p999=whole.p999 / unit, enough=whole.safe / unit),
        replay=ReplayCounts(
            throttled=side.throttled,
            before=sum(count.throttled_before for count in counts.values()) if known else None,
            refused=_refused(whole, target.kind),
            partly_refused=whole.sides[PARTLY].throttled if len(whole.sides) > PARTLY else None,
        ),
    )


def _recorded(
    target: Target, series: Sequence[Series], members: tuple[Member, ...], recording: Recording | None
) -> RecordedGroup:
    return RecordedGroup(
        requests=sum(series[m].requests for m in target.members),
        members=members,
        throttled=sum(series[m].throttled for m in target.members),
        censored=recording is not None,
    )


def _refused(whole: ExactVerdict, kind: Kind) -> int | None:
    if kind is Kind.CONNECTION:
        return whole.sides[AFTER].throttled
    return whole.sides[REFUSED].throttled if len(whole.sides) > REFUSED else None


def _of_seconds(
    judged_groups: Mapping[int, GroupVerdict],
    series: Sequence[Series],
    grouping: Grouping,
    index: int,
    window: Window,
    *,
    stated: bool,
) -> BucketVerdict:
    target, fields, whole = grouping.targets[index], target_fields(index, grouping), judged_groups[index]
    side, unit = whole.sides[AFTER], target.kind.amounts_a_unit
    most = most_certain(target, series, window)
    certain = side.certain if most is None else min(most, side.certain)
    # By the same rule as the time over the limit and its longest part.
    first = side.first_expected if side.expected else side.first_possible
    before = (judged_groups[g].sides[BEFORE].expected for g in groups_before(grouping, index) if g in judged_groups)
    verdict, reason = _decided(
        target, Verdict.THROTTLED if certain else Verdict.POSSIBLE if side.possible else Verdict.CLEAR, proven=True
    )
    recording = throttled_recording(index, series, grouping, judged_groups, stated=stated)
    verdict, reason = _doubted(verdict, reason, recording, fields, 0.0)
    return BucketVerdict(
        **fields,
        verdict=verdict,
        reason=reason,
        recorded=_recorded(target, series, _members(target, series, grouping, {}), recording),
        over=SecondsOver(
            active=whole.active,
            certain=certain,
            seconds=max(side.expected, certain),
            possible=side.possible,
            before=max(before, default=0) if fields["limits"].before else None,
            first=None if first is None else moment(first * 1_000_000),
            longest_s=side.longest_s,
            longest_from=None if side.longest_from is None else moment(side.longest_from * 1_000_000),
        ),
        peak=PeakRate(rate=whole.peak_upper / unit, bound=PeakBound.UPPER, p999=whole.p999 / unit),
    )


def most_certain(target: Target, series: Sequence[Series], window: Window) -> int | None:
    """How many seconds can be certainly over; ``None``: any number.

    Refused requests are not recorded, so only the first violation is certain. If fetch sizes would be capped, none is.
    """
    if not target.kind.refuses:
        return None
    return 0 if target.kind is Kind.FETCH and _may_be_cut(target, series, window) else 1


def _may_be_cut(target: Target, series: Sequence[Series], window: Window) -> bool:
    """Whether a fetch is larger than what a broker asks its log for."""
    limit = target.after.value
    return limit is not None and max(series[member].largest for member in target.members) > window.fetch_cap(limit)


def _decided(target: Target, verdict: Verdict, *, proven: bool) -> tuple[Verdict, str | None]:
    """The verdict, and why it is inconclusive where other clients, which the history names in part, could change it.

    ``proven``: more traffic keeps a certain second certain, since a bound rises and a token bucket gets emptier. Request by
    request it moves the samples, and so decides nothing.
    """
    if target.undecided:
        return Verdict.INCONCLUSIVE, "the history does not name the sender well enough to decide which quota applies"
    if not target.may_have or target.after.value is None or (proven and verdict is Verdict.THROTTLED):
        return verdict, None
    many = f"{target.may_have} clients that the history does not name whole"
    who = "a client that the history does not name whole" if target.may_have == 1 else many
    return Verdict.INCONCLUSIVE, f"requests of {who} may be in this quota group, too"


def _doubted(
    verdict: Verdict, reason: str | None, recording: Recording | None, fields: TargetFields, peak: float
) -> tuple[Verdict, str | None]:
    """The same, and why it is not clear of clients that a quota throttled when they were recorded. ``peak``: a certain rate."""
    if recording is None or verdict is not Verdict.CLEAR:
        return verdict, reason
    return Verdict.INCONCLUSIVE, recording.reason(fields["key"], fields["limits"].after, peak)


def moment(micros: int) -> datetime.datetime:
    """Microseconds since 1970 as a UTC time."""
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)


def is_changed(index: int, grouping: Grouping) -> bool:
    """Whether a target's limit differs for a member, or who shares it does."""
    return _is_changed(index, grouping, [grouping.before_of_series[m] for m in grouping.targets[index].members])


def _is_changed(index: int, grouping: Grouping, before: Sequence[Resolved | None]) -> bool:
    target = grouping.targets[index]
    if target.undecided:
        return target.reconsidered
    return _changed(target, before, same_members=grouping.groups[index].before is not None)


def _earlier_limits(before: Sequence[Resolved | None]) -> tuple[float | None, ...]:
    """Distinct limits, lowest first and unlimited last."""
    values = {earlier.value for earlier in before if earlier is not None}
    limited: list[float | None] = [*sorted(v for v in values if v is not None)]
    return (*limited, None) if None in values else tuple(limited)


def _earlier_entities(before: Sequence[Resolved | None], target: Target) -> tuple[Entity, ...]:
    """Entities that set a limit before, without the one that sets it now."""
    entities = {earlier.source for earlier in before if earlier is not None and earlier.source is not None}
    entities.discard(target.after.source)
    return tuple(sorted(entities, key=lambda entity: entity.sort_key)[:_MOST_NAMED])


def _changed(target: Target, earlier: Sequence[Resolved | None], *, same_members: bool) -> bool:
    if any(e is None for e in earlier):
        return target.after.value is not None
    if any(e is not None and e.value != target.after.value for e in earlier):
        return True
    # Unlimited before and after: then it is of no weight who shares the bucket.
    return target.after.value is not None and not same_members


def target_members(index: int, series: Sequence[Series], grouping: Grouping) -> tuple[Member, ...]:
    """The clients of a target, the largest first."""
    return _members(grouping.targets[index], series, grouping, {})


def _members(target: Target, series: Sequence[Series], grouping: Grouping, amount_over: Mapping[int, int]) -> tuple[Member, ...]:
    """The clients of a target, the largest first. ``amount_over``: by series the amount in seconds over; empty: not known."""
    if target.kind is Kind.CONNECTION:
        # An address is its only client.
        return ()
    total = sum(series[m].amount for m in target.members)
    excess = sum(amount_over.values())
    members = []
    largest_first = target.members
    if len(largest_first) > 1:
        largest_first = tuple(sorted(largest_first, key=lambda m: (-series[m].amount, series[m].sort_key)))
    for index in largest_first:
        client, earlier = series[index], grouping.before_of_series[index]
        members.append(
            Member(
                user=client.user,
                client_id=client.client_id,
                share=client.amount / total if total else 0.0,
                requests=client.requests,
                limit_before=earlier.value if earlier else None,
                share_of_excess=amount_over[index] / excess if excess else None,
            )
        )
    return tuple(members)


def worst_first(verdict: BucketVerdict) -> tuple[object, ...]:
    """The order of a report."""
    name, members = verdict.name, verdict.recorded.members if verdict.undecided else ()
    return (
        _RANK[verdict.verdict], not verdict.changed, -verdict.over.share, -verdict.over.seconds,
        verdict.key, name.user, name.client_id, verdict.broker, name.other, verdict.undecided,
        # Two senders that are known in part may have the same tags.
        [(member.user is not None, member.client_id is not None) for member in members],
    )  # fmt: skip


def enrich_verdicts(
    verdicts: Mapping[int, BucketVerdict], grouping: Grouping, provenance: Provenance, needs: HistoryNeeds
) -> tuple[BucketVerdict, ...]:
    """The same verdicts with every field of the report, worst first. ``verdicts``: by target."""
    moved, doubt = regroupings(grouping), doubts_of(provenance, needs)
    advice = advice_for(
        tuple(verdicts.values()), provenance, regrouped={verdicts[target].group for target in moved if target in verdicts}
    )
    rows = []
    held_back = held_back_changes(tuple(verdicts.values()))
    for (target, verdict), recommended, held in zip(verdicts.items(), advice, held_back, strict=True):
        row = held.applied_to(verdict)
        if not verdict.undecided and (how := moved.get(target)) is not None:
            row = replace(row, limits=replace(row.limits, regrouped=how[0], buckets_before=how[1]))
        if held.reason is None and (why := doubt(verdict)) is not None:
            row = replace(row, verdict=Verdict.INCONCLUSIVE, reason=why)
        rows.append(replace(row, advice=recommended))
    return tuple(sorted(rows, key=worst_first))


def worth_a_plot(verdicts: Sequence[BucketVerdict], most: int) -> tuple[BucketVerdict, ...]:
    """The rows, on all brokers, of the worst quota groups that the change touches or that are over a limit."""
    if not most:
        return ()
    shown = [verdict for verdict in verdicts if verdict.changed or verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]
    known = [verdict for verdict in shown if not verdict.undecided]
    chosen = {verdict.group for verdict in worst_of_buckets(known)[:most]}
    return tuple(verdict for verdict in verdicts if verdict.group in chosen)


def target_numbers(grouping: Grouping) -> Mapping[RowPlace, int]:
    """By row of the report, of those whose clients are known."""
    return {target.place: number for number, target in enumerate(grouping.targets) if not target.undecided}


def regroupings(grouping: Grouping) -> Mapping[int, tuple[Regrouped, tuple[BucketName, ...]]]:
    """By target, of those whose clients shared limits otherwise: how, and the limited buckets they come from.

    Who was unlimited shared nothing, and neither does who becomes so.
    """
    targets_of: dict[_Place, set[int]] = {}
    for series, number in enumerate(grouping.target_of_series):
        if grouping.groups[number].before is not None:
            # Its members are those of one earlier bucket, all of them.
            continue
        place = _limited(grouping, number, grouping.before_of_series[series])
        if place is not None:
            targets_of.setdefault(place, set()).add(number)
    places_of: dict[int, list[_Place]] = {}
    for place, numbers in targets_of.items():
        for number in numbers:
            places_of.setdefault(number, []).append(place)
    regrouped = {}
    for index, places in places_of.items():
        target = grouping.targets[index]
        merged, split = len(places) > 1, any(targets_of[place] != {index} for place in places)
        if target.after.value is None or not (merged or split):
            continue
        how = Regrouped.REGROUPED if merged and split else Regrouped.MERGED if merged else Regrouped.SPLIT
        names = sorted({bucket for _, _, bucket in places if bucket != target.bucket})
        regrouped[index] = how, tuple(names[:_MOST_NAMED])
    return regrouped


def _limited(grouping: Grouping, target: int, before: Resolved | None) -> _Place | None:
    group = grouping.targets[target]
    return None if group.undecided or before is None or before.value is None else (group.broker, group.kind, before.bucket)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncharged:
    """Rows of a quota group on one broker that were not charged; the fields mean what they do in ``Series``."""

    unplaced: int
    uncounted: int

    @classmethod
    def of(cls, members: Iterable[Series]) -> Uncharged:
        """Of all of these clients."""
        some = list(members)
        return cls(unplaced=sum(client.unplaced for client in some), uncounted=sum(client.uncounted for client in some))

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.unplaced + self.uncounted

    @property
    def reason(self) -> str:
        """Why a group of these rows is not clear."""
        parts = []
        if self.uncounted:
            count = count_of(self.uncounted, "mutation of a topic is", "mutations of topics are")
            parts.append(f"{count} not counted, since no recorded line shows how many partitions the topic had")
        if self.unplaced:
            count = count_of(self.unplaced, "line")
            parts.append(f"{count} of the night of the clock change not judged, since the local time occurs twice or never")
        return " and ".join(parts)


def withhold_clear(
    verdicts: Mapping[int, BucketVerdict], judged: Iterable[int], series: Sequence[Series], grouping: Grouping
) -> dict[int, BucketVerdict]:
    """The same with rows for those ``judged`` targets of which nothing was charged. None that lacks charges is clear.

    A line of the night of a clock change has two times, and a topic may have been deleted without a line that shows its
    partitions. What is missing is never taken for nothing. A group that is throttled by what was charged stays so.
    """
    made = dict(verdicts)
    if not any(client.unplaced or client.uncounted for client in series):
        return made
    for target in judged:
        if target >= len(grouping.targets):
            continue
        uncharged = Uncharged.of(series[member] for member in grouping.targets[target].members)
        if uncharged.rows:
            known = made.get(target)
            made[target] = _without_charges(target, uncharged, series, grouping) if known is None else _withheld(known, uncharged)
    return dict(sorted(made.items()))


def _withheld(verdict: BucketVerdict, uncharged: Uncharged) -> BucketVerdict:
    """A verdict of what was charged, where that is not all."""
    row = replace(verdict, recorded=replace(verdict.recorded, uncharged=uncharged.rows))
    if verdict.verdict is Verdict.CLEAR and verdict.limits.after is not None:
        return replace(row, verdict=Verdict.INCONCLUSIVE, reason=uncharged.reason)
    return row


def _without_charges(index: int, uncharged: Uncharged, series: Sequence[Series], grouping: Grouping) -> BucketVerdict:
    """The row of a quota group that was recorded, and of which nothing was charged."""
    target = grouping.targets[index]
    is_open = target.after.value is not None or target.undecided
    return BucketVerdict(
        **target_fields(index, grouping),
        verdict=Verdict.INCONCLUSIVE if is_open else Verdict.CLEAR,
        reason=uncharged.reason if is_open else None,
        recorded=RecordedGroup(members=target_members(index, series, grouping), uncharged=uncharged.rows),
        over=SecondsOver(),
        peak=PeakRate(bound=PeakBound.LOWER),
    )
