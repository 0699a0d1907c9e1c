"""The changes of a plan: desired against current state, inside the scope, key by key, and sorted in writing order.

What only loosens comes first, then new and tighter limits, then removals; one entity is never split. A run that breaks in the
middle thus leaves clients rather too free than too tight, and an exemption is in place before the default that it exempts from.
The order is total, so every rendering and every run agrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reconciler.model import (
    DEFAULT,
    KNOWN_KEYS,
    Action,
    Change,
    ClusterTotal,
    CurrentState,
    DesiredEntity,
    DesiredQuota,
    DesiredState,
    Entity,
    EntityType,
    KeyChange,
    Message,
    Proportional,
    Prune,
    QuotaKey,
    Quotas,
    QuotaUnit,
    Reason,
    Scope,
    Summary,
    ValueExpiry,
    compose,
    key_part,
    same_value,
    sorted_by_entity,
)
from reconciler.resolution import is_alterable, named_or_other, strength, weaker_levels
from reconciler.text import amount_part

MOST_BROKERS: Final = 1000
"""A value is compared with the parts for at most so many brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Changes, not yet in writing order, and what else was seen."""

    changes: tuple[Change, ...]
    summary: Summary
    unmanaged: tuple[Entity, ...] = ()
    """Entities on the cluster that no manifest declares and that are left, in the cluster's order."""


def difference(desired: DesiredState, current: CurrentState, *, scope: Scope, prune: Prune) -> Difference:
    """Compare every entity that either side knows.

    A declared entity owns all its known keys; keys that this tool does not know are left. Whole undeclared entities go
    only when the scope has them, ``prune`` is not ``never``, and the desired state is complete. Those whose change brokers refuse
    stay. Entities outside the scope never appear. Raises ``ValueError`` while values of the desired state are not computed yet.
    """
    if desired.with_units:
        raise uncomputed(desired)
    changes: list[Change] = []
    unmanaged: list[Entity] = []
    unchanged = declared = 0
    for entity, wanted in desired.entities.items():
        if not scope.contains(entity):
            continue
        live = current.entities.get(entity, {})
        declared += bool(live)
        keys = _declared_changes(wanted, live)
        if keys:
            changes.append(Change(entity=entity, action=action_of(live, keys), keys=keys, note=wanted.note))
        elif live or wanted.quotas:
            unchanged += 1
    may_prune = prune is not Prune.NEVER and desired.complete
    # Most often every entity is declared: then none has to be looked for.
    for entity, live in current.entities.items() if declared < len(current.entities) else ():
        if entity in desired.entities:
            continue
        keys = _removals(live) if may_prune and scope.contains(entity) and is_alterable(entity) else ()
        if keys:
            changes.append(Change(entity=entity, action=action_of(live, keys), keys=keys))
        else:
            unmanaged.append(entity)
    counts = Counter(change.action.value for change in changes)
    summary = Summary(unchanged=unchanged, unmanaged=len(unmanaged), **counts)
    return Difference(changes=tuple(changes), summary=summary, unmanaged=tuple(unmanaged))


def uncomputed(desired: DesiredState) -> ValueError:
    """The error while a value has to be computed: it would be taken for one that is not declared, and removed."""
    return ValueError(f"the values of {desired.with_units[0]} have to be computed first")


def _declared_changes(wanted: DesiredEntity, live: Quotas) -> tuple[KeyChange, ...]:
    # The quick answer for what most entities are, unchanged. A key is its own wire name.
    if len(live) == len(wanted.quotas):
        for key, quota in wanted.quotas.items():
            if live.get(key) != quota.value:
                break
        else:
            return ()
    changes: list[KeyChange] = []
    for key, quota in wanted.quotas.items():
        before = live.get(key.value)
        if before != quota.value:
            reason = Reason.NOT_IN_CURRENT if before is None else Reason.VALUE_DIFFERS
            change = KeyChange(
                key=key.value,
                before=before,
                after=quota.value,
                reason=reason,
                source=quota.source,
                profile=quota.profile,
                unit=quota.unit,
                brokers_before=None if quota.unit is None else brokers_of_part(quota.unit, before),
                expiry=expiry_of(wanted, key) if wanted.expiries else None,
            )
            changes.append(change)
    declared = {key.value for key in wanted.quotas}
    for name, value in live.items():
        if name in KNOWN_KEYS and name not in declared:
            expiry = wanted.expiries.get(QuotaKey(name))
            change = KeyChange(
                key=name,
                before=value,
                after=None,
                reason=Reason.KEY_NOT_IN_MANIFEST,
                source=wanted.source if expiry is None else expiry.source,
                expiry=None if expiry is None else expiry.of_value,
            )
            changes.append(change)
    return tuple(sorted(changes, key=lambda change: change.key))


