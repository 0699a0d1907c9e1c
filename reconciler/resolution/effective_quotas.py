"""The effective quotas of a client: per key the value, the entity that sets it, its level and its quota group.

On request also what the winner overrides, and the ladder of all levels.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

from reconciler.model import (
    CLIENT_KEYS,
    DEFAULT,
    OTHER,
    Entity,
    EntityType,
    GroupPart,
    Known,
    KnownAddress,
    KnownClient,
    QuotaUnit,
    ValueExpiry,
)
from reconciler.resolution.kafka_names import client_of, literal_address
from reconciler.resolution.precedence import CLIENT_PRECEDENCE, GroupedBy
from reconciler.resolution.reserved_users import GroupedQuotas, GroupLimit, reserved_entity
from reconciler.resolution.resolver import ADDRESS_KEY, AddressTable, Candidate, QuotaTable, Resolver, unclear_addresses
from reconciler.resolution.sharing import Tags, known_clients, tags_of, tags_of_address

KEYS: Final = tuple(key.value for key in CLIENT_KEYS)
"""The keys of users and client ids, in the order of every answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveats:
    """Reasons why the effective quotas may differ from those of the state."""

    callback: str | None = None
    """About every key of users and client ids: brokers resolve those with code of their own. ``None``: they do not."""
    groups: bool = False
    """Brokers have the plugin of groups."""
    static_defaults: Mapping[str, str] = field(default_factory=dict)
    """By key, about clients with a client id that no quota limits: Kafka before 3.0 has settings of brokers for byte rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAnswer:
    """The limit of one key."""

    value: float
    """The limit per broker, in the unit of the key."""
    source: Entity
    """An entity of the state. ``None`` is the default entity of the type."""
    level: int
    """1 to 8 for users and client ids, 1 or 2 for addresses. 1 is the strongest."""
    bucket: Tags
    """The broker's metric tags, with raw names. A tag that is empty there is absent.

    Two clients share a limit on a broker exactly when these are equal. ``None``: whatever name the client has, so each such
    client has a bucket of its own.
    """
    overridden: tuple[Candidate, ...] | None = None
    """Limits that would apply without it, the strongest first. Only with --explain."""
    profile: str | None = None
    """The profile from which a manifest has the value."""
    unit: QuotaUnit | None = None
    """What a manifest's value was computed from."""
    expiry: ValueExpiry | None = None
    """When the value expires, by a manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The answer for one entity. A key that is neither in ``quotas`` nor in ``unknown`` is unlimited.

    ``unknown``: key to the reason why its limit is not known. ``ladder``: every key's levels, with the option ``explain``. Empty
    when the brokers resolve quotas otherwise.
    """

    entity: Entity
    """Who was asked about.

    ``None`` is any that no quota names. An empty or absent client-id is a client that sends none. An absent user is any that
    no quota names.
    """
    client: Known
    quotas: Mapping[str, KeyAnswer]
    """Quota key to the limit in effect. A key that is neither here nor in unknown is unlimited."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Quota key to the reason why its limit is not known."""
    ladder: Mapping[str, tuple[Rung, ...]] | None = None
    """Key to its levels, the strongest first. Only with --explain. Empty when the brokers do not go by them."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that there are for such an entity, limited or not."""
        return (ADDRESS_KEY,) if isinstance(self.client, KnownAddress) else KEYS


_NONE: Final = Caveats()
_NO_PROFILES: Final[Mapping[tuple[Entity, str], str]] = MappingProxyType({})
_NO_UNITS: Final[Mapping[tuple[Entity, str], QuotaUnit]] = MappingProxyType({})
_NO_EXPIRIES: Final[Mapping[tuple[Entity, str], ValueExpiry]] = MappingProxyType({})


