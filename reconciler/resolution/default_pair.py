"""The quota that makes brokers measure every client and changes no limit: one of the default user with the default client-id.

A broker has metrics of clients for a key only while some quota has this key. A limit far above any network on the default pair
brings them for each user with each client-id. It is stronger than quotas of the default user, of client-ids and of the default
client-id, and than the static limits of brokers before Kafka 3.0. Where one of these exists, the pair would lift it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.model import CLIENT_KEYS, DEFAULT, Entity, EntityType
from reconciler.resolution.precedence import level_of
from reconciler.resolution.resolver import QuotaTable

EXPOSING_ENTITY: Final = Entity.of({EntityType.USER.value: DEFAULT, EntityType.CLIENT_ID.value: DEFAULT})
EXPOSING_VALUES: Final[Mapping[str, float]] = {key.value: key.unreachable for key in CLIENT_KEYS}
"""What no client reaches, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What can be done for some keys. Each of them is in one of the four."""

    add: Mapping[str, float]
    """Values to set on ``EXPOSING_ENTITY``. No client has another limit then, but for those without any."""
    present: tuple[str, ...]
    """Keys that the default pair has already."""
    overridden: Mapping[str, tuple[Entity, ...]]
    """By key, the quotas that the default pair would override, the strongest first. While one exists, brokers measure clients."""
    static: tuple[str, ...]
    """Keys that a static setting of the brokers limits."""


def overridden_by_default_pair(quotas: QuotaTable, key: str) -> tuple[Entity, ...]:
    """The quotas with this key that a default pair would override, the strongest level first, then by name."""
    pair = level_of(EXPOSING_ENTITY)
    levels = {
        entity: level.number
        for entity, values in quotas.items()
        if key in values and (level := level_of(entity)) is not None and pair is not None and level.number > pair.number
    }
    return tuple(sorted(levels, key=lambda entity: (levels[entity], str(entity))))


def exposure(quotas: QuotaTable, keys: Collection[str], *, static: Collection[str] = ()) -> Exposure:
    """Sort the keys by what a default pair would do. ``static``: those that settings of the brokers limit."""
    present = tuple(key for key in keys if key in quotas.get(EXPOSING_ENTITY, {}))
    others = [key for key in keys if key not in present]
    overridden = {key: entities for key in others if (entities := overridden_by_default_pair(quotas, key))}
    limited = tuple(key for key in others if key in static and key not in overridden)
    add = {key: EXPOSING_VALUES[key] for key in others if key not in overridden and key not in limited}
    return Exposure(add=add, present=present, overridden=overridden, static=limited)