def expiry_of(declared: DesiredEntity, key: QuotaKey) -> ValueExpiry | None:
    """The expiry of one key, if it has one."""
    expiry = declared.expiries.get(key)
    return None if expiry is None else expiry.of_value


def _removals(live: Quotas) -> tuple[KeyChange, ...]:
    known = sorted(name for name in live if name in KNOWN_KEYS)
    return tuple(KeyChange(key=n, before=live[n], after=None, reason=Reason.ENTITY_NOT_IN_MANIFEST) for n in known)


def action_of(live: Quotas, keys: tuple[KeyChange, ...]) -> Action:
    """Return the action of these changes on an entity that has these quotas now."""
    if not live:
        return Action.CREATE
    kept = len(live) - sum(1 for k in keys if k.before is not None)
    if kept == 0 and all(k.after is None for k in keys):
        return Action.DELETE
    return Action.UPDATE


def change_of_one(entity: Entity, live: Quotas, *, add: Mapping[str, float], delete: Collection[str]) -> Change | None:
    """Return the change that is left to do. ``None`` when the entity has all of ``add`` and nothing of ``delete`` already."""
    changes = [KeyChange(key=key, before=live[key], after=None, reason=Reason.ON_REQUEST) for key in delete if key in live]
    for key, value in add.items():
        before = live.get(key)
        if not same_value(before, value):
            reason = Reason.NOT_IN_CURRENT if before is None else Reason.VALUE_DIFFERS
            changes.append(KeyChange(key=key, before=before, after=value, reason=reason))
    if not changes:
        return None
    keys = tuple(sorted(changes, key=lambda key: key.key))
    return Change(entity=entity, action=action_of(live, keys), keys=keys)


def nothing_to_do_notes(entity: Entity, live: Quotas, *, add: Mapping[str, float], delete: Collection[str]) -> Iterator[Message]:
    """A sentence for every key that is as it was asked for already."""
    for key in sorted(delete):
        if key not in live:
            yield compose("{key} is not set for {entity}. Nothing to delete.", key=key_part(key), entity=entity)
    for key, value in sorted(add.items()):
        if same_value(live.get(key), value):
            yield compose(
                "{key} for {entity} is {value} already.", key=key_part(key), entity=entity, value=amount_part(key, value)
            )


def quotas_after(entities: Mapping[Entity, Quotas], changes: Iterable[Change]) -> dict[Entity, Quotas]:
    """Return the quotas of a cluster once the changes are written. An entity that they leave without keys is gone."""
    left = dict(entities)
    for change in changes:
        quotas = dict(left.pop(change.entity, {}))
        for key in change.keys:
            quotas.pop(key.key, None)
            if key.after is not None:
                quotas[key.key] = key.after
        if quotas:
            left[change.entity] = quotas
    return left


def sort_for_writing(changes: Iterable[Change], current: Mapping[Entity, Quotas]) -> tuple[Change, ...]:
    """Sort changes for writing. ``current`` gives the limit that a removed one falls back to."""
    pending = tuple(changes)
    if len(pending) < 2:  # Nothing to sort, so there is no reason to go through everything that the cluster has.
        return pending
    removed = {key.key for change in pending for key in change.keys if key.after is None}
    holders = {key: _Holders(entity for entity, quotas in current.items() if key in quotas) for key in removed}
    return tuple(sorted(sorted_by_entity(pending, lambda change: change.entity), key=lambda change: _rank(change, holders)))


