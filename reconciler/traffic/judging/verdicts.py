"""From replayed groups to verdicts, unused quotas and findings: pure, and the same for any input order."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.model.backtest import BucketVerdict, Member, UnusedQuota, UnusedReason, Verdict
from reconciler.model.entity import Entity, EntityType
from reconciler.resolution.levels import QuotaTable, Resolved, Resolver
from reconciler.traffic.judging.exact import AFTER, ExactResult, SeriesCounts
from reconciler.traffic.judging.grouping import Grouping, Series, Target
from reconciler.traffic.judging.recommend import safe_byte_rate
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND

_UTC: Final = datetime.UTC
_NO_COUNTS: Final = SeriesCounts()


def moment(micros: int) -> datetime.datetime:
    """Microseconds since 1970 as a UTC time."""
    return datetime.datetime(1970, 1, 1, tzinfo=_UTC) + datetime.timedelta(microseconds=micros)


def bucket_verdicts(series: Sequence[Series], grouping: Grouping, found: ExactResult) -> tuple[BucketVerdict, ...]:
    """One verdict for each target, worst first."""
    peaks: dict[tuple[str, str, str], float] = {}
    for index, target in enumerate(grouping.targets):
        place = (target.kind.value, target.bucket.user, target.bucket.client_id)
        peaks[place] = max(peaks.get(place, 0.0), found.groups[index].peak)
    verdicts = [_verdict(index, series, grouping, found, peaks) for index in range(len(grouping.targets))]
    return tuple(sorted(verdicts, key=_worst_first))


def _verdict(
    index: int,
    series: Sequence[Series],
    grouping: Grouping,
    found: ExactResult,
    peaks: Mapping[tuple[str, str, str], float],
) -> BucketVerdict:
    target, whole = grouping.targets[index], found.groups[index]
    after = whole.sides[AFTER]
    throttled_before = sum(found.series.get(m, _NO_COUNTS).throttled_before for m in target.members)
    key = KEY_OF_KIND[target.kind].value
    bucket = target.bucket
    earlier = [grouping.before_of_series[m] for m in target.members]
    limits = _limits([e for e in earlier if e is not None])
    peak_anywhere = peaks[target.kind.value, bucket.user, bucket.client_id]
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
        changed=_changed(target, earlier, same_members=grouping.groups[index].before is not None),
        verdict=Verdict.CERTAIN if after.throttled else Verdict.CLEAR,
        requests=whole.requests,
        throttled_before=throttled_before if limits else None,
        throttled=after.throttled,
        active_seconds=whole.active,
        seconds_over=after.seconds_over,
        first=None if after.first_ms is None else moment(after.first_ms * 1000),
        longest_s=after.longest_s,
        longest_from=None if after.longest_from is None else moment(after.longest_from * 1_000_000),
        peak=whole.peak,
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
    for kind in BYTES:
        key = KEY_OF_KIND[kind]
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
