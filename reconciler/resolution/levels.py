"""Which quota applies to a client, and which bucket it shares: Kafka's eight levels.

Source: ``DefaultQuotaCallback`` in Kafka's ``ClientQuotaManager``. Every key is resolved alone: an entity that does not carry the
key does not exist for it. Names are compared as they are; a literal ``<default>`` is an ordinary name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.model import DEFAULT, ClientName, Entity, EntityName, EntityType

QuotaTable: TypeAlias = Mapping[Entity, Mapping[str, float]]
"""Entity to its keys and values, as a cluster holds them."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Bucket:
    """What shares one limit on one broker: Kafka's metric tags, with the raw user name; empty means that the tag is absent."""

    user: str
    client_id: str
    other: tuple[tuple[str, str], ...] = ()
    """Further tags that a quota callback gave, sorted by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A quota that is about a client, and its level: 1 (user and client-id) to 8 (default client-id)."""

    entity: Entity
    value: float
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The quota that wins for one client and key. No winner: unlimited."""

    bucket: Bucket
    winner: Candidate | None = None
    overridden: tuple[Candidate, ...] = ()
    """Other quotas that name this client, directly or by default, from the strongest to the weakest."""
    computed: float | None = None
    """The limit that a quota callback computed, which no single entity sets."""

    @property
    def value(self) -> float | None:
        """The limit; ``None`` is unlimited."""
        return self.winner.value if self.winner else self.computed

    @property
    def source(self) -> Entity | None:
        """The entity whose quota wins."""
        return self.winner.entity if self.winner else None

    @property
    def level(self) -> int | None:
        """The level of the winner."""
        return self.winner.level if self.winner else None


_Tags: TypeAlias = tuple[EntityName | None, EntityName | None]
_Levels: TypeAlias = tuple[dict[object, Candidate], ...]

_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value

_CLIENT_KIND: Final = 1
_USER_KIND: Final = 2
_PAIR_KIND: Final = 4
_KINDS: Final = (_PAIR_KIND, _PAIR_KIND, _USER_KIND, _PAIR_KIND, _PAIR_KIND, _USER_KIND, _CLIENT_KIND, _CLIENT_KIND)
"""What each level, from the first to the eighth, counts as when the broker asks which kinds are in use."""

USER_LEVELS: Final = (3, 6)
"""Levels whose bucket is the user's, whatever the client id."""
CLIENT_LEVELS: Final = (7, 8)
"""Levels whose bucket is the client id's, whoever uses it."""
_LEVELS_OF_ALL: Final = (4, 5, 7)
"""Indexes of the levels that hold for everybody: the defaults without any name."""


