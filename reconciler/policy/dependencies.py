"""Which changes must not be written while others are withheld.

Of two changes to one key, one may decide what the clients of the other get. Written alone, such a change would give a client a
limit that is neither its limit of now nor the one that was reviewed. A new default must wait for the exemption from it, and a
removal must wait for the value that it falls back to. With these rules, every client has its limit of before the run or of the
whole plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.model import Change, Entity, EntityType, KeyChange
from reconciler.resolution import overlap, strength

_Index: TypeAlias = dict[tuple[str, str | None], list["_HeldKey"]]
_ANY: Final = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldKey:
    owner: str | None
    entity: Entity
    key: KeyChange


class HeldChanges:
    """Changes that are not written, for the question which other changes must wait for them."""

    def __init__(self) -> None:
        self._every: dict[str, list[_HeldKey]] = defaultdict(list)
        self._by_user: _Index = defaultdict(list)
        self._by_client: _Index = defaultdict(list)

    def add(self, owner: str | None, changes: Iterable[Change]) -> None:
        """Changes of one owner."""
        for change in changes:
            for key in change.keys:
                held = _HeldKey(owner=owner, entity=change.entity, key=key)
                self._every[key.key].append(held)
                self._by_user[key.key, _named(change.entity, EntityType.USER)].append(held)
                self._by_client[key.key, _named(change.entity, EntityType.CLIENT_ID)].append(held)

    def owners_before(self, change: Change) -> Iterator[str | None]:
        """Owners of changes that a change must wait for, once for each reason."""
        for key in change.keys:
            for held in self._near(change.entity, key.key):
                if held.entity != change.entity and _must_wait(change.entity, key, held) and overlap(change.entity, held.entity):
                    yield held.owner

    def _near(self, entity: Entity, key: str) -> Iterator[_HeldKey]:
        """A superset of the held changes that overlap: most entities name a user, and few others have the same."""
        user, client_id = _named(entity, EntityType.USER), _named(entity, EntityType.CLIENT_ID)
        index, name = (self._by_user, user) if user is not None else (self._by_client, client_id)
        if name is None:
            yield from self._every.get(key, ())
            return
        yield from index.get((key, name), ())
        yield from index.get((key, _ANY), ())


def _named(entity: Entity, entity_type: EntityType) -> str | None:
    name = entity.name(entity_type)
    return name if isinstance(name, str) else None


def _must_wait(entity: Entity, key: KeyChange, held: _HeldKey) -> bool:
    if key.after is None:
        # Where the value goes, another one decides: the held one, before or after its change.
        return True
    creates = held.key.before is None and held.key.after is not None
    return creates and strength(held.entity) < strength(entity)
