"""Which quota applies to a client, and which bucket it shares: Kafka's eight levels.

Source: ``DefaultQuotaCallback`` in Kafka's ``ClientQuotaManager``. Every key is resolved alone: an entity that does not carry the
key does not exist for it. Names are compared as they are; a literal ``<default>`` is an ordinary name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.model.entity import DEFAULT, Entity, EntityName, EntityType

QuotaTable: TypeAlias = Mapping[Entity, Mapping[str, float]]
"""Entity to its keys and values, as a cluster holds them."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Bucket:
    """What shares one limit on one broker: Kafka's metric tags, with the raw user name; empty means that the tag is absent."""

    user: str
    client_id: str


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

    @property
    def value(self) -> float | None:
        """The limit; ``None`` is unlimited."""
        return self.winner.value if self.winner else None

    @property
    def source(self) -> Entity | None:
        """The entity whose quota wins."""
        return self.winner.entity if self.winner else None

    @property
    def level(self) -> int | None:
        """The level of the winner."""
        return self.winner.level if self.winner else None


_Tags: TypeAlias = tuple[EntityName | None, EntityName | None]

_CLIENT_KIND: Final = 1
_USER_KIND: Final = 2
_PAIR_KIND: Final = 4


class Resolver:
    """The table of one key; built once, then a few look-ups a client."""

    def __init__(self, quotas: QuotaTable, key: str) -> None:
        """Entities of other types (ip, unknown ones) and without the key are left out."""
        self._table: dict[_Tags, tuple[Entity, float]] = {}
        self._kinds = 0
        for entity, values in quotas.items():
            value = values.get(key)
            tags = _tags_of(entity)
            if value is None or tags is None:
                continue
            self._table[tags] = (entity, value)
            self._kinds |= _kind_of(tags)

    def changed(self, values: Mapping[Entity, float | None]) -> Resolver:
        """The same table with other values for some entities (``None``: without the key); this one stays as it is."""
        found = Resolver({}, "")
        found._table = dict(self._table)
        for entity, value in values.items():
            tags = _tags_of(entity)
            if tags is not None:
                found._table.pop(tags, None)
                if value is not None:
                    found._table[tags] = (entity, value)
        for tags in found._table:
            found._kinds |= _kind_of(tags)
        return found

    @property
    def enabled(self) -> bool:
        """False when no entity carries the key: the broker then measures nobody."""
        return self._kinds != 0

    def resolve(self, user: str, client_id: str) -> Resolved:
        """The winner for a principal's name (without its type) and a client id (empty when the client sent none)."""
        bucket = self._bucket(user, client_id)
        levels = self._levels_of_bucket(bucket)
        winner = next((c for c in map(self._candidate, levels) if c), None)
        named = (self._candidate(level) for level in _all_levels(user, client_id))
        overridden = tuple(c for c in named if c and c != winner)
        return Resolved(bucket=bucket, winner=winner, overridden=overridden)

    def winner(self, user: str, client_id: str) -> Candidate | None:
        """The quota that applies, without what it overrides; ``None``: unlimited."""
        for level, tags in self._levels_of_bucket(self._bucket(user, client_id)):
            found = self._table.get(tags)
            if found:
                return Candidate(entity=found[0], value=found[1], level=level)
        return None

    def bucket_and_limit(self, user: str, client_id: str) -> tuple[Bucket, float | None]:
        """The two things a replay needs, without the explanation."""
        bucket = self._bucket(user, client_id)
        for level in self._levels_of_bucket(bucket):
            found = self._table.get(level[1])
            if found:
                return bucket, found[1]
        return bucket, None

    def _candidate(self, level: tuple[int, _Tags]) -> Candidate | None:
        found = self._table.get(level[1])
        return Candidate(entity=found[0], value=found[1], level=level[0]) if found else None

    def _bucket(self, user: str, client_id: str) -> Bucket:
        # With one kind of quota in use the broker does not look further: everybody gets that kind's tags, limited or not.
        match self._kinds:
            case 0 | 1:
                return Bucket(user="", client_id=client_id)
            case 2:
                return Bucket(user=user, client_id="")
            case 4:
                return Bucket(user=user, client_id=client_id)
        for level, tags in _all_levels(user, client_id):
            if tags in self._table:
                if level in (3, 6):
                    return Bucket(user=user, client_id="")
                return Bucket(user=user if level < 7 else "", client_id=client_id)
        return Bucket(user="", client_id=client_id)

    @staticmethod
    def _levels_of_bucket(bucket: Bucket) -> tuple[tuple[int, _Tags], ...]:
        """The limit is looked up by the tags, not by the client: an empty client id finds only quotas of users."""
        user, client = bucket.user, bucket.client_id
        if user and client:
            return ((1, (user, client)), (2, (user, DEFAULT)), (4, (DEFAULT, client)), (5, (DEFAULT, DEFAULT)))
        if user:
            return ((3, (user, None)), (6, (DEFAULT, None)))
        if client:
            return ((7, (None, client)), (8, (None, DEFAULT)))
        return ()


def resolve(quotas: QuotaTable, *, user: str, client_id: str, key: str) -> Resolved:
    """One client and key; use a ``Resolver`` for many."""
    return Resolver(quotas, key).resolve(user, client_id)


def _all_levels(user: str, client_id: str) -> tuple[tuple[int, _Tags], ...]:
    return (
        (1, (user, client_id)),
        (2, (user, DEFAULT)),
        (3, (user, None)),
        (4, (DEFAULT, client_id)),
        (5, (DEFAULT, DEFAULT)),
        (6, (DEFAULT, None)),
        (7, (None, client_id)),
        (8, (None, DEFAULT)),
    )


def _tags_of(entity: Entity) -> _Tags | None:
    match entity.parts:
        case ((EntityType.USER.value, user),):
            return user, None
        case ((EntityType.CLIENT_ID.value, client),):
            return None, client
        case ((EntityType.USER.value, user), (EntityType.CLIENT_ID.value, client)):
            return user, client
    return None


def _kind_of(tags: _Tags) -> int:
    user, client = tags
    if user is None:
        return _CLIENT_KIND
    return _USER_KIND if client is None else _PAIR_KIND
