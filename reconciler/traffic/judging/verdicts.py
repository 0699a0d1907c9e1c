"""From replayed groups to verdicts, unused quotas and findings: pure, and the same for any input order."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from reconciler.model import BucketVerdict, Entity, EntityType, Member, PeakBound, UnusedQuota, UnusedReason, Verdict
from reconciler.resolution import AddressLimits, QuotaTable, Resolved, Resolver
from reconciler.traffic.judging.grouping import Grouping, Series, Target
from reconciler.traffic.judging.outcome import GroupOutcome
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind

_UTC: Final = datetime.UTC
_Client: TypeAlias = tuple[str | None, str | None]
_RANK: Final = {v: rank for rank, v in enumerate((Verdict.THROTTLED, Verdict.POSSIBLE, Verdict.INCONCLUSIVE, Verdict.CLEAR))}


def moment(micros: int) -> datetime.datetime:
    """Microseconds since 1970 as a UTC time."""
    return datetime.datetime(1970, 1, 1, tzinfo=_UTC) + datetime.timedelta(microseconds=micros)


def bucket_verdicts(
    series: Sequence[Series], grouping: Grouping, outcomes: Mapping[int, GroupOutcome]
) -> tuple[BucketVerdict, ...]:
    """One verdict for each target that was judged, worst first; nothing is recommended yet."""
    return tuple(sorted((_verdict(index, series, grouping, outcome) for index, outcome in outcomes.items()), key=worst_first))


def _verdict(index: int, series: Sequence[Series], grouping: Grouping, outcome: GroupOutcome) -> BucketVerdict:
    target = grouping.targets[index]
    bucket = target.bucket
    earlier = [grouping.before_of_series[m] for m in target.members]
    limits = earlier_limits([e for e in earlier if e is not None])
    key = target.kind.key
    return BucketVerdict(
        user=bucket.user,
        client_id=bucket.client_id,
        key=key.value,
        broker=target.broker,
        entity=target.after.source,
        limit_before=limits[0] if limits else None,
        limits_before=limits,
        limit_after=target.after.value,
        changed=is_changed(index, grouping),
        verdict=_told(target, outcome),
        requests=sum(series[m].requests for m in target.members),
        throttled_then=sum(series[m].throttled for m in target.members),
        throttled_before=outcome.throttled_before if limits else None,
        throttled=outcome.throttled,
        active_seconds=outcome.active,
        seconds_certain=outcome.certain,
        seconds_over=outcome.over,
        seconds_possible=outcome.possible,
        seconds_over_before=outcome.over_before if limits else None,
        first=None if outcome.first_ms is None else moment(outcome.first_ms * 1000),
        p999=outcome.p999,
        least_safe=outcome.least_safe,
        longest_s=outcome.longest_s,
        longest_from=None if outcome.longest_from is None else moment(outcome.longest_from * 1_000_000),
        peak=outcome.peak,
        peak_bound=PeakBound.UPPER if outcome.peak_is_bound else PeakBound.EXACT,
        recommended=None,
        recommended_reason=None,
        members=_members(target, series, grouping, outcome),
        reason=_why_untold(target, outcome),
        tags=bucket.other,
        refused=outcome.refused,
        partly_refused=outcome.partly,
        undecided=target.undecided,
    )


def _told(target: Target, outcome: GroupOutcome) -> Verdict:
    """The verdict, where what is not known of other clients could not change it.

    More traffic in a bucket leaves a second certain (the bound rises) and a bucket of tokens no fuller; request by request it
    moves the samples, and so decides nothing.
    """
    certain = outcome.verdict is Verdict.THROTTLED and (outcome.peak_is_bound or target.kind is Kind.MUTATION)
    if target.undecided or (target.may_have and target.after.value is not None and not certain):
        return Verdict.INCONCLUSIVE
    return outcome.verdict


def _why_untold(target: Target, outcome: GroupOutcome) -> str | None:
    if _told(target, outcome) is outcome.verdict:
        return None
    if target.undecided:
        return "the history does not say who sent this well enough to tell which quota applies"
    count = target.may_have
    who = (
        "a client that the history does not name whole" if count == 1 else f"{count} clients that the history does not name whole"
    )
    return f"requests of {who} may be in this bucket, too"


def is_changed(index: int, grouping: Grouping) -> bool:
    """Whether a target's limit differs for a member, or who shares it does."""
    target = grouping.targets[index]
    if target.undecided:
        return target.reconsidered
    earlier = [grouping.before_of_series[m] for m in target.members]
    return _changed(target, earlier, same_members=grouping.groups[index].before is not None)


