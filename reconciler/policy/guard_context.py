"""Input and result of guards, and their wording of entity counts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reconciler.model import Change, ClusterSpec, CurrentState, DesiredState, Entity, Message, Span
from reconciler.text import count_of, list_entities

SHOWN: Final = 3
"""How many names a message lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedAt:
    """Where manifests own an entity: at its entry when they declare it, else at the scope around it, if that is written."""

    declared: bool
    place: Span | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardContext:
    """Everything a guard may use. ``now`` has a time zone.

    ``claimed_elsewhere``: entities that the manifests also declare under another name of the same cluster, and that name.
    ``managed``: entities that are changed by hand although manifests own them. ``of_all_owners``: the changes are of several
    owners, of which each was measured alone before. ``accepted_fallbacks``: keys that get what the manifests declare to follow
    a value that expired, which was reviewed together with that value.
    """

    changes: tuple[Change, ...]
    desired: DesiredState
    current: CurrentState
    spec: ClusterSpec
    now: datetime.datetime
    claimed_elsewhere: Mapping[Entity, str] = field(default_factory=dict)
    managed: Mapping[Entity, ManagedAt] = field(default_factory=dict)
    of_all_owners: bool = False
    accepted_fallbacks: frozenset[tuple[Entity, str]] = frozenset()

    def new_changes(self) -> tuple[Change, ...]:
        """The changes without accepted fallbacks: what nothing has reviewed yet."""
        if not self.accepted_fallbacks:
            return self.changes
        left = []
        for change in self.changes:
            keys = tuple(key for key in change.keys if (change.entity, key.key) not in self.accepted_fallbacks)
            if keys:
                left.append(replace(change, keys=keys))
        return tuple(left)

    def live_in_scope(self) -> int:
        """Entities on the cluster that this repository owns."""
        return sum(1 for entity in self.current.entities if self.spec.scope.contains(entity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of a guard. The guard trips exactly when ``entities`` is not empty; ``why``: one or two sentences.

    A guard that only warns makes a note instead of a refusal.
    """

    entities: tuple[Entity, ...]
    measured: str
    limit: str
    why: Message
    set_in: Span | None = None
    only_warns: bool = False


def trip_on_any(entities: tuple[Entity, ...], *, why: Message, set_in: Span | None = None) -> Measurement:
    """The result of a guard that trips on any entity."""
    return Measurement(entities=entities, measured=entity_count(len(entities)), limit="0 entities", why=why, set_in=set_in)


def share(entities: Sequence[Entity], context: GuardContext) -> tuple[float, str]:
    """The share of the entities in scope, in percent and as text."""
    if not entities:
        return 0.0, "0 entities"
    live = context.live_in_scope()
    percent = 100 * len(entities) / live if live else 0.0
    return percent, f"{len(entities)} of {entity_count(live)} ({percent:.3g} %)"


def entity_count(count: int) -> str:
    """``1 entity``, ``2 entities``."""
    return count_of(count, "entity", "entities")


def name_entities(entities: Sequence[Entity]) -> Message:
    """The first few, and how many more."""
    return list_entities(entities, SHOWN)
