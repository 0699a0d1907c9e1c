"""Who sends what under which quotas. The names are of services; each is a user who logs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.fidelity.arrivals import Bursts, Client, Poisson, Timer
from reconciler.features.callbacks.callback import GroupQuotaCallback, callback_limits
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.reserved_users import GroupLimit, GroupMember, MemberKind, is_reserved, reserved_entity
from reconciler.resolution.resolver import LimitLookup, Resolver

Quotas = Mapping[Entity, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Clients, which send to all brokers, and the quotas of the second run on a single one."""

    name: str
    clients: tuple[Client, ...]
    quotas: Quotas

    def quotas_on(self, brokers: int) -> Quotas:
        """Values are per broker: so that as much is throttled by several, each has its share. Byte rates are whole."""
        return {
            entity: {key: float(round(value / brokers)) if brokers > 1 else value for key, value in values.items()}
            for entity, values in self.quotas.items()
        }

    @property
    def users(self) -> tuple[str, ...]:
        return tuple(sorted({client.user for client in self.clients}))


def uses_groups(quotas: Quotas) -> bool:
    """Whether brokers need the plugin for these."""
    return any(is_reserved(entity) for entity in quotas)


def limits_of(quotas: Quotas) -> Mapping[str, LimitLookup]:
    """By key, who shares which limit: by Kafka's levels, or with groups between them."""
    keys = sorted({key for values in quotas.values() for key in values})
    if not uses_groups(quotas):
        return Resolver.by_key(quotas, keys)
    tables = callback_limits(GroupQuotaCallback, quotas, {1: None})
    return {key: tables[key].at(1) for key in keys}


def _produce(user: str, client_id: str, pattern: Poisson | Bursts | Timer, size: int, *, acks: int = 1) -> Client:
    return Client(user=user, client_id=client_id, kind="produce", pattern=pattern, size=size, acks=acks)


def _fetch(user: str, client_id: str, pattern: Poisson | Bursts | Timer, size: int) -> Client:
    return Client(user=user, client_id=client_id, kind="fetch", pattern=pattern, size=size)


_PRODUCE = "producer_byte_rate"
_CONSUME = "consumer_byte_rate"

_MIXED_CLIENTS = (
    # One bucket of two clients: steady, and in bursts that take it over its limit.
    _produce("orders", "orders-api", Poisson(rate=10), 2_500),
    _produce("orders", "orders-batch", Bursts(every_s=17, length_s=4, rate=14), 9_000),
    # A bucket for each client id: over its limit nearly always, never, and without acknowledgements.
    _produce("billing", "billing-steady", Poisson(rate=8), 5_800),
    _produce("billing", "billing-small", Poisson(rate=4), 2_000),
    _produce("billing", "billing-metrics", Poisson(rate=5), 8_200, acks=0),
    # The limit of every other user, each with a bucket of its own.
    _produce("audit", "audit-trail", Poisson(rate=6), 9_000, acks=-1),
    _produce("ledger", "ledger-close", Bursts(every_s=14, length_s=3, rate=16), 16_000, acks=-1),
    _produce("ledger", "ledger-close", Poisson(rate=3), 3_000),
    # Fixed timers: on the border of a sample all the time.
    _produce("sensors", "tick-100", Timer(period_s=0.1), 2_500),
    _produce("sensors", "tick-250", Timer(period_s=0.25), 6_000),
    _produce("sensors", "tick-1000", Timer(period_s=1.0), 24_000),
    _fetch("reports", "reports-page", Poisson(rate=8), 7_000),
    _fetch("reports", "reports-export", Bursts(every_s=16, length_s=3, rate=12), 25_000),
    _fetch("mirror", "mirror-bursts", Bursts(every_s=13, length_s=2, rate=16), 30_000),
    _fetch("mirror", "mirror-small", Poisson(rate=4), 6_000),
    # More in one answer than ten seconds of the limit: the broker cuts it to just that.
    _fetch("mirror", "mirror-huge", Timer(period_s=13.7), 1_500_000),
    _fetch("sensors", "poll-500", Timer(period_s=0.5), 22_000),
    # Nobody limits what this one reads.
    _fetch("ledger", "ledger-view", Poisson(rate=3), 20_000),
)
_MIXED_QUOTAS: Quotas = {
    Entity.of({"user": "orders"}): {_PRODUCE: 60_000.0},
    Entity.of({"user": "billing", "client-id": DEFAULT}): {_PRODUCE: 40_000.0},
    Entity.of({"user": DEFAULT}): {_PRODUCE: 50_000.0},
    Entity.of({"user": "sensors", "client-id": DEFAULT}): {_PRODUCE: 24_000.0, _CONSUME: 44_000.0},
    Entity.of({"user": "reports"}): {_CONSUME: 120_000.0},
    Entity.of({"user": "mirror", "client-id": DEFAULT}): {_CONSUME: 80_000.0},
}

