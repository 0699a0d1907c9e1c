"""From replayed groups to verdicts, unused quotas and findings: pure, and the same for any input order."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from reconciler.model.backtest import BucketVerdict, Member, UnusedQuota, UnusedReason, Verdict
from reconciler.model.entity import Entity, EntityType
from reconciler.resolution.levels import QuotaTable, Resolved, Resolver
from reconciler.traffic.judging.grouping import KEY_OF_KIND, Grouping, Series, Target
from reconciler.traffic.judging.recommend import safe_byte_rate
from reconciler.traffic.judging.replay import Summary

_UTC: Final = datetime.UTC


def moment(micros: int) -> datetime.datetime:
    """Microseconds since 1970 as a UTC time."""
    return datetime.datetime(1970, 1, 1, tzinfo=_UTC) + datetime.timedelta(microseconds=micros)


def bucket_verdicts(series: Sequence[Series], grouping: Grouping, found: Iterable[Summary]) -> tuple[BucketVerdict, ...]:
    """One verdict for each target, worst first."""
    by_side = {(s.target, s.after): s for s in found}
    peaks: dict[tuple[int, str, str], float] = {}
    for index, target in enumerate(grouping.targets):
        place = (target.kind, target.bucket.user, target.bucket.client_id)
        peaks[place] = max(peaks.get(place, 0.0), by_side[index, True].peak)
    verdicts = [
        _verdict(target, series, grouping, (by_side.get((index, False)), by_side[index, True]), peaks)
        for index, target in enumerate(grouping.targets)
    ]
    return tuple(sorted(verdicts, key=_worst_first))


def _verdict(
    target: Target,
    series: Sequence[Series],
    grouping: Grouping,
    sides: tuple[Summary | None, Summary],
    peaks: Mapping[tuple[int, str, str], float],
) -> BucketVerdict:
    before, after = sides
    key = KEY_OF_KIND[target.kind].value
    # The first group of a member is that of the proposed side.
    group = grouping.groups_of_series[target.members[0]][0]
    bucket = target.bucket
    earlier = [grouping.before_of_series[m] for m in target.members]
    limits = _limits([e for e in earlier if e is not None])
    peak_anywhere = peaks[target.kind, bucket.user, bucket.client_id]
    number, text = safe_byte_rate(peak_anywhere)
    return BucketVerdict(
        user=bucket.user,
        client_id=bucket.client_id,
        key=key,
        broker=target.broker,
        entity=target.after.source,
        limit_before=limits[0] if limits else None,
        limits_before=limits,
        limit_after=target.after.value,
        changed=_changed(target, earlier, same_members=grouping.groups[group].before is not None),
        verdict=Verdict.CERTAIN if after.throttled else Verdict.CLEAR,
        requests=after.requests,
        throttled_before=None if not limits else before.throttled if before else 0,
        throttled=after.throttled,
        active_seconds=after.active_seconds,
        seconds_over=after.seconds_over,
        first=None if after.first_us is None else moment(after.first_us),
        longest_s=after.longest_s,
        longest_from=None if after.longest_from_s is None else moment(after.longest_from_s * 1_000_000),
        peak=after.peak,
        recommended=number,
        recommended_reason=(
            f"the largest sampled rate of this bucket on any broker was {peak_anywhere:.0f} bytes/s; "
            f"{text} is the next round value, and no request of this history would have been throttled at it"
        ),
        members=_members(target, series, grouping),
    )


def _limits(earlier: Sequence[Resolved]) -> tuple[float | None, ...]:
    values = {e.value for e in earlier}
    limited: list[float | None] = [*sorted(v for v in values if v is not None)]
    return (*limited, None) if None in values else tuple(limited)


def _changed(target: Target, earlier: Sequence[Resolved | None], *, same_members: bool) -> bool:
    if any(e is None for e in earlier):
        return target.after.value is not None
    if any(e is not None and e.value != target.after.value for e in earlier):
        return True
    # Unlimited before and after: then it is of no weight who shares the bucket.
    return target.after.value is not None and not same_members


def _members(target: Target, series: Sequence[Series], grouping: Grouping) -> tuple[Member, ...]:
    total = sum(series[m].amount for m in target.members)
    members = []
    for index in sorted(target.members, key=lambda m: (-series[m].amount, series[m].user, series[m].client_id)):
        one, earlier = series[index], grouping.before_of_series[index]
        members.append(
            Member(
                user=one.user,
                client_id=one.client_id,
                share=one.amount / total if total else 0.0,
                requests=one.requests,
                limit_before=earlier.value if earlier else None,
            )
        )
    return tuple(members)


def _worst_first(verdict: BucketVerdict) -> tuple[object, ...]:
    return (
        verdict.verdict is Verdict.CLEAR, not verdict.changed, -verdict.share_over, -verdict.seconds_over,
        verdict.key, verdict.user, verdict.client_id, verdict.broker,
    )  # fmt: skip


def unused_quotas(series: Sequence[Series], declared: QuotaTable, proposed: QuotaTable) -> tuple[UnusedQuota, ...]:
    """Declared byte rates that win for no recorded client, sorted; those that stronger quotas hide are told apart."""
    found = []
    for kind, key in sorted(KEY_OF_KIND.items()):
        resolver = Resolver(proposed, key)
        clients = {(s.user, s.client_id) for s in series if s.kind == kind}
        winning: set[Entity] = set()
        hidden: set[Entity] = set()
        for user, client_id in clients:
            resolved = resolver.resolve(user, client_id)
            if resolved.source is not None:
                winning.add(resolved.source)
            hidden.update(c.entity for c in resolved.overridden)
        for entity, values in declared.items():
            if key in values and entity not in winning and EntityType.IP not in entity.types:
                reason = UnusedReason.HIDDEN if entity in hidden else UnusedReason.NO_CLIENT
                found.append(UnusedQuota(entity=entity, key=key.value, value=values[key], reason=reason))
    return tuple(sorted(found, key=lambda u: (u.entity.sort_key, u.key)))