class EffectiveQuotas:
    """The quotas of one state by client. Built once, then a few look-ups a client and key."""

    def __init__(
        self,
        quotas: QuotaTable,
        caveats: Caveats = _NONE,
        profiles: Mapping[tuple[Entity, str], str] = _NO_PROFILES,
        units: Mapping[tuple[Entity, str], QuotaUnit] = _NO_UNITS,
        expiries: Mapping[tuple[Entity, str], ValueExpiry] = _NO_EXPIRIES,
    ) -> None:
        """Set up the answers. ``profiles`` and ``units``, by entity and key: where the manifest has a value from."""
        self._expiries = expiries
        self._grouped = GroupedQuotas(quotas) if caveats.groups else None
        self.quotas = quotas if self._grouped is None else self._grouped.quotas
        self._units = units if self._grouped is None else {**units, **self._grouped.units}
        self._profiles = profiles
        self.caveats = caveats
        self.resolvers: Final = Resolver.by_key(self.quotas, KEYS)

    @cached_property
    def addresses(self) -> AddressTable:
        """The limits of connections."""
        return AddressTable(self.quotas)

    def answer(self, entity: Entity, *, explain: bool = False) -> Resolution:
        """The effective quotas of the client that ``entity`` stands for. ``explain``: with overridden quotas and the ladder.

        Raises ``ValueError`` for an entity that no connection can be: an empty name, an unknown type, an ip with another type.
        """
        client = client_of(entity)
        if isinstance(client, KnownAddress):
            return self._about_address(entity, client, explain=explain)
        if self._grouped is not None and self._grouped.has_prefixes:
            self._add_member(client)
        winners = {key: resolver.winner(client.user, client.client_id) for key, resolver in self.resolvers.items()}
        unknown = {key: reason for key, winner in winners.items() if (reason := self.reason(key, client, winner)) is not None}
        quotas = {
            key: self._key_answer(key, client, winner, explain=explain)
            for key, winner in winners.items()
            if winner is not None and key not in unknown
        }
        ladder = None
        if explain:
            known = {} if self.caveats.callback is not None else winners
            ladder = {key: client_ladder(self.resolvers[key], client, winner) for key, winner in known.items()}
        return Resolution(entity=entity, client=client, quotas=quotas, unknown=unknown, ladder=ladder)

    def reason(self, key: str, client: KnownClient, winner: Candidate | None) -> str | None:
        """Return why the winner of a client may not be its limit. ``None``: it is."""
        if self.caveats.callback is not None:
            return self.caveats.callback
        return self.caveats.static_defaults.get(key) if winner is None and client.client_id != "" else None

    def reason_of_address(self, address: KnownAddress) -> str | None:
        """The same for an address."""
        names = () if address.ip is OTHER else (address.ip,)
        return next(iter(unclear_addresses((self.addresses,), names).values()), None)

    def host_names_in_the_way(self, address: KnownAddress) -> tuple[Entity, ...]:
        """Entities of host names that may be about this address, which only the brokers know."""
        return () if address.ip is not OTHER and literal_address(address.ip) is None else self.addresses.host_names

    def known_clients(self) -> Iterator[tuple[Entity, Known]]:
        """Every entity of the state as a question, in canonical order. Also a user's other client ids, where those differ."""
        for entity, client in self._known:
            yield entity, client
            if entity.types == (EntityType.USER.value,) and isinstance(client, KnownClient):
                others = Entity.of({**dict(entity.parts), EntityType.CLIENT_ID.value: DEFAULT})
                if others not in self.quotas and self.otherwise(client):
                    yield others, client_of(others)

    def otherwise(self, client: KnownClient) -> tuple[str, ...]:
        """Keys whose limit changes when a client without a client id sends one that no quota names."""
        if client.client_id != "" or self.caveats.callback is not None:
            return ()
        return tuple(
            key
            for key, resolver in self.resolvers.items()
            if resolver.winner(client.user, OTHER) is not resolver.winner(client.user, "")
        )

    def _key_answer(self, key: str, client: KnownClient, winner: Candidate, *, explain: bool) -> KeyAnswer:
        unit = self._units.get((winner.entity, key))
        group = unit.group if isinstance(unit, GroupPart) and unit.members is None else None
        return KeyAnswer(
            value=winner.value,
            source=winner.entity if group is None else reserved_entity(GroupLimit(group=group)),
            level=winner.level,
            bucket=tags_of(client, winner.level) if group is None else {"group": group},
            overridden=tuple(self.resolvers[key].hidden(client.user, client.client_id, winner)) if explain else None,
            profile=self._profiles.get((winner.entity, key)),
            unit=unit,
            expiry=self._expiries.get((winner.entity, key)),
        )

    def _add_member(self, client: KnownClient) -> None:
        """Give a client that a prefix makes a member the limits of its group, where they come in precedence."""
        if self._grouped is None or not self._grouped.with_client(client):
            return
        self._units = {**self._units, **self._grouped.units}
        for entity_type, name in ((EntityType.USER, client.user), (EntityType.CLIENT_ID, client.client_id)):
            if name is OTHER or name == "":
                continue
            entity = Entity.of({entity_type.value: name})
            values = self._grouped.quotas.get(entity, {})
            for key, value in values.items():
                self.resolvers[key] = self.resolvers[key].changed({entity: value})

    def _about_address(self, entity: Entity, address: KnownAddress, *, explain: bool) -> Resolution:
        reason = self.reason_of_address(address)
        winner = self.addresses.winner(address.ip)
        quotas = {}
        if winner is not None:
            quotas[ADDRESS_KEY] = KeyAnswer(
                value=winner.value,
                source=winner.entity,
                level=winner.level,
                bucket=tags_of_address(address),
                overridden=self.addresses.resolve(address.ip).candidates[1:] if explain else None,
                profile=self._profiles.get((winner.entity, ADDRESS_KEY)),
                unit=self._units.get((winner.entity, ADDRESS_KEY)),
                expiry=self._expiries.get((winner.entity, ADDRESS_KEY)),
            )
        return Resolution(
            entity=entity,
            client=address,
            quotas=quotas,
            unknown={} if reason is None else {ADDRESS_KEY: reason},
            ladder={ADDRESS_KEY: address_ladder(self.addresses, address)} if explain else None,
        )

    @cached_property
    def _known(self) -> list[tuple[Entity, Known]]:
        return list(known_clients(self.quotas))


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
    """One level. ``entity``: what would have to be set there for this client. ``None`` when nothing can be."""

    level: int
    """1 to 8 for users and client ids, 1 or 2 for addresses. 1 is the strongest."""
    entity: Entity | None
    """What would have to be set there for this client. ``None`` when nothing can be."""
    value: float | None
    """The value that is set there. ``None`` when none is."""
    status: RungStatus
    """Wins: the limit in effect. Hidden: set, and overridden by a stronger level. Unset: not set. Not-applicable: no quota
    can be set there for this client.
    """


