"""The levels of one key for one client as a ladder: what is set where, and which rung is hit."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model import DEFAULT, OTHER, Entity, EntityType, KnownAddress, KnownClient
from reconciler.resolution.addresses import AddressTable
from reconciler.resolution.levels import Candidate, Resolver
from reconciler.resolution.precedence import ADDRESS_PRECEDENCE, CLIENT_PRECEDENCE, GroupedBy, NameMatch


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
    found = {candidate.level: candidate for candidate in table.resolve(address.ip).found}
    winner = table.winner(address.ip)
    rungs = []
    for number, match in enumerate(ADDRESS_PRECEDENCE, start=1):
        held = found.get(number)
        entity = held.entity if held is not None else _address_entity(match, address)
        rungs.append(_rung(number, entity, held, winner, reachable=entity is not None))
    return tuple(rungs)


def _rungs(resolver: Resolver, client: KnownClient, winner: Candidate | None) -> Iterator[Rung]:
    user, client_id = client.user, client.client_id
    for level, candidate in zip(CLIENT_PRECEDENCE, resolver.candidates(user, client_id), strict=True):
        entity = level.entity_for(user, client_id)
        reachable = entity is not None and (client_id != "" or level.grouped_by is GroupedBy.USER)
        yield _rung(level.number, entity, candidate, winner, reachable=reachable)


def _rung(level: int, entity: Entity | None, held: Candidate | None, winner: Candidate | None, *, reachable: bool) -> Rung:
    if not reachable:
        status = RungStatus.NOT_APPLICABLE
    elif held is None:
        status = RungStatus.UNSET
    else:
        status = RungStatus.WINS if held is winner else RungStatus.HIDDEN
    return Rung(level=level, entity=entity, value=held.value if held else None, status=status)


def _address_entity(match: NameMatch, address: KnownAddress) -> Entity | None:
    name = DEFAULT if match is NameMatch.DEFAULT else address.ip
    return None if name is OTHER else Entity.of({EntityType.IP: name})
