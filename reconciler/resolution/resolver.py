"""Which quota applies to a client, and which bucket it shares, by the table of precedence levels.

Source: ``DefaultQuotaCallback`` in Kafka's ``ClientQuotaManager``. Every key is resolved alone: an entity that does not carry the
key does not exist for it. Names are compared as they are. A literal ``<default>`` is an ordinary name.

Connections are limited by address: explicit, else the default address, else off. A broker keeps these limits by address and not
by text: of two spellings of one address the one that was applied last is in effect, and a host name is whatever address each
broker found for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from reconciler.model import DEFAULT, OTHER, BucketName, ClientName, Entity, EntityName, EntityType, QuotaKey, same_value
from reconciler.resolution.kafka_names import literal_address
from reconciler.resolution.precedence import (
    ADDRESS_PRECEDENCE,
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    GroupedBy,
    NameMatch,
    client_names,
    level_of_names,
)

QuotaTable: TypeAlias = Mapping[Entity, Mapping[str, float]]
"""Entity to its keys and values, as a cluster has them."""


_OF_ALL, _OF_USER, _OF_CLIENT_ID, _OF_PAIR = range(4)
"""By what the entities of a level are looked up: nothing, a name, or both."""

_LOOKED_UP_BY: Final = tuple(
    (level.user is NameMatch.NAME) * _OF_USER + (level.client_id is NameMatch.NAME) * _OF_CLIENT_ID for level in CLIENT_PRECEDENCE
)
"""By level, from the strongest."""
ADDRESS_KEY: Final = QuotaKey.CONNECTION_CREATION_RATE.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A quota that is about a client, and its level: 1 (user and client-id) to 8 (default client-id)."""

    entity: Entity
    """An entity of the state. ``None`` is the default entity of the type."""
    value: float
    """Its value per broker, in the unit of the key."""
    level: int
    """1 to 8 for users and client ids, 1 or 2 for addresses. 1 is the strongest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The quota that wins for one client and key. No winner: unlimited."""

    bucket: BucketName
    winner: Candidate | None = None
    overridden: tuple[Candidate, ...] = ()
    """Other quotas that name this client, directly or by default, from the strongest to the weakest."""
    computed: float | None = None
    """The limit that a quota callback computed, which no single entity sets."""

    @property
    def value(self) -> float | None:
        """The limit. ``None`` is unlimited."""
        return self.winner.value if self.winner else self.computed

    @property
    def source(self) -> Entity | None:
        """The entity whose quota wins."""
        return self.winner.entity if self.winner else None

    @property
    def level(self) -> int | None:
        """The level of the winner."""
        return self.winner.level if self.winner else None


_Levels: TypeAlias = tuple[dict[object, Candidate], ...]

_Searched: TypeAlias = tuple[int, dict[object, Candidate]]
"""What a level is looked up by, and its table."""


