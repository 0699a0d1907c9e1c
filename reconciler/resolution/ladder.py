"""The levels of one key for one client as a ladder: what is set where, and which rung is hit."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.model import DEFAULT, OTHER, ClientName, Entity, EntityName, EntityType, KnownAddress, KnownClient
from reconciler.resolution.addresses import AddressTable
from reconciler.resolution.levels import USER_LEVELS, Candidate, Resolver

_DEFAULT_ADDRESS: Final = Entity.of({EntityType.IP: DEFAULT})


class RungStatus(enum.StrEnum):
    """What a level does for a client."""

    WINS = "wins"
    HIDDEN = "hidden"
    """Set, and a stronger level wins."""
    UNSET = "unset"
    NOT_APPLICABLE = "not-applicable"
    """No quota at this level can be about this client, whatever is set: it sends no client id, or has a name that none names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One level. ``entity``: what would have to be set there for this client; ``None`` when nothing can be."""

    level: int
    entity: Entity | None
    value: float | None
    status: RungStatus


def client_ladder(resolver: Resolver, client: KnownClient, winner: Candidate | None) -> tuple[Rung, ...]:
    """The eight levels, the strongest first."""
    return tuple(_rungs(resolver, client, winner))


def address_ladder(table: AddressTable, address: KnownAddress) -> tuple[Rung, ...]:
    """The two levels of connection limits."""
    answer = table.resolve(address.ip)
    explicit = next((c for c in answer.found if c.entity != _DEFAULT_ADDRESS), None)
    default = next((c for c in answer.found if c.entity == _DEFAULT_ADDRESS), None)
    winner = table.winner(address.ip)
    name = address.ip
    asked = None if name is OTHER else explicit.entity if explicit else Entity.of({EntityType.IP: name})
    return (
        _rung(1, asked, explicit, winner, reachable=asked is not None),
        _rung(2, _DEFAULT_ADDRESS, default, winner, reachable=True),
    )


def _rungs(resolver: Resolver, client: KnownClient, winner: Candidate | None) -> Iterator[Rung]:
    user, client_id = client.user, client.client_id
    shapes: tuple[tuple[ClientName | EntityName | None, ClientName | EntityName | None], ...] = (
        (user, client_id), (user, DEFAULT), (user, None), (DEFAULT, client_id),
        (DEFAULT, DEFAULT), (DEFAULT, None), (None, client_id), (None, DEFAULT),
    )  # fmt: skip
    held = resolver.candidates(user, client_id)
    for level, (shape, candidate) in enumerate(zip(shapes, held, strict=True), start=1):
        entity = _entity(*shape)
        reachable = entity is not None and (client_id != "" or level in USER_LEVELS)
        yield _rung(level, entity, candidate, winner, reachable=reachable)


def _rung(level: int, entity: Entity | None, held: Candidate | None, winner: Candidate | None, *, reachable: bool) -> Rung:
    if not reachable:
        status = RungStatus.NOT_APPLICABLE
    elif held is None:
        status = RungStatus.UNSET
    else:
        status = RungStatus.WINS if held is winner else RungStatus.HIDDEN
    return Rung(level=level, entity=entity, value=held.value if held else None, status=status)


def _entity(user: ClientName | EntityName | None, client_id: ClientName | EntityName | None) -> Entity | None:
    names: dict[str, EntityName] = {}
    for entity_type, name in ((EntityType.USER.value, user), (EntityType.CLIENT_ID.value, client_id)):
        if name is OTHER or name == "":
            return None
        if name is not None:
            names[entity_type] = name
    return Entity.of(names)
