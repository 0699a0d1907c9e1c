"""Which quotas a history could judge: changed quotas with their rows of the report, and quotas that limit no recorded client."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self, TypeAlias

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
    UnusedReason,
    Verdict,
    compose,
    key_part,
)
from reconciler.resolution import AddressLimits, QuotaTable, Resolver
from reconciler.traffic.judging.grouping import Grouping, Series, Tables
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind

Quota: TypeAlias = tuple[Entity, str]
_KNOWN: frozenset[Verdict] = frozenset({Verdict.THROTTLED, Verdict.POSSIBLE})


def rows_of_quotas(series: Sequence[Series], grouping: Grouping, tables: Sequence[Tables]) -> dict[Quota, set[RowPlace]]:
    """Return, by quota, the rows of the report whose clients it limits, before or after the change, or may limit."""
    rows: dict[Quota, set[RowPlace]] = {}
    for target in grouping.targets:
        key, place = target.kind.key.value, target.place
        sides = [target.after, *(grouping.before_of_series[member] for member in target.members)]
        entities = {side.source for side in sides if side is not None and side.source is not None}
        if target.undecided:
            entities |= _candidates(series[target.members[0]], tables)
        for entity in entities:
            rows.setdefault((entity, key), set()).add(place)
    return rows


def changed_quotas(before: QuotaTable | None, after: QuotaTable) -> set[Quota]:
    """Each quota that differs. Earlier quotas that are not known count as absent."""
    tables = before or {}, after
    return {
        (entity, key.value)
        for key in QuotaKey
        for entity in {*tables[0], *tables[1]}
        if tables[0].get(entity, {}).get(key) != tables[1].get(entity, {}).get(key)
    }


def states_of_quotas(
    changed: Collection[Quota], rows: Mapping[Quota, Collection[RowPlace]], verdicts: Iterable[BucketVerdict]
) -> dict[Quota, frozenset[Verdict]]:
    """Return, by changed quota, the verdicts of the rows that it limits. Quotas without a row are left out."""
    verdict_of = {verdict.place: verdict.verdict for verdict in verdicts}
    limiting = changed if len(changed) < len(rows) else (quota for quota in rows if quota in changed)
    states = {quota: frozenset(verdict_of[place] for place in rows.get(quota, ()) if place in verdict_of) for quota in limiting}
    return {quota: known for quota, known in states.items() if known}


def judged_quotas(
    changed: Collection[Quota], states: Mapping[Quota, frozenset[Verdict]], unjudged: Iterable[UnjudgedChange]
) -> JudgedQuotas:
    """A quota is judged unless it limits no recorded traffic, or its worst row is inconclusive.

    ``states``: from ``states_of_quotas``.
    """
    without_traffic = {(change.entity, change.key) for change in unjudged}
    unknown = 0
    for quota in changed:
        known = states.get(quota, frozenset())
        unknown += quota not in without_traffic and Verdict.INCONCLUSIVE in known and not known & _KNOWN
    return JudgedQuotas(
        changed=len(changed), judged=len(changed) - len(without_traffic) - unknown, without_traffic=len(without_traffic)
    )


_Client: TypeAlias = tuple[str | None, str | None]
_MOST_FINDINGS: Final = 50
"""Of one key. The last one counts the rest."""


def limiting_entities(series: Sequence[Series], rows: Iterable[Quota], *, calls_back: bool) -> dict[Kind, frozenset[Entity]]:
    """Return, by kind, the entities whose quotas limit a series, or may limit one whose client is not known whole.

    ``rows``: from ``rows_of_quotas``. Kinds of recorded clients whose entities only a quota callback knows (``calls_back``) are
    left out.
    """
    unknown = {client.kind for client in series if calls_back and client.kind is not Kind.CONNECTION}
    quotas = set(rows)
    return {
        kind: frozenset(entity for entity, of_key in quotas if of_key == key)
        for kind, key in KEY_OF_KIND.items()
        if kind not in unknown
    }


def _candidates(client: Series, tables: Sequence[Tables]) -> set[Entity]:
    """The entities whose quotas may limit a client that is known in part; none where a callback decides."""
    found_tables = (table[client.kind.key] for table in tables)
    resolvers = (table for table in found_tables if isinstance(table, Resolver))
    return {may.entity for table in resolvers for may in table.touches(client.user, client.client_id)}


def unjudged_changes(
    limiting: Mapping[Kind, Collection[Entity]],
    quotas: tuple[QuotaTable | None, QuotaTable],
    unused: Sequence[UnusedQuota],
    kinds: Collection[Kind],
) -> tuple[UnjudgedChange, ...]:
    """Each quota that differs between ``quotas`` (before, after) and limits no series on either side, by entity and key.

    ``limiting``: from ``limiting_entities``. ``kinds``: those of all recorded traffic, of metrics too.
    Earlier quotas that are not known count as absent. A key without any quota after the change limits nothing, so its removals
    are left out. Where a quota callback decides, only changes of kinds without any traffic are returned.
    """
    before, after = quotas[0] or {}, quotas[1]
    differ = changed_quotas(*quotas)
    overridden = {(quota.entity, quota.key) for quota in unused if quota.reason is UnusedReason.HIDDEN}
    changes = []
    for kind, key in KEY_OF_KIND.items():
        if kind not in limiting or not any(key in values for values in after.values()):
            continue
        for entity, of_key in differ:
            if of_key == key and entity not in limiting[kind]:
                why = NotJudged.OVERRIDDEN if (entity, key.value) in overridden else NotJudged.NO_CLIENT
                changes.append(
                    UnjudgedChange(
                        entity=entity,
                        key=key.value,
                        before=before.get(entity, {}).get(key),
                        after=after.get(entity, {}).get(key),
                        reason=why if kind in kinds else NotJudged.NO_TRAFFIC,
                    )
                )
    return tuple(sorted(changes, key=lambda change: (change.entity.sort_key, change.key)))


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


class UsedQuotas(NamedTuple):
    """Entities whose quotas of one key win for a recorded client, and those that stronger quotas override for one."""

    winning: frozenset[Entity] = frozenset()
    hidden: frozenset[Entity] = frozenset()

    def joined(self, other: Self) -> Self:
        """Add those of other clients."""
        return self._replace(winning=self.winning | other.winning, hidden=self.hidden | other.hidden)


def used_quotas(series: Sequence[Series], proposed: QuotaTable, resolvers: Mapping[str, object]) -> dict[Kind, UsedQuotas]:
    """Return the used quotas by kind of the series. ``resolvers``: ``proposed`` by key."""
    clients_of: dict[Kind, set[_Client]] = {}
    for client in series:
        clients_of.setdefault(client.kind, set()).add((client.user, client.client_id))
    used = {}
    for kind, clients in clients_of.items():
        if kind is Kind.CONNECTION:
            limits = AddressLimits(proposed)
            resolved = [limits.resolve(address) for address in {client.ip for client in series if client.ip is not None}]
            winning = {quota.source for quota in resolved if quota.source is not None}
            hidden = {candidate.entity for quota in resolved for candidate in quota.overridden}
        else:
            resolver = resolvers[kind.key]
            assert isinstance(resolver, Resolver)
            winning, hidden = _of_clients(clients, resolver)
        used[kind] = UsedQuotas(frozenset(winning), frozenset(hidden))
    return used


def unused_quotas(used: Mapping[Kind, UsedQuotas], declared: QuotaTable) -> tuple[UnusedQuota, ...]:
    """Declared quotas that win for no recorded client, sorted. Those that stronger quotas override have a reason of their own.

    Where the history has nothing at all of what a key limits, but for bytes, nothing is reported of that key.
    """
    unused = []
    for kind, key in KEY_OF_KIND.items():
        if kind not in used and kind not in BYTES:
            continue
        winning, hidden = used.get(kind, UsedQuotas())
        for entity, values in declared.items():
            if key in values and entity not in winning and (EntityType.IP in entity.types) == (kind is Kind.CONNECTION):
                reason = UnusedReason.HIDDEN if entity in hidden else UnusedReason.NO_CLIENT
                unused.append(UnusedQuota(entity=entity, key=key.value, value=values[key], reason=reason))
    return tuple(sorted(unused, key=lambda u: (u.entity.sort_key, u.key)))


def _of_clients(clients: Iterable[_Client], resolver: Resolver) -> tuple[set[Entity], set[Entity]]:
    """Return the entities whose quotas win for some clients, and those whose quotas do not where they could."""
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
