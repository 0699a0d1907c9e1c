"""Effects by example: Kafka's own truth table step by step, directions, representatives, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from reconciler.model.effect import OTHER, Direction, Effect, KnownAddress, KnownClient, Limit, LimitRange
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.effective_quotas import EffectiveQuotas
from reconciler.resolution.effects import effects_between, unclear_effects
from reconciler.resolution.kafka_names import entity_of
from reconciler.resolution.resolver import QuotaTable
from reconciler.resolution.views import compare
from tests.builders import client, ip, pair, user

KEY = "producer_byte_rate"
APP = KnownClient(user="alice", client_id="app")


def limit(value: float, level: int = 3) -> Limit:
    return Limit(value=value, entity=user("alice"), level=level)


STEPS: list[tuple[Entity, list[tuple[int | None, int | None] | None]]] = [
    (client(), [(None, 1), (None, 1), (None, 1)]),
    (client("app"), [(1, 2), (1, 2), None]),
    (user(), [(2, 3), (2, 3), (1, 3)]),
    (pair(DEFAULT, DEFAULT), [(3, 4), (3, 4), (3, 4)]),
    (pair(DEFAULT, "app"), [(4, 5), (4, 5), None]),
    (user("alice"), [(5, 6), None, None]),
    (pair("alice", DEFAULT), [(6, 7), None, None]),
    (pair("alice", "app"), [(7, 8), None, None]),
]
"""The table that Kafka's own class printed, as moves: entities added with limits 1 to 8; rows alice/app, bob/app, bob/x."""


def moves(before: QuotaTable, after: QuotaTable, known: Sequence[KnownClient | KnownAddress]) -> list[Effect]:
    compared = compare(EffectiveQuotas(before), EffectiveQuotas(after), [(entity_of(client), client) for client in known])
    return [effect for one in compared.clients for effect in one.effects]


def test_the_truth_table_step_by_step_is_moves() -> None:
    known = [APP, KnownClient(user="bob", client_id="app"), KnownClient(user="bob", client_id="x")]
    tables = [{e: {KEY: float(i + 1)} for i, (e, _) in enumerate(STEPS[:n])} for n in range(len(STEPS) + 1)]
    for before, after, (entity, expected) in zip(tables, tables[1:], STEPS, strict=False):
        found = {e.client: (e.before and e.before.value, e.after and e.after.value) for e in moves(before, after, known)}
        assert found == {c: move for c, move in zip(known, expected, strict=True) if move is not None}
        assert all(e.after is not None and e.after.entity == entity for e in moves(before, after, known))


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        (None, limit(5), Direction.FIRST_LIMIT),
        (limit(5), None, Direction.REMOVED),
        (limit(5), limit(4), Direction.TIGHTENS),
        (limit(5), limit(6), Direction.LOOSENS),
        (limit(5), limit(5, level=1), Direction.OTHER_SOURCE),
        (limit(math.nan), limit(5), Direction.TIGHTENS),
        (limit(5), limit(math.nan), Direction.LOOSENS),
        (limit(math.nan), limit(math.inf), Direction.OTHER_SOURCE),
    ],
)
def test_a_direction_says_what_a_move_means_to_the_client(
    before: Limit | None, after: Limit | None, direction: Direction
) -> None:
    assert Effect(client=APP, key=KEY, before=before, after=after).direction is direction


def test_a_cut_below_a_default_client_id_moves_the_clients_that_send_none() -> None:
    before = {user("alice"): {KEY: 9.0}, pair("alice", DEFAULT): {KEY: 5.0}}
    (found,) = effects_between(before, {**before, user("alice"): {KEY: 4.0}}).effects
    assert (found.client, found.direction) == (KnownClient(user="alice", client_id=""), Direction.TIGHTENS)


def test_two_spellings_of_one_address_are_one_address() -> None:
    rate = "connection_creation_rate"
    respelled = effects_between({ip("010.0.0.1"): {rate: 50.0}}, {ip("10.0.0.1"): {rate: 10.0}}).effects
    assert [(e.client, e.before and e.before.value, e.after and e.after.value) for e in respelled] == [
        (KnownAddress(ip="10.0.0.1"), 50.0, 10.0)
    ]
    before, after = {ip("010.0.0.1"): {rate: 50.0}}, {ip("010.0.0.1"): {rate: 50.0}, ip("10.0.0.1"): {rate: 10.0}}
    assert effects_between(before, after).effects == ()
    (reason,) = unclear_effects(before, after)
    assert "ip=010.0.0.1, ip=10.0.0.1 are one address with different limits" in reason


def test_a_limit_above_any_network_moves_nobody() -> None:
    before = {user(f"u{i}"): {"consumer_byte_rate": 1.0} for i in range(2_000)}
    default = {user(): {KEY: 1e12}}
    assert effects_between(before, {**before, **default}).effects == ()
    assert effects_between({**before, **default}, before).effects == ()
    assert effects_between({**before, **default}, {**before, user(): {KEY: 2e15}}).effects == ()
    tightened = effects_between({**before, **default}, {**before, user(): {KEY: 9.0}})
    assert {effect.direction for effect in tightened.effects} == {Direction.TIGHTENS}
    assert tightened.left_out == 2_000 + 2 - 1_000


def test_effects_of_one_cause_are_counted_beyond_those_that_are_listed() -> None:
    before = {user(f"u{i}"): {"consumer_byte_rate": 1.0} for i in range(2_000)}
    (group,) = effects_between(before, {**before, user(): {KEY: 9.0}}, most=50).groups
    assert (group.clients, group.direction, group.before, group.key) == (2_002, Direction.FIRST_LIMIT, None, KEY)
    assert group.examples[0] == KnownClient(user=OTHER, client_id=OTHER)


def test_clients_that_lose_limits_of_their_own_are_one_cause() -> None:
    own = {user(name): {KEY: value} for name, value in (("a", 1.0), ("b", 5.0), ("c", 3.0))}
    default = {user(): {KEY: 9.0}}
    (group,) = effects_between({**own, **default}, default).groups
    assert (group.clients, group.before, group.direction) == (
        3,
        LimitRange(lowest=1.0, highest=5.0, entity=None),
        Direction.LOOSENS,
    )