class Resolver:
    """The table of one key; built once, then a few look-ups a client."""

    def __init__(self, quotas: QuotaTable, key: str) -> None:
        """Entities of other types (ip, unknown ones) and without the key are left out."""
        self._levels = _no_levels()
        self._remembered: frozenset[int] = frozenset()
        self._pairs_of: tuple[dict[ClientName | None, list[Candidate]], dict[ClientName | None, list[Candidate]]] | None = None
        """Pairs by user and by client id, made when somebody asks with one of them."""
        for entity, values in quotas.items():
            value = values.get(key)
            tags = None if value is None else _tags_of(entity)
            if value is not None and tags is not None:
                _put(self._levels, tags, entity, value)

    @classmethod
    def by_key(cls, quotas: QuotaTable, keys: Iterable[str]) -> dict[str, Resolver]:
        """One for each key, all built in one walk over the entities."""
        tables = {key: _no_levels() for key in keys}
        for entity, values in quotas.items():
            tags = _tags_of(entity)
            if tags is None:
                continue
            for key, value in values.items():
                if key in tables:
                    _put(tables[key], tags, entity, value)
        return {key: cls._over(levels) for key, levels in tables.items()}

    @classmethod
    def _over(cls, levels: _Levels, remembered: frozenset[int] = frozenset()) -> Resolver:
        found = cls({}, "")
        found._levels, found._remembered = levels, remembered
        return found

    def changed(self, values: Mapping[Entity, float | None]) -> Resolver:
        """The same table with other values for some entities (``None``: without the key); this one stays as it is."""
        levels = tuple(dict(level) for level in self._levels)
        for entity, value in values.items():
            tags = _tags_of(entity)
            if tags is None:
                continue
            if value is not None:
                _put(levels, tags, entity, value)
            else:
                level, place = _place(tags)
                levels[level - 1].pop(place, None)
        return self._over(levels, self._remembered)

    def remembering(self, *earlier: Resolver) -> Resolver:
        """The same table on a broker that also had those quotas since its start.

        Brokers before 4.2 keep in mind which kinds of quota (client, user, both) they ever had. That moves clients without a
        limit to other buckets; no limit depends on it.
        """
        return self._over(self._levels, self._remembered.union(*(one.kinds for one in earlier)))

    @property
    def kinds(self) -> frozenset[int]:
        """The kinds of quota in use, those remembered included."""
        here = frozenset(kind for kind, level in zip(_KINDS, self._levels, strict=True) if level)
        return here | self._remembered

    def touches(self, user: str | None, client_id: str | None) -> frozenset[Candidate]:
        """What may be about a client of whom a name is not known (``None``); an unknown client id may also be an empty one."""
        one, two, three, four, five, six, seven, eight = self._levels
        found: set[Candidate] = {*five.values(), *six.values(), *eight.values()}
        pairs = one.values() if user is None and client_id is None else self._pairs(user, client_id)
        found.update(pairs)
        for level, name in ((two, user), (three, user), (four, client_id), (seven, client_id)):
            found.update(level.values() if name is None else filter(None, [level.get(name)]))
        if client_id == "":
            return frozenset(candidate for candidate in found if candidate.level in USER_LEVELS)
        return frozenset(found)

    def resolve_partly(self, user: str | None, client_id: str | None) -> Resolved | None:
        """As ``resolve``, when a name is not known (``None``) and no such name would change the answer; else ``None``."""
        if user is not None and client_id is not None:
            return self.resolve(user, client_id)
        # Weaker levels never decide, so only what may come before the user's own level, or before client ids, is in the way.
        found = sorted(self.touches(user, client_id), key=lambda candidate: candidate.level)
        strongest = found[0] if found else None
        if strongest is None:
            return Resolved(bucket=Bucket(user=user or "", client_id=client_id or ""))
        shared = USER_LEVELS if client_id is None else CLIENT_LEVELS
        if (user is None and client_id is None) or strongest.level not in shared:
            return None
        bucket = Bucket(user=user or "", client_id="") if client_id is None else Bucket(user="", client_id=client_id)
        return Resolved(bucket=bucket, winner=strongest, overridden=tuple(found[1:]))

    def _pairs(self, user: str | None, client_id: str | None) -> list[Candidate]:
        if user is not None and client_id is not None:
            return list(filter(None, [self._levels[0].get((user, client_id))]))
        if self._pairs_of is None:
            self._pairs_of = ({}, {})
            for pair, found in self._levels[0].items():
                for index, name in zip(self._pairs_of, pair if isinstance(pair, tuple) else (), strict=True):
                    index.setdefault(name, []).append(found)
        by_user, by_client = self._pairs_of
        return by_user.get(user, []) if client_id is None else by_client.get(client_id, [])

    def may_differ(self, earlier: Resolver) -> Callable[[str, str], bool]:
        """For a user and a client id, whether the answer may be another than that of the earlier quotas; false is certain."""
        changed = [
            {place for place in {**new, **old} if new.get(place) != old.get(place)}
            for new, old in zip(self._levels, earlier._levels, strict=True)
        ]
        if self.kinds != earlier.kinds or any(changed[level] for level in _LEVELS_OF_ALL):
            return lambda _user, _client_id: True
        pairs, users, clients = changed[0], changed[1] | changed[2], changed[3] | changed[6]
        return lambda user, client_id: user in users or client_id in clients or (user, client_id) in pairs

    @property
    def enabled(self) -> bool:
        """False when no entity carries the key: the broker then measures nobody."""
        return any(self._levels)

    def resolve(self, user: str, client_id: str) -> Resolved:
        """The winner for a principal's name (without its type) and a client id (empty when the client sent none)."""
        winner = self.winner(user, client_id)
        overridden = tuple(c for c in self.candidates(user, client_id) if c is not None and c is not winner)
        return Resolved(bucket=self._bucket(winner, user, client_id), winner=winner, overridden=overridden)

    def winner(self, user: ClientName, client_id: ClientName) -> Candidate | None:
        """The quota that applies, without what it overrides; ``None``: unlimited.

        The broker looks the limit up by the tags of the bucket, not by the client: an empty client id leaves only the user's tag,
        and so finds only quotas of users. For all others that is the first of the eight levels.
        """
        one, two, three, four, five, six, seven, eight = self._levels
        if client_id == "":
            return three.get(user) or six.get(None)
        return (
            (one.get((user, client_id)) if one else None)
            or two.get(user)
            or three.get(user)
            or four.get(client_id)
            or five.get(None)
            or six.get(None)
            or seven.get(client_id)
            or eight.get(None)
        )

    def candidates(self, user: ClientName, client_id: ClientName) -> tuple[Candidate | None, ...]:
        """What each of the eight levels holds for a client, also what an empty client id escapes; ``None``: nothing is set."""
        places: tuple[object, ...] = ((user, client_id), user, user, client_id, None, None, client_id, None)
        return tuple(level.get(place) for level, place in zip(self._levels, places, strict=True))

    def hidden(self, user: ClientName, client_id: ClientName, winner: Candidate) -> list[Candidate]:
        """What would hold in turn without the winner, the strongest first; nothing that an empty client id escapes."""
        places: tuple[object, ...] = ((user, client_id), user, user, client_id, None, None, client_id, None)
        return [
            candidate
            for level, place in zip(self._levels[winner.level :], places[winner.level :], strict=True)
            if level and (candidate := level.get(place)) is not None and (client_id != "" or candidate.level in USER_LEVELS)
        ]

    def bucket_and_limit(self, user: str, client_id: str) -> tuple[Bucket, float | None]:
        """The two things a replay needs, without the explanation."""
        winner = self.winner(user, client_id)
        return self._bucket(winner, user, client_id), winner.value if winner else None

    def _bucket(self, winner: Candidate | None, user: str, client_id: str) -> Bucket:
        level = winner.level if winner else self._level_of_unlimited(user, client_id)
        if level in USER_LEVELS:
            return Bucket(user=user, client_id="")
        return Bucket(user="" if level in CLIENT_LEVELS else user, client_id=client_id)

    def _level_of_unlimited(self, user: str, client_id: str) -> int:
        """The level whose tags the broker gives to somebody without a limit."""
        # With one kind of quota in use the broker does not look further: everybody gets that kind's tags, limited or not.
        kinds = self.kinds
        if len(kinds) == 1:
            return {_CLIENT_KIND: 8, _USER_KIND: 6, _PAIR_KIND: 5}[next(iter(kinds))]
        # What is set here is what an empty client id escapes: it shapes the tags all the same.
        return next((c.level for c in self.candidates(user, client_id) if c), 8)