def _rank(change: Change, holders: Mapping[str, _Holders]) -> tuple[int, int]:
    breadth = strength(change.entity)
    if change.action is Action.CREATE:
        return 1, breadth
    if all(_loosens(change.entity, key, holders) for key in change.keys):
        return 0, breadth
    return (1, breadth) if any(key.after is not None for key in change.keys) else (2, -breadth)


def _loosens(entity: Entity, key: KeyChange, holders: Mapping[str, _Holders]) -> bool:
    if key.before is None:
        return False
    if key.after is not None:
        return key.after > key.before
    return not holders[key.key].may_catch(entity)


class _Holders:
    """The entities that carry one key, indexed by the question "who catches the clients of this entity?"."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._entities = frozenset(entities)
        self._levels = {strength(e) for e in self._entities if e.name(EntityType.IP) is None}

    def may_catch(self, entity: Entity) -> bool:
        """True when some client of ``entity`` may fall to another holder once ``entity`` has no limit of its own."""
        if EntityType.IP in entity.types:
            default = Entity.of({EntityType.IP: DEFAULT})
            return entity != default and default in self._entities
        user, client_id = named_or_other(entity)
        weaker = ((level.number, level.entity_for(user, client_id)) for level in weaker_levels(entity))
        return any(
            number in self._levels if weaker_entity is None else weaker_entity in self._entities
            for number, weaker_entity in weaker
        )


def brokers_of_part(unit: QuotaUnit | None, value: float | None) -> int | None:
    """Return the number of brokers for which a value is the part of this total. ``None`` for the number of now, or for none.

    The whole total is not a part: a limit of 10 MiB/s that becomes a total of 10 MiB/s is a change of the author. Up to the
    result, every number of brokers has ``perBroker`` as its part.
    """
    if not isinstance(unit, ClusterTotal) or value is None or not 0 < value < unit.value:
        return None
    total, most = int(unit.value), unit.per_broker or unit.value
    count = int(total // value)
    if not 2 <= count <= MOST_BROKERS or min(total // count, most) != value:
        return None
    return None if unit.brokers is not None and min(total // unit.brokers, most) == value else count


def keep_parts(desired: DesiredState, live: Mapping[Entity, Quotas]) -> tuple[DesiredState, int, int]:
    """The state with the cluster's own value where it is the part of the same total for other brokers or other leaders.

    The number of such values follows, for other brokers and for other leaders. Units of the latter have no leaders.
    """
    entities: dict[Entity, DesiredEntity] = {}
    kinds: Counter[type] = Counter()
    for entity, declared in desired.entities.items():
        present = live.get(entity, {})
        parts: dict[QuotaKey, DesiredQuota] = {}
        for key, quota in declared.quotas.items():
            value = present.get(key.value)
            unit = None if value is None else _unit_of_part(quota, value)
            if value is not None and unit is not None:
                parts[key] = quota._replace(value=value, unit=unit)
                kinds[type(unit)] += 1
        if parts:
            entities[entity] = replace(declared, quotas={**declared.quotas, **parts})
    state = replace(desired, entities={**desired.entities, **entities}) if entities else desired
    return state, kinds[ClusterTotal], kinds[Proportional]


def _unit_of_part(quota: DesiredQuota, value: float) -> QuotaUnit | None:
    unit = quota.unit
    if isinstance(unit, ClusterTotal):
        count = brokers_of_part(unit, value)
        return None if count is None else replace(unit, brokers=count)
    if isinstance(unit, Proportional) and value != quota.value and is_leader_part(unit, value):
        return replace(unit, leaders=None, partitions=None)
    return None


def is_leader_part(unit: Proportional, value: float) -> bool:
    """Whether a value is the rounded part of this total for some number of its partitions."""
    if not unit.partitions or not 0 < value <= unit.value or not value.is_integer():
        return False
    total = int(unit.value)
    led = -(-int(value) * unit.partitions // total)
    return led <= unit.partitions and total * led // unit.partitions == value
