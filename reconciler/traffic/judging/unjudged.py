"""Changed quotas that limit no recorded traffic: the history shows nothing about their effect."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from reconciler.model import (
    NOT_RECORDED,
    Entity,
    Finding,
    NotJudged,
    QuotaKey,
    Severity,
    Span,
    UnjudgedChange,
    UnusedQuota,
    UnusedReason,
)
from reconciler.resolution import QuotaTable, Resolver
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.kinds import KEY_OF_KIND, Kind

_MOST_FINDINGS: Final = 50
"""Of one key. The last one counts the rest."""


def unjudged_changes(
    series: Sequence[Series],
    grouping: Grouping,
    tables: Sequence[Tables],
    quotas: tuple[QuotaTable | None, QuotaTable],
    unused: Sequence[UnusedQuota],
) -> tuple[UnjudgedChange, ...]:
    """Each quota that differs between ``quotas`` (before, after) and limits no series on either side, by entity and key.

    ``tables``: the same quotas as brokers resolve them; none where a quota callback does. Earlier quotas that are not known
    count as absent. A key without any quota after the change limits nothing, so its removals are left out. Where a quota
    callback decides, only changes of kinds without any traffic are returned: which entity a callback takes a limit from is
    not known.
    """
    before, after = quotas[0] or {}, quotas[1]
    overridden = {(one.entity, one.key) for one in unused if one.reason is UnusedReason.HIDDEN}
    kinds = {one.kind for one in series}
    found = []
    for kind, key in KEY_OF_KIND.items():
        changed = _changed(key, before, after)
        if not changed or not any(key in values for values in after.values()):
            continue
        limiting = _limiting(kind, series, grouping, tables)
        for entity in changed:
            if limiting is not None and entity not in limiting:
                why = NotJudged.OVERRIDDEN if (entity, key.value) in overridden else NotJudged.NO_CLIENT
                found.append(
                    UnjudgedChange(
                        entity=entity,
                        key=key.value,
                        before=before.get(entity, {}).get(key),
                        after=after.get(entity, {}).get(key),
                        reason=why if kind in kinds else NotJudged.NO_TRAFFIC,
                    )
                )
    return tuple(sorted(found, key=lambda one: (one.entity.sort_key, one.key)))


def unjudged_findings(unjudged: Sequence[UnjudgedChange], sources: Mapping[tuple[Entity, str], Span]) -> Iterator[Finding]:
    """A warning for each change; of many changes of one key, the last warning counts the rest."""
    for key, changes in itertools.groupby(sorted(unjudged, key=lambda one: one.key), key=lambda one: one.key):
        some = list(changes)
        for count, one in enumerate(some[:_MOST_FINDINGS], start=1):
            rest = len(some) - count
            more = f" {rest} more changed quotas of this key are not judged either." if count == _MOST_FINDINGS and rest else ""
            yield Finding(
                id=NOT_RECORDED,
                severity=Severity.WARNING,
                message=(
                    f"The backtest cannot judge {key} of {one.entity}: {one.why}. The effect of this change is not known.{more}"
                ),
                span=sources.get((one.entity, key)),
                entity=one.entity,
                key=QuotaKey(key),
            )


def _changed(key: QuotaKey, before: QuotaTable, after: QuotaTable) -> tuple[Entity, ...]:
    entities = {entity for table in (before, after) for entity, values in table.items() if key in values}
    differ = (one for one in entities if before.get(one, {}).get(key) != after.get(one, {}).get(key))
    return tuple(sorted(differ, key=lambda entity: entity.sort_key))


def _limiting(kind: Kind, series: Sequence[Series], grouping: Grouping, tables: Sequence[Tables]) -> Collection[Entity] | None:
    """The entities whose quotas limit a series of this kind, or may limit one whose client is not known whole.

    ``None``: a quota callback decides about series of this kind.
    """
    if not tables and kind is not Kind.CONNECTION and any(one.kind is kind for one in series):
        return None
    limits = [table[kind.key] for table in tables]
    found: set[Entity] = set()
    for one, target, earlier in zip(series, grouping.target_of_series, grouping.before_of_series, strict=True):
        if one.kind is not kind:
            continue
        chosen = grouping.targets[target]
        if chosen.undecided:
            resolvers = [table for table in limits if isinstance(table, Resolver)]
            found.update(may.entity for table in resolvers for may in table.touches(one.user, one.client_id))
        found.update(winner.source for winner in (chosen.after, earlier) if winner is not None and winner.source is not None)
    return found