def resolve(quotas: QuotaTable, *, user: str, client_id: str, key: str) -> Resolved:
    """One client and key; use a ``Resolver`` for many."""
    return Resolver(quotas, key).resolve(user, client_id)


def level_of(entity: Entity) -> int | None:
    """The precedence level of an entity's quotas, 1 to 8; ``None`` for an address and for shapes that Kafka resolves not so."""
    tags = _tags_of(entity)
    return None if tags is None else _place(tags)[0]


def _no_levels() -> _Levels:
    return tuple({} for _ in range(8))


def _put(levels: _Levels, tags: _Tags, entity: Entity, value: float) -> None:
    level, place = _place(tags)
    levels[level - 1][place] = Candidate(entity=entity, value=value, level=level)


def _place(tags: _Tags) -> tuple[int, object]:
    """The level of an entity, and where in that level's table it is."""
    user, client = tags
    match user is DEFAULT, client is DEFAULT:
        case True, True:
            return 5, None
        case True, False:
            return (6, None) if client is None else (4, client)
        case False, True:
            return (8, None) if user is None else (2, user)
    if user is None:
        return 7, client
    return (3, user) if client is None else (1, (user, client))


def _tags_of(entity: Entity) -> _Tags | None:
    parts = entity.parts
    first, name = parts[0]
    if len(parts) == 1:
        return (name, None) if first == _USER else (None, name) if first == _CLIENT_ID else None
    second, other = parts[1]
    return (name, other) if len(parts) == 2 and first == _USER and second == _CLIENT_ID else None
