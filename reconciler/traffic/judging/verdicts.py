"""Judged groups as rows of the report: counts, who shared before, what to write, and whether the history shows enough.

Pure, and the same for any input order.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import (
    BucketVerdict,
    HistoryNeeds,
    Member,
    PeakBound,
    PeakRate,
    Provenance,
    RecordedGroup,
    ReplayCounts,
    RowLimits,
    RowPlace,
    SecondsOver,
    Verdict,
)
from reconciler.text import count_of
from reconciler.traffic.judging.exact import AFTER, BEFORE, JudgedGroups, SeriesCounts
from reconciler.traffic.judging.grouping import Grouping, Series, Target, groups_before
from reconciler.traffic.judging.history_gaps import doubts_of, hold_back, throttled_recording
from reconciler.traffic.judging.recommendations import advice_for
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.token_bucket import REFUSED
from reconciler.traffic.kinds import Kind

_RANK: Final = {v: rank for rank, v in enumerate((Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR))}
_NO_EXCESS: Final[Mapping[int, int]] = {}
_MOST_NAMED: Final = 20
UNKNOWN_SECOND: Final = "the second is not known: a delta of more than one second, or a local time that occurs twice or never"


def bare_row(index: int, grouping: Grouping) -> BucketVerdict:
    """Return what the target with this number decides about its row, whatever the traffic: a clear row without any."""
    target = grouping.targets[index]
    before = [earlier for member in target.members if (earlier := grouping.before_of_series[member]) is not None]
    limits, limited = {earlier.value for earlier in before}, {earlier.bucket for earlier in before if earlier.value is not None}
    entities = {earlier.source for earlier in before if earlier.source is not None} - {target.after.source}
    moved = grouping.groups[index].before is None and target.after.value is not None and not target.undecided
    key, broker, name, undecided = target.place
    return BucketVerdict(
        key=key,
        broker=broker,
        name=name,
        undecided=undecided,
        limits=RowLimits(
            entity=target.after.source,
            before=(*sorted(limit for limit in limits if limit is not None), *([None] if None in limits else [])),
            after=target.after.value,
            entities_before=tuple(sorted(entities, key=lambda entity: entity.sort_key)[:_MOST_NAMED]),
            buckets_before=tuple(sorted(limited - {target.bucket})[:_MOST_NAMED]) if moved else (),
        ),
        changed=is_changed(index, grouping),
        verdict=Verdict.CLEAR,
        recorded=RecordedGroup(),
        over=SecondsOver(),
        peak=PeakRate(bound=PeakBound.LOWER),
    )


def is_changed(index: int, grouping: Grouping) -> bool:
    """Whether a target's limit differs for a member, or who shares it does. Without a limit it is of no weight who shares."""
    target = grouping.targets[index]
    if target.undecided:
        return target.reconsidered
    earlier, limit = [grouping.before_of_series[member] for member in target.members], target.after.value
    if None not in earlier and any(quota is not None and quota.value != limit for quota in earlier):
        return True
    return limit is not None and (None in earlier or grouping.groups[index].before is None)


def target_verdicts(
    judged: JudgedGroups, series: Sequence[Series], grouping: Grouping, window: Window, *, stated: bool
) -> dict[int, BucketVerdict]:
    """Make the rows of the targets whose group was judged, by number.

    ``window``: the settings by which it was judged. ``stated``: requests state whether they were throttled when recorded.
    """
    verdicts = {}
    for index, target in enumerate(grouping.targets):
        if (whole := judged.groups.get(index)) is None:
            continue
        side, row, members = whole.sides[AFTER], bare_row(index, grouping), [series[member] for member in target.members]
        over = _seconds_over(index, judged, grouping, most_certain(target, series, window))
        verdict = Verdict.THROTTLED if over.certain else Verdict.POSSIBLE if over.possible else Verdict.CLEAR
        peak, replay, excess = PeakRate(rate=whole.peak / target.kind.amounts_a_unit, bound=PeakBound.UPPER), None, _NO_EXCESS
        if judged.series is not None:
            counts = {member: judged.series.get(member, SeriesCounts()) for member in target.members}
            peak = PeakRate(rate=peak.rate, enough=whole.safe / target.kind.amounts_a_unit)
            refused = AFTER if target.kind is Kind.CONNECTION else REFUSED
            replay = ReplayCounts(
                throttled=side.throttled,
                before=sum(count.throttled_before for count in counts.values()) if row.limits.before else None,
                refused=whole.sides[refused].throttled if len(whole.sides) > refused else None,
            )
            excess = {member: count.amount_over for member, count in counts.items()}
        reason = None
        if target.undecided or target.may_have:
            verdict, reason = _decided(target, verdict, proven=replay is None or target.kind is Kind.MUTATION)
        recording = throttled_recording(index, series, grouping, judged.groups, stated=stated)
        if recording is not None and verdict is Verdict.CLEAR:
            certain = 0.0 if replay is None else peak.rate
            verdict, reason = Verdict.INCONCLUSIVE, recording.reason(row.key, row.limits.after, certain)
        starts = [client.start_us for client in members if client.start_us is not None]
        ends = [client.end_us for client in members if client.end_us is not None]
        verdicts[index] = replace(
            row,
            verdict=verdict,
            reason=reason,
            recorded=RecordedGroup(
                requests=sum(client.requests for client in members),
                members=target_members(index, series, grouping, excess),
                throttled=sum(client.throttled for client in members),
                first=moment(min(starts)) if starts else None,
                last=moment(max(ends)) if ends else None,
                censored=recording is not None,
            ),
            over=over if row.limits.before else replace(over, before=None),
            peak=peak,
            replay=replay,
        )
    return verdicts