class Resolver:
    """The table of one key. Built once, then a few look-ups a client."""

    def __init__(self, quotas: QuotaTable, key: str) -> None:
        """Entities of other types (ip, unknown ones) and without the key are left out."""
        levels = _tables(quotas, (key,))[key]
        self._levels = levels
        self._remembered: frozenset[GroupedBy] = frozenset()
        self._pairs_of: tuple[dict[ClientName | None, list[Candidate]], dict[ClientName | None, list[Candidate]]] | None = None
        """Pairs by user and by client-id, made at the first question with one of them."""
        self._used, self._used_without_client_id = _used(levels)

    @classmethod
    def by_key(cls, quotas: QuotaTable, keys: Iterable[str]) -> dict[str, Resolver]:
        """One for each key, all built in one walk over the entities."""
        return {key: cls._over(levels) for key, levels in _tables(quotas, keys).items()}

    @classmethod
    def _over(cls, levels: _Levels, remembered: frozenset[GroupedBy] = frozenset()) -> Resolver:
        made = cls({}, "")
        made._levels, made._remembered = levels, remembered
        made._used, made._used_without_client_id = _used(levels)
        return made

    def changed(self, values: Mapping[Entity, float | None]) -> Resolver:
        """The same table with other values for some entities (``None``: without the key). This one stays as it is."""
        levels = tuple(dict(level) for level in self._levels)
        for entity, value in values.items():
            names = client_names(entity)
            if names is None:
                continue
            if value is not None:
                _put(levels, names, entity, value)
            else:
                at = level_of_names(*names).number - 1
                levels[at].pop(_place(at, names), None)
        return self._over(levels, self._remembered)

    def remembering(self, *earlier: Resolver) -> Resolver:
        """The same table on a broker that also had those quotas since its start.

        Brokers before 4.2 remember which kinds of quota (client, user, both) they ever had. That moves clients without a limit to
        other quota groups. No limit depends on it.
        """
        return self._over(self._levels, self._remembered.union(*(resolver.kinds for resolver in earlier)))

    @property
    def kinds(self) -> frozenset[GroupedBy]:
        """The kinds of quota in use, those remembered included."""
        here = frozenset(level.grouped_by for level, table in zip(CLIENT_PRECEDENCE, self._levels, strict=True) if table)
        return here | self._remembered

    def touches(self, user: str | None, client_id: str | None) -> frozenset[Candidate]:
        """Quotas that may apply to a client with an unknown name (``None``). An unknown client-id may also be empty."""
        candidates: set[Candidate] = set()
        for by, table in self._used:
            if by == _OF_PAIR:
                pairs = table.values() if user is None and client_id is None else self._pairs(table, user, client_id)
                candidates.update(pairs)
            else:
                name = (None, user, client_id)[by]
                candidates.update(table.values() if name is None else filter(None, [table.get(name)]))
        if client_id == "":
            return frozenset(candidate for candidate in candidates if candidate.level in USER_LEVELS)
        return frozenset(candidates)

    def resolve_partly(self, user: str | None, client_id: str | None) -> Resolved | None:
        """Resolve a client of which a name is not known (``None``). Return ``None`` when the name would change the answer."""
        if user is not None and client_id is not None:
            return self.resolve(user, client_id)
        # Weaker levels never decide, so only what may come before the user's own level, or before client ids, is in the way.
        candidates = sorted(self.touches(user, client_id), key=lambda candidate: candidate.level)
        strongest = candidates[0] if candidates else None
        if strongest is None:
            return Resolved(bucket=BucketName(user=user or "", client_id=client_id or ""))
        shared = USER_LEVELS if client_id is None else CLIENT_LEVELS
        if (user is None and client_id is None) or strongest.level not in shared:
            return None
        bucket = BucketName(user=user or "", client_id="") if client_id is None else BucketName(user="", client_id=client_id)
        return Resolved(bucket=bucket, winner=strongest, overridden=tuple(candidates[1:]))

    def _pairs(self, table: dict[object, Candidate], user: str | None, client_id: str | None) -> list[Candidate]:
        if user is not None and client_id is not None:
            return list(filter(None, [table.get((user, client_id))]))
        if self._pairs_of is None:
            self._pairs_of = ({}, {})
            for pair, candidate in table.items():
                for index, name in zip(self._pairs_of, pair if isinstance(pair, tuple) else (), strict=True):
                    index.setdefault(name, []).append(candidate)
        by_user, by_client = self._pairs_of
        return by_user.get(user, []) if client_id is None else by_client.get(client_id, [])

    @property
    def enabled(self) -> bool:
        """False when no entity carries the key: the broker then measures no client."""
        return bool(self._used)

    def resolve(self, user: str, client_id: str) -> Resolved:
        """The winner for a principal's name (without its type) and a client id (empty when the client sent none)."""
        winner = self.winner(user, client_id)
        overridden = tuple(c for c in self.candidates(user, client_id) if c is not None and c is not winner)
        grouped_by = _grouped_by(winner) if winner else self._unlimited_grouped_by(user, client_id)
        bucket = BucketName(
            user="" if grouped_by is GroupedBy.CLIENT_ID else user, client_id="" if grouped_by is GroupedBy.USER else client_id
        )
        return Resolved(bucket=bucket, winner=winner, overridden=overridden)

    def winner(self, user: ClientName, client_id: ClientName) -> Candidate | None:
        """The quota that applies, without what it overrides. ``None``: unlimited.

        The broker looks the limit up by the tags of the bucket, not by the client: an empty client id leaves only the user's tag,
        and so finds only quotas of users. For all others that is the first level that has a quota.
        """
        names = (None, user, client_id, (user, client_id))
        for by, table in self._used if client_id != "" else self._used_without_client_id:
            candidate = table.get(names[by])
            if candidate is not None:
                return candidate
        return None

    def candidates(self, user: ClientName, client_id: ClientName) -> tuple[Candidate | None, ...]:
        """Return what each level has for a client, also what an empty client id escapes. ``None``: nothing is set."""
        names = (None, user, client_id, (user, client_id))
        return tuple(table.get(names[by]) for by, table in zip(_LOOKED_UP_BY, self._levels, strict=True))

    def limit_of_group(self, user: str | None, client_id: str | None) -> Candidate | None:
        """The quota of a quota group, known by its tags, of which ``None`` is absent. ``None``: unlimited.

        As ``quotaLimit`` of ``DefaultQuotaCallback``: only levels that group by the same tags decide.
        """
        if not user and not client_id:
            return None
        grouped_by = GroupedBy.USER if not client_id else GroupedBy.CLIENT_ID if not user else GroupedBy.USER_AND_CLIENT_ID
        candidates = self.candidates(user or OTHER, client_id or OTHER)
        return next((c for c in candidates if c is not None and _grouped_by(c) is grouped_by), None)

    def grouped_by(self, user: ClientName, client_id: ClientName) -> GroupedBy:
        """The tags of a client's quota group. A pair with an empty client-id is the group of the user."""
        winner = self.winner(user, client_id)
        tags = _grouped_by(winner) if winner else self._unlimited_grouped_by(user, client_id)
        return GroupedBy.USER if tags is GroupedBy.USER_AND_CLIENT_ID and client_id == "" else tags

    def groups_as(self, other: Resolver) -> bool:
        """Whether both put each client into the same quota group, because they have quotas of the same entities."""
        same = all(level.keys() == earlier.keys() for level, earlier in zip(self._levels, other._levels, strict=True))
        return same and self.kinds == other.kinds

    def names_of_level(self, number: int) -> Collection[Any]:
        """The names that quotas of one level have: users, client-ids, or at level 1 pairs of both."""
        return self._levels[number - 1].keys()

    def hidden(self, user: ClientName, client_id: ClientName, winner: Candidate) -> list[Candidate]:
        """Return the limits that would apply in turn without the winner, the strongest first, without those that it escapes."""
        names = (None, user, client_id, (user, client_id))
        searched = self._used if client_id != "" else self._used_without_client_id
        candidates = (table.get(names[by]) for by, table in searched)
        return [candidate for candidate in candidates if candidate is not None and candidate.level > winner.level]

    def _unlimited_grouped_by(self, user: ClientName, client_id: ClientName) -> GroupedBy:
        """The names whose tags the broker gives to a client without a limit."""
        # With one kind of quota in use the broker does not look further: every client gets that kind's tags, limited or not.
        kinds = self.kinds
        if len(kinds) == 1:
            return next(iter(kinds))
        # What is set here is what an empty client id escapes: it shapes the tags all the same.
        return next((_grouped_by(c) for c in self.candidates(user, client_id) if c), GroupedBy.CLIENT_ID)