def earlier_limits(earlier: Sequence[Resolved]) -> tuple[float | None, ...]:
    """Distinct limits, lowest first and unlimited last."""
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


def _members(target: Target, series: Sequence[Series], grouping: Grouping, outcome: GroupOutcome) -> tuple[Member, ...]:
    if target.kind is Kind.CONNECTION:
        # Of an address there is nobody to tell apart.
        return ()
    total = sum(series[m].amount for m in target.members)
    excess = sum((outcome.amount_over or {}).values())
    members = []
    for index in sorted(target.members, key=lambda m: (-series[m].amount, series[m].sort_key)):
        one, earlier = series[index], grouping.before_of_series[index]
        members.append(
            Member(
                user=one.user,
                client_id=one.client_id,
                share=one.amount / total if total else 0.0,
                requests=one.requests,
                limit_before=earlier.value if earlier else None,
                share_of_excess=(outcome.amount_over or {})[index] / excess if excess else None,
            )
        )
    return tuple(members)


def worst_first(verdict: BucketVerdict) -> tuple[object, ...]:
    """The order of a report."""
    return (
        _RANK[verdict.verdict], not verdict.changed, -verdict.share_over, -verdict.seconds_over,
        verdict.key, verdict.user, verdict.client_id, verdict.broker,
    )  # fmt: skip


def unused_quotas(series: Sequence[Series], declared: QuotaTable, proposed: QuotaTable) -> tuple[UnusedQuota, ...]:
    """Declared quotas that win for no recorded client, sorted; those that stronger quotas hide are told apart.

    Where the history has nothing at all of what a key limits, but for bytes, nothing is said of that key.
    """
    found = []
    clients_of: dict[Kind, set[_Client]] = {kind: set() for kind in KEY_OF_KIND}
    for one in series:
        clients_of[one.kind].add((one.user, one.client_id))
    for kind, key in KEY_OF_KIND.items():
        clients = clients_of[kind]
        if not clients and kind not in BYTES:
            continue
        by_address = kind is Kind.CONNECTION
        winning, hidden = _of_addresses(clients, proposed) if by_address else _of_clients(clients, Resolver(proposed, key))
        for entity, values in declared.items():
            if key in values and entity not in winning and (EntityType.IP in entity.types) == by_address:
                reason = UnusedReason.HIDDEN if entity in hidden else UnusedReason.NO_CLIENT
                found.append(UnusedQuota(entity=entity, key=key.value, value=values[key], reason=reason))
    return tuple(sorted(found, key=lambda u: (u.entity.sort_key, u.key)))


def _of_clients(clients: Iterable[_Client], resolver: Resolver) -> tuple[set[Entity], set[Entity]]:
    """Whose quotas win for some of them, and whose do not where they could."""
    winning: set[Entity] = set()
    hidden: set[Entity] = set()
    for user, client_id in clients:
        if user is not None and client_id is not None:
            winner = resolver.winner(user, client_id)
            hidden.update(c.entity for c in resolver.candidates(user, client_id) if c is not None and c is not winner)
            winning.update(() if winner is None else (winner.entity,))
            continue
        resolved = resolver.resolve_partly(user, client_id)
        if resolved is None:
            # Any of them may be in use.
            winning.update(candidate.entity for candidate in resolver.touches(user, client_id))
        else:
            winning.update(() if resolved.source is None else (resolved.source,))
            hidden.update(c.entity for c in resolved.overridden)
    return winning, hidden


def _of_addresses(clients: Iterable[_Client], proposed: QuotaTable) -> tuple[set[Entity], set[Entity]]:
    """The same for addresses, which stand for client ids."""
    limits = AddressLimits(proposed)
    resolved = [limits.resolve("", address or "") for _, address in clients]
    winning = {one.source for one in resolved if one.source is not None}
    return winning, {c.entity for one in resolved for c in one.overridden}
