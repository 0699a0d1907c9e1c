"""States to resolve against, and two of them compared client by client.

The difference of two states is the calculation of a plan's effects (``effects_between``), grouped by client.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.model import (
    ClusterIdentity,
    Effect,
    Entity,
    EntityType,
    Known,
    KnownAddress,
    KnownClient,
    LeaderSpread,
    Observed,
    Quotas,
    QuotaUnit,
    ValueExpiry,
)
from reconciler.resolution.effective_quotas import KEYS, Caveats, EffectiveQuotas
from reconciler.resolution.effects import address_effect, effect_of, effects_between
from reconciler.resolution.kafka_names import entity_of
from reconciler.resolution.resolver import ADDRESS_KEY, QuotaTable, unclear_addresses


class ViewKind(enum.StrEnum):
    """What a state is."""

    CLUSTER = "cluster"
    SNAPSHOT = "snapshot"
    MANIFESTS = "manifests"
    """What is declared, and nothing else."""
    PLANNED = "planned"
    """A cluster, or a snapshot, after the plan of the manifests was applied to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaView:
    """One state to resolve against, and notes about it. ``observed``: ``None`` for manifests alone."""

    kind: ViewKind
    """What was asked: a cluster, a recorded snapshot, the manifests alone, or one of the first two after the plan of the
    manifests.
    """
    entities: Mapping[Entity, Quotas]
    cluster: ClusterIdentity = field(default_factory=ClusterIdentity)
    """``None`` for what is not known."""
    observed: Observed | None = None
    """When (UTC) and from where the quotas were read. ``None`` for manifests alone."""
    caveats: Caveats = field(default_factory=Caveats)
    notes: tuple[str, ...] = ()
    profiles: Mapping[tuple[Entity, str], str] = field(default_factory=dict)
    """By entity and key, from which profile a manifest has the value."""
    units: Mapping[tuple[Entity, str], QuotaUnit] = field(default_factory=dict)
    """By entity and key, what a manifest's value was computed from."""
    expiries: Mapping[tuple[Entity, str], ValueExpiry] = field(default_factory=dict)
    """By entity and key, when a value expires, by the manifests."""
    brokers: tuple[int, ...] = ()
    """Ids of the brokers that were up. Empty: not known."""
    leaders: LeaderSpread | None = None
    """Which brokers lead partitions, where that was read."""

    def answers(self) -> EffectiveQuotas:
        """Build the tables of the quotas. Keep them for many questions."""
        return EffectiveQuotas(self.entities, self.caveats, self.profiles, self.units, self.expiries)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDifference:
    """One client whose limits differ. ``unknown``: keys whose limit is not known in one of the states, and why."""

    entity: Entity
    client: Known
    effects: tuple[Effect, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitDifferences:
    """Differences of two states.

    ``unknown``: why those of users and client-ids are not known. ``left_out``: how many effects are not listed.
    """

    clients: tuple[ClientDifference, ...] = ()
    unknown: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewComparison:
    """Two states and whose limits differ between them. ``asked``: how many were asked about. ``None``: all known clients."""

    before: QuotaView
    """The first state."""
    after: QuotaView
    """The second state."""
    comparison: LimitDifferences
    asked: int | None
    """``None``: all known clients of both states."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the comparison covers and what it does not."""


def compare(before: EffectiveQuotas, after: EffectiveQuotas, asked: Iterable[tuple[Entity, Known]]) -> LimitDifferences:
    """The clients of ``asked`` whose limits differ between two states, in the order of ``asked``."""
    unknown = before.caveats.callback or after.caveats.callback
    clients = (_difference(before, after, entity, client, resolvable=unknown is None) for entity, client in asked)
    return LimitDifferences(clients=tuple(client for client in clients if client.effects or client.unknown), unknown=unknown)


def compare_known(before: EffectiveQuotas, after: EffectiveQuotas, *, most: int) -> LimitDifferences:
    """All known clients of both states: first those that no entity names, then tighter limits first. Addresses at the end.

    At most ``most`` effects are listed. The rest is counted in ``left_out``.
    """
    unknown = before.caveats.callback or after.caveats.callback
    sides = [side.quotas if unknown is None else _of_addresses(side.quotas) for side in (before, after)]
    plan_effects = effects_between(*sides, most=most)
    effects: dict[Known, list[Effect]] = {}
    for effect in plan_effects.effects:
        effects.setdefault(effect.client, []).append(effect)
    clients = [_difference_of(client, of_client) for client, of_client in effects.items() if isinstance(client, KnownClient)]
    addresses = [_difference_of(client, of_client) for client, of_client in effects.items() if isinstance(client, KnownAddress)]
    addresses += _unclear(before, after)
    addresses.sort(key=lambda difference: difference.entity.sort_key)
    return LimitDifferences(clients=(*clients, *addresses), unknown=unknown, left_out=plan_effects.left_out)


def _difference_of(client: Known, effects: Iterable[Effect]) -> ClientDifference:
    return ClientDifference(entity=entity_of(client), client=client, effects=tuple(effects))


def _of_addresses(quotas: QuotaTable) -> QuotaTable:
    return {entity: values for entity, values in quotas.items() if entity.types == (EntityType.IP.value,)}


def _unclear(before: EffectiveQuotas, after: EffectiveQuotas) -> Iterator[ClientDifference]:
    """Addresses whose effect is not known, those of unchanged entities included: the states may be of two clusters."""
    of_addresses = (entity.name(EntityType.IP) for entity in before.quotas.keys() | after.quotas.keys())
    names = (name for name in of_addresses if isinstance(name, str))
    for name, reason in unclear_addresses((before.addresses, after.addresses), names).items():
        client = KnownAddress(ip=name)
        yield ClientDifference(entity=entity_of(client), client=client, effects=(), unknown={ADDRESS_KEY: reason})


def _difference(
    before: EffectiveQuotas, after: EffectiveQuotas, entity: Entity, client: Known, *, resolvable: bool
) -> ClientDifference:
    if isinstance(client, KnownAddress):
        reason = before.reason_of_address(client) or after.reason_of_address(client)
        if reason is not None:
            return ClientDifference(entity=entity, client=client, effects=(), unknown={ADDRESS_KEY: reason})
        moved = address_effect(before.addresses, after.addresses, client)
        return ClientDifference(entity=entity, client=client, effects=() if moved is None else (moved,))
    return ClientDifference(entity=entity, client=client, effects=tuple(_effects(before, after, client)) if resolvable else ())


def _effects(before: EffectiveQuotas, after: EffectiveQuotas, client: KnownClient) -> Iterator[Effect]:
    for key in KEYS:
        winners = (side.resolvers[key].winner(client.user, client.client_id) for side in (before, after))
        if (effect := effect_of(client, key, *winners)) is not None:
            yield effect