def _tables(quotas: QuotaTable, keys: Iterable[str]) -> dict[str, _Levels]:
    tables: dict[str, _Levels] = {key: tuple({} for _ in CLIENT_PRECEDENCE) for key in keys}
    for entity, values in quotas.items():
        names = client_names(entity)
        if names is None:
            continue
        for key, value in values.items():
            if key in tables:
                _put(tables[key], names, entity, value)
    return tables


def _used(levels: _Levels) -> tuple[list[_Searched], list[_Searched]]:
    """The levels in use, from the strongest: all of them, and those that an empty client-id meets."""
    used = [(level, (by, table)) for level, by, table in zip(CLIENT_PRECEDENCE, _LOOKED_UP_BY, levels, strict=True) if table]
    return [searched for _, searched in used], [searched for level, searched in used if level.grouped_by is GroupedBy.USER]


def _grouped_by(candidate: Candidate) -> GroupedBy:
    return CLIENT_PRECEDENCE[candidate.level - 1].grouped_by


def _put(levels: _Levels, names: tuple[EntityName | None, EntityName | None], entity: Entity, value: float) -> None:
    level = level_of_names(*names).number
    levels[level - 1][_place(level - 1, names)] = Candidate(entity=entity, value=value, level=level)


def _place(at: int, names: tuple[EntityName | None, EntityName | None]) -> object:
    """Return the key of an entity in the table of its level."""
    by = _LOOKED_UP_BY[at]
    return names if by == _OF_PAIR else (None, *names)[by]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressAnswer:
    """The quotas about an address, the winner first; ``unclear``: spellings of it that disagree, of which one is in effect."""

    candidates: tuple[Candidate, ...] = ()
    unclear: tuple[Candidate, ...] = ()


