"""The writing order: what only loosens first, then new and tighter limits, then removals; one entity is never split.

A run that breaks in the middle thus leaves clients rather too free than too tight, and an exemption is in place before the
default that it exempts from. The order is total, so every rendering and every run agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model import DEFAULT, Change, Entity, EntityType, KeyChange, Quotas
from reconciler.resolution import CLIENT_PRECEDENCE, level_of, named_or_other, weaker_levels


def sort_for_writing(changes: Iterable[Change], current: Mapping[Entity, Quotas]) -> tuple[Change, ...]:
    """Sort changes for writing. ``current`` gives the limit that a removed one falls back to."""
    pending = tuple(changes)
    removed = {key.key for change in pending for key in change.keys if key.after is None}
    holders = {key: _Holders(entity for entity, quotas in current.items() if key in quotas) for key in removed}
    return tuple(sorted(pending, key=lambda change: _rank(change, holders)))


def _rank(change: Change, holders: Mapping[str, _Holders]) -> tuple[int, int, object]:
    breadth = specificity(change.entity)
    if all(_loosens(change.entity, key, holders) for key in change.keys):
        return (0, breadth, change.entity.sort_key)
    if any(key.after is not None for key in change.keys):
        return (1, breadth, change.entity.sort_key)
    return (2, -breadth, change.entity.sort_key)


def _loosens(entity: Entity, key: KeyChange, holders: Mapping[str, _Holders]) -> bool:
    if key.before is None:
        return False
    if key.after is not None:
        return key.after > key.before
    return not holders[key.key].may_catch(entity)


def specificity(entity: Entity) -> int:
    """The number of its precedence level; an address ranks with the strongest, the default address with the weakest level."""
    level = level_of(entity)
    if level is not None:
        return level.number
    return len(CLIENT_PRECEDENCE) if entity.has_default else 1


class _Holders:
    """The entities that carry one key, indexed by the question "who catches the clients of this entity?"."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._entities = frozenset(entities)
        self._levels = {specificity(e) for e in self._entities if e.name(EntityType.IP) is None}

    def may_catch(self, entity: Entity) -> bool:
        """True when some client of ``entity`` may fall to another holder once ``entity`` has no limit of its own."""
        if EntityType.IP in entity.types:
            default = Entity.of({EntityType.IP: DEFAULT})
            return entity != default and default in self._entities
        user, client_id = named_or_other(entity)
        weaker = ((level.number, level.entity_for(user, client_id)) for level in weaker_levels(entity))
        return any(number in self._levels if one is None else one in self._entities for number, one in weaker)
