"""Quotas that limit no recorded traffic: declared ones, and changed ones of whose effect the history shows nothing."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from reconciler.model import (
    NOT_RECORDED,
    Entity,
    EntityType,
    Finding,
    NotJudged,
    QuotaKey,
    Severity,
    Span,
    UnjudgedChange,
    UnusedQuota,
    UnusedReason,
    compose,
    key_part,
)
from reconciler.resolution import AddressLimits, QuotaTable, Resolver
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind

_Client: TypeAlias = tuple[str | None, str | None]
_MOST_FINDINGS: Final = 50
"""Of one key. The last one counts the rest."""


def unjudged_changes(
    series: Sequence[Series],
    grouping: Grouping,
    tables: Sequence[Tables],
    quotas: tuple[QuotaTable | None, QuotaTable],
    unused: Sequence[UnusedQuota],
    kinds: Collection[Kind],
) -> tuple[UnjudgedChange, ...]:
    """Each quota that differs between ``quotas`` (before, after) and limits no series on either side, by entity and key.

    ``kinds``: those of all recorded traffic, of metrics too.
    ``tables``: the same quotas as brokers resolve them; none where a quota callback does. Earlier quotas that are not known
    count as absent. A key without any quota after the change limits nothing, so its removals are left out. Where a quota
    callback decides, only changes of kinds without any traffic are returned: which entity a callback takes a limit from is
    not known.
    """
    before, after = quotas[0] or {}, quotas[1]
    overridden = {(one.entity, one.key) for one in unused if one.reason is UnusedReason.HIDDEN}
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
                message=compose(
                    "The backtest cannot judge {key} of {entity}: {why}. The effect of this change is not known.{more}",
                    key=key_part(key),
                    entity=one.entity,
                    why=one.why,
                    more=more,
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


def unused_quotas(series: Sequence[Series], declared: QuotaTable, proposed: QuotaTable) -> tuple[UnusedQuota, ...]:
    """Declared quotas that win for no recorded client, sorted; those that stronger quotas hide are told apart.

    Where the history has nothing at all of what a key limits, but for bytes, nothing is said of that key.
    """
    found = []
    clients_of: dict[Kind, set[_Client]] = {kind: set() for kind in KEY_OF_KIND}
    for one in series:
        clients_of[one.kind].add((one.user, one.client_id))
    addresses = {one.ip for one in series if one.ip is not None}
    for kind, key in KEY_OF_KIND.items():
        clients = clients_of[kind]
        if not clients and kind not in BYTES:
            continue
        by_address = kind is Kind.CONNECTION
        winning, hidden = _of_addresses(addresses, proposed) if by_address else _of_clients(clients, Resolver(proposed, key))
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


def _of_addresses(addresses: Iterable[str], proposed: QuotaTable) -> tuple[set[Entity], set[Entity]]:
    """The same for addresses."""
    limits = AddressLimits(proposed)
    resolved = [limits.resolve(address) for address in addresses]
    winning = {one.source for one in resolved if one.source is not None}
    return winning, {c.entity for one in resolved for c in one.overridden}