MIXED = Scenario(name="mixed", clients=_MIXED_CLIENTS, quotas=_MIXED_QUOTAS)
"""Produce and fetch, acknowledged by nobody, the leader and all; steady, in bursts and by timers."""

REQUEST_TIME = Scenario(
    name="request-time",
    clients=(
        _produce("orders", "orders-api", Poisson(rate=60), 1_000),
        _produce("orders", "orders-batch", Bursts(every_s=14, length_s=4, rate=60), 4_000),
        _produce("billing", "billing-steady", Poisson(rate=40), 1_000),
        _fetch("reports", "reports-page", Poisson(rate=40), 2_000),
        _produce("audit", "audit-trail", Poisson(rate=10), 1_000),
        _produce("ledger", "ledger-quiet", Poisson(rate=20), 1_000, acks=0),
    ),
    quotas={
        Entity.of({"user": "orders"}): {"request_percentage": 2.0},
        Entity.of({"user": "billing"}): {"request_percentage": 0.5},
        Entity.of({"user": "reports", "client-id": DEFAULT}): {"request_percentage": 0.5},
        # Far above what they take: must stay free.
        Entity.of({"user": "audit"}): {"request_percentage": 100.0},
        Entity.of({"user": DEFAULT}): {"request_percentage": 100.0},
    },
)
"""Limits of request time, which depends on the machine: two buckets far over theirs, one near it, two far below."""

_MEMBER = {"controller_mutation_rate": 1.0}

GROUPS = Scenario(
    name="groups",
    clients=(
        # One group of two users, steady and in bursts, each below the limit for itself.
        _produce("orders", "orders-api", Poisson(rate=10), 2_500),
        _produce("billing", "billing-batch", Bursts(every_s=17, length_s=4, rate=14), 9_000),
        # A group by the beginning of names, with and without acknowledgements, and a member with a quota of its own.
        _produce("svc-audit", "audit-trail", Poisson(rate=6), 6_000, acks=-1),
        _produce("svc-metrics", "metrics", Poisson(rate=5), 5_000, acks=0),
        _produce("svc-ledger", "ledger-close", Bursts(every_s=14, length_s=3, rate=16), 16_000, acks=-1),
        # A group of client-ids of two users, which reads.
        _fetch("reports", "page", Poisson(rate=8), 7_000),
        _fetch("mirror", "page", Bursts(every_s=16, length_s=3, rate=12), 25_000),
        _fetch("mirror", "free", Poisson(rate=4), 6_000),
        # Beside the groups, for comparison.
        _produce("ledger", "ledger-view", Poisson(rate=10), 6_000),
    ),
    quotas={
        reserved_entity(GroupLimit(group="shop")): {_PRODUCE: 40_000.0},
        reserved_entity(GroupMember(group="shop", kind=MemberKind.USER, name="orders")): _MEMBER,
        reserved_entity(GroupMember(group="shop", kind=MemberKind.USER, name="billing")): _MEMBER,
        reserved_entity(GroupLimit(group="services")): {_PRODUCE: 45_000.0},
        reserved_entity(GroupMember(group="services", kind=MemberKind.USER_PREFIX, name="svc-")): _MEMBER,
        reserved_entity(GroupLimit(group="pages")): {_CONSUME: 90_000.0},
        reserved_entity(GroupMember(group="pages", kind=MemberKind.CLIENT_ID, name="page")): _MEMBER,
        Entity.of({"user": "svc-ledger"}): {_PRODUCE: 40_000.0},
        Entity.of({"user": "ledger"}): {_PRODUCE: 50_000.0},
    },
)
"""Groups of users, of prefixes and of client-ids, with the plugin on the brokers, and two quotas beside them."""
