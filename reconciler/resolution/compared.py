"""Two states compared client by client: whose limit differs in value or in the entity that sets it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model import OTHER, Effect, Entity, EntityType, Known, KnownAddress, KnownClient, Limit, same_value
from reconciler.resolution.addresses import ADDRESS_KEY, canonical_address
from reconciler.resolution.answers import KEYS, Answers
from reconciler.resolution.asked import asking_entity
from reconciler.resolution.effects import address_effect
from reconciler.resolution.levels import Candidate
from reconciler.resolution.plan_effects import effects_between
from reconciler.resolution.sharing import known_clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One client whose limits differ; ``unknown``: keys of which that cannot be told, and why."""

    entity: Entity
    client: Known
    effects: tuple[Effect, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs. ``unknown``: why nothing can be told about users and client ids; ``left_out``: effects not listed."""

    clients: tuple[Compared, ...] = ()
    unknown: str | None = None
    left_out: int = 0


def compare(before: Answers, after: Answers, asked: Iterable[tuple[Entity, Known]]) -> Comparison:
    """Whoever of ``asked`` differs, in their order."""
    unknown = before.doubts.callback or after.doubts.callback
    clients = (_compared(before, after, entity, client, told=unknown is None) for entity, client in asked)
    return Comparison(clients=tuple(one for one in clients if one.effects or one.unknown), unknown=unknown)


def compare_known(before: Answers, after: Answers, *, most: int) -> Comparison:
    """All known clients of both states: first those whom nobody names, then what limits more; addresses at the end."""
    unknown = before.doubts.callback or after.doubts.callback
    found = effects_between(before.quotas, after.quotas, most=most) if unknown is None else None
    grouped: dict[KnownClient, list[Effect]] = {}
    for effect in found.effects if found is not None else ():
        # Addresses are compared below, by what they are and not by how they are written.
        if isinstance(effect.client, KnownClient):
            grouped.setdefault(effect.client, []).append(effect)
    clients = [
        Compared(entity=asking_entity(client), client=client, effects=tuple(effects)) for client, effects in grouped.items()
    ]
    if unknown is None:
        clients += _without_client_id(before, after)
    addresses = compare(before, after, _addresses(before, after)).clients
    return Comparison(clients=(*clients, *addresses), unknown=unknown, left_out=found.left_out if found is not None else 0)


def _without_client_id(before: Answers, after: Answers) -> Iterator[Compared]:
    """Named users whose clients without a client id move otherwise than those with one that no quota names."""
    of_clients = (e.name(EntityType.USER) for e in before.quotas.keys() | after.quotas.keys() if e.is_known)
    for user in sorted(name for name in set(of_clients) if isinstance(name, str)):
        silent, other = KnownClient(user=user, client_id=""), KnownClient(user=user, client_id=OTHER)
        moved = _compared(before, after, asking_entity(silent), silent, told=True)
        if moved.effects and not {_move(e) for e in moved.effects} <= {_move(e) for e in _effects(before, after, other)}:
            yield moved


def _move(effect: Effect) -> tuple[object, ...]:
    return effect.key, effect.before, effect.after


def _addresses(before: Answers, after: Answers) -> Iterator[tuple[Entity, Known]]:
    of_addresses = (e for e in before.quotas.keys() | after.quotas.keys() if e.types == (EntityType.IP.value,))
    by_address: dict[object, tuple[Entity, Known]] = {}
    for _, client in known_clients(of_addresses):
        if isinstance(client, KnownAddress):
            name = client.ip if client.ip is OTHER else canonical_address(client.ip)
            address = KnownAddress(ip=name)
            by_address.setdefault(name, (asking_entity(address), address))
    known = list(by_address.values())
    anybody = KnownAddress(ip=OTHER)
    yield from known
    if known and anybody not in (client for _, client in known):
        yield asking_entity(anybody), anybody


def _compared(before: Answers, after: Answers, entity: Entity, client: Known, *, told: bool) -> Compared:
    if isinstance(client, KnownAddress):
        reason = before.reason_of_address(client) or after.reason_of_address(client)
        if reason is not None:
            return Compared(entity=entity, client=client, effects=(), unknown={ADDRESS_KEY: reason})
        moved = address_effect(before.addresses, after.addresses, client)
        return Compared(entity=entity, client=client, effects=() if moved is None else (moved,))
    return Compared(entity=entity, client=client, effects=tuple(_effects(before, after, client)) if told else ())


def _effects(before: Answers, after: Answers, client: KnownClient) -> Iterator[Effect]:
    for key in KEYS:
        was = before.resolvers[key].winner(client.user, client.client_id)
        now = after.resolvers[key].winner(client.user, client.client_id)
        if was is not now:
            yield from _effect(client, key, was, now)


def _effect(client: Known, key: str, was: Candidate | None, now: Candidate | None) -> Iterator[Effect]:
    before, after = _limit(was), _limit(now)
    if before is None or after is None:
        same = before is after
    else:
        same = before.entity == after.entity and same_value(before.value, after.value)
    if not same:
        yield Effect(client=client, key=key, before=before, after=after)


def _limit(found: Candidate | None) -> Limit | None:
    return None if found is None else Limit(value=found.value, entity=found.entity, level=found.level)
