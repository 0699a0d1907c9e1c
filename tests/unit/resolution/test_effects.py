"""Effects by example: Kafka's own truth table step by step, directions, representatives, and what is left out."""

from __future__ import annotations

import math

import pytest

from reconciler.model.effect import OTHER, Direction, Effect, KnownAddress, KnownClient, Limit, LimitRange
from reconciler.resolution.effects import effects_between, unclear_effects
from tests.builders import ip, user

KEY = "producer_byte_rate"
APP = KnownClient(user="alice", client_id="app")


def limit(value: float, level: int = 3) -> Limit:
    return Limit(value=value, entity=user("alice"), level=level)


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


def test_two_spellings_of_one_address_are_one_address() -> None:
    rate = "connection_creation_rate"
    respelled = effects_between({ip("::ffff:a00:1"): {rate: 50.0}}, {ip("10.0.0.1"): {rate: 10.0}}).effects
    assert [(e.client, e.before and e.before.value, e.after and e.after.value) for e in respelled] == [
        (KnownAddress(ip="10.0.0.1"), 50.0, 10.0)
    ]
    before, after = {ip("::ffff:a00:1"): {rate: 50.0}}, {ip("::ffff:a00:1"): {rate: 50.0}, ip("10.0.0.1"): {rate: 10.0}}
    assert effects_between(before, after).effects == ()
    (reason,) = unclear_effects(before, after)
    assert "ip=10.0.0.1, ip=::ffff:a00:1 are one address with different limits" in reason


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
