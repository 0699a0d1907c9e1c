"""Which clients are known, and how a change of quotas moves them: the effects that a plan shows.

Known are, of both sides: every user with any other client id, every client id with any other user, every named pair, clients that
nothing names (also without a client id), the pairs that recorded traffic holds, and every address. A named user with a named
client id that no entity names together is told by one of its two rows, and has a row of its own when it moves like neither: when
a user loses its own limit, say, and one of its client ids now falls to that client id's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.model import OTHER, ClientName, Direction, Effect, EntityType, KnownAddress, KnownClient, Limit, PlanEffects
from reconciler.resolution.addresses import AddressTable, canonical_address, unclear_addresses
from reconciler.resolution.effects import AddressMoves, KeyMoves, changed_entities, client_keys
from reconciler.resolution.levels import QuotaTable

MOST: Final = 1_000
"""Effects listed, unless told otherwise; the rest is counted."""

_BY_USER: Final = (2, 3)
_BY_CLIENT_ID: Final = (4, 7)
_ORDER: Final = {direction: rank for rank, direction in enumerate(
    (Direction.FIRST_LIMIT, Direction.TIGHTENS, Direction.REMOVED, Direction.LOOSENS, Direction.OTHER_SOURCE)
)}  # fmt: skip
_ANYBODY: Final = KnownClient(user=OTHER, client_id=OTHER)
_WITHOUT_CLIENT_ID: Final = KnownClient(user=OTHER, client_id="")


def effects_between(
    before: QuotaTable, after: QuotaTable, *, traffic: Iterable[tuple[str, str]] = (), most: int = MOST
) -> PlanEffects:
    """The effects on all known clients: those that nobody names first, then what limits more, then by client.

    ``traffic``: pairs of a principal's name and a client id (empty for none). At most ``most`` effects are listed; the rest is
    counted exactly.
    """
    changed = changed_entities(before, after)
    if not changed:
        return PlanEffects()
    named = _Named.of(before, after, traffic)
    found: list[Effect] = list(_addresses(AddressMoves(before, after, changed), named))
    crossed: list[Iterator[Effect]] = []
    left_out = 0
    for key in client_keys(before, after, changed):
        found += (effect for client in named.reached(key) if (effect := key.move(client)) is not None)
        for crossing in _crossings(key, named):
            left_out += crossing.count
            crossed.append(crossing.effects())
    found.sort(key=_order)
    listed = (*found[:most], *itertools.islice(itertools.chain(*crossed), max(0, most - len(found))))
    return PlanEffects(effects=listed, left_out=left_out + len(found) - len(listed))


def unclear_effects(before: QuotaTable, after: QuotaTable) -> tuple[str, ...]:
    """Why the effects on some addresses of changed entities are not known."""
    names = (entity.name(EntityType.IP) for entity in changed_entities(before, after))
    reasons = unclear_addresses((AddressTable(before), AddressTable(after)), (name for name in names if isinstance(name, str)))
    return tuple(reasons.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The names in the entities of either side, and in the traffic; each address in one spelling."""

    users: frozenset[str]
    client_ids: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    addresses: frozenset[str]

    @classmethod
    def of(cls, before: QuotaTable, after: QuotaTable, traffic: Iterable[tuple[str, str]]) -> _Named:
        users: set[str] = set()
        client_ids: set[str] = set()
        addresses: set[str] = set()
        pairs = set(traffic)
        for entity in before.keys() | after.keys():
            if not entity.is_known:
                continue
            for entity_type, name in entity.parts:
                if isinstance(name, str):
                    kind = {EntityType.USER.value: users, EntityType.CLIENT_ID.value: client_ids}.get(entity_type, addresses)
                    kind.add(name)
            if len(entity.parts) == 2 and not entity.has_default:
                user, client_id = (str(name) for _, name in entity.parts)
                pairs.add((user, client_id))
        return cls(
            users=frozenset(users),
            client_ids=frozenset(client_ids),
            pairs=frozenset(pairs),
            addresses=frozenset(map(canonical_address, addresses)),
        )

    def reached(self, key: KeyMoves) -> Iterator[KnownClient]:
        """The known clients that a change of this key may move, each once."""
        users, client_ids, pairs = self.users, self.client_ids, iter(self.pairs)
        if key.reaches_everyone:
            yield from (_ANYBODY, _WITHOUT_CLIENT_ID)
        else:
            users, client_ids = users & key.users, client_ids & key.client_ids
            pairs = (pair for pair in self.pairs if pair[0] in key.users or pair[1] in key.client_ids)
        yield from (KnownClient(user=user, client_id=OTHER) for user in users)
        yield from (KnownClient(user=OTHER, client_id=client_id) for client_id in client_ids)
        yield from (KnownClient(user=user, client_id=client_id) for user, client_id in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crossing:
    """Named users that gain or lose limits of their own, with the client ids whose limits they leave or fall to."""

    key: KeyMoves
    users: tuple[str, ...]
    client_ids: tuple[str, ...]
    told: frozenset[tuple[str, str]]
    """Pairs that have rows of their own anyway."""

    @property
    def count(self) -> int:
        """How many clients this is."""
        users, client_ids = frozenset(self.users), frozenset(self.client_ids)
        return len(users) * len(client_ids) - sum(1 for user, client in self.told if user in users and client in client_ids)

    def effects(self) -> Iterator[Effect]:
        """They all move: from the one's limit to the other's."""
        for user, client_id in itertools.product(self.users, self.client_ids):
            if (user, client_id) not in self.told:
                client = KnownClient(user=user, client_id=client_id)
                yield Effect(client=client, key=self.key.key, before=self.key.before(client), after=self.key.after(client))


def _crossings(key: KeyMoves, named: _Named) -> Iterator[_Crossing]:
    had = {user for user in key.users if _level(key.before, KnownClient(user=user, client_id=OTHER)) in _BY_USER}
    has = {user for user in key.users if _level(key.after, KnownClient(user=user, client_id=OTHER)) in _BY_USER}
    for users, side in ((had - has, key.after), (has - had, key.before)):
        if users:
            held = (c for c in named.client_ids if _level(side, KnownClient(user=OTHER, client_id=c)) in _BY_CLIENT_ID)
            yield _Crossing(key=key, users=tuple(sorted(users)), client_ids=tuple(sorted(held)), told=named.pairs)


def _level(side: Callable[[KnownClient], Limit | None], client: KnownClient) -> int | None:
    limit = side(client)
    return limit.level if limit is not None else None


def _addresses(moves: AddressMoves, named: _Named) -> Iterator[Effect]:
    reached: Iterable[ClientName] = (*named.addresses, OTHER) if moves.reaches_everyone else named.addresses & moves.names
    return (effect for name in reached if (effect := moves.move(KnownAddress(ip=name))) is not None)


def _order(effect: Effect) -> tuple[object, ...]:
    anybody = all(name is OTHER for name in _names(effect))
    return (not anybody, _ORDER[effect.direction], len(effect.client.sort_key), effect.client.sort_key, effect.key)


def _names(effect: Effect) -> tuple[ClientName, ...]:
    client = effect.client
    return (client.ip,) if isinstance(client, KnownAddress) else (client.user, client.client_id)
