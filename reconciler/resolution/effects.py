"""The effects of changed quotas on clients: the one calculation behind a plan's effects and the difference of two states.

Known are, of both sides: every user with any other client id, every client id with any other user, every named pair, clients that
nothing names (also without a client id), and every address. Addresses are compared by value, not
by spelling. A named user with a named client id that no entity names together is represented by one of its two rows. The pair has
a row of its own when it moves like neither, such as when a user loses its own limit and one of its client ids now falls to that
client id's.

A limit that no client reaches does not limit: no client moves when it comes, goes, or gives way to a limit like it.

Only keys and clients that a changed entity can reach are resolved, so that a small change to a large cluster stays cheap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.model import (
    CLIENT_KEYS,
    DEFAULT,
    OTHER,
    ClientName,
    Direction,
    Effect,
    EffectGroup,
    Entity,
    EntityType,
    Known,
    KnownAddress,
    KnownClient,
    Limit,
    LimitRange,
    PlanEffects,
    QuotaKey,
    same_value,
)
from reconciler.resolution.precedence import CLIENT_PRECEDENCE, NameMatch
from reconciler.resolution.resolver import (
    ADDRESS_KEY,
    AddressTable,
    Candidate,
    QuotaTable,
    Resolver,
    canonical_address,
    unclear_addresses,
)

MOST: Final = 1_000
"""Effects listed by default. The rest is counted."""

_NO_QUOTAS: Final[dict[str, float]] = {}
_NAMES_ONLY_USER: Final = frozenset(
    level.number for level in CLIENT_PRECEDENCE if level.user is NameMatch.NAME and level.client_id is not NameMatch.NAME
)
_NAMES_ONLY_CLIENT_ID: Final = frozenset(
    level.number for level in CLIENT_PRECEDENCE if level.client_id is NameMatch.NAME and level.user is not NameMatch.NAME
)
_ORDER: Final = {direction: rank for rank, direction in enumerate(
    (Direction.FIRST_LIMIT, Direction.TIGHTENS, Direction.REMOVED, Direction.LOOSENS, Direction.OTHER_SOURCE)
)}  # fmt: skip
_ANY_CLIENT: Final = KnownClient(user=OTHER, client_id=OTHER)
_WITHOUT_CLIENT_ID: Final = KnownClient(user=OTHER, client_id="")


def effects_between(before: QuotaTable, after: QuotaTable, *, most: int = MOST) -> PlanEffects:
    """The effects on all known clients: those that no entity names first, then tighter limits, then by client.

    At most ``most`` effects are listed. The rest is counted exactly.
    """
    changed = _changed_entities(before, after)
    if not changed:
        return PlanEffects()
    named = _Named.of(before, after)
    effects: list[Effect] = list(_addresses(_AddressEffects(before, after, changed), named))
    crossed: list[Iterator[Effect]] = []
    left_out = 0
    keys = _client_keys(before, after, changed)
    apart = named.without_client_id(keys)
    for key in keys:
        effects += (effect for client in named.reached(key, apart) if (effect := key.of(client)) is not None)
        for crossing in _crossings(key, named):
            left_out += crossing.count
            crossed.append(crossing.effects())
    effects.sort(key=_order)
    more = tuple(itertools.islice(itertools.chain(*crossed), max(0, most - len(effects))))
    listed = (*effects[:most], *more)
    return PlanEffects(effects=listed, left_out=left_out + len(effects) - len(listed), groups=group_effects((*effects, *more)))


def unclear_effects(before: QuotaTable, after: QuotaTable) -> tuple[str, ...]:
    """A reason for each address whose effects are unknown: its spellings have different limits."""
    names = (entity.name(EntityType.IP) for entity in _changed_entities(before, after))
    reasons = unclear_addresses((AddressTable(before), AddressTable(after)), (name for name in names if isinstance(name, str)))
    return tuple(reasons.values())


def effect_of(client: Known, key: str, was: Candidate | None, now: Candidate | None) -> Effect | None:
    """The effect of one key that had one winner and has another.

    ``None``: the same value from the same entity, or no client reaches either of the two limits.
    """
    before, after = _limit(was), _limit(now)
    if all(limits_nobody(key, side.value if side else None) for side in (before, after)):
        return None
    if before is None or after is None:
        same = before is after
    else:
        same = before.entity == after.entity and same_value(before.value, after.value)
    return None if same else Effect(client=client, key=key, before=before, after=after)


def _changed_entities(before: QuotaTable, after: QuotaTable) -> tuple[Entity, ...]:
    """Entities that have another value for some key, in no particular order."""
    return tuple(
        entity
        for entity in before.keys() | after.keys()
        if (old := before.get(entity, _NO_QUOTAS)) is not (other := after.get(entity, _NO_QUOTAS))
        and any(not same_value(old.get(key), other.get(key)) for key in old.keys() | other.keys())
    )


def _client_keys(before: QuotaTable, after: QuotaTable, changed: Iterable[Entity]) -> tuple[_KeyEffects, ...]:
    """The four keys of users and client ids, without those that no changed entity touches."""
    key_effects = []
    for key in CLIENT_KEYS:
        values = {
            entity: now
            for entity in changed
            if not same_value(before.get(entity, _NO_QUOTAS).get(key), now := after.get(entity, _NO_QUOTAS).get(key))
        }
        if values:
            key_effects.append(_KeyEffects(before, key, values))
    return tuple(key_effects)


class _KeyEffects:
    """One key before and after. Built once, then a few look-ups a client."""

    def __init__(self, before: QuotaTable, key: QuotaKey, changed: dict[Entity, float | None]) -> None:
        """``changed``: the entities whose value of this key differs, with the value after (``None``: not set)."""
        self.key = key.value
        self.before: Final = Resolver(before, key.value)
        self.after: Final = self.before.changed(changed)
        self._touched = Resolver({entity: {self.key: 1.0} for entity in changed}, self.key)
        """Has a winner for each client that a changed entity applies to."""
        names = {(e.name(EntityType.USER), e.name(EntityType.CLIENT_ID)) for e in changed}
        self.users = frozenset(user for user, _ in names if isinstance(user, str))
        """Users that a changed entity names."""
        self.client_ids = frozenset(client for _, client in names if isinstance(client, str))
        """Client ids that a changed entity names."""
        self.reaches_everyone = any(not isinstance(user, str) and not isinstance(client, str) for user, client in names)
        """True when a changed entity is a default: it may move any client."""

    def of(self, client: KnownClient) -> Effect | None:
        """The effect on one client. ``None`` when it keeps its limit."""
        if self._touched.winner(client.user, client.client_id) is None:
            return None
        return effect_of(client, self.key, *(side.winner(client.user, client.client_id) for side in (self.before, self.after)))

    def moves_without_id(self, user: str) -> bool:
        """Whether the user's clients that send no client-id move otherwise than those with one that no quota names."""
        moved, other = self.of(KnownClient(user=user, client_id="")), self.of(KnownClient(user=user, client_id=OTHER))
        return moved is not None and (other is None or (moved.before, moved.after) != (other.before, other.after))