class AddressTable:
    """All connection limits of a state, by the addresses that they are about."""

    def __init__(self, quotas: QuotaTable) -> None:
        self._by_place: dict[object, list[Candidate]] = {}
        for entity, values in quotas.items():
            (entity_type, name), *others = entity.parts
            value = values.get(ADDRESS_KEY)
            if entity_type != EntityType.IP or others or value is None:
                continue
            level = 1 + ADDRESS_PRECEDENCE.index(NameMatch.DEFAULT if name is DEFAULT else NameMatch.NAME)
            self._by_place.setdefault(_place_of(name), []).append(Candidate(entity=entity, value=value, level=level))

    @property
    def host_names(self) -> tuple[Entity, ...]:
        """Limits of host names: which address they are about only the brokers know."""
        hosts = (candidates[0].entity for place, candidates in self._by_place.items() if isinstance(place, str))
        return tuple(sorted(hosts, key=lambda entity: entity.sort_key))

    def winner(self, name: object) -> Candidate | None:
        """Return the limit of an address or host name (else: of any that no quota names). ``None``: off, or unclear."""
        answer = self.resolve(name)
        return answer.candidates[0] if answer.candidates and not answer.unclear else None

    def resolve(self, name: object) -> AddressAnswer:
        """The quotas about an address in any spelling, or about a host name in just this one."""
        spellings = self._by_place.get(_place_of(name), []) if isinstance(name, str) else []
        explicit = sorted(
            spellings, key=lambda candidate: (candidate.entity.name(EntityType.IP) != name, candidate.entity.sort_key)
        )
        unclear = () if all(same_value(c.value, explicit[0].value) for c in explicit) else tuple(explicit)
        return AddressAnswer(candidates=(*explicit[:1], *self._by_place.get(DEFAULT, ())), unclear=unclear)


def _place_of(name: object) -> object:
    """Return the address of a literal, and other names as they are."""
    return literal_address(name) or name if isinstance(name, str) else name


def canonical_address(name: str) -> str:
    """One spelling for each address; a name that is not a literal address stays as it is."""
    return str(literal_address(name) or name)


def unclear_addresses(tables: Sequence[AddressTable], names: Iterable[str]) -> Mapping[str, str]:
    """Return why limits are not known, by canonical address: its spellings have different limits in one of the tables."""
    reasons = {}
    for name in sorted({canonical_address(name) for name in names}):
        spellings = next((unclear for table in tables if (unclear := table.resolve(name).unclear)), ())
        if spellings:
            entities = ", ".join(sorted(str(candidate.entity) for candidate in spellings))
            reasons[name] = f"{entities} are one address with different limits. In each broker the one applied last decides"
    return reasons


class AddressLimits:
    """The connection limits of addresses, resolved like those of clients: a quota group, and its limit.

    A broker counts connections by address: its own limit, else that of the default address, one bucket for each address.

    Where two spellings of an address have different limits, the last one applied is in effect. That is not known, so the lower
    one is taken. What is set for a host name is about no address that is known here.
    """

    def __init__(self, quotas: QuotaTable) -> None:
        self._table = AddressTable(quotas)

    def resolve(self, address: str, /) -> Resolved:
        """The bucket and limit of an address, in any spelling."""
        answer = self._table.resolve(address)
        bucket = BucketName(user="", client_id="", other=((EntityType.IP.value, canonical_address(address)),))
        if answer.unclear:
            lower, *others = sorted(answer.unclear, key=lambda match: match.value)
            return Resolved(bucket=bucket, winner=lower, overridden=tuple(others))
        return Resolved(
            bucket=bucket, winner=answer.candidates[0] if answer.candidates else None, overridden=answer.candidates[1:]
        )


class LimitLookup(Protocol):
    """The quota groups and limits of clients for one key: by Kafka's eight levels, or by a quota callback."""

    def resolve(self, user: str, client_id: str, /) -> Resolved:
        """Return the quota group and the limit of a client."""


class BrokerLimits:
    """Limits by broker, where each may see the cluster differently, as with a quota callback."""

    def __init__(self, by_broker: Mapping[int, LimitLookup]) -> None:
        self._by_broker = by_broker

    def at(self, broker: int) -> LimitLookup:
        """Return the limits of one broker."""
        return self._by_broker[broker]
