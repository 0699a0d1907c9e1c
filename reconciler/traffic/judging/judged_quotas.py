"""Which quotas a history could judge: changed quotas with their rows of the report, and quotas that limit no recorded client."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from reconciler.model import (
    NOT_RECORDED,
    BucketVerdict,
    Entity,
    EntityType,
    Finding,
    JudgedQuotas,
    NotJudged,
    QuotaKey,
    RowPlace,
    Severity,
    Span,
    UnjudgedChange,
    UnusedQuota,
    Verdict,
    compose,
    key_part,
)
from reconciler.resolution import QuotaTable, Resolver
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind

Quota: TypeAlias = tuple[Entity, str]
_KNOWN: frozenset[Verdict] = frozenset({Verdict.THROTTLED, Verdict.POSSIBLE})
_MOST_FINDINGS: Final = 50
"""Of one key. The last one counts the rest."""


def rows_of_quotas(series: Sequence[Series], grouping: Grouping, tables: Sequence[Tables]) -> dict[Quota, set[RowPlace]]:
    """Return, by quota, the rows of the report whose clients it limits, before or after the change, or may limit."""
    rows: dict[Quota, set[RowPlace]] = {}
    for target in grouping.targets:
        key, place = target.kind.key.value, target.place
        sides = [target.after, *(grouping.before_of_series[member] for member in target.members)]
        entities = {side.winner.entity for side in sides if side is not None and side.winner is not None}
        if target.undecided:
            entities |= _candidates(series[target.members[0]], tables)
        for entity in entities:
            rows.setdefault((entity, key), set()).add(place)
    return rows


def _candidates(client: Series, tables: Iterable[Tables]) -> set[Entity]:
    """The entities whose quotas may limit a client that is known in part; none where a callback decides."""
    resolvers = (limits for table in tables if isinstance(limits := table[client.kind.key], Resolver))
    return {may.entity for limits in resolvers for may in limits.touches(client.user, client.client_id)}


def changed_quotas(before: QuotaTable | None, after: QuotaTable) -> list[Quota]:
    """Each quota that differs, by entity and key. Earlier quotas that are not known count as absent."""
    known = before or {}
    differ = [
        (entity, key)
        for entity in {*known, *after}
        for earlier, later in [(known.get(entity, {}), after.get(entity, {}))]
        for key in {*earlier, *later} & _KEYS
        if earlier.get(key) != later.get(key)
    ]
    return sorted(differ, key=lambda quota: (quota[0].sort_key, quota[1]))


_KEYS: Final = frozenset(key.value for key in QuotaKey)


def judged_quotas(
    changed: Sequence[Quota],
    rows: Mapping[Quota, Collection[RowPlace]],
    verdicts: Iterable[BucketVerdict],
    unjudged: Sequence[UnjudgedChange],
) -> JudgedQuotas:
    """A quota is judged unless it limits no recorded traffic, or its worst row is inconclusive.

    ``rows``: from ``rows_of_quotas``, and those of metrics.
    """
    verdict_of = {verdict.place: verdict.verdict for verdict in verdicts}
    without_traffic = {(change.entity, change.key) for change in unjudged}
    unknown = 0
    for quota in changed:
        if quota not in without_traffic:
            known = {verdict_of.get(place) for place in rows.get(quota, ())}
            unknown += Verdict.INCONCLUSIVE in known and not known & _KNOWN
    return JudgedQuotas(
        changed=len(changed), judged=len(changed) - len(without_traffic) - unknown, without_traffic=len(without_traffic)
    )


def unjudged_changes(
    changed: Iterable[Quota],
    rows: Collection[Quota],
    quotas: tuple[QuotaTable | None, QuotaTable],
    unused: Iterable[UnusedQuota],
    kinds: Collection[Kind],
) -> tuple[UnjudgedChange, ...]:
    """Each changed quota that limits no series on either side. ``quotas``: before and after.

    ``rows``: from ``rows_of_quotas``, and those of metrics. ``kinds``: those of all recorded traffic, of metrics too.
    A key without any quota after the change limits nothing, so its removals are left out.
    """
    before, after = quotas[0] or {}, quotas[1]
    keys = {key for values in after.values() for key in values}
    recorded = {kind.key.value for kind in kinds}
    overridden = {(quota.entity, quota.key) for quota in unused if quota.reason is NotJudged.OVERRIDDEN}
    return tuple(
        UnjudgedChange(
            entity=entity,
            key=key,
            before=before.get(entity, {}).get(key),
            after=after.get(entity, {}).get(key),
            reason=NotJudged.NO_TRAFFIC
            if key not in recorded
            else NotJudged.OVERRIDDEN
            if (entity, key) in overridden
            else NotJudged.NO_CLIENT,
        )
        for entity, key in changed
        if key in keys and (entity, key) not in rows
    )


def unjudged_findings(unjudged: Sequence[UnjudgedChange], sources: Mapping[tuple[Entity, str], Span]) -> Iterator[Finding]:
    """A warning for each change; of many changes of one key, the last warning counts the rest."""
    for key, changes in itertools.groupby(sorted(unjudged, key=lambda change: change.key), key=lambda change: change.key):
        some = list(changes)
        for count, change in enumerate(some[:_MOST_FINDINGS], start=1):
            rest = len(some) - count
            more = f" {rest} more changed quotas of this key were not checked." if count == _MOST_FINDINGS and rest else ""
            yield Finding(
                id=NOT_RECORDED,
                severity=Severity.WARNING,
                message=compose(
                    "The backtest did not check {key} of {entity}: {why}.{more}",
                    key=key_part(key),
                    entity=change.entity,
                    why=change.why,
                    more=more,
                ),
                span=sources.get((change.entity, key)),
                entity=change.entity,
                key=QuotaKey(key),
            )


def unused_quotas(
    series: Sequence[Series], grouping: Grouping, after: Tables, of_metrics: Iterable[Quota], declared: QuotaTable
) -> tuple[UnusedQuota, ...]:
    """Declared quotas that win for no recorded client, sorted. Those that stronger quotas override have a reason of their own.

    Where the history has nothing at all of what a key limits, but for bytes, nothing is reported of that key. ``of_metrics``:
    quotas of clients of metrics. ``after``: the proposed quotas, and no callback.
    """
    winning: dict[Kind, set[Entity]] = {kind: set() for kind in (*BYTES, *(client.kind for client in series))}
    hidden: dict[Kind, set[Entity]] = {kind: set() for kind in winning}
    for client, quota in zip(series, grouping.after_of_series, strict=True):
        if quota is None:
            # Any of them may be in use.
            winning[client.kind] |= _candidates(client, [after])
            continue
        if quota.winner is not None:
            winning[client.kind].add(quota.winner.entity)
        hidden[client.kind].update(candidate.entity for candidate in quota.overridden)
    unused = []
    for kind, of_kind in winning.items():
        key = KEY_OF_KIND[kind]
        of_kind.update(entity for entity, of_key in of_metrics if of_key == key)
        for entity, values in declared.items():
            if key in values and entity not in of_kind and (EntityType.IP in entity.types) == (kind is Kind.CONNECTION):
                reason = NotJudged.OVERRIDDEN if entity in hidden[kind] else NotJudged.NO_CLIENT
                unused.append(UnusedQuota(entity=entity, key=key.value, value=values[key], reason=reason))
    return tuple(sorted(unused, key=lambda quota: (quota.entity.sort_key, quota.key)))