def _seconds_over(index: int, judged: JudgedGroups, grouping: Grouping, most: int | None) -> SecondsOver:
    """Return how long a target is over its limits. ``most``: as ``most_certain``, which is about sums of seconds."""
    whole, earlier = judged.groups[index], (judged.groups.get(group) for group in groups_before(grouping, index))
    side = whole.sides[AFTER]
    certain = side.certain if most is None or judged.series is not None else min(most, side.certain)
    return SecondsOver(
        active=whole.active,
        certain=certain,
        seconds=max(side.expected, certain),
        possible=side.possible,
        before=max((group.sides[BEFORE].expected for group in earlier if group is not None), default=0),
        first=None if side.first_ms is None else moment(side.first_ms * 1000),
        longest_s=side.longest_s,
        longest_from=None if side.longest_from is None else moment(side.longest_from * 1_000_000),
    )


def most_certain(target: Target, series: Sequence[Series], window: Window) -> int | None:
    """Return the number of seconds that can be certainly over. ``None``: any number.

    Refused requests are not recorded, so only the first violation is certain. If fetch sizes would be capped, none is.
    """
    if not target.kind.refuses:
        return None
    limit, largest = target.after.value, max(series[member].largest for member in target.members)
    return int(target.kind is not Kind.FETCH or limit is None or largest <= window.fetch_cap(limit))


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


def moment(micros: int) -> datetime.datetime:
    """Microseconds since 1970 as a UTC time."""
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)


def target_members(
    index: int, series: Sequence[Series], grouping: Grouping, excess: Mapping[int, int] = _NO_EXCESS
) -> tuple[Member, ...]:
    """The clients of a target, the largest first. ``excess``: by series the amount in seconds over; empty: not known."""
    target = grouping.targets[index]
    if target.kind is Kind.CONNECTION:
        # An address is its only client.
        return ()
    total, over = sum(series[member].amount for member in target.members), sum(excess.values())
    members = []
    # Series are in the order of their names.
    for member in sorted(target.members, key=lambda m: (-series[m].amount, m)):
        client, earlier = series[member], grouping.before_of_series[member]
        members.append(
            Member(
                user=client.user,
                client_id=client.client_id,
                share=client.amount / total if total else 0.0,
                requests=client.requests,
                limit_before=earlier.value if earlier else None,
                share_of_excess=excess[member] / over if over else None,
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
    doubt, known = doubts_of(provenance, needs), tuple(verdicts.values())
    regrouped = {verdict.group for target, verdict in verdicts.items() if grouping.groups[target].before is None}
    rows = []
    held = hold_back(known) if any(row.recorded.censored for row in known) else known
    for row, advice in zip(held, advice_for(known, provenance, regrouped), strict=True):
        why = doubt(row)
        doubted = row if why is None else replace(row, verdict=Verdict.INCONCLUSIVE, reason=why)
        rows.append(replace(doubted, advice=advice))
    return tuple(sorted(rows, key=worst_first))


def worth_a_plot(verdicts: Sequence[BucketVerdict], most: int) -> tuple[BucketVerdict, ...]:
    """The rows, on all brokers, of the worst quota groups that the change touches or that are over a limit."""
    shown = [verdict for verdict in verdicts if verdict.changed or verdict.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]
    known = [verdict for verdict in shown if not verdict.undecided]
    chosen = list(dict.fromkeys(verdict.group for verdict in known))[:most]
    return tuple(verdict for verdict in verdicts if verdict.group in chosen)


def target_numbers(grouping: Grouping) -> Mapping[RowPlace, int]:
    """Return the targets, by row of the report, whose clients are known."""
    return {target.place: number for number, target in enumerate(grouping.targets) if not target.undecided}


def withhold_clear(
    verdicts: Mapping[int, BucketVerdict], judged: Iterable[int], series: Sequence[Series], grouping: Grouping
) -> dict[int, BucketVerdict]:
    """The same with rows for those ``judged`` targets of which nothing was charged. None that lacks charges is clear.

    A line of the night of a clock change, or a long delta, is of no known second, and a topic may have been deleted without a
    line that shows its partitions. What is missing is never taken for nothing. A group that is throttled by what was charged
    stays so.
    """
    made = dict(verdicts)
    for number in judged:
        if number >= len(grouping.targets):
            continue
        target, parts = grouping.targets[number], []
        unplaced, uncounted = (
            sum(getattr(series[member], name) for member in target.members) for name in ("unplaced", "uncounted")
        )
        if uncounted:
            count = count_of(uncounted, "mutation of a topic is", "mutations of topics are")
            parts.append(f"{count} not counted, since no recorded line and no snapshot shows how many partitions the topic had")
        if unplaced:
            parts.append(f"{count_of(unplaced, 'row')} not counted, since {UNKNOWN_SECOND}")
        if not parts:
            continue
        if (row := made.get(number)) is None:
            row = replace(bare_row(number, grouping), recorded=RecordedGroup(members=target_members(number, series, grouping)))
        made[number] = replace(row, recorded=replace(row.recorded, uncharged=unplaced + uncounted))
        if row.verdict is Verdict.CLEAR and (row.limits.after is not None or row.undecided):
            made[number] = replace(made[number], verdict=Verdict.INCONCLUSIVE, reason=" and ".join(parts))
    return dict(sorted(made.items()))