def client_ladder(resolver: Resolver, client: KnownClient, winner: Candidate | None) -> tuple[Rung, ...]:
    """The eight levels, the strongest first."""
    user, client_id = client.user, client.client_id
    set_there = zip(CLIENT_PRECEDENCE, resolver.candidates(user, client_id), strict=True)
    return tuple(
        _rung(
            level.number,
            level.entity_for(user, client_id),
            candidate,
            winner,
            is_met=client_id != "" or level.grouped_by is GroupedBy.USER,
        )
        for level, candidate in set_there
    )


def address_ladder(table: AddressTable, address: KnownAddress) -> tuple[Rung, ...]:
    """The two levels of connection limits."""
    by_level = {candidate.level: candidate for candidate in table.resolve(address.ip).candidates}
    own = None if address.ip is OTHER else Entity.of({EntityType.IP: address.ip})
    winner, entities = table.winner(address.ip), (own, Entity.of({EntityType.IP: DEFAULT}))
    return tuple(
        _rung(number, held.entity if (held := by_level.get(number)) else entity, held, winner)
        for number, entity in enumerate(entities, start=1)
    )


def _rung(level: int, entity: Entity | None, held: Candidate | None, winner: Candidate | None, *, is_met: bool = True) -> Rung:
    if entity is None or not is_met:
        status = RungStatus.NOT_APPLICABLE
    elif held is None:
        status = RungStatus.UNSET
    else:
        status = RungStatus.WINS if held is winner else RungStatus.HIDDEN
    return Rung(level=level, entity=entity, value=held.value if held else None, status=status)
