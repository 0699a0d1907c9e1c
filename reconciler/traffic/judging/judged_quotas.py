"""How many of the changed quotas a history could judge: each changed quota with the rows of the report that it limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from reconciler.model import BucketName, BucketVerdict, Entity, JudgedQuotas, QuotaKey, UnjudgedChange, Verdict
from reconciler.resolution import QuotaTable, Resolver
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.kinds import KEY_OF_KIND

Quota: TypeAlias = tuple[Entity, str]
RowPlace: TypeAlias = tuple[str, int, BucketName, bool]
_KNOWN: frozenset[Verdict] = frozenset({Verdict.THROTTLED, Verdict.POSSIBLE})


def rows_of_quotas(series: Sequence[Series], grouping: Grouping, tables: Sequence[Tables]) -> dict[Quota, set[RowPlace]]:
    """By quota the rows of the report whose clients it limits, before or after the change, or may limit."""
    found: dict[Quota, set[RowPlace]] = {}
    for target in grouping.targets:
        key = KEY_OF_KIND[target.kind].value
        bucket = target.bucket
        place = key, target.broker, BucketName(user=bucket.user, client_id=bucket.client_id, other=bucket.other), target.undecided
        sides = [target.after, *(grouping.before_of_series[member] for member in target.members)]
        entities = {side.source for side in sides if side is not None and side.source is not None}
        if target.undecided:
            one = series[target.members[0]]
            resolvers = [found_table for table in tables if isinstance(found_table := table[key], Resolver)]
            entities |= {may.entity for table in resolvers for may in table.touches(one.user, one.client_id)}
        for entity in entities:
            found.setdefault((entity, key), set()).add(place)
    return found


def changed_quotas(before: QuotaTable | None, after: QuotaTable) -> set[Quota]:
    """Each quota that differs. Earlier quotas that are not known count as absent."""
    tables = before or {}, after
    return {
        (entity, key.value)
        for key in QuotaKey
        for entity in {*tables[0], *tables[1]}
        if tables[0].get(entity, {}).get(key) != tables[1].get(entity, {}).get(key)
    }


def judged_quotas(
    changed: Collection[Quota],
    rows: Mapping[Quota, Collection[RowPlace]],
    verdicts: Iterable[BucketVerdict],
    unjudged: Iterable[UnjudgedChange],
) -> JudgedQuotas:
    """A quota is judged unless it limits no recorded traffic, or its worst row is inconclusive."""
    verdict_of = {(one.key, one.broker, one.name, one.undecided): one.verdict for one in verdicts}
    without_traffic = {(one.entity, one.key) for one in unjudged}
    unknown = 0
    for quota in changed:
        found = {verdict_of[place] for place in rows.get(quota, ()) if place in verdict_of}
        unknown += quota not in without_traffic and Verdict.INCONCLUSIVE in found and not found & _KNOWN
    return JudgedQuotas(
        changed=len(changed), judged=len(changed) - len(without_traffic) - unknown, without_traffic=len(without_traffic)
    )
