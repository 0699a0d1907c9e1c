"""Connection limits by address: explicit, else the default address, else off. Users and client ids play no part."""

from __future__ import annotations

from typing import Final

from reconciler.model.entity import DEFAULT, Entity, EntityType
from reconciler.model.quota import QuotaKey
from reconciler.resolution.levels import Candidate, QuotaTable

EXPLICIT_LEVEL: Final = 1
DEFAULT_LEVEL: Final = 2

_KEY: Final = QuotaKey.CONNECTION_CREATION_RATE.value


def resolve_address(quotas: QuotaTable, address: str) -> tuple[Candidate, ...]:
    """The quotas about an address as written in the entity: the first wins, a second is the default that it hides; none: off."""
    found = []
    for name, level in ((address, EXPLICIT_LEVEL), (DEFAULT, DEFAULT_LEVEL)):
        entity = Entity.of({EntityType.IP: name})
        value = quotas.get(entity, {}).get(_KEY)
        if value is not None:
            found.append(Candidate(entity=entity, value=value, level=level))
    return tuple(found)