class _AddressEffects:
    """Connection limits before and after, by address and not by text, as brokers keep them."""

    def __init__(self, before: QuotaTable, after: QuotaTable, changed: Iterable[Entity]) -> None:
        self._was, self._now = AddressTable(before), AddressTable(after)
        names = {name for e in changed if (name := e.name(EntityType.IP)) is not None}
        self.reaches_everyone = DEFAULT in names
        """True when the default address changes: it may move any."""
        self.names = frozenset(canonical_address(name) for name in names if isinstance(name, str))
        """Addresses that a changed entity names, each in one spelling."""

    def of(self, address: KnownAddress) -> Effect | None:
        """The effect on one address. ``None`` when it keeps its limit, or when its spellings disagree."""
        name = address.ip
        if not self.reaches_everyone and (name is OTHER or canonical_address(name) not in self.names):
            return None
        was, now = self._was.resolve(name), self._now.resolve(name)
        if was.unclear or now.unclear:
            return None
        return effect_of(address, ADDRESS_KEY, *(next(iter(answer.candidates), None) for answer in (was, now)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The names in the entities of either side. Each address in one spelling."""

    users: frozenset[str]
    client_ids: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    addresses: frozenset[str]

    @classmethod
    def of(cls, before: QuotaTable, after: QuotaTable) -> _Named:
        users: set[str] = set()
        client_ids: set[str] = set()
        addresses: set[str] = set()
        pairs: set[tuple[str, str]] = set()
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

    def without_client_id(self, keys: Iterable[_KeyEffects]) -> frozenset[str]:
        """Users whose clients without a client-id need rows of their own."""
        paired = {user for user, client_id in self.pairs if not client_id}
        return frozenset(user for key in keys for user in self.users - paired if key.moves_without_id(user))

    def reached(self, key: _KeyEffects, apart: frozenset[str]) -> Iterator[KnownClient]:
        """The known clients that a change of this key may move, each once. ``apart``: users of ``without_client_id``."""
        users, client_ids, pairs = self.users, self.client_ids, iter(self.pairs)
        if key.reaches_everyone:
            yield from (_ANY_CLIENT, _WITHOUT_CLIENT_ID)
        else:
            users, client_ids = users & key.users, client_ids & key.client_ids
            pairs = (pair for pair in self.pairs if pair[0] in key.users or pair[1] in key.client_ids)
        yield from (KnownClient(user=user, client_id=OTHER) for user in users)
        yield from (KnownClient(user=user, client_id="") for user in users & apart)
        yield from (KnownClient(user=OTHER, client_id=client_id) for client_id in client_ids)
        yield from (KnownClient(user=user, client_id=client_id) for user, client_id in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crossing:
    """Named users that gain or lose limits of their own, with the client ids whose limits they leave or fall to."""

    key: _KeyEffects
    users: tuple[str, ...]
    client_ids: tuple[str, ...]
    listed: frozenset[tuple[str, str]]
    """Pairs that have rows of their own anyway."""
    free_users: frozenset[str]
    """Those whose own limit no client reaches."""
    free_client_ids: frozenset[str]

    @property
    def count(self) -> int:
        """Count the clients, without those that no limit reaches."""
        free = _count(self.free_users, self.free_client_ids, self.listed)
        return _count(frozenset(self.users), frozenset(self.client_ids), self.listed) - free

    def effects(self) -> Iterator[Effect]:
        """They move from the one's limit to the other's."""
        for user, client_id in itertools.product(self.users, self.client_ids):
            if (user, client_id) not in self.listed:
                effect = self.key.of(KnownClient(user=user, client_id=client_id))
                if effect is not None:
                    yield effect


def _count(users: frozenset[str], client_ids: frozenset[str], listed: frozenset[tuple[str, str]]) -> int:
    return len(users) * len(client_ids) - sum(1 for user, client in listed if user in users and client in client_ids)


def _crossings(key: _KeyEffects, named: _Named) -> Iterator[_Crossing]:
    had = {user for user in key.users if _level(key.before, KnownClient(user=user, client_id=OTHER)) in _NAMES_ONLY_USER}
    has = {user for user in key.users if _level(key.after, KnownClient(user=user, client_id=OTHER)) in _NAMES_ONLY_USER}
    for users, own_side, side in ((had - has, key.before, key.after), (has - had, key.after, key.before)):
        if users:
            held = [c for c in named.client_ids if _level(side, KnownClient(user=OTHER, client_id=c)) in _NAMES_ONLY_CLIENT_ID]
            yield _Crossing(
                key=key,
                users=tuple(sorted(users)),
                client_ids=tuple(sorted(held)),
                listed=named.pairs,
                free_users=frozenset(user for user in users if _is_free(key, own_side.winner(user, OTHER))),
                free_client_ids=frozenset(client_id for client_id in held if _is_free(key, side.winner(OTHER, client_id))),
            )


def _is_free(key: _KeyEffects, winner: Candidate | None) -> bool:
    return limits_nobody(key.key, winner.value if winner else None)


def _level(side: Resolver, client: KnownClient) -> int | None:
    winner = side.winner(client.user, client.client_id)
    return winner.level if winner is not None else None


def _addresses(limits: _AddressEffects, named: _Named) -> Iterator[Effect]:
    reached: Iterable[ClientName] = (*named.addresses, OTHER) if limits.reaches_everyone else named.addresses & limits.names
    return (effect for name in reached if (effect := limits.of(KnownAddress(ip=name))) is not None)


def _order(effect: Effect) -> tuple[object, ...]:
    client = effect.client
    anyone = client.ip is OTHER if isinstance(client, KnownAddress) else client.user is OTHER and client.client_id is OTHER
    return (not anyone, _ORDER[effect.direction], len(client.sort_key), client.sort_key, effect.key)


def _limit(winner: Candidate | None) -> Limit | None:
    return None if winner is None else Limit(value=winner.value, entity=winner.entity, level=winner.level)


MOST_EXAMPLES: Final = 3


def group_effects(effects: Iterable[Effect]) -> tuple[EffectGroup, ...]:
    """The groups of more than one client, in the order in which their first clients come."""
    by_cause: dict[tuple[object, ...], list[Effect]] = {}
    for effect in effects:
        by_cause.setdefault(effect.cause, []).append(effect)
    return tuple(_group(alike) for alike in by_cause.values() if len(alike) > 1)


def _group(effects: list[Effect]) -> EffectGroup:
    first = effects[0]
    values = [effect.before.value for effect in effects if effect.before is not None]
    entities: set[Entity | None] = {effect.before.entity if effect.before else None for effect in effects}
    before = None
    if values:
        source = entities.pop() if len(entities) == 1 else None
        before = LimitRange(lowest=min(values, key=_strength), highest=max(values, key=_strength), entity=source)
    return EffectGroup(
        key=first.key,
        direction=first.direction,
        clients=len(effects),
        examples=tuple(effect.client for effect in effects[:MOST_EXAMPLES]),
        before=before,
        after=first.after,
    )


def _strength(value: float) -> float:
    return math.inf if math.isnan(value) else value


def limits_nobody(key: str, value: float | None) -> bool:
    """Whether clients have no limit by it: none is set, or it is above what any client reaches."""
    return value is None or value >= QuotaKey(key).unreachable
